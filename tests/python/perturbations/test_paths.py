"""`theory.along`: convex along mixtures, not along geodesics; derivatives and plans."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from mfcore.perturbations._paths import plan
from problems import erf_model, waves

EVEN = mf.ReducedModel(
    coordinates=["z"],
    weights=[1.0],
    targets=[1.0],
    features=lambda z: z**2,
    gradients=lambda z: 2 * z[:, None, :],
)


def cloud(rng, atoms, k):
    return mf.Cloud(rng.normal(size=(atoms, k)), rng.dirichlet(np.ones(atoms)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 3))
def test_the_risk_is_convex_along_mixtures(seed, k):
    rng = np.random.default_rng(seed)
    model, first, second = waves(seed, k), cloud(rng, 4, k), cloud(rng, 3, k)
    found = theory.along(model, first, second, points=[0.0, 0.3, 1.0])
    f = [rho.weights @ model.features(rho.points) for rho in (first, second)]
    bend = 2 * model.weights @ (f[1] - f[0]) ** 2
    assert np.allclose(found.second, bend, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.risk, [mf.risk(model, found.measure(s)) for s in found.s], rtol=1e-12)
    assert (found.second >= 0).all()


def test_neurons_of_opposite_sign_are_a_counterexample_on_the_geodesic():
    mixed = theory.along(EVEN, [-1.0], [1.0])
    moved = theory.along(EVEN, [-1.0], [1.0], "wasserstein")
    assert mixed.risk.max() == 0
    assert moved.risk.max() == 1
    assert moved.second.min() == pytest.approx(-16.0, rel=1e-9)  # R = (1 − (2s − 1)²)²
    assert moved.length == 2.0


@pytest.mark.parametrize(
    "model", [waves(2, 2), erf_model(), erf_model(ridge=0.1)], ids=["features", "Gaussian", "ridge"]
)
def test_derivatives_on_the_geodesic_are_those_of_its_risk(model):
    k = model.row if isinstance(model, mf.Model) else 2
    rng = np.random.default_rng(0)
    first, second = cloud(rng, 3, k), cloud(rng, 4, k)
    h = 1e-3
    found = theory.along(model, first, second, "wasserstein", points=0.4 + h * np.arange(-2, 3))
    r = found.risk
    slope = (8 * (r[3] - r[1]) - (r[4] - r[0])) / (12 * h)
    bend = (16 * (r[3] + r[1]) - (r[4] + r[0]) - 30 * r[2]) / (12 * h**2)
    assert math.isclose(found.slope[2], slope, rel_tol=1e-8, abs_tol=1e-9)
    assert math.isclose(found.second[2], bend, rel_tol=1e-5, abs_tol=1e-6)  # rounding over h²
    assert found.length == pytest.approx(mf.distance(first, second), rel=1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_plans_have_the_marginals_and_the_cost_of_the_distance(k):
    rng = np.random.default_rng(k)
    first, second = cloud(rng, 5, k), cloud(rng, 7, k)
    start, end, mass = plan(first.points, first.weights, second.points, second.weights)
    for rows, law in ((start, first), (end, second)):
        found = [mass[(rows == point).all(axis=1)].sum() for point in law.points]
        assert np.allclose(found, law.weights, atol=1e-12)
    cost = math.sqrt(mass @ np.square(end - start).sum(axis=1))
    assert cost == pytest.approx(mf.distance(first, second), rel=1e-9)


def test_predictions_along_the_path_are_those_of_its_measures():
    model = erf_model()
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(3, model.row)) for _ in range(2))
    X = rng.normal(size=(4, 3))
    for path in ("mixture", "wasserstein"):
        found = theory.along(model, first, second, path, points=3, X=X)
        assert found.f.shape == (3, 4)
        assert np.allclose(found.f[0], mf.predict(model, first, X), atol=1e-14)
        assert np.allclose(found.f[2], mf.predict(model, second, X), atol=1e-14)


def test_wrong_paths_and_places_are_named():
    with pytest.raises(ValueError, match="path must be one of"):
        theory.along(EVEN, [0.0], [1.0], "straight")
    with pytest.raises(ValueError, match="points"):
        theory.along(EVEN, [0.0], [1.0], points=[0.0, 1.5])
    sphere = erf_model(output="one", bias="none", sphere=True)
    rows = sphere.init.theta
    with pytest.raises(ValueError, match="leave the sphere"):
        theory.along(sphere, rows, rows[::-1], "wasserstein")


def test_the_constant_of_convexity_bounds_the_risk_between_the_ends():
    """R(ρ_s) ≤ (1 − s)R(ρ₀) + sR(ρ₁) − κs(1 − s)W₂²/2, with equality where d²R/ds² is constant."""
    law = mf.data.Linear([1.0, 0.0], cov=[[0.5, 0.0], [0.0, 2.0]])
    model = mf.Model(law, mf.Network(mf.activations.linear))
    path = theory.along(model, [[0.0, 0.0]], [[0.0, 3.0]], "wasserstein")
    assert path.convexity == pytest.approx(2 * 2.0)  # twice the variance along the way
    s = path.s
    chord = (1 - s) * path.risk[0] + s * path.risk[-1] - path.convexity * s * (1 - s) * path.length**2 / 2
    assert path.risk == pytest.approx(chord)
    assert np.isnan(theory.along(model, [[0.0, 0.0]], [[0.0, 3.0]]).convexity)
