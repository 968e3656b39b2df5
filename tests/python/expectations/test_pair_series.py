"""Pairs by Mehler's series and by closed forms: every correlation, every size, neurons among themselves."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core, activations
from mfcore.network import Network
from numpy.polynomial.legendre import leggauss
from problems import STEP
from scipy import special

BENT = activations.piecewise_linear([-0.4, 0.0, 1.0], [0.1, 0.0, 0.3], left_slope=0.2, right_slope=-1.0)
SMOOTH = {"erf": activations.erf, "gelu": activations.gelu, "tanh": activations.tanh}
EACH = {"step": STEP, "bent": BENT, **SMOOTH}
KNOTS = {"step": (0.5, 1.5), "bent": (-0.4, 0.0, 1.0)}
NODES, WEIGHTS = leggauss(24)
# the series runs up to about 0.86 (kinks) and 0.77 (smooth): both sides of these, and both ends
RHO = [0, 1e-12, 1e-3, 0.03, 0.1, 0.3, 0.5, 0.7, 0.76, 0.78, 0.84, 0.855, 0.86, 0.9, 0.97, 0.999, 1 - 1e-9, 1]
CORRELATIONS = np.array([sign * rho for rho in RHO for sign in (1, -1)])


def potential(network, theta, other, weights, threads=1, grad=True):
    return _core.pair_potential(network._core, theta, other, weights, grad, threads)


def activate(sigma, z):
    """σ(z), and σ'(z) beside its kinks: their own smoothing with R = 0."""
    value, slope, _ = _core.smooth(sigma._core, z, np.zeros_like(z))
    return value, slope


def reference(name, theta, other):
    """U and ∇_θ U of rows [a, b, w1, w2] in the plane: over u = ⟨w, x⟩/|w| by panels, across in closed form.

    g' given u is normal with mean m = b' + p u and deviation r: E[σ(g')|u] = T(m, r), E[z σ(g')|u] = r T_m.
    """
    sigma = EACH[name]
    (a1, b1, *w1), (a2, b2, *w2) = theta, other
    w1, w2 = np.array(w1), np.array(w2)
    R = np.linalg.norm(w1)
    along, across = w1 / R, np.array([-w1[1], w1[0]]) / R
    p, r = w2 @ along, w2 @ across
    edges = [*np.linspace(-12, 12, 49)]
    for t in KNOTS.get(name, ()):
        edges.append((t - b1) / R)
        if p:  # where g' crosses a kink, over a width r/|p|
            width = max(abs(r / p), 1e-14)
            edges += [(t - b2) / p + s * width * 2.0**k for k in range(-2, 8) for s in (-1, 1)] + [
                (t - b2) / p
            ]
    edges = np.unique(np.clip(edges, -12, 12))
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half * (1 + NODES)).ravel()
    density = (half * WEIGHTS).ravel() * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    value, slope = activate(sigma, b1 + R * u)
    T, T_m, _ = _core.smooth(sigma._core, b2 + p * u, np.full_like(u, abs(r)))
    by_w = density @ (slope * u * T) * along + r * (density @ (slope * T_m)) * across
    U = density @ (value * T)
    return a1 * a2 * U, np.array([a2 * U, a1 * a2 * (density @ (slope * T)), *(a1 * a2 * by_w)])


def turned(rho, rng):
    """Rows [a, b, w] in the plane whose correlations with w = (1, 0) are rho."""
    size = rng.uniform(0.3, 2.5, len(rho))
    w = size[:, None] * np.column_stack([rho, np.sqrt((1 - rho) * (1 + rho))])
    return np.column_stack([rng.normal(size=(len(rho), 2)), w])


@pytest.mark.parametrize("name", EACH)
def test_every_correlation_agrees_with_quadrature_along_one_neuron(name):
    rng = np.random.default_rng(sum(map(ord, name)))
    network = Network(EACH[name], output="trained", bias="trained")
    theta, others = np.array([[0.8, 0.3, 1.4, 0.0]]), turned(CORRELATIONS, rng)
    U = _core.pair_matrix(network._core, theta, others, 1)[0]
    for k, other in enumerate(others):
        value, grad = reference(name, theta[0], other)
        weight = (np.arange(len(others)) == k).astype(float)
        # alone (a closed form), beside all others, and in a crowd of its like (the series, where it reaches)
        crowd = potential(network, theta.repeat(8, 0), others[k : k + 1].repeat(32, 0), np.full(32, 1 / 32))
        alone = potential(network, theta, others[k : k + 1], np.ones(1))
        together = potential(network, theta, others, weight)
        back = reference(name, other, theta[0])[1] if abs(CORRELATIONS[k]) < 0.99 else None
        scale = 1 + abs(value) + np.abs(grad).max()  # rounding grows with slopes up to 10 and their squares
        for got, got_grad in (alone, together, crowd):
            assert abs(got[0] - value) < 1e-12 * scale
            assert np.abs(got_grad[0] - grad).max() < 2e-12 * scale
        assert abs(U[k] - value) < 1e-12 * scale
        if back is not None:  # the reference itself loses digits where w is steep across w'
            got = potential(network, others[k : k + 1], theta, np.ones(1))[1][0]
            assert np.abs(got - back).max() < 2e-12 * (scale + np.abs(back).max())


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from([*EACH, "relu", "hermite"]),
    n=st.one_of(st.integers(1, 40), st.integers(130, 330)),
    d=st.one_of(st.integers(1, 5), st.integers(20, 60)),
    output=st.sampled_from(["one", "trained"]),
    bias=st.sampled_from(["none", "trained"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_pairs_of_neurons_among_themselves_are_halved_without_changing_sums(name, n, d, output, bias, seed):
    if name == "tanh" and d < 20:
        n = min(n, 12)  # nearly parallel ones take a two-dimensional quadrature each
    sigma = {"relu": activations.relu, "hermite": activations.hermite([0.1, 0.5, -0.3, 0.2])} | EACH
    network = Network(sigma[name], output=output, bias=bias)
    rng = np.random.default_rng(seed)
    theta, weights = rng.normal(size=(n, network.row(d))), rng.normal(size=n) / n
    theta[:, -d:] /= math.sqrt(d)
    theta[n // 2] = theta[0]  # identical neurons
    theta[n // 3, -d:] = 0.0
    theta[-1, -d:] = -theta[0, -d:]
    one, three = (potential(network, theta, theta, weights, threads) for threads in (1, 3))
    general = potential(network, theta, theta.copy(), weights)  # another array: no symmetry is seen
    value, none = potential(network, theta, theta, weights, grad=False)
    assert none is None
    for ours, same, want in zip(one, three, general, strict=True):
        assert np.array_equal(ours, same)  # the number of threads changes no bit
        # up to 330 terms in another order; moments of `step` reach 10^2
        np.testing.assert_allclose(ours, want, rtol=0, atol=2e-13 * (1 + np.abs(want).max()))
    np.testing.assert_allclose(value, general[0], rtol=0, atol=2e-13 * (1 + np.abs(value).max()))


@pytest.mark.parametrize("name", ["step", "bent", "erf", "gelu"])
def test_many_neurons_in_high_dimension_agree_with_the_same_pairs_one_by_one(name):
    # 200 terms of a series for all, against closed forms (parallel pairs are never left to the series)
    rng = np.random.default_rng(4)
    network = Network(EACH[name], output="trained", bias="trained")
    theta, other = rng.normal(size=(70, 102)), rng.normal(size=(250, 102))
    theta[:, 2:] *= 0.1
    other[:, 2:] *= 0.1
    other[::7, 2:] = theta[0, 2:] + 0.02 * rng.normal(size=(36, 100))  # some are nearly parallel to one
    U = _core.pair_matrix(network._core, theta, other, 1)
    for i, j in [(0, 0), (0, 7), (0, 249), (69, 249), (33, 100), (15, 16), (16, 15), (63, 240), (64, 239)]:
        rho = theta[i, 2:] @ other[j, 2:] / np.linalg.norm(theta[i, 2:]) / np.linalg.norm(other[j, 2:])
        plane = np.array([[*row[:2], 0.0, 0.0] for row in (theta[i], other[j])])
        plane[:, 2] = np.linalg.norm(theta[i, 2:]), rho * np.linalg.norm(other[j, 2:])
        plane[1, 3] = math.sqrt(1 - rho * rho) * np.linalg.norm(other[j, 2:])
        want = reference(name, *plane)[0]
        assert abs(U[i, j] - want) < 2e-13 * (1 + np.abs(U).max())  # rounding of sizes up to 10^2


@pytest.mark.parametrize("name", ["step", "erf", "gelu"])
def test_tiny_and_huge_weights_are_harmless(name):
    network = Network(EACH[name], bias="trained")
    rng = np.random.default_rng(1)
    direction = rng.normal(size=(6, 3))
    scale = np.array([0.0, 5e-324, 1e-170, 1e-9, 1.0, 1e6])[:, None]
    theta = np.hstack([rng.normal(size=(6, 1)), scale * direction])
    value, grad = potential(network, theta, theta, np.full(6, 1 / 6))
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(grad))
    U = _core.pair_matrix(network._core, theta, theta, 1)
    # neurons without direction are constants: U = σ(b) T(b', |w'|)
    T = _core.smooth(network.activation._core, theta[:, 0], np.linalg.norm(theta[:, 1:], axis=1))[0]
    for i in range(3):
        np.testing.assert_allclose(U[i], T[i] * T, rtol=1e-13, atol=1e-13)


def test_what_is_not_finite_reaches_every_sum_it_belongs_to():
    rng = np.random.default_rng(2)
    network = Network(STEP, bias="trained")
    theta = rng.normal(size=(40, 6))
    theta[3, 2] = np.nan
    value, grad = potential(network, theta, theta, np.ones(40))
    assert np.all(np.isnan(value))
    assert np.all(np.isnan(grad[:, 0]))
    U = _core.pair_matrix(network._core, theta, theta, 1)
    bad = np.isnan(U)
    assert bad[3].all()
    assert bad[:, 3].all()
    assert bad.sum() == 79


def test_bivariate_normal_tails_agree_with_owens_function():
    rng = np.random.default_rng(7)
    h, k = rng.normal(size=(2, 4000)) * rng.choice([1e-3, 1, 4], size=(2, 4000))
    rho = np.tanh(rng.normal(size=4000) * 3)
    s = np.sqrt((1 - rho) * (1 + rho))
    T = special.owens_t(h, (k - rho * h) / (h * s)) + special.owens_t(k, (h - rho * k) / (k * s))
    want = 0.5 * (special.ndtr(-h) + special.ndtr(-k)) - T - 0.5 * (h * k < 0)
    # the slopes of the reference lose digits near parallel levels: condition 1/s
    assert np.all(np.abs(_core.bivariate_normal(h, k, rho) - want) < 1e-15 + 3e-16 / s)
