"""Coordinates at rest, such as signs of output weights, and the limit of the hypercube, on all rungs."""

import dataclasses
import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.init._blocks import Chi

D, SHARE, TIMES = 40, 0.7, [0.0, 0.7, 2.0]
OPTIONS = {"horizon": 2.0, "save_at": TIMES, "threads": 1, "rng": 0}


class Signs:
    """a = ±1, with this share of +1, and r ~ χ_d/√d independent of it."""

    def __init__(self):
        self.radius = Chi(D, 1 / math.sqrt(D))

    def sample(self, n, rng):
        rng = np.random.default_rng(rng)
        return np.column_stack([np.where(rng.random(n) < SHARE, 1.0, -1.0), self.radius.sample(n, rng)])

    def quadrature(self, n):
        r, w = self.radius.quadrature(n)
        points = [[a, x] for a in (-1.0, 1.0) for x in r[:, 0]]
        return np.array(points), np.concatenate([(1 - SHARE) * w, SHARE * w])


def signed(init=None, **options):
    """Coordinates a, at rest, and r."""
    law = mf.data.IsotropicGaussians(d=D, delta=0.5)
    return mf.Model(law, mf.Network(mf.activations.relu, output="fixed"), init, ridge=0.05, **options)


def with_signs(**options):
    return dataclasses.replace(signed(**options).reduce(), initial=Signs())


def shares(measure):
    """Mass of a = 1."""
    cloud = measure.as_cloud() if isinstance(measure, mf.Density) else measure
    assert set(np.round(cloud.points[:, 0], 12)) == {-1.0, 1.0}
    return cloud.weights[cloud.points[:, 0] > 0].sum()


def test_signs_stay_and_all_rungs_agree():
    reduced = with_signs()
    atoms = mf.solve(reduced, mf.Atoms(), **OPTIONS)
    assert atoms.error.max() < 1e-8
    for method in (mf.PDE(200), mf.JKO(0.05)):
        run = mf.solve(reduced, method, **OPTIONS)
        # Estimates by extrapolation are those of leading order: a tenth for the rest.
        assert (np.abs(run.risk - atoms.risk) <= 1.1 * run.error + atoms.error).all()
        assert run.error.max() < 1e-3
        assert shares(run.final) == pytest.approx(SHARE, abs=1e-12)


def test_signs_stay_under_noise_and_all_rungs_agree():
    reduced = with_signs(temperature=0.005)
    density = mf.solve(reduced, mf.PDE(200), **OPTIONS)
    start = mf.Cloud(*reduced.initial.quadrature(60))
    movements = mf.solve(reduced, mf.JKO(0.05, count=200, start=start), **OPTIONS)
    apart = np.abs(movements.risk - density.risk)
    assert (apart <= 1.1 * movements.error + density.error).all()
    for run in (density, movements):
        assert shares(run.final) == pytest.approx(SHARE, abs=1e-12)
    atoms = mf.solve(reduced, mf.Atoms(4000, method="heun", step=0.02), **OPTIONS)
    # Five standard errors, most of them of the shares of the signs: odds 6e-7; the bias of Heun is h².
    assert (np.abs(atoms.risk - density.risk) < 5 * atoms.error + 1e-3).all()


@pytest.mark.parametrize("temperature", [0.0, 0.005])
def test_neurons_of_both_signs_follow_the_limit(temperature):
    """N neurons at given places: signs as they are, |w| as in the field of the limit."""
    n, rng = 500, np.random.default_rng(3)
    theta = rng.normal(0, 1 / math.sqrt(D), (n, D + 1))
    theta[:, 0] = np.where(np.arange(n) < SHARE * n, 1.0, -1.0)
    model = signed(mf.init.Points(theta), temperature=temperature)
    start = mf.Cloud(np.column_stack([theta[:, 0], np.linalg.norm(theta[:, 1:], axis=1)]))
    step = 0.02 if temperature else None
    # The neurons themselves in reduced coordinates: the same as N → ∞ up to the sum over directions.
    given = start if temperature == 0 else mf.Cloud(np.repeat(start.points, 4, axis=0))
    driver = mf.Atoms(start=given, method="heun" if step else "dopri5", step=step)
    free = mf.solve(model, mf.Nonlinear(n, driver, step=step), **OPTIONS)
    wide = mf.solve(model, mf.Particles(n, method="heun", step=0.02), **OPTIONS)
    for run in (free, wide):
        assert np.array_equal(run.final[:, 0], theta[:, 0])
    limit = mf.solve(model.reduce(), driver, **OPTIONS)
    # Directions alone are random: R_N − R has mean (∫U(θ, θ) − U of means)/N < 1/N, and a deviation below it.
    assert (np.abs(wide.risk - limit.risk) < 2 / n + limit.error * bool(temperature)).all()
    if temperature == 0:
        radius = np.linalg.norm(free.final[:, 1:], axis=1)
        assert np.abs(radius - limit.final.points[:, 1]).max() < 1e-5  # ten times rtol


def test_minima_over_all_measures_are_refused_where_signs_stay():
    for find, model in ((mf.gibbs, with_signs(temperature=0.005)), (mf.optimum, with_signs())):
        with pytest.raises(ValueError, match=r"must move all coordinates .* got rate 0 for a"):
            find(model)
    with pytest.raises(ValueError, match=r"start must be an mf.Cloud or mf.Density"):
        mf.solve(with_signs(temperature=0.005), mf.JKO(0.05), **OPTIONS)


LINK = [(0,), (0, 1)]


def cube(d, **options):
    law = mf.data.Staircase(d, LINK)
    return mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Gaussian(1 / math.sqrt(d)), **options)


def test_features_of_the_cubes_limit_are_approached_as_one_over_d():
    """Σ x_j w_j over d coordinates is Gaussian up to a fourth cumulant of order 1/d."""
    gaps = []
    for d in (6, 12):
        rng = np.random.default_rng(d)
        x = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
        model, gap = cube(d).reduce(limit=True), 0.0
        for _ in range(20):
            w = rng.normal(0, 1 / math.sqrt(d), d)
            value = np.tanh(x @ w)
            z = np.array([[w[0], w[1], np.linalg.norm(w[2:])]])
            y = x[:, 0] + x[:, 0] * x[:, 1]
            gap += (np.mean(value * y) + model.V(z)[0]) ** 2
        gaps.append(math.sqrt(gap / 20))
    assert gaps[1] < 0.7 * gaps[0]
    assert gaps[1] < 1e-2


@pytest.mark.parametrize("temperature", [0.0, 0.002])
def test_rungs_agree_on_the_cubes_limit_from_the_law_of_finite_d(temperature):
    model = cube(30, temperature=temperature, ridge=0.1)
    reduced = model.reduce(limit=True)
    assert reduced.volume == (0.0, 0.0, 27.0)
    assert reduced.coordinates == ("s1", "s2", "r")
    if temperature:
        runs = [
            mf.solve(reduced, mf.Atoms(n, method="heun", step=0.02), **(OPTIONS | {"rng": n}))
            for n in (1000, 4000)
        ]
        # Five standard errors of independent draws: odds 6e-7.
        assert (np.abs(runs[0].risk - runs[1].risk) < 5 * (runs[0].error + runs[1].error)).all()
        return
    atoms = mf.solve(reduced, mf.Atoms(), **OPTIONS)
    movements = mf.solve(reduced, mf.JKO(0.05, count=12**3), **OPTIONS)
    assert (np.abs(atoms.risk - movements.risk) <= 1.1 * movements.error + 2 * atoms.error).all()
    assert movements.error.max() < 1e-2


def test_neurons_on_the_cube_follow_its_limit():
    """d = 10, all 1024 inputs: N neurons against the limit d → ∞ from the same places."""
    n = 400
    model = cube(10)
    theta = np.random.default_rng(0).normal(0, 1 / math.sqrt(10), (n, 10))
    start = mf.Cloud(np.column_stack([theta[:, :2], np.linalg.norm(theta[:, 2:], axis=1)]))
    limit = mf.solve(model.reduce(limit=True), mf.Atoms(start=start), **OPTIONS)
    network = mf.solve(model.replace(init=mf.init.Points(theta)), mf.Particles(n), risk=mf.Exact(), **OPTIONS)
    # Features are off by 1/d, and so is the risk; directions across make another 1/N.
    assert np.abs(network.risk - limit.risk).max() < 0.02
    assert abs(limit.risk[-1] - limit.risk[0]) > 0.2
