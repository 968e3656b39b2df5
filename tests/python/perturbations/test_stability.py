"""`theory.stability`: spectra against differences of the flow, instabilities against runs."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.perturbations import _spectra
from problems import SQUARES, erf_model, isotropic, linear_model, radius

SPEEDS = {"a": 2.0, "b": 0.3, "w": 1.7}


def dataset(ridge, **shape):
    rng = np.random.default_rng(3)
    shape = {"output": "trained", "bias": "trained"} | shape
    network = mf.Network(mf.activations.tanh, scale=1.7, **shape)
    rates = {block: SPEEDS[block] for block in network.trained}
    law = mf.data.Dataset(rng.normal(size=(9, 3)), rng.normal(size=9))
    return mf.Model(law, network, ridge=ridge, rates=rates)


def rectifier(ridge):
    law = mf.data.IsotropicGaussians(d=3, delta=0.5)
    return mf.Model(law, mf.Network(mf.activations.relu), ridge=ridge)


def multi_index(ridge):
    law = mf.data.MultiIndex(8, [0.0, 1.0, 0.5], directions=1)
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    return mf.Model(law, network, ridge=ridge).reduce()


MODELS = {
    "nodes": dataset,
    "fixed output": lambda ridge: dataset(ridge, output="fixed"),
    "Gaussian": lambda ridge: erf_model(ridge=ridge),
    "rectifier": rectifier,
    "radius": lambda ridge: isotropic(ridge=ridge).reduce(),
    "multi-index": multi_index,
}


def slope(function, x, unit):
    """A derivative whose errors of orders h and h² cancel; 1e-15/h and h³ are left."""
    one, two, four = ((function(x + h * unit) - function(x - h * unit)) / (2 * h) for h in (5e-5, 1e-4, 2e-4))
    return (2 * one - two) + ((2 * one - two) - (2 * two - four)) / 3


def speeds(model):
    if isinstance(model, mf.ReducedModel):
        return np.array(model.rates)
    rates = np.zeros(model.row)
    for block, where in model.network.blocks(int(model.d)).items():
        rates[where] = (model.rates or {}).get(block, 1.0) if block in model.network.trained else 0.0
    return rates


def spectra_by_differences(model, points, weights):
    """Eigenvalues of minus the Jacobian of the flow: of an atom in the field of all, and of all atoms."""
    rates = speeds(model)
    moving = np.flatnonzero(rates)

    def velocity(z, field):
        return rates * mf.grad_psi(model, z, mf.Cloud(field, weights))

    own = np.array([slope(lambda z: velocity(z, points), points, unit) for unit in np.eye(len(rates))])
    spread = [np.sort(np.linalg.eigvals(own[:, i][np.ix_(moving, moving)]).real) for i in range(len(points))]
    units = [unit for unit in np.eye(points.size).reshape(-1, *points.shape) if (unit @ rates).any()]
    all_moving = np.tile(rates > 0, len(points))
    both = [slope(lambda z: velocity(z, z), points, unit).ravel()[all_moving] for unit in units]
    return np.array(spread), np.sort(np.linalg.eigvals(np.array(both)).real)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("atoms", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_spectra_are_those_of_differences_of_the_flow(name, atoms, ridge):
    model = MODELS[name](ridge)
    rng = np.random.default_rng(atoms)
    row = model.row if isinstance(model, mf.Model) else len(model.coordinates)
    points = 0.3 + rng.uniform(size=(atoms, row))
    weights = rng.dirichlet(np.full(atoms, 3.0))
    found = theory.stability(model, mf.Cloud(points, weights))
    spread, mean = spectra_by_differences(model, points, weights)
    size = max(1.0, np.abs(spread).max())
    assert np.abs(found.spread - spread).max() < 1e-6 * size  # what the differences of this test leave
    assert np.abs(found.mean - mean).max() < 1e-6 * size
    assert found.error < 1e-6 * size


def test_a_linear_model_has_the_covariance_in_its_mean_and_the_ridge_in_its_spread():
    model = linear_model(5, 4, ridge=0.25)
    found = theory.stability(model, model.init.theta)
    assert np.allclose(found.spread, 0.25, atol=1e-9)  # differences of exact gradients
    sigma = np.diag(model.data.cov)
    want = np.sort(np.concatenate([0.25 + sigma, np.full(16, 0.25)]))
    assert np.allclose(found.mean, want, atol=1e-9)
    assert not found.stable  # no fixed point
    rest = np.linalg.solve(np.diag(sigma + 0.25), sigma * model.data.w)
    there = theory.stability(model, rest[None])
    assert there.residual < 1e-12
    assert there.stable
    assert math.isclose(there.rate, 0.25, rel_tol=1e-8)


def test_a_radius_rests_across_itself_and_the_spectrum_is_that_of_all_dimensions():
    model = isotropic(8, mf.activations.softplus)
    radius, d = 1.3, 8
    found = theory.stability(model, mf.Cloud([[radius]]))
    theta = np.zeros(d)
    theta[2] = radius
    hessian = np.array(
        [slope(lambda w: mf.grad_psi(model, w[None], mf.Cloud([[radius]]))[0], theta, e) for e in np.eye(d)]
    )
    want = np.sort([found.spread[0, 0], *[found.transverse[0, 0]] * int(found.multiplicities[0])])
    assert found.multiplicities == (d - 1.0,)
    assert np.allclose(np.linalg.eigvalsh(hessian), want, atol=1e-7)


def test_an_atom_at_a_saddle_splits_as_fast_as_its_spectrum_says():
    model = mf.ReducedModel(**SQUARES, ridge=0.1)
    found = theory.stability(model, [0.0])
    assert found.residual == 0
    assert not found.stable
    size, horizon = 1e-5, 3.0
    run = mf.solve(model, mf.Atoms(start=found.split(size), rtol=1e-10, atol=1e-14), horizon=horizon)
    reached = np.abs(run.final.points).max()
    # Nonlinear terms are of order size², and the flow is exact to 1e-10.
    assert math.isclose(reached, size * math.exp(-found.rate * horizon), rel_tol=1e-6)


def test_a_shifted_cloud_returns_at_the_rate_of_its_mean():
    model = mf.ReducedModel(**SQUARES, ridge=1.2)
    found = theory.stability(model, [0.0])
    assert found.stable
    assert math.isclose(found.rate, 0.2, rel_tol=1e-9)
    start = found.shifted(1e-5)
    run = mf.solve(model, mf.Atoms(start=start, rtol=1e-10, atol=1e-14), horizon=1.0)
    assert math.isclose(abs(run.final.points[0, 0]), 1e-5 * math.exp(-found.mean[0]), rel_tol=1e-6)


def test_a_radius_that_a_kink_holds_at_zero_returns_at_once():
    model = radius(target=-1.0)
    found = theory.stability(model, [0.0])
    assert found.residual == 0
    assert found.spread.tolist() == [[math.inf]]
    assert found.mean.size == 0
    assert found.stable


def test_on_the_sphere_atoms_move_in_tangent_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    law = mf.data.Dataset(X, 0.4 * np.tanh(X @ [1.0, 0.5, 0.0]) + 0.1 * rng.normal(size=12))
    model = mf.Model(law, mf.Network(mf.activations.tanh, sphere=True))
    w = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]])
    for _ in range(4000):
        w = w - 2.0 * mf.grad_psi(model, w, w)
        w /= np.linalg.norm(w, axis=1)[:, None]
    found = theory.stability(model, w)
    assert found.residual < 1e-9
    jacobian = [slope(lambda z: mf.grad_psi(model, z, z), w, e) for e in np.eye(6).reshape(6, 2, 3)]
    values = np.sort(np.linalg.eigvals(np.reshape(jacobian, (6, 6))).real)
    across = np.sort(values[np.argsort(np.abs(values))[2:]])  # along w nothing changes: two zeros
    assert found.spread.shape == (2, 2)
    assert np.allclose(found.mean, across, atol=1e-7)


def test_without_matrices_the_lowest_eigenvalues_are_the_same(monkeypatch):
    model = dataset(0.1)
    points = np.random.default_rng(1).normal(size=(3, 5))
    whole = theory.stability(model, points)
    monkeypatch.setattr(_spectra, "DENSE", 2)
    few = theory.stability(model, points, lowest=3)
    assert np.allclose(few.spread, whole.spread[:, :3], atol=1e-9)  # Lanczos' tolerance
    assert np.allclose(few.mean, whole.mean[:3], atol=1e-9)
    halves = [np.sort(one.split(0.1).points, axis=0) for one in (few, whole)]  # signs are arbitrary
    assert np.allclose(*halves, atol=1e-6)  # vectors converge as the root of values do


def test_points_that_coincide_are_one_atom_and_points_without_mass_have_no_mean():
    model = dataset(0.1)
    points = np.random.default_rng(1).normal(size=(2, 5))
    one = theory.stability(model, mf.Cloud(points, [2 / 3, 1 / 3]))
    same = theory.stability(model, points[[0, 1, 0]])
    assert np.array_equal(same.atoms.points, points)
    assert np.allclose(same.mean, one.mean, atol=1e-13)
    alone = theory.stability(model, points[:1])
    followed = theory.stability(model, mf.Cloud(points, [1.0, 0.0]))
    assert np.allclose(followed.mean, alone.mean, atol=1e-13)
    assert followed.rate == pytest.approx(alone.rate, abs=1e-13)
    assert followed.spread.shape == (2, 5)


def test_noise_and_wrong_numbers_are_refused():
    model = dataset(0.1)
    with pytest.raises(ValueError, match="temperature 0 for stability"):
        theory.stability(model.replace(temperature=0.1), np.ones((1, 5)))
    wide = rectifier(0.0).replace(network=mf.Network(mf.activations.tanh, output="trained"))
    cube = rectifier(0.0).replace(data=mf.data.Staircase(3, [(0,), (0, 1)]))
    one = [[-1e200, 0.1, 0.2], [0.1, 0.2, 0.3]]  # its slope has no square, its Hessian is finite
    for far, rows in ((wide, 1e160 * np.random.default_rng(0).normal(size=(4, 4))), (cube, one)):
        with pytest.raises(ValueError, match=r"^measure must hold atoms at which"):
            theory.stability(far, rows)
    with pytest.raises(ValueError, match="lowest"):
        theory.stability(model, np.ones((1, 5)), lowest=0)
