"""Finite volumes against exact solutions (eqs. (10.9) to (10.12)), with orders, and where mass gathers."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.density._pde import PDE
from scipy import special


def model(k=1, *, attraction=0.0, push=0.0, ridge=0.0, nonnegative=(), rates=(), decays=()):
    """Ψ_λ = attraction·m·z − push·z + ridge|z|²/2 along the first coordinate, m the mean of z.

    The push is a node with a feature so small, and a target so large, that the mean does not matter.
    """
    small = 1e-7
    slopes = np.array([math.sqrt(2 * attraction), small])
    return mf.ReducedModel(
        coordinates=["x", "y"][:k],
        weights=[0.5, 0.5],
        targets=[0.0, 2 * push / small],
        features=lambda z: z[:, :1] * slopes,
        ridge=ridge,
        nonnegative=nonnegative,
        rates=rates,
        decays=decays,
    )


def gaussian(edges, mean, std):
    """Masses of cells under N(mean, std²), those outside in the outermost ones."""
    inner = special.ndtr((edges[1:-1] - mean) / std)
    return np.diff(inner, prepend=0.0, append=1.0)


def orders(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


# Approached from below: van Leer's limiter flattens the one maximum.
ORDER = {"muscl": 1.75, "upwind": 0.85}

CASES = {
    # Ψ_λ = λz²/2: contraction; and quadratic interaction, with its own rates of mean and spread.
    "contraction": (model(ridge=0.7), lambda t: (1.2 * math.exp(-0.7 * t), 0.3 * math.exp(-0.7 * t))),
    "interaction": (
        model(attraction=1.5, ridge=0.4),
        lambda t: (1.2 * math.exp(-1.9 * t), 0.3 * math.exp(-0.4 * t)),
    ),
    "translation": (model(push=0.8), lambda t: (1.2 + 0.8 * t, 0.3)),
}


@pytest.mark.parametrize("scheme", ["muscl", "upwind"])
@pytest.mark.parametrize("case", CASES)
def test_the_order_in_one_coordinate_is_as_stated(case, scheme):
    reduced, exact = CASES[case]
    errors = []
    for cells in (200, 400, 800):
        edges = np.linspace(-1.5, 4.0, cells + 1)
        start = mf.Density(edges, gaussian(edges, *exact(0)))
        run = mf.solve(reduced, PDE(scheme=scheme, start=start, error=False), horizon=1.0, save_at=[])
        assert run.meta["grown"] == 0
        errors.append(np.abs(run.final.mass - gaussian(edges, *exact(1.0))).sum())
    assert orders(errors).min() > ORDER[scheme]
    assert errors[-1] < {"muscl": 2e-3, "upwind": 5e-2}[scheme]  # twice what is measured


@pytest.mark.parametrize("scheme", ["muscl", "upwind"])
def test_the_order_in_two_coordinates_is_as_stated(scheme):
    """The first coordinate is pushed and contracts, the second contracts at twice the speed."""
    reduced = model(2, push=0.8, ridge=0.4, rates=(1.0, 2.0), decays=(True, True))
    errors = []
    for cells in (40, 80, 160):
        edges = np.linspace(-3, 4, cells + 1), np.linspace(-3, 4, cells + 1)
        mass = np.multiply.outer(gaussian(edges[0], 0.5, 0.4), gaussian(edges[1], 0.8, 0.3))
        start = mf.Density(edges, mass)
        run = mf.solve(reduced, PDE(scheme=scheme, start=start, error=False), horizon=0.5, save_at=[])
        one, two = math.exp(-0.2), math.exp(-0.4)
        x = gaussian(edges[0], 2.0 + (0.5 - 2.0) * one, 0.4 * one)  # rest is at push / ridge
        y = gaussian(edges[1], 0.8 * two, 0.3 * two)
        errors.append(np.abs(run.final.mass - np.multiply.outer(x, y)).sum())
    assert orders(errors).min() > ORDER[scheme] - 0.15  # coarser than in one coordinate
    assert errors[-1] < {"muscl": 1.5e-2, "upwind": 0.15}[scheme]


def test_mass_gathers_at_a_wall_without_oscillation_or_stall():
    """Everything moves at speed 1 towards the wall at 0, where an atom grows as the distribution function."""
    reduced = model(push=-1.0, nonnegative=(True,))
    edges = np.linspace(0, 3, 301)
    start = mf.Density(edges, gaussian(edges, 1.0, 0.2))
    times = np.linspace(0, 2.5, 26)
    run = mf.solve(
        reduced, PDE(start=start), horizon=2.5, save_at=times, observe={"wall": lambda rho: rho.mass[0]}
    )
    wall = run.observed["wall"]
    assert (np.diff(wall) >= -1e-15).all()
    # The front is smeared over a few cells: at most its density there, 2 per unit, times 2 cells.
    assert np.abs(wall - special.ndtr((times - 1.0) / 0.2)).max() < 0.04
    assert run.status == "completed"
    assert wall[-1] > 1 - 1e-6
    assert run.final.mass.min() >= 0
    assert run.meta["steps"] < 1500  # 250 cells at Courant number 0.45 take 600
    (atom,) = run.meta["atoms"]
    assert atom["at"][0] < 0.01
    assert atom["mass"] > 1 - 1e-6


def test_mass_gathers_at_a_point_and_stays_there():
    run = mf.solve(
        model(ridge=1.0), PDE(start=mf.Density(np.linspace(-1, 2, 200), np.full(199, 1 / 199))), horizon=40.0
    )
    assert run.status == "completed"
    assert run.final.mass.min() >= 0
    (atom,) = run.meta["atoms"]
    assert atom["mass"] > 1 - 1e-9
    assert abs(atom["at"][0]) < 3 / 199
    assert run.meta["steps"] < 3000


def test_a_run_at_rest_is_stationary():
    edges = np.linspace(-2, 2, 161)
    start = mf.Density(edges, gaussian(edges, 0.5, 0.2))
    run = mf.solve(model(ridge=1.0), PDE(start=start, tolerance=1e-6), horizon=1e9)
    assert run.status == "stationary"
    assert "the root mean square of the gradient fell below 1e-06" in run.message
    assert 5 < run.meta["t"] < 100


def test_a_run_shorter_than_the_stability_bound_is_as_exact_as_a_long_one():
    """Relaxation at rate 1 + attraction, from a place that moves less than a cell: not one step at will."""
    edges = np.linspace(-2.0, 2.0, 101)
    start = mf.Density(edges, gaussian(edges, 1e-3, 0.3))
    run = mf.solve(model(attraction=3.0), PDE(start=start, error=False), horizon=1.0, save_at=[])
    assert run.meta["steps"] > 30
    # Steps of a hundredth of the relaxation time: errors of some 1e-4 of what is left of the mean, 5e-5.
    assert abs(run.final.mass @ run.final.centers[0] / (1e-3 * math.exp(-3.0)) - 1) < 2e-3


def test_the_grid_follows_mass_that_leaves_it():
    """Translation by 40 standard deviations: masses, mean and spread survive; nothing is lost at the end."""
    edges = np.linspace(-1, 1, 101)
    start = mf.Density(edges, gaussian(edges, 0.0, 0.12))
    run = mf.solve(model(push=2.0), PDE(start=start), horizon=2.4, save_at=[2.4])
    cloud = run.final.as_cloud()
    mean = float(cloud.weights @ cloud.points[:, 0])
    std = math.sqrt(float(cloud.weights @ (cloud.points[:, 0] - mean) ** 2))
    assert run.meta["grown"] > 3
    assert run.final.edges[0][-1] > 4.8 + 0.4
    assert 60 < len(run.final.mass) < 134  # between two and four thirds of the cells
    assert abs(run.final.mass.sum() - 1) < 1e-13
    assert abs(mean - 4.8) < 2e-3
    assert abs(std - 0.12) < 0.05  # cells are half the spread in the end


def test_mass_that_runs_away_ends_the_run_with_a_message():
    away = mf.ReducedModel(  # Ψ = −z²: z grows as e^{2t}
        coordinates=["z"], weights=[1.0], targets=[1e20], features=lambda z: 1e-20 * z**2
    )
    edges = np.linspace(0.5, 1.5, 51)
    run = mf.solve(away, PDE(start=mf.Density(edges, gaussian(edges, 1.0, 0.1))), horizon=10.0)
    assert run.status == "diverged"
    assert run.final.mass.min() >= 0
    assert "mass runs away: at t = " in run.message
    assert 5.5 < run.meta["t"] < 7.5  # e^{2t} = 10^6, for the foremost and for the mean
