"""mf.PDE with noise: exact solutions, stationary laws, growing grids, checkpoints, and what is refused."""

import math
from itertools import pairwise

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore.density._pde import PDE
from mfcore.measures._energy import free_energy
from problems import STEP
from scipy import linalg


def linear_model(ridge=0.5, temperature=0.2):
    return mf.Model(
        data=mf.data.Linear([1.0, -0.5], cov=[[1.0, 0.3], [0.3, 0.5]], noise=0.3),
        network=mf.Network(mf.activations.linear),
        init=mf.init.Gaussian(std=0.6),
        ridge=ridge,
        temperature=temperature,
    )


def radial_model(d=40, temperature=0.01, ridge=0.1):
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=d, delta=0.5),
        network=mf.Network(STEP),
        init=mf.init.Radial(0.4),
        ridge=ridge,
        temperature=temperature,
    )


class Normals:
    """Independent normal coordinates, known by samples and nodes alone."""

    def __init__(self, means, stds, fixed=()):
        self.means, self.stds, self.fixed = means, stds, fixed

    def sample(self, n, rng):
        raise NotImplementedError

    def quadrature(self, n):
        x, w = _core.gauss_hermite(n)
        axes = [(np.array(values), np.full(len(values), 1 / len(values))) for values in self.fixed]
        axes += [(m + s * x, w) for m, s in zip(self.means, self.stds, strict=True)]
        points = np.stack(np.meshgrid(*(a for a, _ in axes), indexing="ij"), axis=-1)
        weights = np.ones(())
        for _, b in axes:
            weights = np.multiply.outer(weights, b)
        return points.reshape(-1, len(axes)), weights.ravel()


def test_linear_networks_follow_their_exact_risk_and_free_energy_within_the_stated_error():
    model = linear_model()
    w, sigma = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 0.5]])
    matrix = sigma + model.ridge * np.eye(2)
    limit = np.linalg.solve(matrix, sigma @ w)
    run = mf.solve(model, PDE(cells=80), horizon=2.0, save_at=[0.0, 0.3, 1.0, 2.0])
    for t, risk, error, free in zip(run.t, run.risk, run.error, run.observed["free_energy"], strict=True):
        mean = limit - linalg.expm(-t * matrix) @ limit
        exact = (mean - w) @ sigma @ (mean - w) + 0.3**2
        var = 0.36 * math.exp(-t) + 0.2 / model.ridge * (1 - math.exp(-t))
        assert abs(risk - exact) <= error + 1e-9
        want = exact / 2 + 0.25 * (mean @ mean + 2 * var) - 0.2 * (math.log(2 * math.pi * math.e * var))
        assert free == pytest.approx(want, abs=5e-3)
    assert run.error.max() < 1e-2


def test_finer_grids_have_smaller_errors_and_agree_within_them():
    runs = [mf.solve(radial_model(), PDE(cells=n), horizon=5.0, save_at=[0.5, 5.0]) for n in (100, 200, 400)]
    for coarse, fine in pairwise(runs):
        assert np.all(fine.error < coarse.error / 2)
        assert np.all(np.abs(coarse.risk - fine.risk) < coarse.error + fine.error)


@pytest.mark.parametrize(("d", "temperature"), [(40, 0.01), (320, 1e-3)])
def test_the_end_is_the_gibbs_law_of_its_own_potential(d, temperature):
    model = radial_model(d, temperature)
    reduced = model.reduce()
    run = mf.solve(model, PDE(cells=100, error=False, tolerance=1e-8), horizon=1e6, save_at=[1e6])
    assert run.status == "stationary"
    (edges,), mass = run.final.edges, run.final.mass
    centers = run.final.centers[0]
    low, high = edges[:-1] / edges[-1], edges[1:] / edges[-1]
    with np.errstate(divide="ignore"):
        logs = (
            d * np.log(high)
            + np.log1p(-((low / high) ** d))
            - mf.psi(reduced, centers, run.final) / temperature
        )
    law = np.exp(logs - logs.max())
    # Stationary to a velocity of 1e-8; features compressed to 1e-12 of the largest, over a temperature.
    assert np.abs(law / law.sum() - mass).sum() < 1e-6


def test_long_runs_cost_a_few_thousand_steps_and_lower_the_free_energy():
    times = mf.log_times(1e-3, 1e6, 46)
    run = mf.solve(radial_model(320, 1e-3), PDE(cells=200), horizon=1e6, save_at=times)
    assert run.meta["steps"] + run.meta["rejected"] < 3000
    free = run.observed["free_energy"]
    # Merging pairs of cells when the grid grows moves R by less than its stated error.
    assert np.diff(free).max() < run.error.max()
    assert run.meta["largest_rise"] < 1e-12
    assert run.meta["grown"] > 0
    assert free[-1] == pytest.approx(free_energy(radial_model(320, 1e-3), run.final), abs=1e-9)


def test_grids_grow_where_noise_carries_mass_and_lose_none():
    pure = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[0.0],
        features=np.zeros_like,
        temperature=0.5,
        ridge=0.02,
        initial=Normals([0.3], [0.1]),
    )
    run = mf.solve(pure, PDE(cells=100), horizon=400.0, save_at=[0.0, 20.0, 400.0], keep="all")
    assert run.meta["grown"] > 3
    for t, rho in run.kept.items():
        assert rho.mass.sum() == pytest.approx(1, abs=1e-12)
        assert max(rho.mass[0], rho.mass[-1]) < 1e-9
        z = rho.centers[0]
        decayed = math.exp(-2 * 0.02 * t)
        var = 0.01 * decayed + 25 * (1 - decayed)
        assert rho.mass @ z == pytest.approx(0.3 * math.exp(-0.02 * t), abs=1e-6 + 1e-3 * (t > 0))
        # Cells of width Δ hide Δ²/12 of the variance; about 40 of them are within two standard deviations.
        assert rho.mass @ z**2 - (rho.mass @ z) ** 2 == pytest.approx(var, rel=2e-2 if t else 0.2)


def test_coordinates_at_rest_stand_beside_one_or_two_moving_ones():
    """With constant Φ each moving coordinate is an Ornstein–Uhlenbeck process at its own rate."""
    fixed, means, stds, rates = [(-1.0, 1.0)], [0.5, -0.4], [0.5, 0.6], [1.0, 0.5]
    for k in (1, 2):
        model = mf.ReducedModel(
            coordinates=["a", "y", "z"][: k + 1],
            weights=[1.0],
            targets=[0.0],
            features=lambda p: np.ones((len(p), 1)),
            temperature=0.3,
            ridge=0.6,
            rates=[0.0, *rates[:k]],
            initial=Normals(means[:k], stds[:k], fixed),
        )
        run = mf.solve(model, PDE(cells=60, error=False), horizon=1.0, save_at=[1.0])
        final = run.final
        np.testing.assert_allclose(final.mass.reshape(2, -1).sum(axis=1), 0.5, atol=1e-12)
        for c in range(k):
            others = tuple(i for i in range(k + 1) if i != c + 1)
            p, z = final.mass.sum(axis=others), final.centers[c + 1]
            mean = p @ z
            assert mean == pytest.approx(means[c] * math.exp(-0.6 * rates[c]), abs=5e-3)
            decayed = math.exp(-1.2 * rates[c])
            exact = stds[c] ** 2 * decayed + 0.5 * (1 - decayed)
            assert p @ z**2 - mean**2 == pytest.approx(exact, rel=0.05)


def test_save_points_change_no_bit():
    model, method = radial_model(), PDE(cells=60)
    rare = mf.solve(model, method, horizon=3.0, save_at=[3.0])
    often = mf.solve(model, method, horizon=3.0, save_at=np.linspace(0, 3, 17))
    assert rare.final == often.final
    assert (rare.risk[-1], rare.error[-1]) == (often.risk[-1], often.error[-1])
    assert rare.meta["steps"] == often.meta["steps"]


def test_runs_go_on_from_any_state_to_the_same_bits():
    model, method = radial_model(), PDE(cells=60)
    whole, again = method.begin(model, 0, 1), method.begin(model, 0, 1)
    assert whole.advance(0.37, math.inf).reached
    saved = whole.state()
    again.restore(saved)
    assert again.t == whole.t == 0.37
    assert again.measure() == whole.measure()
    for rung in (whole, again):
        assert rung.advance(50.0, math.inf).reached
    assert again.measure() == whole.measure()
    assert again.risk() == whole.risk()
    assert again.observed() == whole.observed()
    assert again.meta() == whole.meta()
    assert whole.meta()["grown"] > 0


def test_fixed_steps_are_taken_and_their_errors_stated():
    adaptive = mf.solve(linear_model(), PDE(cells=60), horizon=1.0, save_at=[1.0])
    fixed = mf.solve(linear_model(), PDE(cells=60, step=0.05), horizon=1.0, save_at=[1.0])
    assert fixed.meta["steps"] == 20
    assert abs(fixed.risk[-1] - adaptive.risk[-1]) < fixed.error[-1]


def test_noise_at_infinite_dimension_is_refused():
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=math.inf, delta=0.5),
        network=mf.Network(STEP),
        init=mf.init.Radial(0.4),
        temperature=0.1,
    )
    with pytest.raises(ValueError, match=r"temperature must be 0 at d=inf, got 0\.1"):
        mf.solve(model, PDE(), horizon=1.0)


def test_schemes_that_do_not_fit_the_temperature_are_refused():
    with pytest.raises(
        ValueError, match=r"scheme must be 'scharfetter-gummel' at temperature = 0\.01, got 'muscl'"
    ):
        mf.solve(radial_model(), PDE(scheme="muscl"), horizon=1.0)
    with pytest.raises(ValueError, match="scheme must be 'muscl' or 'upwind' at temperature = 0"):
        mf.solve(radial_model(temperature=0.0), PDE(scheme="scharfetter-gummel"), horizon=1.0)
