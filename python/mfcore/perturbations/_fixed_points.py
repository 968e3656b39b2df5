"""`fixed_points`: stationary measures of few atoms, by Newton's method from many starts (eq. (13.7))."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG
from ..expectations._rules import Expectation
from ..measures._distance import distance
from ..measures._functions import risk
from ..measures._measure import Cloud
from ..measures._place import AnyModel, row_of
from ..reductions._model import ReducedModel
from ._draws import drawn
from ._linear import Linearisation, at_atoms, merged
from ._stability import Stability, residual_of, stability

_STEPS = 100  # of Newton's method from one start
_DAMPING = 1e-3  # first damping, relative to the largest diagonal entry
_FARTHEST = 1e6  # atoms that leave this ball are given up


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A stationary measure of few atoms, as `fixed_points` finds it.

    Attributes:
        measure: The atoms.
        risk: R of the measure.
        stability: Its spectra, rate and residual.
        starts: How many starts led to it.
    """

    measure: Cloud
    risk: float
    stability: Stability
    starts: int

    def __repr__(self) -> str:
        return (
            f"FixedPoint(risk={self.risk:.8g}, stable={self.stability.stable}, "
            f"rate={self.stability.rate:.6g}, atoms={self.measure.points.round(6).tolist()}, "
            f"starts={self.starts})"
        )


def fixed_points(
    model: AnyModel,
    atoms: int = 1,
    starts: int | npt.ArrayLike = 32,
    *,
    weights: npt.ArrayLike | None = None,
    tolerance: float = 1e-9,
    apart: float = 1e-5,
    expectation: Expectation | None = None,
    rng: RNG = 0,
    threads: int | None = None,
) -> list[FixedPoint]:
    """Measures of few atoms at which ∇Ψ_λ vanishes on all of them, lowest risk first, with their stability.

    From every start Newton's method with damping (Levenberg and Marquardt's) solves ∇Ψ_λ(θ_i; ρ) = 0 for all
    atoms together; it finds saddles as well as what attracts. Nothing says that all fixed points are found.
    Atoms that meet are one atom. A continuum of fixed points, such as all rotations of one, is found as many
    points of it: reduce the model first. What a row stores and does not train stays as it starts.

    Args:
        model: A model, or a `ReducedModel`, without noise.
        atoms: Number of atoms.
        starts: Number of starts, whose atoms are independent draws of the initial law; or the starts
            themselves, shape (starts, atoms, D), or (starts, D) for one atom.
        weights: Masses of the atoms; equal ones by default.
        tolerance: Largest residual √∫|∇Ψ_λ|²dρ of a fixed point.
        apart: Fixed points nearer to each other than this, in W₂ over 1 + √∫|θ|²dρ, are one.
        expectation: As in `stability`.
        rng: Draws the starts.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        >>> import math, mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=math.inf, delta=0.2),
        ...     network=mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])),
        ... ).reduce()
        >>> found = theory.fixed_points(model, starts=[[0.3], [1.0], [1.4], [2.0]])
        >>> [(round(float(p.measure.points[0, 0]), 4), p.stability.stable) for p in found][0]
        (1.4616, True)
    """
    row_of(model)  # refuses what is no model
    if model.temperature > 0:
        raise ValueError(f"model must have temperature 0 for atoms at rest, got {model.temperature:g}")
    count = check.count(atoms, "atoms")
    check.memory(64.0 * count, "atoms", atoms)
    masses = Cloud(np.zeros((count, 1)), weights).weights  # checks them
    allowed = check.number(tolerance, "tolerance", above=0)
    near = check.number(apart, "apart", above=0)
    found: list[tuple[Cloud, int]] = []
    for start in _starts(model, count, starts, rng):
        linear = _newton(model, start, masses, expectation, threads, allowed)
        if linear is None:
            continue
        cloud = Cloud(*_joined(linear.points, linear.weights, near))
        for i, (other, times) in enumerate(found):
            size = 1 + float(np.sqrt(other.weights @ np.square(other.points).sum(axis=1)))
            if distance(cloud, other) <= near * size:
                found[i] = (other, times + 1)
                break
        else:
            found.append((cloud, 1))
    points = [
        FixedPoint(
            cloud,
            risk(model, cloud, expectation=expectation, threads=threads),
            stability(model, cloud, expectation=expectation, threads=threads),
            times,
        )
        for cloud, times in found
    ]
    return sorted(points, key=lambda point: point.risk)


def _starts(model: AnyModel, atoms: int, starts: Any, rng: RNG) -> Iterator[FloatArray]:
    """Arrays (atoms, D) to start from."""
    row = row_of(model)
    if not isinstance(starts, int | np.integer):
        given = check.array(starts, "starts")
        if given.ndim == 2 and atoms == 1:
            given = given[:, None]
        yield from check.array(given, "starts", shape=(None, atoms, row))
        return
    number = check.count(starts, "starts")
    check.memory(16.0 * number * atoms * row, "starts", starts)
    yield from drawn(model, number * atoms, rng, "starts").reshape(number, atoms, row)


def _newton(
    model: AnyModel,
    points: FloatArray,
    weights: FloatArray,
    expectation: Expectation | None,
    threads: int | None,
    tolerance: float,
) -> Linearisation | None:
    """The fixed point that Newton's method reaches from these atoms; None if it reaches none."""
    damping = _DAMPING
    linear = at_atoms(model, points, weights, expectation, threads)
    size = residual_of(linear)
    for _ in range(_STEPS):
        if size <= 1e-3 * tolerance:
            break
        matrix, slope = _system(linear)
        # Rows and columns by √w: then (13.3) says that the matrix is symmetric, with residual² = |slope|².
        normal = matrix.T @ matrix
        scale = max(float(np.diag(normal).max(initial=0.0)), 1e-300)
        step: FloatArray = np.linalg.solve(
            normal + damping * scale * np.eye(len(slope)), -matrix.T @ slope
        ).astype(np.float64)
        trial = _moved(linear, step)
        if np.abs(trial).max() > _FARTHEST:
            return None
        there = at_atoms(model, trial, weights, expectation, threads)
        now = residual_of(there)
        if now < size:
            linear, size, damping = there, now, max(0.1 * damping, 1e-15)
        elif damping > 1e8:
            break
        else:
            damping *= 10
    return linear if size <= tolerance else None


def _system(linear: Linearisation) -> tuple[FloatArray, FloatArray]:
    """The matrix √w (H + K w) /√w of all free coordinates, and √w ∇Ψ_λ."""
    root = np.sqrt(linear.weights)[:, None]
    free = linear.free & (root > 0)
    columns = []
    for place in np.argwhere(free):
        unit = np.zeros(free.shape)
        unit[tuple(place)] = 1.0
        columns.append((root * linear.coupled(unit))[free] / root[place[0]])
    slope = (root * linear.frames.down(linear.gradient))[free]
    return np.array(columns).T.reshape(len(slope), len(slope)), slope


def _moved(linear: Linearisation, step: FloatArray) -> FloatArray:
    """The atoms after a step; radii stop at 0, and w stays on the sphere."""
    free = linear.free & (linear.weights > 0)[:, None]
    change = np.zeros(free.shape)
    change[free] = step / np.sqrt(np.repeat(linear.weights, free.sum(axis=1)))
    points = linear.points + linear.frames.up(change)
    model = linear.model
    if isinstance(model, ReducedModel):
        return np.where(np.array(model.nonnegative), np.maximum(points, 0.0), points)
    if model.network.sphere:
        w = points[:, model.network.row(0) :]
        w /= np.linalg.norm(w, axis=1)[:, None]
    return points


def _joined(points: FloatArray, weights: FloatArray, apart: float) -> tuple[FloatArray, FloatArray]:
    """Atoms nearer than `apart` to an earlier one become part of it."""
    rows = points.copy()
    for i in range(1, len(rows)):
        gaps = np.linalg.norm(rows[:i] - rows[i], axis=1)
        j = int(gaps.argmin())
        if gaps[j] <= apart * (1 + float(np.linalg.norm(rows[j]))):
            rows[i] = rows[j]
    return merged(rows, weights)
