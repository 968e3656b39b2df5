"""Pair expectations against panel quadrature over the plane of w and w', split at every kink."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core, activations
from mfcore.network import Network
from numpy.polynomial import HermiteE, Polynomial
from numpy.polynomial.legendre import leggauss
from problems import density
from scipy import special

HERMITE = [0.1, 0.2, 0.3, -0.4, 0.5]
HERMITE_E = HermiteE([c / math.sqrt(math.factorial(k)) for k, c in enumerate(HERMITE)])
POLYNOMIAL = Polynomial([0.3, -1, 0.5, 0.2])
NODES, WEIGHTS = leggauss(20)


def pieces(offset, slope, *kinks):
    """σ, σ' and the knots of a piecewise linear activation, kinks = (knot, jump) pairs."""
    return (
        lambda t: offset + slope * t + sum(jump * np.maximum(t - knot, 0) for knot, jump in kinks),
        lambda t: slope + sum(jump * (t > knot) for knot, jump in kinks),
        [knot for knot, _ in kinks],
    )


def gelu(t):
    return t * special.ndtr(t)


def gelu_slope(t):
    return special.ndtr(t) + t * density(t)


def sigmoid_slope(t):
    return special.expit(t) * special.expit(-t)


# name: (activation, (σ, σ', points where the reference splits its panels))
CASES = {
    "linear": (activations.linear, (lambda t: t, np.ones_like, [])),
    "relu": (activations.relu, pieces(0, 0, (0, 1))),
    "step": (activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5]), pieces(-2.5, 0, (0.5, 10), (1.5, -10))),
    "bent": (
        activations.piecewise_linear([0.0, 1.0], [0.0, 0.3], left_slope=0.2, right_slope=-1.0),
        pieces(0, 0.2, (0, 0.1), (1, -1.3)),
    ),
    "erf": (activations.erf, (special.erf, lambda t: 2 / math.sqrt(math.pi) * np.exp(-t * t), [0.0])),
    "gelu": (activations.gelu, (gelu, gelu_slope, [0.0])),
    "tanh": (activations.tanh, (np.tanh, lambda t: 1 - np.tanh(t) ** 2, [0.0])),
    "silu": (
        activations.silu,
        (
            lambda t: t * special.expit(t),
            lambda t: special.expit(t) * (1 + t * special.expit(-t)),
            [0.0],
        ),
    ),
    "sin": (activations.sin, (np.sin, np.cos, [0.0])),
    "cos": (activations.cos, (np.cos, lambda t: -np.sin(t), [0.0])),
    "sigmoid": (activations.sigmoid, (special.expit, sigmoid_slope, [0.0])),
    "softplus": (activations.softplus, (lambda t: np.logaddexp(0, t), special.expit, [0.0])),
    "polynomial": (activations.polynomial(POLYNOMIAL.coef), (POLYNOMIAL, POLYNOMIAL.deriv(), [])),
    "hermite": (activations.hermite(HERMITE), (HERMITE_E, HERMITE_E.deriv(), [])),
}
each_activation = pytest.mark.parametrize("name", CASES)


def gauss_panels(splits, panels):
    """Nodes and weights for E f(G): 20 Gauss-Legendre points on every panel, `panels` between two splits."""
    reach = 12.0
    edges = np.sort([-reach, reach, *np.linspace(-8, 8, 9), *(t for t in splits if abs(t) < reach)])
    parts = np.arange(panels) / panels
    edges = np.append((edges[:-1, None] + np.diff(edges)[:, None] * parts).ravel(), reach)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * NODES).ravel()
    return x, (half * WEIGHTS).ravel() * density(x)


def reference_pair(sigma, other, theta, theta2):
    """U and ∇_θ U = E[∂σ*(x; θ) σ*(x; θ')], rows [a, b, w...]."""
    (s1, d1, kinks1), (s2, _, kinks2) = sigma, other
    (a1, b1, *w1), (a2, b2, *w2) = theta, theta2
    w1, w2 = np.array(w1), np.array(w2)
    R1 = np.linalg.norm(w1)
    e1 = w1 / R1 if R1 > 0 else np.eye(len(w1))[0]
    p = w2 @ e1
    r = np.linalg.norm(w2 - p * e1)
    e2 = (w2 - p * e1) / r if r > 1e-300 else 0 * e1
    splits = [(t - b1) / R1 for t in kinks1 if R1 > 0]
    # where g2 crosses a kink, over a width r/|p|
    splits += [(t - b2 + k * r) / p for t in kinks2 for k in (-8, -3, -1, 0, 1, 3, 8) if p]
    value, by_b, by_w = 0.0, 0.0, np.zeros(len(w1))
    for u, weight in zip(*gauss_panels(splits, 2), strict=True):
        z, v = gauss_panels([(t - b2 - p * u) / r for t in kinks2 if r > 0], 1)
        y = v * s2(b2 + p * u + r * z)
        value += weight * s1(b1 + R1 * u) * y.sum()
        slope = weight * d1(np.float64(b1 + R1 * u))
        by_b += slope * y.sum()
        by_w += slope * (u * y.sum() * e1 + (y @ z) * e2)
    return a1 * a2 * value, np.array([a2 * value, a1 * a2 * by_b, *(a1 * a2 * by_w)])


def potential(network, theta, other, weights, threads=1, teacher=None):
    return _core.pair_potential(
        network._core, theta, other, weights, True, threads, other_network=teacher and teacher._core
    )


def assert_pair(name, name2, theta, other):
    network, teacher = (Network(CASES[key][0], output="trained", bias="trained") for key in (name, name2))
    value, grad = reference_pair(CASES[name][1], CASES[name2][1], theta, other)
    got, got_grad = potential(network, theta[None], other[None], np.ones(1), teacher=teacher)
    # 1e-10 is promised; rounding of closed forms grows with the size of the moments
    scale = 1 + abs(value) + np.abs(grad).max()
    assert abs(got[0] - value) < 2e-12 * scale
    assert np.abs(got_grad[0] - grad).max() < 2e-12 * scale


@each_activation
@pytest.mark.parametrize("case", ["generic", "close", "shifted copy", "opposite", "w = 0", "w' = 0", "wide"])
def test_pairs_with_bias_and_their_gradients_agree_with_quadrature_over_the_plane(name, case):
    theta, other = np.random.default_rng(sum(map(ord, name + case))).normal(size=(2, 4))
    if case == "close":
        other[2:] = theta[2:] + np.array([1e-3, -2e-3])
    elif case == "shifted copy":
        other[1:] = theta[1:] + np.array([0.2, 0, 0])
    elif case == "opposite":
        other[2:] = -theta[2:]
    elif case == "w = 0":
        theta[2:] = 0
    elif case == "w' = 0":
        other[2:] = 0
    elif case == "wide":
        theta[2:] *= 4
    assert_pair(name, name, theta, other)


@pytest.mark.parametrize(
    "pair",
    ["relu step", "relu hermite", "hermite tanh", "linear erf", "tanh erf", "gelu sigmoid", "erf polynomial"],
)
def test_pairs_of_two_activations_agree_with_quadrature_over_the_plane(pair):
    assert_pair(*pair.split(), *np.random.default_rng(3).normal(size=(2, 4)))


@each_activation
def test_networks_without_bias_agree_with_bias_zero(name):
    activation = CASES[name][0]
    w, v = np.random.default_rng(8).normal(size=(2, 5, 3))
    zero = np.zeros((5, 1))
    value, grad = potential(Network(activation), w, v, np.ones(5))
    biased = Network(activation, bias="trained")
    value_b, grad_b = potential(biased, np.hstack([zero, w]), np.hstack([zero, v]), np.ones(5))
    # two closed forms of the same number, condition numbers below 10^3
    np.testing.assert_allclose(value, value_b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(grad, grad_b[:, 1:], rtol=1e-12, atol=1e-12)


def test_relu_and_erf_without_bias_have_their_textbook_values():
    w, v = np.array([[1.0, 2.0, 0.5]]), np.array([[-0.3, 1.0, 1.0]])
    a, b, dot = np.linalg.norm(w), np.linalg.norm(v), (w @ v.T).item()
    angle = math.acos(dot / (a * b))
    relu = a * b / (2 * math.pi) * (math.sin(angle) + (math.pi - angle) * math.cos(angle))
    erf = 2 / math.pi * math.asin(2 * dot / math.sqrt((1 + 2 * a * a) * (1 + 2 * b * b)))
    for activation, want in ((activations.relu, relu), (activations.erf, erf)):
        U = _core.pair_matrix(Network(activation)._core, w, v, 1)
        assert abs(U[0, 0] - want) < 1e-15  # rounding


@each_activation
def test_gradients_agree_with_central_differences(name):
    network = Network(CASES[name][0], output="trained", bias="trained")
    rng = np.random.default_rng(11)
    theta, other, weights = rng.normal(size=(1, 7)), rng.normal(size=(9, 7)), rng.normal(size=9) / 9
    grad = potential(network, theta, other, weights)[1][0]
    h = 1e-5
    for k in range(7):
        step = h * np.eye(7)[k]
        up, down = (potential(network, theta + s, other, weights)[0][0] for s in (step, -step))
        # h²/6 times third derivatives up to 10^3, plus rounding 1e-15 · 10^2/h
        assert abs((up - down) / (2 * h) - grad[k]) < 1e-7


@each_activation
def test_nothing_jumps_as_the_correlation_tends_to_one_or_minus_one(name):
    network = Network(CASES[name][0], output="trained", bias="trained")
    theta = np.array([[1.0, 0.1, 0.8, 0.3]])
    for sign in (1, -1):
        limit = np.array([[1.0, 0.1 * sign, 0.8 * sign, 0.3 * sign]])
        exact = potential(network, theta, limit, np.ones(1))
        for angle in (1e-3, 1e-5, 1e-7, 1e-8, 1e-9, 1e-12, 1e-16):
            turn = np.array([[0, 0, -0.3 * sign * angle, 0.8 * sign * angle]])
            value, grad = potential(network, theta, limit + turn, np.ones(1))
            # U has Lipschitz gradients with constants below 10^3 for these slopes (up to 10); rounding 1e-13
            assert abs(value - exact[0])[0] < 1e3 * angle + 1e-13
            assert np.abs(grad - exact[1]).max() < 1e3 * angle + 1e-12


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["relu", "step", "erf", "gelu", "hermite", "sigmoid"]),
    n=st.integers(1, 70),
    m=st.integers(1, 300),
    d=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_potential_is_the_matrix_times_the_weights_and_its_bits_ignore_threads(name, n, m, d, seed):
    network = Network(CASES[name][0], output="fixed", bias="trained")
    rng = np.random.default_rng(seed)
    theta, other, weights = rng.normal(size=(n, d + 2)), rng.normal(size=(m, d + 2)), rng.normal(size=m) / m
    if name == "sigmoid":  # d = 1 would send every pair to the slow two-dimensional rule
        theta, other, weights = theta[:5], other[:5], weights[:5]
    one, three = (potential(network, theta, other, weights, threads) for threads in (1, 3))
    assert np.array_equal(one[0], three[0])
    assert np.array_equal(one[1], three[1])
    U = _core.pair_matrix(network._core, theta, other, 2)
    # sums of up to 300 terms in another order; moments of `hermite` reach 10^5
    np.testing.assert_allclose(one[0], U @ weights, rtol=1e-11, atol=1e-11 * (1 + np.abs(U).max()))
    order = rng.permutation(len(other))
    again = potential(network, theta, other[order], weights[order])
    np.testing.assert_allclose(again[1], one[1], rtol=1e-9, atol=1e-11 * (1 + np.abs(one[1]).max()))


def test_many_threads_share_blocks_of_rows_without_changing_a_bit():
    rng = np.random.default_rng(0)
    theta, weights = rng.normal(size=(331, 11)), np.full(331, 1 / 331)  # large enough to wake several threads
    network = Network(activations.relu, output="trained")
    one, four = (potential(network, theta, theta, weights, threads) for threads in (1, 4))
    assert np.array_equal(one[0], four[0])
    assert np.array_equal(one[1], four[1])


@settings(max_examples=25, deadline=None)
@given(
    sigma=st.sampled_from(["relu", "leaky", "linear"]),
    n=st.one_of(st.integers(1, 30), st.integers(100, 260)),
    d=st.integers(1, 19),
    output=st.sampled_from(["one", "trained"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_pairs_of_homogeneous_neurons_among_themselves_are_halved_without_changing_sums(
    sigma, n, d, output, seed
):
    leaky = activations.piecewise_linear(knots=[0.0], values=[0.0], left_slope=0.2, right_slope=1.5)
    activation = leaky if sigma == "leaky" else getattr(activations, sigma)
    network = Network(activation, output=output)
    rng = np.random.default_rng(seed)
    theta, weights = rng.normal(size=(n, d + (output == "trained"))), rng.normal(size=n) / n
    theta[0, -d:] = 0.0
    own = potential(network, theta, theta, weights)
    general = potential(network, theta, theta.copy(), weights)  # another array: no symmetry is seen
    # sums of up to 260 terms in another order
    for ours, reference in zip(own, general, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=0, atol=1e-13 * (1 + np.abs(reference).max()))


def test_a_kinked_neuron_at_w_zero_gets_the_mean_over_directions():
    v = np.array([[0.6, -0.8, 0.0]])
    value, grad = potential(Network(activations.relu), np.zeros((1, 3)), v, np.ones(1))
    assert value[0] == 0
    np.testing.assert_allclose(grad, v / 4, atol=1e-16)  # ½ E[x 1{<v,x> > 0} <v,x>] = v/4, rounded


def test_misuse_names_the_argument():
    network = Network(activations.relu)._core
    theta = np.ones((2, 3))
    with pytest.raises(ValueError, match="weights must have 2 entries, got 3"):
        _core.pair_potential(network, theta, theta, np.ones(3), True, 1)
    with pytest.raises(ValueError, match="other must have as many inputs"):
        _core.pair_matrix(network, theta, np.ones((2, 4)), 1)
    cube = activations.custom(lambda z: np.abs(z) ** 3, slope=lambda z: 3 * z * np.abs(z))
    with pytest.raises(ValueError, match="MonteCarlo"):
        _core.pair_matrix(network, theta, theta, 1, other_network=Network(cube)._core)
