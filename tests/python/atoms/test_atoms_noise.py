"""Atoms with noise: exact laws of the discrete steps, radii, the odds of draws."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore.atoms._atoms import Atoms
from mfcore.neurons._methods import Particles
from mfcore.runs._solve import solve
from scipy import stats

COUNT = 5000
# Means of 5000 draws are compared to 5 standard errors: false alarms once in 1.7 million comparisons.
ODDS = 5.0


def free(coordinates=("z",), ridge=0.7, temperature=0.3, **options):
    """No data: only decay and noise."""
    return mf.ReducedModel(
        coordinates=coordinates,
        weights=[1.0],
        targets=[0.0],
        features=lambda z: np.zeros((len(z), 1)),
        gradients=lambda z: np.zeros((len(z), 1, z.shape[1])),
        ridge=ridge,
        temperature=temperature,
        **options,
    )


def assert_mean(values, want):
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - want) < ODDS * error, (values.mean(), want, error)


@pytest.mark.parametrize("method", ["euler", "heun"])
def test_flat_coordinates_have_the_law_of_the_discrete_ornstein_uhlenbeck_process(method):
    """The mean and variance of eq. (10.14)."""
    h, steps, ridge, T, rate = 0.1, 15, 0.7, 0.3, 2.0
    reduced = free(("x", "y"), rates=(1.0, rate), decays=(True, True), ridge=ridge, temperature=T)
    start = mf.Cloud(np.tile([[1.5, -1.0]], (COUNT, 1)))
    run = solve(reduced, Atoms(start=start, method=method, step=h), horizon=h * steps, save_at=[], rng=1)
    for c, speed in enumerate((1.0, rate)):
        x = h * speed * ridge
        shrink, kick = (1 - x, 1.0) if method == "euler" else (1 - x + x * x / 2, 1 - x / 2)
        mean = start.points[0, c] * shrink**steps
        variance = 2 * h * speed * T * kick**2 * (1 - shrink ** (2 * steps)) / (1 - shrink**2)
        z = run.final.points[:, c]
        assert_mean(z, mean)
        assert_mean((z - mean) ** 2, variance)


@pytest.mark.parametrize("method", ["euler", "heun"])
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0, 2.7, 39.0])
def test_radii_have_the_second_moment_of_their_hidden_directions(method, e):
    """w in R^{e+1}: E|w|^2 is that of e + 1 discrete processes, and tends to (e + 1)/(beta lambda)."""
    h, ridge, T = 0.1, 0.7, 0.3
    reduced = free(("r",), ridge=ridge, temperature=T, volume=(e,), nonnegative=(True,))
    start = mf.Cloud(np.full((COUNT, 1), 0.9))
    x = h * ridge
    shrink, kick = (1 - x, 1.0) if method == "euler" else (1 - x + x * x / 2, 1 - x / 2)
    for steps in (1, 4, 60):
        run = solve(reduced, Atoms(start=start, method=method, step=h), horizon=h * steps, save_at=[], rng=2)
        r = run.final.points[:, 0]
        assert r.min() >= 0
        grown = (1 - shrink ** (2 * steps)) / (1 - shrink**2)
        assert_mean(r**2, 0.81 * shrink ** (2 * steps) + 2 * h * T * kick**2 * (e + 1) * grown)
    if method == "euler":
        assert (r**2).mean() == pytest.approx((e + 1) * T / ridge / (1 - x / 2), rel=0.15)


@pytest.mark.parametrize("e", [1.0, 4.0, 19.0])
def test_gaussian_starts_stay_gaussian_in_all_directions(e):
    """The whole law of r after 10 steps is that of a chi variable: Kolmogorov-Smirnov, odds 1e-6."""
    h, ridge, T = 0.2, 0.5, 0.2
    reduced = free(("r",), ridge=ridge, temperature=T, volume=(e,), nonnegative=(True,))
    start = mf.Cloud(0.4 * np.sqrt(np.random.default_rng(0).chisquare(e + 1, (COUNT, 1))))
    for method in ("euler", "heun"):
        run = solve(reduced, Atoms(start=start, method=method, step=h), horizon=2.0, save_at=[], rng=3)
        x = h * ridge
        shrink, kick = (1 - x, 1.0) if method == "euler" else (1 - x + x * x / 2, 1 - x / 2)
        variance = 0.16 * shrink**20 + 2 * h * T * kick**2 * (1 - shrink**20) / (1 - shrink**2)
        found = stats.kstest(run.final.points[:, 0] ** 2 / variance, stats.chi2(e + 1).cdf)
        assert found.pvalue > 1e-6


@settings(max_examples=20, deadline=None)
@given(
    degrees=st.sampled_from([0.3, 1.0, 1.9, 2.0, 7.5, 319.0]),
    first=st.integers(0, 2000),
    count=st.integers(0, 700),
    cut=st.integers(0, 700),
)
def test_a_chi_square_number_is_a_function_of_its_address(degrees, first, count, cut):
    cut = min(cut, count)
    whole = _core.chi_squares(5, 3, degrees, first, count)
    parts = [
        _core.chi_squares(5, 3, degrees, first, cut),
        _core.chi_squares(5, 3, degrees, first + cut, count - cut),
    ]
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("degrees", [0.3, 1.0, 1.9, 2.0, 3.0, 7.5, 319.0])
def test_chi_square_numbers_have_their_law(degrees):
    """Kolmogorov-Smirnov with 100 000 numbers, odds 1e-6."""
    numbers = _core.chi_squares(1, 2, degrees, 17, 100_000)
    assert stats.kstest(numbers, stats.chi2(degrees).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 5 / math.sqrt(len(numbers))


def test_chi_squares_refuse_what_has_no_law():
    with pytest.raises(ValueError, match="degrees must be finite and > 0, got 0"):
        _core.chi_squares(1, 2, 0.0, 0, 3)


def noisy_model():
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=20, delta=0.5),
        network=mf.Network(mf.activations.relu, output="trained"),
        init=mf.init.Product(a=mf.init.Normal(1.0, 0.5), w=mf.init.Radial(0.5)),
        ridge=0.4,
        temperature=0.05,
        rates={"a": 2.0},
    )


@pytest.mark.parametrize("method", ["euler", "heun"])
def test_noisy_atoms_have_the_law_of_neurons_in_all_dimensions(method):
    model, h = noisy_model(), 0.1
    atoms = solve(model, Atoms(COUNT, method=method, step=h), horizon=2.0, save_at=[0.0, 1.0, 2.0], rng=4)
    neurons = 400
    rows = solve(model, Particles(neurons, method=method, step=h), horizon=2.0, save_at=[], rng=10).final
    z = atoms.final.points
    for mine, theirs in (
        (z[:, 0], rows[:, 0]),
        (z[:, 1], np.linalg.norm(rows[:, 1:], axis=1)),
        (z[:, 0] * z[:, 1], rows[:, 0] * np.linalg.norm(rows[:, 1:], axis=1)),
    ):
        # The neurons interact, which changes their means by O(1/N) and leaves the spread of independent ones.
        error = math.hypot(mine.std() / math.sqrt(len(mine)), theirs.std() / math.sqrt(len(theirs)))
        assert abs(mine.mean() - theirs.mean()) < ODDS * error + 1 / neurons
    assert atoms.error.shape == (3,)


def test_the_stated_error_is_that_of_independent_draws():
    """At t = 0: 40 runs against the exact risk. Each deviates by more than 4 errors with odds 6e-5."""
    model = noisy_model()
    exact = solve(model.replace(temperature=0.0), Atoms(900), horizon=0.1, save_at=[0.0]).risk[0]
    ratios = []
    for seed in range(40):
        run = solve(model, Atoms(400, method="euler", step=0.1), horizon=0.1, save_at=[0.0], rng=seed)
        ratios.append((run.risk[0] - exact) / run.error[0])
    assert np.abs(ratios).max() < 4.0
    assert 0.6 < np.std(ratios) < 1.5  # of 40 normal numbers: 1 +- 0.11, that is 4 standard errors


def test_noise_has_the_same_bits_for_any_number_of_threads_and_any_save_points():
    model = noisy_model()
    options = {"horizon": 1.0, "rng": 7}
    one = solve(model, Atoms(1500, method="heun", step=0.1), threads=1, save_at=[], **options)
    two = solve(model, Atoms(1500, method="heun", step=0.1), threads=2, save_at=7, **options)
    other = solve(model, Atoms(1500, method="heun", step=0.1), horizon=1.0, rng=8)
    assert one.final == two.final
    assert one.final != other.final


def test_rates_of_zero_keep_a_radius_where_it_is():
    reduced = free(
        ("r", "z"), volume=(3.0, 0.0), nonnegative=(True, False), rates=(0.0, 1.0), decays=(False, True)
    )
    start = mf.Cloud([[0.5, 1.0], [0.0, 0.0]])
    run = solve(reduced, Atoms(start=start, method="euler", step=0.1), horizon=1.0, save_at=[], rng=0)
    np.testing.assert_array_equal(run.final.points[:, 0], [0.5, 0.0])
