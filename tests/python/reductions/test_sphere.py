"""Networks with |w| = 1 in coordinates (a, b, s…): closed forms, geometry of the sphere, rungs, refusals."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.experiments import _quartic as quartic
from mfcore.reductions._project import Coordinates

INF = math.inf
INIT = mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Sphere(1.0))


def neurons_on(law, activation=mf.activations.relu, **options):
    """A model of spherical neurons with trained output weights."""
    return mf.Model(law, mf.Network(activation, output="trained", sphere=True), INIT, **options)


def one_direction(d=INF, link=(1.0, -1.0, 2 / 3)):
    return mf.data.MultiIndex(d, list(link), directions=1)


def test_the_flow_of_mean_field_neurons_is_their_closed_system():
    """ȧ = V(s) − ∫a'U(ss'), ṡ = a(1 − s²)[V'(s) − ∫a's'U'(ss')] with the zonal kernel of ReLU."""
    model = neurons_on(one_direction())
    reduced = model.reduce()
    assert reduced.coordinates == ("a", "s1")
    rng = np.random.default_rng(0)
    a, s = rng.normal(size=9), rng.uniform(-0.9, 0.9, 9)
    z = np.column_stack([a, s])
    phi, sigma = [1.0, -1.0, 2 / 3], [1 / math.sqrt(2 * math.pi), 0.5, 0.5 / math.sqrt(math.pi)]
    value = sum(p * c * s**k for k, (p, c) in enumerate(zip(phi, sigma, strict=True)))
    slope = sum(k * p * c * s ** max(k - 1, 0) for k, (p, c) in enumerate(zip(phi, sigma, strict=True)))
    u = np.multiply.outer(s, s)
    kernel = (np.sqrt(1 - u**2) + (math.pi - np.arccos(u)) * u) / (2 * math.pi)
    tilt = (math.pi - np.arccos(u)) / (2 * math.pi)
    want_a = value - kernel @ a / 9
    want_s = a * (1 - s**2) * (slope - tilt @ (a * s) / 9)
    got = -mf.grad_psi(reduced, z, z)
    np.testing.assert_allclose(got, np.column_stack([want_a, want_s]), atol=1e-10)
    risk = sum(p * p for p in phi) - 2 * np.mean(a * value) + a @ kernel @ a / 81
    assert mf.risk(model, z) == pytest.approx(risk, abs=1e-10)


LAWS = {
    "limit": mf.data.MultiIndex(INF, {(1, 0): 1.0, (1, 1): 1.0}, 2),
    "gaussian": mf.data.MultiIndex(9, {(1, 0): 1.0, (1, 1): 1.0}, 2),
    "sphere": mf.data.MultiIndex(9, {(1, 0): 1.0, (1, 1): 1.0}, 2, inputs="sphere"),
    "cube": mf.data.Staircase(INF, [(0,), (0, 1)]),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_gradients_are_tangential_to_the_sphere(law):
    # In the chart s the metric is the inverse of I − ssᵀ, so the gradient is (I − ssᵀ)∂_sΨ.
    reduced = neurons_on(law, mf.activations.tanh).reduce(
        **({} if law.inputs == "hypercube" else {"nodes": 8})
    )
    rng = np.random.default_rng(1)
    z = np.column_stack([rng.normal(size=5), rng.uniform(-0.6, 0.6, (5, 2))])
    eps, gradient = 1e-5, mf.grad_psi(reduced, z, z)
    slopes = np.empty_like(z)
    for c in range(3):
        step = eps * np.eye(3)[c]
        slopes[:, c] = (mf.psi(reduced, z + step, z) - mf.psi(reduced, z - step, z)) / (2 * eps)
    s = z[:, 1:]
    tangential = slopes[:, 1:] - s * np.sum(s * slopes[:, 1:], axis=1)[:, None]
    # central differences: eps² times third derivatives, and rounding over eps
    np.testing.assert_allclose(gradient[:, 0], slopes[:, 0], atol=1e-8)
    np.testing.assert_allclose(gradient[:, 1:], tangential, atol=1e-8)


def test_v_of_neurons_is_that_of_their_coordinates_at_finite_dimension():
    law = mf.data.MultiIndex(7, {(1, 0): 1.0, (0, 2): 0.5}, 2)
    model = neurons_on(law, mf.activations.hermite([0.3, 1.0, 0.7]))
    theta = model.init.sample(model.network, 7, 6, rng=0)
    reduced = model.reduce(nodes=6)  # exact for polynomials of degree 11
    z = Coordinates(model.network, model.data, reduced.coordinates).of(theta)
    np.testing.assert_allclose(mf.V(reduced, z), mf.V(model, theta), atol=1e-13)


def test_neurons_lifted_from_coordinates_are_unit_and_velocities_tangential():
    model = neurons_on(mf.data.MultiIndex(7, {(1, 0): 1.0, (1, 1): 1.0}, 2), mf.activations.tanh)
    theta = model.init.sample(model.network, 7, 6, rng=0)
    reduced = model.reduce(nodes=6)
    at = Coordinates(model.network, model.data, reduced.coordinates)
    z = at.of(theta)
    np.testing.assert_allclose(at.lift(theta, z), theta, atol=1e-14)
    velocity = -mf.grad_psi(reduced, z, z)
    moved = at.lift_velocity(theta, velocity)
    np.testing.assert_allclose(np.sum(moved[:, 1:] * theta[:, 1:], axis=1), 0.0, atol=1e-14)
    np.testing.assert_allclose(at.of(theta + moved) - z, velocity, atol=1e-14)  # (a, s) is linear in θ


def test_the_initial_law_is_that_of_a_uniform_direction():
    initial = neurons_on(mf.data.MultiIndex(9, {(1, 0): 1.0}, 2)).reduce(nodes=4).initial
    points, weights = initial.quadrature(5)
    assert points.shape[1] == 3
    np.testing.assert_allclose(weights @ points[:, 1:] ** 2, 1 / 9, atol=1e-14)
    np.testing.assert_allclose(initial.sample(4000, 0)[:, 1:].var(axis=0), 1 / 9, rtol=0.2)  # 9 s.e.
    at_infinity = neurons_on(one_direction()).reduce().initial
    assert not at_infinity.quadrature(4)[0][:, 1].any()


def test_stiff_rates_choose_an_implicit_scheme_and_the_risk_falls_to_its_first_plateau():
    start = mf.Cloud(np.column_stack([np.linspace(-1, 1, 4), np.zeros(4)]))
    model = neurons_on(one_direction(), rates={"a": 1e4})
    assert mf.Atoms(start=start).begin(model, 0, 1)._method.method == "lsoda"
    assert mf.Atoms(start=start).begin(model.replace(rates=None), 0, 1)._method.method == "dopri5"
    run = mf.solve(model, mf.Atoms(start=start), horizon=5e-3, save_at=[0.0, 5e-3])
    assert run.status == "completed"
    # φ₀ is learned at once: of 1 + 1 + 4/9 the first is gone, up to s of order √ε
    assert run.risk[1] == pytest.approx(13 / 9, abs=0.02)


def test_independent_neurons_follow_the_limit_on_the_sphere():
    model = neurons_on(mf.data.MultiIndex(12, [0.0, 1.0, 0.5], 1), mf.activations.hermite([0.2, 1.0, 0.5]))
    start = mf.Cloud([[1.0, 0.2], [-0.5, -0.3]])
    run = mf.solve(model, mf.Nonlinear(2, mf.Atoms(start=start)), horizon=0.1, save_at=[0.0, 0.1], rng=0)
    np.testing.assert_allclose(np.linalg.norm(run.final[:, 1:], axis=1), 1.0, atol=1e-13)
    first = model.init.sample(model.network, 12, 2, rng=0)
    moved = (run.final - first) / 0.1
    at = Coordinates(model.network, model.data, ("a", "s1"))
    halfway = (run.final + first) / 2
    velocity = -mf.grad_psi(model, halfway, start)
    # a step of length 0.1 in a field that moves as well: 10 % of the velocity
    assert np.abs(at.of(moved) - at.of(velocity)).max() < 0.2 * np.abs(at.of(velocity)).max()


def test_predictions_of_reduced_measures_are_the_features_at_the_nodes():
    model = neurons_on(LAWS["cube"], mf.activations.sigmoid)
    z = np.array([[1.0, 0.3, -0.2], [-0.5, 0.1, 0.6]])
    reduced = model.reduce()
    want = reduced.features(z).mean(axis=0)
    np.testing.assert_allclose(mf.predict(model, z, reduced.nodes), want, atol=1e-14)


def test_what_takes_gradients_for_derivatives_is_refused():
    model = neurons_on(one_direction())
    density = mf.Density(([-1, 0, 1], [-1, 0, 1]), np.full((2, 2), 0.25))
    for call in (
        lambda: mf.solve(model, mf.PDE(cells=(8, 8)), horizon=1.0),
        lambda: mf.solve(model, mf.JKO(0.1), horizon=1.0),
        lambda: mf.optimum(model),
        lambda: mf.certificate(model, [[1.0, 0.5]]),
        lambda: mf.dissipation(model, density),
    ):
        with pytest.raises(ValueError, match="model must have flat coordinates"):
            call()
    with pytest.raises(ValueError, match="temperature must be 0"):
        model.replace(temperature=0.1).reduce()


def test_neurons_that_a_step_carries_past_a_pole_count_as_at_it_and_the_risk_still_falls():
    # h = 1 + 0.4 P₂ + 0.64 P₄ in orthonormal polynomials at d = 16: neurons go to s = 0 and ±1 and stay.
    # Before, one that rounding had put to |s| > 1 ran away from there: the risk rose from 0.0207 to 0.0268.
    run = mf.solve(quartic.model(16, 0.4, 0.64), mf.Atoms(32), horizon=150.0, save_at=[0.0, 100.0, 150.0])
    assert run.status == "completed"
    assert run.risk[2] <= run.risk[1] + 1e-9 < run.risk[0]
    assert np.abs(run.final.points).max() < 1 + 1e-6  # the tolerance of a step


def test_features_past_the_sphere_are_those_of_the_nearest_point_on_it():
    reduced = neurons_on(mf.data.MultiIndex(9, {(1, 0): 1.0, (1, 2): 0.5}, 2)).reduce()
    inside, outside = np.array([[0.7, 0.6, 0.8]]), np.array([[0.7, 0.66, 0.88]])
    np.testing.assert_allclose(reduced.features(outside), reduced.features(inside), atol=1e-13)
    np.testing.assert_allclose(reduced.gradients(outside), reduced.gradients(inside), atol=1e-12)
