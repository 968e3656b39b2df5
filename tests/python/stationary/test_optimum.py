"""The least risk of all measures against closed forms, published numbers and brute force on fine grids."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mfcore._base import factors
from mfcore.stationary._combinations import folded
from mfcore.stationary._compact import compact
from mfcore.stationary._search import gradient, potential
from mfcore.stationary._simplex import simplex_least_squares
from problems import STEP
from scipy import optimize, special

INF = math.inf


def polynomials(targets, **changes):
    """Φ = (z, z², …) with equal weights: moments of ρ are fitted to the targets."""
    q = len(targets)
    powers = np.arange(1, q + 1)
    return mf.ReducedModel(
        **{
            "coordinates": ["z"],
            "weights": np.full(q, 1 / q),
            "targets": targets,
            "features": lambda z: z**powers,
            "gradients": lambda z: (powers * z ** (powers - 1))[:, :, None],
            **changes,
        }
    )


def bumps(seed, k=1):
    """Random smooth features in k coordinates, bounded."""
    rng = np.random.default_rng(seed)
    a, b, y = rng.normal(size=(6, k)), rng.uniform(0, 6, 6), rng.normal(size=6) * 1.5
    return mf.ReducedModel(
        coordinates=[f"z{c}" for c in range(k)],
        weights=rng.dirichlet(np.ones(6)),
        targets=y,
        features=lambda z: np.sin(z @ a.T + b),
        gradients=lambda z: np.cos(z @ a.T + b)[..., None] * a,
    )


def isotropic(d, delta, sigma=STEP, **changes):
    return mf.Model(mf.data.IsotropicGaussians(d, delta), mf.Network(sigma), **changes)


def on_grid(model, z):
    """min R over measures on the points z, by non-negative least squares with a heavy row for Σ c = 1."""
    scale = np.sqrt(model.weights)
    columns = (model.features(z) * scale).T
    heavy = 1e4
    system = np.vstack([columns, np.full(len(z), heavy)])
    c, _ = optimize.nnls(system, np.append(scale * model.targets, heavy), maxiter=10_000)
    c /= c.sum()
    return float(model.weights @ (model.targets - c @ model.features(z)) ** 2) + model.noise


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 12), twins=st.booleans())
@example(seed=13338, m=11, twins=True)  # a start with more atoms than the fit can tell apart
def test_weights_on_the_simplex_satisfy_the_optimality_conditions(seed, m, twins):
    rng = np.random.default_rng(seed)
    columns, target, cost = rng.normal(size=(5, m)), rng.normal(size=5), rng.exponential(size=m)
    if twins:  # atoms at one place, and nearly
        columns = np.hstack([columns, columns, columns + 1e-9 * rng.normal(size=columns.shape)])
        cost = np.tile(cost, 3)
    start = rng.dirichlet(np.ones(len(cost))) if rng.random() < 0.5 else None
    c = simplex_least_squares(columns, target, cost, start)
    slope = columns.T @ (columns @ c - target) + cost
    assert c.min() >= 0
    assert c.sum() == pytest.approx(1, abs=1e-12)
    # Twins at 1e-9 cannot be told apart below that.
    assert c @ slope - slope.min() < (1e-7 if twins else 1e-11)


def test_two_atoms_by_hand():
    # On [−1, 1] with targets ∫z = 0, ∫z² = 2 the best is ±1 with half the mass each: R = (1/2)(2 − 1)².
    best = mf.optimum(polynomials([0.0, 2.0]), extent=(-1, 1))
    assert best.risk == pytest.approx(0.5, abs=1e-14)
    order = np.argsort(best.measure.points[:, 0])
    np.testing.assert_allclose(best.measure.points[order, 0], [-1, 1], atol=1e-12)
    np.testing.assert_allclose(best.measure.weights, 0.5, atol=1e-10)
    assert best.box == ((-1.0, 1.0),)
    assert best.message == ""


def test_with_decay_the_sum_of_half_the_risk_and_the_decay_is_minimised():
    best = mf.optimum(polynomials([3.0], ridge=0.5))
    # All mass at m: (3 − m)²/2 + m²/4 is least at m = 2.
    assert best.value == pytest.approx(1.5, abs=1e-12)
    assert best.risk == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(best.measure.points, 2.0, atol=1e-6)
    free = mf.optimum(polynomials([3.0], ridge=0.5, decays=[False]), extent=(0, 10))
    assert free.risk < 1e-10


@pytest.mark.parametrize(
    ("d", "published"),
    [
        (40, {0.2: 0.3951, 0.4: 0.0729, 0.6: 0.0152, 0.8: 0.0031}),
        (320, {0.2: 0.3477, 0.4: 0.0313, 0.6: 0.0019, 0.8: 0.0004}),
        (INF, {0.2: 0.34115, 0.4: 0.02557, 0.6: 0.0, 0.8: 0.0}),
    ],
)
def test_isotropic_optima_are_those_of_a_program_over_radii_up_to_1000(d, published):
    for delta, want in published.items():
        best = mf.optimum(isotropic(d, delta))
        assert best.gap <= 1e-8
        assert best.risk == pytest.approx(want, abs=5e-5)


def test_the_single_sphere_is_optimal_up_to_the_transition_in_infinite_dimension():
    before, after = (mf.optimum(isotropic(INF, 0.47422 + shift)) for shift in (-0.01, 0.01))
    assert len(before.measure) == 1
    assert before.risk > 1e-5
    assert after.risk < 1e-8


@pytest.mark.parametrize("delta", [0.3, 0.7])
def test_isotropic_optima_are_not_worse_than_non_negative_least_squares_on_a_fine_grid(delta):
    model = isotropic(40, delta).reduce()
    best = mf.optimum(model, extent=(0, 20))
    brute = on_grid(model, np.linspace(0, 20, 4001)[:, None])
    # The grid's spacing h costs h²Ψ'' ~ 1e-5; the heavy row is obeyed to 1e-8.
    assert brute - 2e-5 < best.risk < brute + 1e-9


def test_a_homogeneous_network_reaches_its_linear_optimum():
    d, delta = 40, 0.5
    best = mf.optimum(isotropic(d, delta, mf.activations.relu))
    # f = c|x|, so R = 1 − (E y|x|)²/E|x|², at every measure with the best ∫r dρ: Ψ is flat there.
    chi = math.sqrt(2) * math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2))
    assert best.risk == pytest.approx(1 - (delta * chi) ** 2 / ((1 + delta**2) * d), abs=1e-9)
    assert best.gap <= 1e-8


def test_a_teacher_in_the_class_is_found_in_two_coordinates():
    law = mf.data.MultiIndex(INF, lambda z: np.maximum(z[:, 0], 0), 1)
    best = mf.optimum(mf.Model(law, mf.Network(mf.activations.relu)), tolerance=1e-6)
    assert best.risk < 1e-6
    np.testing.assert_allclose(best.measure.weights @ best.measure.points[:, 0], 1, atol=1e-2)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_measure_is_better_than_the_optimum(seed):
    model = bumps(seed)
    best = mf.optimum(model, extent=(-5, 5))
    assert best.gap <= 1e-8
    brute = on_grid(model, np.linspace(-5, 5, 2001)[:, None])
    assert best.risk <= brute + 1e-8
    assert brute <= best.risk + 1e-4  # spacing 0.005, h²Ψ''


def test_three_coordinates_are_searched_by_scattered_points():
    model = bumps(3, k=3)
    best = mf.optimum(model, extent=[(-2, 2)] * 3, tolerance=1e-6)
    assert best.gap <= 1e-6
    rng = np.random.default_rng(0)
    assert best.risk <= on_grid(model, rng.uniform(-2, 2, (3000, 3))) + 1e-8


def test_features_without_gradients_will_do():
    with_, without = (
        mf.optimum(polynomials([0.3, 0.5, 0.1], gradients=g), extent=(-1, 1))
        for g in (polynomials([0.0] * 3).gradients.function, None)
    )
    assert without.risk == pytest.approx(with_.risk, abs=1e-6)


def test_noise_is_part_of_the_risk_and_temperature_is_ignored():
    plain = mf.optimum(isotropic(40, 0.3))
    warm = mf.optimum(isotropic(40, 0.3, temperature=0.1))
    assert warm.risk == plain.risk
    assert mf.optimum(polynomials([1.0], noise=0.25), extent=(0, 2)).risk == pytest.approx(0.25, abs=1e-12)


def test_a_box_that_matters_is_told():
    far = mf.optimum(isotropic(40, 0.8))
    assert far.box == ((0.0, 1e5),)
    assert "larger boxes allow better measures" in far.message
    assert "larger boxes" in repr(far)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: mf.optimum(polynomials([1.0]), tolerance=0), "tolerance must be > 0, got 0"),
        (
            lambda: mf.optimum(polynomials([1.0], rates=[0.0])),
            "model must move all coordinates .* rate 0 for z",
        ),
        (
            lambda: mf.optimum(polynomials([1.0]), extent=(2, 1)),
            r"extent must have low < high for z, got \(2, 1\)",
        ),
        (
            lambda: mf.optimum(mf.Model(mf.data.Dataset(np.eye(9), np.ones(9)), mf.Network(STEP))),
            "data must have a symmetry, which leaves the limit few coordinates",
        ),
    ],
)
def test_bad_input_is_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"model must be an mf\.Model or mf\.ReducedModel, got 3"):
        mf.optimum(3)


@pytest.mark.parametrize("whole", [True, False])
def test_a_folded_model_has_the_potential_and_the_slope_of_all_its_nodes(whole):
    reduced = mf.Model(mf.data.MultiIndex(3, [0, 1.0, 0.5], 1), mf.Network(mf.activations.relu)).reduce()
    box = [(-2.0, 2.0), (0.0, 2.0)]
    model = reduced if whole else compact(reduced, box, tolerance=1e-4).model
    assert whole or len(model.weights) < len(reduced.weights)
    rng = np.random.default_rng(0)
    residual, z = rng.normal(size=len(model.weights)) * model.weights, rng.uniform(*np.array(box).T, (5, 2))
    one, alone = folded(model, residual), np.ones(1)
    # Sums of the same terms in another order: rounding, relative to the largest.
    for function in (potential, gradient):
        want = function(model, z, residual)
        assert np.allclose(function(one, z, alone), want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_matrices_on_which_the_quick_svd_gives_up_have_factors_too(monkeypatch):
    """OpenBLAS gave up on a matrix of features of 678 by 6400 entries that are all finite."""

    def gives_up(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    matrix = np.random.default_rng(0).normal(size=(4, 7))
    want = np.linalg.pinv(matrix)
    for name in ("svd", "pinv"):
        monkeypatch.setattr(np.linalg, name, gives_up)
    u, s, vt = factors.svd(matrix)
    assert np.allclose((u * s) @ vt, matrix, atol=1e-14)
    assert np.allclose(factors.pinv(matrix), want, atol=1e-14)
