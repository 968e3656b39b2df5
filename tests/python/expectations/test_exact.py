"""The exact evaluator: labels, covariances, gradients and risk on Gaussian mixtures."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core, activations, data
from mfcore.data._parts import GaussianPart, HermiteLabel, NetworkLabel
from mfcore.expectations._exact import GaussianExact, supports
from mfcore.network import Network
from numpy.polynomial.hermite_e import hermegauss
from problems import STEP
from scipy import special

EACH = {
    "relu": activations.relu,
    "step": STEP,
    "erf": activations.erf,
    "gelu": activations.gelu,
    "tanh": activations.tanh,
    "sigmoid": activations.sigmoid,
    "hermite": activations.hermite([0.2, 0.5, -0.3]),
}
each_activation = pytest.mark.parametrize("name", EACH)
ROOT = np.array([[1.2, 0.3, 0.0], [0.3, 0.7, -0.2], [0.0, -0.2, 0.9]])  # symmetric, positive


def identity(w):
    return w


def by_root(w):
    return w @ ROOT


def staircase(degrees=((1, 0), (1, 1), (0, 2), (0, 0), (3, 0)), d=3):
    """A Hermite label in the plane of two orthonormal directions of R^d."""
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(d, 2)))[0].T
    return HermiteLabel(basis, {alpha: 0.7 / (1 + k) for k, alpha in enumerate(degrees)})


def hermite_values(label, g):
    z = g @ label.directions.T
    y = np.zeros(len(g))
    for alpha, c in label.coefficients.items():
        for j, k in enumerate(alpha):
            c = c * special.eval_hermitenorm(k, z[:, j]) / math.sqrt(math.factorial(k))
        y += c
    return y


def mixture(network):
    """Two parts with a constant and a Hermite label, one of them coloured, and a teacher."""
    teacher = np.random.default_rng(9).normal(size=(4, network.row(3)))
    return [
        GaussianPart(0.3, by_root, -1.0),
        GaussianPart(0.5, identity, staircase(), noise=0.3),
        GaussianPart(0.2, by_root, NetworkLabel(network, teacher), noise=0.1),
    ]


@each_activation
@given(d=st.integers(1, 9), delta=st.floats(0, 0.9), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_V_of_two_isotropic_classes_is_the_difference_of_two_smoothings(name, d, delta, seed):
    network = Network(EACH[name], output="fixed", bias="trained")
    parts = [GaussianPart(0.5, lambda w, c=c: c * w, y) for c, y in ((1 + delta, 1.0), (1 - delta, -1.0))]
    theta = np.random.default_rng(seed).normal(size=(7, d + 2))
    a, b, r = theta[:, 0], theta[:, 1], np.linalg.norm(theta[:, 2:], axis=1)
    T = [_core.smooth(network.activation._core, b, c * r)[0] for c in (1 + delta, 1 - delta)]
    want = -0.5 * a * (T[0] - T[1])
    np.testing.assert_allclose(GaussianExact(network, parts).V(theta), want, atol=1e-12)  # rounding


@each_activation
def test_V_of_a_hermite_label_agrees_with_quadrature_in_three_dimensions(name):
    # in the frame of w: Gauss-Hermite (polynomial label) across, panels split at the kinks along
    label = staircase()
    network = Network(EACH[name], output="trained", bias="trained")
    theta = np.array([[0.8, 0.4, 0.9, -0.5, 0.3]])
    w, sigma = theta[0, 2:], EACH[name]
    R = np.linalg.norm(w)
    frame = np.linalg.qr(np.column_stack([w, np.eye(3)[:, :2]]))[0].T
    frame[0] *= np.sign(frame[0] @ w)
    x, v = hermegauss(12)
    v = v / v.sum()
    edges = np.sort([*np.linspace(-12, 12, 60), *((k - 0.4) / R for k in (0, 0.5, 1.5))])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half * (1 + nodes)).ravel()
    along = (half * weights).ravel() * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    value = 0.0
    # sigma at m is its own smoothing with R = 0
    s = _core.smooth(sigma._core, 0.4 + R * u, np.zeros_like(u))[0]
    for p, vp in zip(x, v, strict=True):
        for q, vq in zip(x, v, strict=True):
            g = np.column_stack([u, np.full_like(u, p), np.full_like(u, q)]) @ frame
            value += vp * vq * (along @ (s * hermite_values(label, g)))
    exact = GaussianExact(network, [GaussianPart(1.0, identity, label)])
    assert abs(exact.V(theta)[0] + 0.8 * value) < 1e-11  # quadrature of sums of 10^5 terms of size up to 10^2


@each_activation
@pytest.mark.parametrize(("output", "bias"), [("one", "none"), ("trained", "trained"), ("fixed", "none")])
def test_the_gradient_of_psi_is_the_derivative_of_the_risk(name, output, bias):
    # ∂R/∂θ_i = 2 weight_i ∇Ψ(θ_i): one identity over every label, root and block of the row
    network = Network(EACH[name], output=output, bias=bias)
    exact = GaussianExact(network, mixture(network))
    rng = np.random.default_rng(6)
    points = rng.normal(size=(3, network.row(3)))
    weights = np.array([0.2, 0.5, 0.3])
    grad = exact.grad_psi(points, points, weights)
    h = 1e-5
    for i in range(3):
        for k in range(network.row(3)):
            step = np.zeros_like(points)
            step[i, k] = h
            slope = (exact.risk(points + step, weights) - exact.risk(points - step, weights)) / (2 * h)
            # h²/6 times third derivatives up to 10^3, and rounding 10^-14/h
            assert abs(slope - 2 * weights[i] * grad[i, k]) < 2e-7


@each_activation
def test_psi_is_V_plus_the_mean_of_U(name):
    network = Network(EACH[name], output="trained", bias="trained")
    exact = GaussianExact(network, mixture(network))
    rng = np.random.default_rng(1)
    theta, points = rng.normal(size=(5, 5)), rng.normal(size=(9, 5))
    weights = rng.dirichlet(np.ones(9))
    want = exact.V(theta) + exact.U(theta, points) @ weights
    np.testing.assert_allclose(
        exact.psi(theta, points, weights), want, rtol=1e-12, atol=1e-12
    )  # order of sums


@each_activation
def test_the_risk_agrees_with_fresh_samples(name):
    network = Network(EACH[name], output="trained", bias="trained")
    parts = mixture(network)
    rng = np.random.default_rng(20)
    points, weights = rng.normal(size=(6, 5)), rng.dirichlet(np.ones(6))
    n = 40_000

    def outputs(theta, mass, x):
        z = theta[:, 1] + x @ theta[:, 2:].T
        s = _core.smooth(network.activation._core, z.ravel(), np.zeros(z.size))[0].reshape(z.shape)
        return s @ (mass * theta[:, 0])

    mean, variance = 0.0, 0.0
    for part in parts:
        g = rng.normal(size=(n, 3))
        x = part.root(g)
        if isinstance(part.label, HermiteLabel):
            y = hermite_values(part.label, g)
        elif isinstance(part.label, NetworkLabel):
            y = outputs(part.label.theta, np.full(4, 0.25), x)
        else:
            y = np.full(n, part.label)
        loss = (y + part.noise * rng.normal(size=n) - outputs(points, weights, x)) ** 2
        mean += part.weight * loss.mean()
        variance += part.weight**2 * loss.var() / n
    risk = GaussianExact(network, parts).risk(points, weights)
    assert risk >= 0
    # five standard errors; the seed is fixed, the odds of a false alarm were 6e-7 per activation
    assert abs(risk - mean) < 5 * math.sqrt(variance)


@each_activation
def test_a_network_that_equals_its_teacher_has_no_risk_and_no_force(name):
    network = Network(EACH[name], output="trained", bias="trained")
    theta = np.random.default_rng(2).normal(size=(5, 5))
    exact = GaussianExact(network, [GaussianPart(1.0, by_root, NetworkLabel(network, theta))])
    weights = np.full(5, 0.2)
    assert 0 <= exact.risk(theta, weights) < 1e-11  # rounding, U up to 10^2
    np.testing.assert_allclose(exact.grad_psi(theta, theta, weights), 0, atol=1e-12)


def test_only_the_noise_is_left_at_the_teacher():
    network = Network(activations.relu)
    theta = np.eye(3)
    exact = GaussianExact(network, [GaussianPart(1.0, identity, NetworkLabel(network, theta), noise=0.5)])
    assert abs(exact.risk(theta, np.full(3, 1 / 3)) - 0.25) < 1e-15  # rounding


def test_a_linear_network_has_the_risk_of_its_mean():
    # Eq. (10.11): R = (w̄ - w*)ᵀ Σ (w̄ - w*) + τ²
    network = Network(activations.linear)
    rng = np.random.default_rng(3)
    target, points = rng.normal(size=(1, 3)), rng.normal(size=(8, 3))
    weights = rng.dirichlet(np.ones(8))
    exact = GaussianExact(network, [GaussianPart(1.0, by_root, NetworkLabel(network, target), noise=0.2)])
    gap = weights @ points - target[0]
    cov = ROOT @ ROOT
    assert abs(exact.risk(points, weights) - (gap @ cov @ gap + 0.04)) < 1e-13  # rounding
    force = exact.grad_psi(points, points, weights)
    np.testing.assert_allclose(force, np.tile(cov @ gap, (8, 1)), atol=1e-13)


def test_one_neuron_in_one_dimension_and_w_zero_are_no_special_cases():
    network = Network(activations.relu, output="trained", bias="trained")
    exact = GaussianExact(network, [GaussianPart(1.0, identity, 1.0)])
    theta = np.array([[2.0, 0.7, 0.0]])  # f = 1.4
    assert abs(exact.risk(theta, np.ones(1)) - 0.16) < 1e-15
    # (f - 1) a = 0.8 along b, (f - 1) 0.7 along a, nothing along w: x has mean 0
    grad = exact.grad_psi(theta, theta, np.ones(1))
    np.testing.assert_allclose(grad, [[0.28, 0.8, 0.0]], atol=1e-15)


def test_the_callers_arrays_are_left_alone():
    network = Network(STEP, bias="trained")
    theta = np.random.default_rng(0).normal(size=(4, 4))
    before, weights = theta.copy(), np.full(4, 0.25)
    exact = GaussianExact(network, mixture(network), threads=2)
    exact.risk(theta, weights)
    exact.grad_psi(theta, theta, weights)
    assert np.array_equal(theta, before)


def test_what_has_no_exact_form_names_monte_carlo():
    cube = activations.custom(lambda z: np.abs(z) ** 3, slope=lambda z: 3 * z * np.abs(z))
    student, teacher = Network(activations.relu), Network(cube)
    parts = [GaussianPart(1.0, identity, NetworkLabel(teacher, np.eye(3)))]
    assert supports(student, [GaussianPart(1.0, identity, 1.0)]) is None
    reason = supports(student, parts)
    assert reason is not None
    assert "MonteCarlo" in reason
    with pytest.raises(ValueError, match="MonteCarlo"):
        GaussianExact(student, parts)


@each_activation
@given(n=st.integers(1, 160), d=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_diagonal_parts_that_share_their_inner_products_give_the_sums_of_single_parts(name, n, d, seed):
    rng = np.random.default_rng(seed)
    if name in ("tanh", "sigmoid"):  # in few dimensions nearly parallel pairs take a slow quadrature each
        n = min(n, 5)
    network = Network(EACH[name], output="trained", bias="trained")
    cut = int(rng.integers(1, d + 1))
    ends = (cut,) if cut == d else (cut, d)
    parts = []
    for weight in (0.3, 0.7):
        factors = rng.uniform(0.2, 1.6, len(ends))
        diagonal = np.repeat(factors, np.diff([0, *ends]))
        scales = tuple(zip(ends, factors.tolist(), strict=True))
        parts.append(GaussianPart(weight, lambda w, s=diagonal: w * s, 1.0, scales=scales))
    together = GaussianExact(network, parts, threads=2)
    apart = GaussianExact(network, [GaussianPart(p.weight, p.root, p.label) for p in parts])
    points, weights = rng.normal(size=(n, network.row(d))) / math.sqrt(d), rng.dirichlet(np.ones(n))
    for ours, want in (
        (together.grad_psi(points, points, weights), apart.grad_psi(points, points, weights)),
        (together.psi(points, points, weights), apart.psi(points, points, weights)),
        (together.risk(points, weights), apart.risk(points, weights)),
    ):
        # the same sums in another order; moments of `step` reach 10^2
        np.testing.assert_allclose(ours, want, rtol=0, atol=1e-12 * (1 + np.abs(want).max()))


def test_the_laws_with_classes_say_in_numbers_what_their_roots_do():
    for law in (
        data.IsotropicGaussians(d=7, delta=0.3),
        data.AnisotropicGaussians(d=7, delta=0.3, s0=3),
        data.AnisotropicGaussians(d=7, delta=0.3, s0=7),
    ):
        for part in law._parts():
            assert part.scales is not None
            factors = np.repeat([f for _, f in part.scales], np.diff([0, *(end for end, _ in part.scales)]))
            np.testing.assert_array_equal(part.root(np.eye(7)), np.diag(factors))
    turned = data.AnisotropicGaussians(d=7, delta=0.3, basis=np.eye(7)[:, :2])
    assert all(part.scales is None for part in turned._parts())


def test_a_mixture_that_is_none_is_refused():
    network, w = Network(STEP)._core, np.ones((2, 3))
    for law, message in (
        (([], [3], []), "shares"),
        (([1.0], [2], [1.0]), "ends must end with the dimension"),
        (([1.0], [3, 3], [1.0, 1.0]), "ends must increase"),
        (([0.5, 0.5], [3], [1.0]), "scales"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.own_potential(network, w, np.ones(2), *law)
