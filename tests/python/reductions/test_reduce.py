"""Reduced models against Gaussian closed forms, rotation averages, brute force and published numbers."""

import dataclasses
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from problems import STEP
from scipy import optimize, special

INF = math.inf
DIP = mf.activations.piecewise_linear(knots=[0.0, 0.5, 1.5], values=[-2.5, -4.0, 7.5])
deltas = st.floats(0, 0.9)


def reduced(law, activation=mf.activations.relu, init=None, *, limit=False, nodes=None, **network):
    model = mf.Model(data=law, network=mf.Network(activation, **network), init=init)
    return model.reduce(limit=limit, nodes=nodes)


def gaussian_mean(sigma, m, R):
    """E σ(m + R G) by fine Legendre panels split at the kinks."""
    knots = [(t - m) / R for t in getattr(sigma, "knots", (0.0,))] if R > 0 else []
    edges = np.unique(np.concatenate([np.linspace(-9, 9, 61), np.clip(knots, -9, 9)]))
    x, w = special.roots_legendre(20)
    half = np.diff(edges)[:, None] / 2
    g = edges[:-1, None] + half * (1 + x)
    return float((half * w * np.exp(-g * g / 2) / math.sqrt(2 * math.pi) * sigma(m + R * g)).sum())


def erf_kernel(inner, square, other):
    """E erf(<w, x>) erf(<v, x>) for Gaussian <w, x>, <v, x> with these covariances."""
    return 2 / math.pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * square) * (1 + 2 * other)))


@settings(max_examples=30, deadline=None)
@given(d=st.sampled_from([8, 10, 19, 20, 33, 40, 100, 320, 1000, INF]), delta=deltas, r=st.floats(0.02, 3))
def test_v_of_isotropic_gaussians_is_a_difference_of_gaussian_means(d, delta, r):
    for sigma in (STEP, DIP, mf.activations.tanh):
        want = -0.5 * (
            gaussian_mean(sigma, 0.3, (1 + delta) * r) - gaussian_mean(sigma, 0.3, (1 - delta) * r)
        )
        model = reduced(mf.data.IsotropicGaussians(d, delta), sigma, output="trained", bias="trained")
        # Nodes are chosen for 1e-12 relative to features of size 10; d = 8 reaches 6e-13 (panels).
        assert model.V([[-0.7, 0.3, r]])[0] == pytest.approx(-0.7 * want, abs=2e-11)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_v_in_low_dimension_is_exact_whatever_the_kinks_in_the_norm_of_x(d):
    law = mf.data.IsotropicGaussians(d, 0.5)
    for r in (0.3, 1.0, 2.0):
        want = -0.5 * (gaussian_mean(STEP, 0, 1.5 * r) - gaussian_mean(STEP, 0, 0.5 * r))
        assert reduced(law, STEP).V([r])[0] == pytest.approx(want, abs=1e-13)


@settings(max_examples=20, deadline=None)
@given(
    dims=st.sampled_from([(60, 260), (20, 20), (30, 100), (INF, INF)]),
    delta=deltas,
    radii=st.tuples(st.floats(0.05, 2), st.floats(0.05, 2)),
)
def test_v_of_anisotropic_gaussians_is_a_difference_of_gaussian_means(dims, delta, radii):
    s0, rest = dims
    law = (
        mf.data.AnisotropicGaussians(INF, delta, fraction=0.2)
        if s0 == INF
        else mf.data.AnisotropicGaussians(s0 + rest, delta, s0=s0)
    )
    spread = [math.hypot((1 + y * delta) * radii[0], radii[1]) for y in (1, -1)]
    want = -0.5 * (gaussian_mean(STEP, 0.2, spread[0]) - gaussian_mean(STEP, 0.2, spread[1]))
    model = reduced(law, STEP, output="trained", bias="trained")
    # As above; each of the two norms adds its error.
    assert model.V([[1.5, 0.2, *radii]])[0] == pytest.approx(1.5 * want, abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(d=st.integers(2, 400), delta=deltas, r=st.floats(0.1, 3), other=st.floats(0.1, 3))
def test_u_is_the_rotation_average_of_the_full_kernel(d, delta, r, other):
    law = mf.data.IsotropicGaussians(d, delta)
    u, p = _core.angle_rule(d, 0.01)
    angle = np.arccos(u)
    scales = (1 + delta) ** 2, (1 - delta) ** 2
    relu = np.mean([t * r * other for t in scales]) / (2 * math.pi) * (np.sin(angle) + (math.pi - angle) * u)
    got = reduced(law).U(np.array([[r]]), np.array([[other]]))[0, 0]
    assert got == pytest.approx(p @ relu, rel=1e-9 if d > 4 else 1e-4)  # the angle rule sees a kink at +-1
    cos = np.cos(np.linspace(0, 2 * math.pi, 4001)[:-1]) if d == 2 else u
    weights = np.full(4000, 1 / 4000) if d == 2 else p
    gelu = reduced(law, mf.activations.erf, bias="trained")  # even part only without a bias
    full = 0.5 * sum(erf_kernel(t * r * other * cos, t * r**2, t * other**2) for t in scales)
    got = gelu.U(np.array([[0.0, r]]), np.array([[0.0, other]]))[0, 0]
    assert got == pytest.approx(weights @ full, abs=1e-12)


@pytest.mark.parametrize("dims", [(60, 260), (10, 30), (3, 2), (1, 4)])
def test_u_of_two_radii_is_the_average_over_two_rotations(dims):
    law = mf.data.AnisotropicGaussians(sum(dims), 0.4, s0=dims[0])
    relu2 = mf.activations.polynomial([0.1, 1.0, 0.5])
    got = reduced(law, relu2).U(np.array([[0.7, 1.1]]), np.array([[1.3, 0.4]]))[0, 0]
    (u, p), (v, q) = (_core.gauss_gegenbauer(d, 6) for d in dims)
    want = 0.0
    for t in (1.4, 0.6):  # exact moments of the quadratic form: (X, Y) jointly Gaussian given both angles
        inner = t * t * 0.7 * 1.3 * u[:, None] + 1.1 * 0.4 * v
        a, b = (t * 0.7) ** 2 + 1.1**2, (t * 1.3) ** 2 + 0.4**2
        kernel = 0.01 + inner + 0.25 * (a * b + 2 * inner**2) + 0.05 * (a + b)
        want += 0.5 * p @ kernel @ q
    assert got == pytest.approx(want, rel=1e-10)  # nodes of norms: 1e-10 for tails of polynomials


@pytest.mark.parametrize("d", [2, 3, 6, 40, INF])
def test_multi_index_u_is_the_average_over_rotations_across_the_directions(d):
    law = mf.data.MultiIndex(d, [0.0, 1.0], directions=1)
    model = reduced(law, mf.activations.erf, output="trained")
    z = np.array([[1.0, 0.3, 0.9], [-2.0, -0.8, 0.6], [0.5, 0.2, 0.0]])
    got = model.U(z, z)
    u, p = (np.zeros(1), np.ones(1)) if d == INF else _core.gauss_gegenbauer(d - 1, 40)
    s, r = z[:, 1], z[:, 2]
    inner = np.outer(s, s)[..., None] + np.outer(r, r)[..., None] * u
    norms = (s**2 + r**2)[:, None, None]
    want = np.outer(z[:, 0], z[:, 0]) * (erf_kernel(inner, norms, norms.reshape(1, -1, 1)) @ p)
    np.testing.assert_allclose(got, want, atol=1e-8)  # 40 nodes in z where r = 0.6, s = 0.8


@settings(max_examples=25, deadline=None)
@given(s=st.floats(-1, 1), r=st.floats(0.5, 2), d=st.sampled_from([2, 5, 30, 100, INF]))
def test_multi_index_v_does_not_depend_on_the_dimension(s, r, d):
    model = reduced(mf.data.MultiIndex(d, [0.0, 1.0], directions=1), mf.activations.tanh)
    # Stein: E z σ(s z + r G) = s E σ'(√(s² + r²) G).
    want = s * gaussian_mean(mf.activations.tanh.derivative, 0.0, math.hypot(s, r))
    assert model.V([[s, r]])[0] == pytest.approx(-want, abs=1e-9)


def test_two_directions_and_an_array_of_them_give_the_same_model():
    link = {(1, 0): 1.0, (1, 1): 0.5}
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((7, 2)))
    plain = reduced(mf.data.MultiIndex(7, link, directions=2))
    turned = reduced(mf.data.MultiIndex(7, link, directions=np.ascontiguousarray(q.T)))
    assert plain.coordinates == turned.coordinates == ("s1", "s2", "r")
    z = np.random.default_rng(1).uniform(0.2, 1, (4, 3))
    np.testing.assert_array_equal(plain.V(z), turned.V(z))


@pytest.mark.parametrize("d", [2, 3, 8])
def test_on_the_sphere_moments_are_those_of_uniform_points(d):
    law = mf.data.MultiIndex(d, {(1, 0): 1.0}, directions=2, inputs="sphere", noise=0.5)
    model = reduced(law, mf.activations.polynomial([0.0, 0.0, 1.0]))
    assert model.noise == 0.25
    s, t = np.array([0.4, -0.3]), np.array([1.0, 0.2])
    r, q = (0.0, 0.0) if d == 2 else (0.7, 1.1)
    z = np.array([[*s, r][: len(model.coordinates)]]), np.array([[*t, q][: len(model.coordinates)]])
    across = r * r * q * q / (d - 2) if d > 2 else 0.0  # mean square of the product of the parts across
    want = d / (d + 2) * ((s @ s + r * r) * (t @ t + q * q) + 2 * ((s @ t) ** 2 + across))
    assert model.U(*z)[0, 0] == pytest.approx(want, rel=1e-12)


CASES = {
    "isotropic": (mf.data.IsotropicGaussians(40, 0.5), {}),
    "isotropic inf": (mf.data.IsotropicGaussians(INF, 0.5), {}),
    "anisotropic": (mf.data.AnisotropicGaussians(320, 0.5, s0=60), {}),
    "anisotropic low": (mf.data.AnisotropicGaussians(12, 0.5, s0=5), {"nodes": 8}),
    "anisotropic inf": (mf.data.AnisotropicGaussians(INF, 0.5, fraction=0.2), {}),
    "whole space": (mf.data.AnisotropicGaussians(30, 0.5, s0=30), {}),
    "multi-index": (mf.data.MultiIndex(30, {(1, 0): 1.0, (1, 1): 1.0}, 2), {"nodes": 10}),
    "sphere": (mf.data.MultiIndex(9, {(1, 0): 1.0, (1, 1): 1.0}, 2, inputs="sphere"), {"nodes": 10}),
    "staircase": (mf.data.Staircase(INF, [(0,), (0, 1), (0, 1, 2)]), {}),
    "cube": (mf.data.Staircase(3, [(0,), (0, 1, 2)]), {}),
    "linear": (mf.data.Linear([1.0, -2.0, 0.5, 0.1, 1.0], cov=2.0, noise=0.1), {"nodes": 12}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("network", [{}, {"output": "trained", "bias": "trained"}], ids=["w", "a b w"])
def test_gradients_are_central_differences(case, network):
    law, options = CASES[case]
    for sigma in (STEP, mf.activations.softplus):
        model = reduced(law, sigma, **options, **network)
        k, h = len(model.coordinates), 1e-5
        z = np.random.default_rng(3).uniform(0.35, 1.2, (7, k))
        got = model.gradients(z)
        for c in range(k):
            step = h * np.eye(k)[c]
            want = (model.features(z + step) - model.features(z - step)) / (2 * h)
            # Truncation h² times third derivatives, which low dimensions and steep steps make large.
            np.testing.assert_allclose(got[:, :, c], want, atol=1e-6 * np.abs(got).max(), rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_features_and_gradients_do_not_depend_on_the_number_of_threads(case):
    law, options = CASES[case]
    model = reduced(law, STEP, output="trained", **options)
    z = np.random.default_rng(0).uniform(0.1, 2, (301, len(model.coordinates)))
    core = model._compiled
    np.testing.assert_array_equal(core.features(z, 1), core.features(z, 3))
    np.testing.assert_array_equal(core.gradients(z, 1), core.gradients(z, 3))


def test_high_dimension_is_close_to_the_limit():
    z = np.array([[0.5, 0.3, 0.7, 0.9], [-1.0, 0.0, 1.5, 0.2]])
    network = {"output": "trained", "bias": "trained"}
    finite = reduced(mf.data.AnisotropicGaussians(10**6, 0.5, s0=200_000), STEP, **network)
    limit = reduced(mf.data.AnisotropicGaussians(INF, 0.5, fraction=0.2), STEP, **network)
    np.testing.assert_allclose(finite.V(z), limit.V(z), atol=1e-11)
    np.testing.assert_allclose(finite.U(z, z), limit.U(z, z), rtol=1e-4)  # U moves by O(1/d)
    weights = np.full(2, 0.5)
    np.testing.assert_allclose(finite.grad_psi(z, z, weights), limit.grad_psi(z, z, weights), atol=1e-3)


def test_the_switch_between_the_two_exact_averages_is_seamless():
    for dims in [(60, 260), (5, 35), (3, 3), (2, 30)]:
        core = _core.ReducedFeatures(
            STEP._core, has_a=False, has_b=True, dims=list(dims), nodes=np.ones((1, 2))
        )
        b, R = np.linspace(-1, 1, 21), np.linspace(0.4, 3, 21)
        sides = [
            np.column_stack([b, R * math.sqrt(dims[0]) * t, R * math.sqrt(dims[1])])
            for t in (1 - 1e-13, 1 + 1e-13)
        ]
        np.testing.assert_allclose(core.features(sides[0]), core.features(sides[1]), atol=1e-10)
        np.testing.assert_allclose(core.gradients(sides[0]), core.gradients(sides[1]), atol=1e-9)


SPHERES = [  # Δ, best radius, its risk
    (0.1, 1.44, 0.62882),
    (0.2, 1.46, 0.34116),
    (0.3, 1.52, 0.13924),
    (0.4, 1.63, 0.02559),
    (0.5, 1.81, 0.00315),
    (0.6, 2.12, 0.07496),
    (0.8, 4.11, 0.49283),
]


@pytest.mark.parametrize(("delta", "r", "risk"), SPHERES)
def test_single_spheres_have_the_known_risks_at_infinite_dimension(delta, r, risk):
    model = reduced(mf.data.IsotropicGaussians(INF, delta), STEP)
    around = [model.risk(np.array([[x]]), np.ones(1)) for x in (r - 0.01, r, r + 0.01)]
    assert around[1] == pytest.approx(risk, abs=6e-6)  # five digits are printed, for r as printed
    assert around[1] == min(around)


@pytest.mark.parametrize(("delta", "risk"), [(0.2, 0.34115), (0.4, 0.02557)])
def test_the_best_sphere_has_the_known_optimal_risk_at_infinite_dimension(delta, risk):
    model = reduced(mf.data.IsotropicGaussians(INF, delta), STEP)
    radii = np.linspace(1.4, 1.7, 601)
    best = min(model.risk(np.array([[x]]), np.ones(1)) for x in radii)
    assert best == pytest.approx(risk, abs=6e-6)


def test_the_predictable_failure_has_the_known_landscape():
    model = reduced(mf.data.IsotropicGaussians(INF, 0.5), DIP)
    risk = {r: model.risk(np.array([[r]]), np.ones(1)) for r in (0.0, 0.1, 0.4)}
    assert risk[0.0] == pytest.approx(7.25, abs=1e-12)
    assert risk[0.1] == pytest.approx(7.9851, abs=5e-5)
    assert risk[0.4] == pytest.approx(6.7714, abs=5e-5)
    for r, value, accuracy in ((0.1963, 8.4295, 5e-5), (2.0877, 0.0083, 5e-5)):  # maximum and local minimum
        point = np.array([[r]])
        assert model.risk(point, np.ones(1)) == pytest.approx(value, abs=accuracy)
        slopes = [model.grad_psi(point + e, point + e, np.ones(1))[0, 0] for e in (-1e-4, 1e-4)]
        assert slopes[0] * slopes[1] < 0


@pytest.mark.parametrize(("d", "delta", "risk"), [(40, 0.2, 0.3951), (40, 0.4, 0.0729), (320, 0.4, 0.0313)])
def test_the_optimal_risk_over_radii_is_the_known_one(d, delta, risk):
    model = reduced(mf.data.IsotropicGaussians(d, delta), STEP)
    r = np.concatenate([np.linspace(0, 4, 401), np.geomspace(4, 1000, 100)])[:, None]
    scale = np.sqrt(model.weights)
    # Least squares over the simplex: non-negative ones with a heavily weighted row for the total mass.
    system = np.vstack([(model.features(r) * scale).T, np.full(len(r), 1e4)])
    weights, _ = optimize.nnls(system, np.append(model.targets * scale, 1e4))
    assert model.risk(r, weights / weights.sum()) == pytest.approx(risk, abs=6e-5)  # four digits are printed


def test_a_linear_network_has_the_exact_potential():
    target = np.array([1.0, -0.5, 2.0, 0.3])
    law = mf.data.Linear(target, cov=1.5, noise=0.2)
    model = reduced(law, mf.activations.linear)
    size = np.linalg.norm(target)
    points, weights = np.array([[0.3, 0.8], [-0.4, 1.2]]), np.array([0.25, 0.75])
    z = np.array([[0.7, 0.1], [-1.0, 2.0]])
    mean = weights @ points[:, 0]  # the parts across average to zero
    np.testing.assert_allclose(model.psi(z, points, weights), 1.5 * (mean - size) * z[:, 0], atol=1e-11)
    np.testing.assert_allclose(
        model.grad_psi(z, points, weights), np.outer([1, 1], [1.5 * (mean - size), 0.0]), atol=1e-11
    )
    assert model.risk(points, weights) == pytest.approx(1.5 * (mean - size) ** 2 + 0.04, rel=1e-11)


def test_psi_is_v_plus_the_integral_of_u():
    model = reduced(CASES["anisotropic"][0], DIP, output="trained", bias="trained")
    rng = np.random.default_rng(5)
    z, points, weights = rng.uniform(0, 1, (3, 4)), rng.uniform(0, 1, (5, 4)), rng.dirichlet(np.ones(5))
    want = model.V(z) + model.U(z, points) @ weights
    np.testing.assert_allclose(model.psi(z, points, weights), want, atol=1e-12)
    risk = 1 + 2 * weights @ model.V(points) + weights @ model.U(points, points) @ weights
    assert model.risk(points, weights) == pytest.approx(risk, abs=1e-12)


def test_a_step_of_a_copy_keeps_the_features():
    model = reduced(CASES["isotropic"][0], STEP)
    copy = dataclasses.replace(model, ridge=0.5)
    assert copy.ridge == 0.5
    np.testing.assert_array_equal(copy.features([1.0]), model.features([1.0]))


@pytest.mark.parametrize("name", ["erf", "tanh", "linear"])
@pytest.mark.parametrize(("d", "s0"), [(5, None), (40, None), (20, 5), (200, 100)])
def test_odd_activations_have_no_features_in_radii_alone(name, d, s0):
    """Exactly 0: solvers resolve what is not, and rounding has no smooth form."""
    classes = (
        mf.data.AnisotropicGaussians(d=d, delta=0.5, s0=s0) if s0 else mf.data.IsotropicGaussians(d, 0.5)
    )
    reduced = mf.Model(classes, mf.Network(getattr(mf.activations, name))).reduce(nodes=5)
    z = np.random.default_rng(0).uniform(0, 2, (4, len(reduced.coordinates)))
    assert not reduced.features(z).any()
    assert not reduced.gradients(z).any()
    shifted = mf.Model(classes, mf.Network(getattr(mf.activations, name), bias="trained")).reduce(nodes=5)
    assert shifted.features(np.insert(z, 0, 0.3, axis=1)).all()
