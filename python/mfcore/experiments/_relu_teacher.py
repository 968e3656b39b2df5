"""ReLU networks that learn a teacher of three neurons on the sphere, trained from starts of several sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import activations, conventions, data, init
from .._base.check import FloatArray
from ..lazy._linearized import Linearized
from ..model import Model
from ..network import Network
from ..neurons._methods import GD, Particles
from ..runs._solve import log_times
from ..runs._trajectory import Trajectory
from ._work import Work

TEACHERS = 3
FACTOR = 1.0  # f = Σ a relu(⟨w, x⟩): the size τ of the start stands for the scale, α ~ τ²


@dataclass(frozen=True)
class Sizes:
    """Sizes of the runs of one trial."""

    d: int
    samples: int
    test: int
    neurons: int
    steps: int


def problem(seed: int, d: int, samples: int, test: int) -> tuple[FloatArray, ...]:
    """Unit teachers, their signs, inputs and labels, and inputs and labels to test on."""
    rng = np.random.default_rng(seed)
    teachers = _units(rng.normal(size=(TEACHERS, d)))
    signs = np.sign(rng.normal(size=TEACHERS))
    X = _units(rng.normal(size=(samples + test, d)))
    y = np.maximum(X @ teachers.T, 0.0) @ signs
    return teachers, signs, X[:samples], y[:samples], X[samples:], y[samples:]


def trial(work: Work, sizes: Sizes, sigma: float, seed: int) -> tuple[Trajectory, Trajectory]:
    """Gradient descent from pairs of neurons of size τ, and the linearised flow from the same neurons."""
    _, _, X, y, inputs, labels = problem(seed, sizes.d, sizes.samples, sizes.test)
    m = sizes.neurons
    rule = conventions.cob19(min(10.0, 0.1 / sigma**2), neurons=m, factor=FACTOR)
    assert rule.step is not None
    normal = init.Normal(0.0, sigma)
    law = init.Paired(init.Product(a=normal, w=normal))
    model = Model(data.Dataset(X, y), Network(activations.relu, output="trained", scale=rule.scale), law)
    horizon = sizes.steps * rule.step
    times = rule.step * np.unique(np.geomspace(1, sizes.steps, 40).round())
    options: dict[str, Any] = {"horizon": horizon, "save_at": times, "rng": seed, "test": (inputs, labels)}
    name = f"τ = {sigma:g}"
    return (
        work.quietly(name, model, GD(m, step=rule.step), **options),
        work.quietly(name, model, Linearized(m), **options),
    )


def path(work: Work, size: float) -> tuple[Trajectory, FloatArray, FloatArray]:
    """The flow in the plane, from w on a circle and a uniform, both times `size`; the teachers with signs."""
    teachers, signs, X, y, _, _ = problem(work.seed, 2, 15, 1)
    m = 16
    rule = conventions.cob19(0.005, neurons=m, factor=FACTOR)
    assert rule.step is not None
    law = init.Paired(init.Product(a=init.Uniform(0.0, size), w=init.Sphere(size)))
    model = Model(data.Dataset(X, y), Network(activations.relu, output="trained", scale=rule.scale), law)
    horizon = 1e5 * rule.step
    times = np.append(0.0, log_times(horizon / 1e4, horizon, 60))
    method = Particles(m, rtol=1e-6)
    run = work.solve(f"paths-{size:g}", model, method, horizon=horizon, save_at=times, keep="all")
    return run, teachers, signs


def _units(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None])
