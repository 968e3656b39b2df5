"""Stationary laws against Gaussian ones, their fixed-point equation, and the duality that certifies them."""

import dataclasses
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STEP
from scipy import special


def well(**changes):
    """No data at all: the potential ridge z²/2."""
    arguments = {"coordinates": ["z"], "weights": [1.0], "targets": [0.0], "features": np.zeros_like}
    return mf.ReducedModel(**{**arguments, "ridge": 2.0, "temperature": 0.5, **changes})


def regression(k, **changes):
    """Φ_q(z) = ⟨x_q, z⟩: linear regression in k parameters, whose stationary law is Gaussian."""
    rng = np.random.default_rng(k)
    x, y = rng.normal(size=(5, k)), rng.normal(size=5)
    arguments = {"coordinates": [f"z{c}" for c in range(k)], "weights": np.full(5, 0.2), "targets": y}
    model = mf.ReducedModel(
        **{**arguments, "features": lambda z: z @ x.T, "ridge": 0.5, "temperature": 0.2, **changes}
    )
    mean = np.linalg.solve(x.T @ x / 5 + 0.5 * np.eye(k), x.T @ y / 5)
    return model, mean, float(np.mean((y - x @ mean) ** 2))


def isotropic(d=40, delta=0.5, **changes):
    arguments = {"ridge": 0.01, "temperature": 0.1 / d, **changes}
    return mf.Model(mf.data.IsotropicGaussians(d, delta), mf.Network(STEP), **arguments)


def test_a_particle_in_a_quadratic_well_has_the_ornstein_uhlenbeck_law():
    for ridge, temperature in ((2.0, 0.5), (1e-3, 0.1), (100.0, 1e-6)):
        law = mf.gibbs(well(ridge=ridge, temperature=temperature))
        z, mass = law.measure.centers[0], law.measure.mass
        variance = temperature / ridge
        # Sums over equal cells of a law that vanishes at both ends converge faster than any power.
        assert mass @ z**2 == pytest.approx(variance, rel=1e-10)
        want = -temperature / 2 * math.log(2 * math.pi * variance)
        assert law.free_energy == pytest.approx(want, rel=1e-9, abs=1e-12)
        assert (law.risk, law.gap) == (0, 0)


@pytest.mark.parametrize("d", [1, 2, 5, 320, 10**6])
def test_radii_have_the_law_of_a_gaussian_in_full_dimension(d):
    model = well(volume=[d - 1.0], nonnegative=[True])
    law = mf.gibbs(model)
    r, mass = law.measure.centers[0], law.measure.mass
    # Second order in the width of cells: 3e-6 measured with 2000.
    assert mass @ r**2 == pytest.approx(d / 4, rel=1e-5)
    assert max(mass[0] * (law.measure.edges[0][0] > 0), mass[-1]) < 1e-12
    half_moment = d / 2 * math.log(0.5) + special.gammaln(d / 2) - math.log(2)  # log ∫ r^{d−1} e^{−2r²} dr
    exact = -0.5 * half_moment
    assert abs(law.free_energy - exact) <= law.error <= 1e-10 * max(1, abs(exact))
    assert law.dual <= exact


@pytest.mark.parametrize("k", [1, 2, 3])
def test_linear_regression_has_its_gaussian_law_in_every_number_of_coordinates(k):
    model, mean, risk = regression(k)
    law = mf.gibbs(model, cells=[2000, 60, 48][k - 1])
    cloud = law.measure.as_cloud() if isinstance(law.measure, mf.Density) else law.measure
    np.testing.assert_allclose(cloud.weights @ cloud.points, mean, atol=1e-8)
    centred = cloud.points - mean
    np.testing.assert_allclose((centred.T * cloud.weights) @ centred, 0.4 * np.eye(k), atol=1e-6)
    assert abs(law.risk - risk) <= law.risk_error < [1e-12, 1e-10, 1e-6][k - 1]
    want = risk / 2 + 0.25 * mean @ mean - 0.2 * k / 2 * math.log(2 * math.pi * 0.4)
    assert abs(law.free_energy - want) <= law.error < [1e-12, 1e-10, 1e-6][k - 1]
    assert law.dual <= want


@pytest.mark.parametrize("model", [isotropic(), isotropic(320, 0.2, temperature=1e-5), regression(1)[0]])
def test_the_law_is_the_fixed_point_and_its_energy_is_certified(model):
    law = mf.gibbs(model)
    reduced = model if isinstance(model, mf.ReducedModel) else model.reduce()
    rho = law.measure
    edges, power = rho.edges[0], reduced.volume[0] + 1
    with np.errstate(divide="ignore"):  # a cell from 0
        volumes = (
            power * np.log(edges[1:]) + np.log1p(-((edges[:-1] / edges[1:]) ** power))
            if power > 1
            else np.log(np.diff(edges))
        )
    exponent = volumes - mf.psi(reduced, rho.centers[0], rho) / reduced.temperature
    want = np.exp(exponent - special.logsumexp(exponent))
    # Newton ends at a gap of 1e-20: masses to the root of it over the temperature.
    np.testing.assert_allclose(rho.mass, want, atol=1e-7 * want.max() / min(1, reduced.temperature**0.5))
    assert 0 <= law.gap <= 1e-18
    # The measure's own numbers have the error of 2000 cells: 2e-6 measured.
    assert law.free_energy == pytest.approx(mf.free_energy(model, rho), abs=1e-5)
    assert law.risk == pytest.approx(mf.risk(reduced, rho), abs=1e-5)
    assert law.free_energy - law.dual == pytest.approx(law.gap + law.error, abs=1e-15)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.01, 30))
def test_every_other_density_has_more_free_energy_by_exactly_its_divergence(seed, size):
    rng = np.random.default_rng(seed)
    model = regression(1)[0]
    law = mf.gibbs(model, cells=40)
    mass = law.measure.mass * np.exp(size * rng.normal(size=40))
    other = mf.Density(law.measure.edges, mass / mass.sum())
    here, there = (model.features(m.as_cloud().points).T @ m.mass for m in (law.measure, other))
    want = 0.2 * mf.kl(other, law.measure) + 0.5 * model.weights @ (here - there) ** 2  # eq. (9.4)
    gained = mf.free_energy(model, other) - mf.free_energy(model, law.measure)
    assert gained == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_a_path_of_temperatures_is_the_single_laws_and_leads_to_the_optimum():
    model = isotropic(ridge=1e-5)
    temperatures = [1e-2, 1e-4, 1e-7, 1e-9]
    path = mf.gibbs_path(model, temperatures)
    for temperature, law in zip(temperatures, path, strict=True):
        alone = mf.gibbs(model.replace(temperature=temperature))
        assert law.temperature == temperature
        assert law.risk == pytest.approx(alone.risk, rel=1e-4)  # other cells
        assert law.gap <= 1e-14
    best = mf.optimum(model)
    # F* tends to the minimum of R/2 + (λ/2)∫|w|² as the entropy's weight vanishes: d T log(1/T) = 1e-6.
    assert path[-1].free_energy == pytest.approx(best.value, abs=2e-6)
    reduced = model.reduce()
    again = mf.gibbs_path(dataclasses.replace(reduced, temperature=0.0), temperatures[:1])
    assert again[0].risk == path[0].risk


def test_a_start_saves_steps():
    model = isotropic()
    law = mf.gibbs(model)
    box = [law.measure.edges[0][[0, -1]]]
    cold, warm = mf.gibbs(model, extent=box), mf.gibbs(model, extent=box, start=law)
    assert warm.steps < cold.steps
    assert warm.risk == pytest.approx(cold.risk, rel=1e-7)


def test_a_box_makes_walls():
    flat = well(ridge=0.0)
    law = mf.gibbs(flat, extent=(-1.0, 3.0), cells=10)
    np.testing.assert_allclose(law.measure.mass, 0.1, rtol=1e-12)
    assert law.measure.edges[0][[0, -1]].tolist() == [-1.0, 3.0]
    radial = mf.gibbs(well(ridge=0.0, volume=[2.0], nonnegative=[True]), extent=(0.0, 2.0), cells=2)
    np.testing.assert_allclose(radial.measure.mass, [1 / 8, 7 / 8], rtol=1e-12)


def test_points_with_volumes_may_take_the_place_of_cells():
    model = well(volume=[2.0], nonnegative=[True])
    z = np.array([0.5, 1.0, 1.5])
    law = mf.gibbs(model, points=z, volumes=[1.0, 2.0, 1.0])
    want = np.array([1.0, 2.0, 1.0]) * z**2 * np.exp(-2 * z**2)
    assert isinstance(law.measure, mf.Cloud)
    np.testing.assert_allclose(law.measure.weights, want / want.sum(), rtol=1e-12)
    equal = mf.gibbs(well(), points=z).measure.weights
    np.testing.assert_allclose(equal, np.exp(-2 * z**2) / np.exp(-2 * z**2).sum(), rtol=1e-12)


def test_mass_is_found_where_it_is_although_far_from_the_origin():
    deep = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[1.0],
        ridge=1e-3,
        temperature=1e-3,
        features=lambda z: 10 * np.exp(-((z - 40.0) ** 2)),
    )
    law = mf.gibbs(deep)
    assert law.measure.mass @ law.measure.centers[0] > 1  # f reaches for 1 at z = 40
    assert law.risk < 0.5
    assert law.gap <= 1e-14


def test_the_result_shows_itself():
    text = repr(mf.gibbs(well(), cells=10, extent=(-3, 3)))
    assert text.startswith("Stationary(temperature=0.5, risk=0, free_energy=-0.11")
    assert "<array 10>" in text


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: mf.gibbs(well(temperature=0.0)), r"temperature must be > 0 .* got 0; .*mf\.optimum"),
        (
            lambda: mf.gibbs(well(ridge=0.0)),
            "model must confine the stationary law, by ridge > 0 or an extent",
        ),
        (lambda: mf.gibbs(isotropic(ridge=0.0)), "confine the stationary law.* ridge = 0 .* r = 0"),
        (lambda: mf.gibbs(well(rates=[0.0])), "model must move all coordinates.* rate 0 for z"),
        (lambda: mf.gibbs(well(), cells=1), "cells must be >= 2, got 1"),
        (lambda: mf.gibbs(well(), cells=[5, 5]), r"cells must be a number or one per coordinate \(1\)"),
        (lambda: mf.gibbs(well(), extent=(1.0, 0.0)), r"extent must have low < high for z, got \(1, 0\)"),
        (lambda: mf.gibbs(well(nonnegative=[True]), extent=(-1, 1)), "0 <= low < high for z"),
        (lambda: mf.gibbs(well(), extent=[1.0]), r"extent must have a pair \(low, high\) for each of z"),
        (lambda: mf.gibbs(well(), points=[0.0], cells=3), "points must be given without cells and extent"),
        (lambda: mf.gibbs(well(), volumes=[1.0]), "volumes must be given with points"),
        (lambda: mf.gibbs(well(), points=[0.0], volumes=[0.0]), "volumes must be > 0, got 0"),
        (lambda: mf.gibbs(well(), tolerance=0), "tolerance must be > 0, got 0"),
        (lambda: mf.gibbs_path(well(), [0.1, 0.0]), "temperatures must be > 0, got 0"),
    ],
)
def test_bad_input_is_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_other_things_are_refused():
    with pytest.raises(TypeError, match=r"model must be an mf\.Model or mf\.ReducedModel"):
        mf.gibbs(3)
    with pytest.raises(TypeError, match=r"start must be a result of mf\.gibbs"):
        mf.gibbs(well(), start=0.5)
