"""The least risk of all measures, by a fully corrective conditional gradient method with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy

from .._base import check
from .._base.bar import searching
from .._base.check import FloatArray
from .._base.limits import next_round
from ..measures._measure import Cloud
from ..measures._place import AnyModel
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._reduced import reduced_of
from ._boxes import as_box, moving
from ._fields import NodeField, PairField, decay, field_of, weighted_of
from ._pair_search import PairLandscape
from ._search import Landscape, differentiable, lowest, search, twice
from ._simplex import simplex_least_squares

FARTHEST = (10.0, 1e3, 1e5)  # half-lengths of the boxes that are searched, one after the other
MOST_ROUNDS = 100
MOST_STALLED = 3  # rounds without improvement that end the search
SLIDES = 40  # quasi-Newton steps of the atoms per round
ROUNDING = 1e-15
CLOSE = 1e-3  # atoms nearer to each other than this, relative to 1 + |z|, are tried as one at the end

Place: TypeAlias = Landscape | PairLandscape


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least risk of all measures, a measure that reaches it, and how far it may be off, from
    `mf.optimum`.

    Args:
        measure: The atoms found, in reduced coordinates.
        risk: R at them.
        value: What is minimised: R, or R/2 + (λ/2)∫|z|²dρ with decay.
        gap: What convexity leaves to gain: 2(∫Ψdρ − min Ψ), or half of it with decay. It takes the minimum
            that the search on `box` found, and the sum over the data's nodes, for exact; that they are not is
            `error`.
        error: Estimate of what `gap` does not contain: twice the difference to the minimum that a second
            search of `box` finds from other points, and the error of averaging over the data by a sum over
            nodes, from `ReducedModel.node_error`. No measure on `box` has a value below
            ``value - gap - error``, to that estimate.
        box: Ends (low, high) of each coordinate. What is beyond is in neither; see `message`.
        message: What to know about the box, if anything.
    """

    measure: Cloud
    risk: float
    value: float
    gap: float
    error: float
    box: tuple[tuple[float, float], ...]
    message: str = ""

    def __repr__(self) -> str:
        box = " × ".join(f"[{low:g}, {high:g}]" for low, high in self.box)
        told = f", message={self.message!r}" if self.message else ""
        return (
            f"Optimum(risk={self.risk:.8g}, value={self.value:.8g}, gap={self.gap:.1e}, "
            f"error={self.error:.1e}, atoms={len(self.measure)}, box={box}{told})"
        )


def optimum(
    model: AnyModel,
    *,
    tolerance: float = 1e-8,
    extent: Any = None,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Optimum:
    """The measure on reduced coordinates that minimises R, or with ridge λ > 0 R/2 + (λ/2)∫|z|²dρ.

    Temperature is ignored. Atoms are put where Ψ_λ is lowest, found on a grid (quasi-random points in three
    and more coordinates) and followed to the bottom; then their weights are optimal (least squares on the
    simplex), and they slide downhill. R is convex: what is left to gain is at most
    2(∫Ψdρ − min Ψ), and the search ends when that is below `tolerance`.

    Args:
        model: A model with a reduction, or a `ReducedModel`.
        tolerance: The gap wanted.
        extent: Ends (low, high) of each coordinate, for one coordinate simply a pair. None: boxes of size 10,
            1e3 and 1e5, until a larger one has nothing more to offer.
        max_seconds: Raise a TimeoutError after this much wall-clock time; None: no limit.
        progress: Show what is searched, round by round (needs tqdm).

    Examples:
        Values in {z² : z} are fitted to 4 and nothing else, and z is at most 3:

        >>> import mfcore as mf
        >>> square = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[4.0], features=lambda z: z**2,
        ...     gradients=lambda z: 2 * z[:, None, :],
        ... )
        >>> best = mf.optimum(square, extent=(0, 3))
        >>> best.risk < 1e-8, best.gap <= 1e-8
        (True, True)
        >>> round(mf.optimum(square, extent=(0, 1)).risk, 6)
        9.0
    """
    if not isinstance(model, ReducedModel):
        check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    goal = check.number(tolerance, "tolerance", above=0)
    with searching("mf.optimum", max_seconds, progress):
        still = reduced_of(model if isinstance(model, ReducedModel) else model.replace(temperature=0.0))
        return _least(moving(still), goal, extent)


def _least(reduced: ReducedModel, goal: float, extent: Any) -> Optimum:
    goal /= 1.0 if reduced.ridge else 2.0  # the gap of R is twice that of R/2
    if extent is not None:
        place = search(reduced, as_box(extent, reduced))
        return _result(place, _improved(place, None, goal)[0])
    state: _State | None = None
    for end in FARTHEST:
        place = search(reduced, [(0.0 if radius else -end, end) for radius in reduced.nonnegative])
        before = state
        state, rounds = _improved(place, state, goal)
        if before is not None and not rounds:  # this box has nothing to offer that the one before had not
            return _result(place, state)
    assert state is not None
    assert before is not None
    gain = (before.value - state.value) / state.value
    message = (
        f"larger boxes allow better measures; from the one before the value fell by {gain:.0e} of itself"
    )
    return _result(place, state, message)


@dataclass(frozen=True, eq=False)
class _State:
    """Atoms with optimal weights, the value they reach, and the local minima of their potential."""

    atoms: FloatArray
    weights: FloatArray
    value: float  # R/2 + (λ/2)∫|z|²dρ
    fresh: FloatArray  # local minima of Ψ_λ that lie below its mean
    gap: float  # upper bound on `value` minus the least value, eq. (9.5)


def _improved(place: Place, state: _State | None, goal: float) -> tuple[_State, int]:
    """Add atoms at minima of Ψ_λ until the gap in the box is at most `goal`; also the number of rounds."""
    reduced = place.reduced
    if state is None:
        best = _judged(place, lowest(place, _nothing(place))[0][:1], np.ones(1))
    else:
        best = _judged(place, state.atoms, state.weights)
    rounds = stalled = 0
    while best.gap > goal and rounds < MOST_ROUNDS and stalled < MOST_STALLED:
        next_round("atoms")
        atoms = np.concatenate([best.atoms, best.fresh])
        new = _judged(place, *_slid(place, *_weighted(reduced, atoms)))
        stalled = 0 if new.gap < best.gap else stalled + 1
        best = new if new.value <= best.value or new.gap < best.gap else best
        rounds += 1
    return (_tidied(place, best, goal) if rounds else best), rounds


def _nothing(place: Place) -> NodeField | PairField:
    """Ψ_λ of no measure at all."""
    reduced = place.reduced
    if reduced.pairs is None:
        return NodeField(reduced, np.zeros(len(reduced.targets)))
    return PairField(reduced, place.points[:1], np.zeros(1))


def _judged(place: Place, atoms: FloatArray, weights: FloatArray) -> _State:
    """Evaluate value, gap and the minima of Ψ_λ for weighted atoms."""
    reduced = place.reduced
    field = field_of(reduced, atoms, weights)
    mean = float(weights @ field.at(atoms))
    points, depths = lowest(place, field)
    value = 0.5 * field.risk + float(weights @ decay(reduced, atoms))
    gap = min(max(mean - float(depths[0]), 0.0), value - 0.5 * reduced.noise)  # no fit is better than τ²
    return _State(atoms, weights, value, points[depths < mean], gap)


def _weighted(reduced: ReducedModel, atoms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Optimal weights of given atoms (eq. (9.6)), without atoms of weight 0."""
    fit = weighted_of(reduced, atoms)
    weights = simplex_least_squares(fit.columns, fit.target, decay(reduced, atoms))
    return atoms[weights > 0], weights[weights > 0]


def _slid(place: Place, atoms: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move the atoms downhill, keeping their weights optimal: ∂value/∂z_j = c_j ∇Ψ_λ(z_j), eq. (9.6)."""
    reduced = place.reduced
    if not differentiable(reduced):
        return atoms, weights
    unit = 0.1 * (1 + np.abs(atoms))
    size: list[float] = []

    def value(u: FloatArray) -> tuple[float, FloatArray]:
        z = atoms + unit * u.reshape(atoms.shape)
        fit, cost = weighted_of(reduced, z), decay(reduced, z)
        c = simplex_least_squares(fit.columns, fit.target, cost, weights)
        total = float(fit.half_risk(c) + c @ cost)
        size.append(max(total, 1e-300))
        slope = c[:, None] * fit.slopes(c) * unit
        return total / size[0], slope.ravel() / size[0]

    ends = np.array(place.box)
    bounds = scipy.optimize.Bounds(*[((ends[:, i] - atoms) / unit).ravel() for i in (0, 1)])
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": SLIDES}
    found = scipy.optimize.minimize(
        value, np.zeros(atoms.size), jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )
    moved = np.clip(atoms + unit * found.x.reshape(atoms.shape), *ends.T)
    return _weighted(reduced, moved)


def _tidied(place: Place, state: _State, goal: float) -> _State:
    """Merge atoms that are close to each other, if the result is as good."""
    order = np.lexsort(state.atoms.T[::-1])
    atoms, weights = state.atoms[order], state.weights[order]
    near = (np.abs(np.diff(atoms, axis=0)) <= CLOSE * (1 + np.abs(atoms[1:]))).all(axis=1)
    if not near.any():
        return state
    group = np.concatenate([[0], np.cumsum(~near)])
    total = np.bincount(group, weights)
    merged = np.stack([np.bincount(group, weights * z) / total for z in atoms.T], axis=1)
    new = _judged(place, *_slid(place, *_weighted(place.reduced, merged)))
    return new if new.gap <= max(goal, state.gap) else state


def _result(place: Place, state: _State, message: str = "") -> Optimum:
    reduced = place.reduced
    factor = 1.0 if reduced.ridge else 2.0
    cloud = Cloud(state.atoms, state.weights / state.weights.sum())
    field = field_of(reduced, cloud.points, cloud.weights)
    missed = 2 * twice(place, field)[1]
    return Optimum(
        cloud,
        risk=reduced.risk(cloud.points, cloud.weights),
        value=factor * state.value,
        gap=factor * state.gap,
        error=factor * (missed + 0.5 * field.node_risk) + ROUNDING * (1 + factor * state.value),
        box=tuple(place.box),
        message=message,
    )
