"""What `mfcore bench --scaling` runs: one size at a time, over three decades, and what is stated of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import _core

Work = tuple[Callable[[], Any], float]  # a run, and how many units of work it does


@dataclass(frozen=True)
class Sweep:
    """One size varied: `make` prepares a run at that size; `stated` and `memory` are its powers, in words."""

    name: str
    variable: str
    sizes: tuple[int, ...]
    stated: str
    make: Callable[[int], Work]
    memory: str = ""


RELU = mf.Network(mf.activations.relu)
KNOTS = mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5]))
LAW = mf.data.IsotropicGaussians


def _sizes(first: int, decades: float = 3.0, each: int = 2) -> tuple[int, ...]:
    return tuple(round(first * 10 ** (k / each)) for k in range(int(decades * each) + 1))


def _sgd(n: int, d: int) -> Work:
    """Steps of SGD, fresh samples, of a run that goes on from call to call."""
    model = mf.Model(LAW(d=d, delta=0.5), KNOTS, mf.init.Radial(0.4))
    start = mf.init.Radial(0.4).sample(KNOTS, d, n, rng=0)
    sgd = _core.Sgd(KNOTS._core, [start], [model.data._sampler], [0], 1e-6)
    steps = max(100, 4_000_000 // (n * d))
    return lambda: sgd.advance(sgd.steps[0] + steps), steps


def _gradient(n: int, d: int, samples: int) -> Work:
    model = mf.Model(LAW(d=d, delta=0.5), RELU)
    theta, rule = np.random.default_rng(0).normal(size=(n, d)), mf.MonteCarlo(samples, rng=0)
    return lambda: mf.grad_psi(model, theta, theta, expectation=rule), 1


def _pairs(n: int, d: int) -> Work:
    model = mf.Model(LAW(d=d, delta=0.5), RELU)
    theta = np.random.default_rng(0).normal(size=(n, d))
    return lambda: mf.grad_psi(model, theta, theta), 1


def _estimate(samples: int) -> Work:
    model = mf.Model(LAW(d=20, delta=0.5), RELU)
    theta = np.random.default_rng(0).normal(size=(50, 20))
    return lambda: mf.estimate(model, theta, samples=samples, rng=0), 1


def _predict(inputs: int) -> Work:
    model = mf.Model(LAW(d=20, delta=0.5), RELU)
    rng = np.random.default_rng(0)
    theta, X = rng.normal(size=(100, 20)), rng.normal(size=(inputs, 20))
    return lambda: mf.predict(model, theta, X), 1


def _line(cells: int, nodes: int) -> Work:
    """Steps of a density, its potential from compressed features."""
    model = mf.Model(LAW(d=320, delta=0.5), KNOTS, mf.init.Radial(0.4))
    edges = np.linspace(0.0, 3.0, cells + 1)
    stepper = mf.steppers.FiniteVolume1D(model.reduce(nodes=nodes), edges, np.full(cells, 1 / cells))
    steps = max(10, 1_000_000 // cells)
    dt = 1e-3 / cells

    def run() -> Any:
        stepper.run(dt, steps)

    return run, steps


def _plane(cells: int) -> Work:
    model = mf.Model(mf.data.AnisotropicGaussians(d=320, delta=0.5, s0=60), KNOTS)
    side = round(cells**0.5)
    edges = np.linspace(0.0, 2.0, side + 1)
    mass = np.full((side, side), 1 / side**2)
    stepper = mf.steppers.FiniteVolume2D(model.reduce(nodes=12), (edges, edges), mass)
    steps = max(4, 400_000 // cells)

    def run() -> Any:
        stepper.run(1e-3 / side, steps)

    return run, steps


def _atoms(count: int) -> Work:
    """The field of weighted atoms on themselves: one evaluation of the right-hand side of `mf.Atoms`."""
    reduced = mf.Model(LAW(d=320, delta=0.5), KNOTS).reduce()
    points = mf.Cloud(np.linspace(0.1, 2.0, count)[:, None])
    return lambda: mf.grad_psi(reduced, points.points, points), 1


def _threads(threads: int) -> Work:
    model = mf.Model(LAW(d=100, delta=0.5), RELU)
    theta, rule = np.random.default_rng(0).normal(size=(500, 100)), mf.MonteCarlo(4000, rng=0)
    return lambda: mf.grad_psi(model, theta, theta, expectation=rule, threads=threads), 1


def _cores() -> tuple[int, ...]:
    """1, 2, 4, … up to the threads that are used by default."""
    return tuple(2**k for k in range(_core.resolve_threads().bit_length()))


SWEEPS: dict[str, Sweep] = {
    "sgd_n": Sweep("a step of SGD, d = 20", "N", _sizes(100), "1", lambda n: _sgd(n, 20), "1"),
    "sgd_d": Sweep("a step of SGD, N = 100", "d", _sizes(10), "1", lambda d: _sgd(100, d), "1"),
    "gradient_n": Sweep(
        "∇Ψ over 1000 samples, d = 20", "N", _sizes(10), "1", lambda n: _gradient(n, 20, 1000), "1"
    ),
    "gradient_d": Sweep(
        "∇Ψ over 1000 samples, N = 100", "d", _sizes(10), "1", lambda d: _gradient(100, d, 1000), "1"
    ),
    "gradient_q": Sweep(
        "∇Ψ over samples, N = 50, d = 20", "Q", _sizes(1000), "1", lambda q: _gradient(50, 20, q), "0"
    ),
    "estimate_q": Sweep("V and U with errors, N = 50, d = 20", "Q", _sizes(1000), "1", _estimate, "0"),
    "predict_q": Sweep("predictions, N = 100, d = 20", "Q", _sizes(100), "1", _predict, "1"),
    "pairs_n": Sweep("∇Ψ of exact pairs, d = 5", "N", _sizes(10), "2", lambda n: _pairs(n, 5), "1"),
    "line_cells": Sweep(
        "a step of a density, one coordinate", "cells", _sizes(100), "1", lambda c: _line(c, 32), "1"
    ),
    "line_nodes": Sweep("the same, 400 cells", "nodes", _sizes(4), "0", lambda q: _line(400, q), ""),
    "plane_cells": Sweep("a step of a density, two coordinates", "cells", _sizes(100), "1", _plane, "1"),
    "atoms": Sweep("the field of atoms, reduced model", "atoms", _sizes(30), "1", _atoms, "1"),
    "threads": Sweep("∇Ψ over 4000 samples, N = 500, d = 100", "threads", _cores(), "−1", _threads),
}
