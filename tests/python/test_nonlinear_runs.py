"""Neurons in the field of wider networks, propagation of chaos, and the contracts of a run."""

from __future__ import annotations

import dataclasses
import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore._registry import from_config, to_config
from mfcore._rng import derive, seed_of
from mfcore._rungs.particles import DRIVER
from mfcore.atoms import Atoms
from mfcore.methods import GD, SGD, Particles
from mfcore.nonlinear import Nonlinear
from mfcore.solve import resume, solve


def data_model(seed=0, init=None, **options):
    """Thirty points of the plane: short rows, so that the reduction is θ itself and all rungs see the same."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 2))
    law = mf.data.Dataset(x, np.tanh(2 * x[:, 0]) + x[:, 1])
    network = mf.Network(mf.activations.tanh, output="trained")
    return mf.Model(law, network, init or mf.init.Gaussian(1.0), **options)


def gaussian_model(d=10, **options):
    law = mf.data.IsotropicGaussians(d, 0.5)
    return mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0), **options)


def final(model, method, horizon=1.0, rng=0, **options):
    run = solve(model, method, horizon=horizon, save_at=[], risk=False, rng=rng, **options)
    assert run.status == "completed"
    return run.final


@dataclasses.dataclass(frozen=True)
class Replay:
    """The rung of the limit whose law at step k is that of the given neurons."""

    paths: dict = dataclasses.field(compare=False)
    h: float = 0.1

    def start(self, model, seed, threads):
        return ReplayRung(self, model.reduce())


class ReplayRung:
    status, message, t = "running", "", 0.0

    def __init__(self, method, reduced):
        self.method, self.reduced = method, reduced

    def advance(self, t, seconds):
        self.t = t
        return True

    def measure(self):
        return mf.Cloud(self.method.paths[round(self.t / self.method.h)])

    def state(self):
        return {"t": np.array(self.t)}

    def restore(self, state):
        self.t = float(state["t"])

    def meta(self):
        return {}


def test_in_the_field_of_their_own_particles_neurons_are_the_particles():
    model, h = data_model(temperature=0.05, ridge=0.1, rates={"a": 2.0}), 0.1
    run = solve(model, GD(20, h), horizon=1.0, save_at=11, keep="all", risk=False, rng=3)
    paths = {round(t / h): theta for t, theta in run.kept.items()}
    got = final(model, Nonlinear(20, Replay(paths), step=h), rng=3)
    np.testing.assert_allclose(got, run.final, atol=1e-13)  # rounding: sums in another order


@pytest.mark.parametrize("method", ["dopri5", "rk4", "lsoda"])
def test_a_network_that_starts_where_the_neurons_do_moves_as_they_do(method):
    theta = np.random.default_rng(0).normal(size=(9, 3))
    for model in (
        data_model(init=mf.init.Points(theta)),
        gaussian_model(3).replace(init=mf.init.Points(theta)),
    ):
        driver = Particles(9, method=method, step=0.1 if method == "rk4" else None, rtol=1e-8)
        # Errors per step of 1e-8, which depend on how many rows share them.
        np.testing.assert_allclose(final(model, Nonlinear(9, driver)), final(model, driver), atol=2e-6)


@pytest.mark.parametrize("model", [data_model(), gaussian_model(5)], ids=["nodes", "pairs"])
def test_neurons_without_mass_do_not_act_on_the_network(model):
    driver = GD(40, 0.1)
    rung = Nonlinear(7, driver).start(model, 11, 1)
    alone = driver.start(model, derive(11, DRIVER), 1)
    for run in (rung, alone):
        assert run.advance(1.0, math.inf)
    both = rung._flow.theta().reshape(-1, model.row)
    np.testing.assert_allclose(both[7:], alone.measure(), atol=1e-14)  # rounding
    assert np.array_equal(both[:7], rung.measure())
    assert np.array_equal(
        Nonlinear(7, driver).start(model, 11, 1).measure(), GD(7, 0.1).start(model, 11, 1).measure()
    )


def test_on_the_sphere_the_network_keeps_them_there():
    network = mf.Network(mf.activations.relu, output="trained", sphere=True)
    init = mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Sphere(1.0))
    model = mf.Model(mf.data.IsotropicGaussians(4, 0.5), network, init)
    theta = final(model, Nonlinear(5, Particles(30)))
    np.testing.assert_allclose(np.linalg.norm(theta[:, 1:], axis=1), 1.0, atol=1e-14)


def distance(one, other):
    return math.sqrt(np.mean(np.sum((one - other) ** 2, axis=1)))


def test_a_wider_network_comes_nearer_to_the_limit():
    """The field of M neurons is off by M^(-1/2)."""
    model = data_model()
    limit = final(model, Nonlinear(50, Atoms(16**3)), rng=0)
    gaps = []
    for m in (100, 1600):
        squares = [
            distance(
                final(model, Nonlinear(50, Particles(m)), rng=seed),
                final(model, Nonlinear(50, Atoms(16**3)), rng=seed),
            )
            ** 2
            for seed in range(1, 9)
        ]
        gaps.append(math.sqrt(np.mean(squares)))
    assert 2 < gaps[0] / gaps[1] < 8
    assert len(limit) == 50


def test_propagation_of_chaos_has_its_rate():
    """max_i |θ_i − θ̄_i| of N particles and their independent twins falls like N^(-1/2)."""
    model = data_model()
    gaps = []
    for n in (50, 800):
        squares = []
        for seed in range(1, 9):
            gap = final(model, Particles(n), rng=seed) - final(model, Nonlinear(n, Atoms(16**3)), rng=seed)
            squares.append(np.sum(gap**2, axis=1).max())
        gaps.append(math.sqrt(np.mean(squares)))
    print(gaps)
    assert 2 < gaps[0] / gaps[1] < 8
