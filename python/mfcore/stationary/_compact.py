"""Replace the nodes of a reduced model by fewer: on a box Ψ and R stay the same up to an error that is
measured.

√p_q Φ_q(z) ≈ Σ_k F_k(z) W_kq with orthonormal rows of W. So √K F are features at K nodes of weight 1/K with
targets √K W√p y, and what W does not reach of √p y is noise. F itself needs Φ at K nodes only
(`_combinations`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from .._base import factors
from .._base.check import FloatArray
from .._base.limits import next_round
from ..reductions._model import ReducedModel
from ..reductions._of_laws import Features
from ._boxes import Box
from ._combinations import CHUNK, at_nodes, combined, divisible, nodes_of

FEW = 64  # models with so few nodes are left as they are
# points at which features are sampled to find the orthonormal rows W: at first, and at most
FIRST, MOST = 256, 1024
MOST_NUMBERS = 25_000_000  # most features sampled
REFUSED = 120_000_000  # features at the first points that would take gigabytes and minutes
SECONDS = 0.5  # nominal time that features to a given tolerance may take
MOST_WHOLE = 2048  # in one coordinate up to so many nodes are all kept if fewer are not accurate enough
# Nominal seconds of one core that the features of one search may take; what is dearer is refused.
MOST_SECONDS = 60.0
# Averages of smooth activations over two radii take longer where these are larger than `NEAR`, in the end at
# least so many times: measured 6 at 10 and 30 at 1e2 (gelu, d = 20). Those over one radius take .3 to 1 times
# as long, at 10 to 1e5, for d = 3 to 40.
FARTHER, NEAR = 10.0, 10.0
MORE_NODES = 1.5  # nodes at which a combination evaluates features, in relation to its own number
TESTS = 48  # fresh points at which the error is measured
TOLERANCE = {1: 1e-13, 2: 1e-13}  # error relative to (Σp Φ²)^½ that is allowed, by the number of coordinates
COARSE = 1e-8  # the same for more coordinates
GOOD = 10.0  # errors up to so many times the tolerance are accepted instead of adding points
# averages over panels: values at single nodes will do if their error is at most so many times larger
NEARLY = 3.0
SOME_GROUPS = 32  # groups of nodes that are enough to tell the sizes of features


@dataclass(frozen=True, eq=False)
class Compact:
    """A reduced model with fewer nodes, and the map from functions at its nodes to functions at all nodes.

    Args:
        model: The smaller model.
        whole: The larger one.
        rows: W, (K, Q); None if the two models are one.
        error: Largest (Σ_q p_q (Φ_q − Φ̃_q)²)^½ / (Σ_q p_q Φ_q²)^½ at fresh points.
    """

    model: ReducedModel
    whole: ReducedModel
    rows: FloatArray | None = None
    error: float = 0.0

    def function(self, f: FloatArray) -> FloatArray:
        """Extend values at the nodes of the smaller model to all nodes."""
        if self.rows is None:
            return f
        return np.asarray(f @ self.rows / np.sqrt(len(self.rows) * self.whole.weights))

    def restricted(self, f: FloatArray) -> FloatArray:
        """Restrict values at all nodes to the smaller model: the inverse of `function`."""
        if self.rows is None:
            return f
        return np.asarray(np.sqrt(len(self.rows)) * (self.rows @ (np.sqrt(self.whole.weights) * f)))


def compact(
    reduced: ReducedModel, box: Box, *, wide: bool = False, tolerance: float | None = None
) -> Compact:
    """Replace the nodes of `reduced` by as few as its features on a box need.

    Args:
        reduced: The model.
        box: Where it has to hold.
        wide: Points are in proportion to their size, for boxes of many orders of magnitude.
        tolerance: Part of (Σp Φ²)^½ that may be missed; None: by the number of coordinates.
    """
    if len(reduced.weights) <= FEW:
        return Compact(reduced, reduced)
    count, most = FIRST, MOST if tolerance is None else min(MOST, SECONDS / _seconds(reduced))
    if (FIRST + TESTS) * len(reduced.weights) > REFUSED:
        raise ValueError(
            f"model must have at most {REFUSED // (FIRST + TESTS)} nodes of data for a minimum over "
            f"measures, got {len(reduced.weights)}: fewer by model.reduce(nodes=…), whose node_error tells "
            "what they lose; or mf.solve with mf.Atoms or networks, which follow the dynamics to a minimum"
        )
    tolerance = TOLERANCE.get(len(box), COARSE) if tolerance is None else tolerance
    table, size, sample = np.empty((0, len(reduced.weights))), np.empty(0), _scattered(reduced, box, wide)
    while True:
        next_round("features of fewer nodes")
        new = in_pieces(reduced, sample[len(table) : count + TESTS]) * np.sqrt(reduced.weights)
        norms = np.sqrt(np.square(new).sum(axis=1))
        table = np.concatenate([table, new / np.where(norms > 0, norms, 1.0)[:, None]])
        size = np.concatenate([size, np.where(norms > 0, norms, 1.0)])
        rows = _row_space(table[TESTS:], tolerance)
        if len(rows) == len(reduced.weights):
            return Compact(reduced, reduced)
        tests, good = table[:TESTS], GOOD * tolerance
        best = _distance(tests, tests @ rows.T @ rows)
        for alone in (True, False) if _together(reduced) > 1 else (False,):
            found = combined(reduced, rows, alone)
            values = found.features(sample[:TESTS]) / (np.sqrt(len(rows)) * size[:TESTS, None])
            error = _distance(tests, values @ rows)
            if error <= max(good, NEARLY * best):
                break
        count *= 2
        if error <= good or count > most or count * len(reduced.weights) > MOST_NUMBERS:
            break
    if error > good and len(box) == 1 and len(reduced.weights) <= MOST_WHOLE:
        return Compact(reduced, reduced)
    return Compact(found, reduced, rows, error)


def seconds(small: Compact, box: Box, points: float) -> float:
    """About what features at so many points of a box cost one core, the same on every machine."""
    kept = 1.0 if small.rows is None else MORE_NODES * len(small.rows) / len(small.whole.weights)
    plain: Any = small.whole.features
    owner = getattr(plain.function, "__self__", None)
    smooth = isinstance(owner, Features) and not owner._arguments[0].kinks
    reach = max(abs(end) for side in box for end in side)
    far = min(max(1.0, reach / NEAR), FARTHER) if smooth and sum(small.whole.nonnegative) > 1 else 1.0
    return points * _seconds(small.whole) * min(kept, 1.0) * far


def afford(spent: float, small: Compact, what: str) -> None:
    """Refuse what takes minutes, and say what would not."""
    if spent > MOST_SECONDS:
        raise TooDearError(
            f"model must have features of less work for {what}: about {spent / 60:.1g} minutes of one "
            f"core or more with {len(small.whole.weights)} nodes of data, at most {MOST_SECONDS / 60:.2g} "
            "are spent; try fewer nodes by model.reduce(nodes=…), whose node_error tells what they lose, a "
            "smaller extent, or a piecewise-linear activation; mf.solve with mf.Atoms or networks follows "
            "the dynamics"
        )


class TooDearError(ValueError):
    """The request would take minutes."""


def thinned(reduced: ReducedModel, count: int) -> ReducedModel:
    """Keep `count` random nodes: good for the sizes of features, not for their values."""
    plain: Any = reduced.features
    owner = getattr(plain.function, "__self__", None)
    if not divisible(owner):
        return reduced
    size = owner.together
    kept = count if size == 1 else max(SOME_GROUPS, count // size)
    weights = reduced.weights.reshape(-1, size).sum(axis=1)
    if len(weights) <= kept:
        return reduced
    rng = np.random.default_rng(0)
    groups = rng.choice(len(weights), kept, p=weights / weights.sum())
    nodes = nodes_of(groups, size)
    fewer = at_nodes(owner, nodes)
    return dataclasses.replace(
        reduced,
        weights=(reduced.weights[nodes].reshape(-1, size) / weights[groups, None] / kept).ravel(),
        targets=reduced.targets[nodes],
        features=fewer.features,
        gradients=fewer.gradients,
    )


def _together(reduced: ReducedModel) -> int:
    """Nodes of a group; 1 if features can only be evaluated at all nodes."""
    plain: Any = reduced.features
    owner = getattr(plain.function, "__self__", None)
    return owner.together if divisible(owner) else 1


def _seconds(reduced: ReducedModel) -> float:
    """About what a point costs, where coordinates are of order 1; the same on every machine."""
    plain: Any = reduced.features
    owner = getattr(plain.function, "__self__", None)
    return 1e-9 * owner.nanoseconds if isinstance(owner, Features) else 1e-9 * len(reduced.weights)


def _distance(one: FloatArray, other: FloatArray) -> float:
    """Largest distance of two rows."""
    return float(np.sqrt(np.square(one - other).sum(axis=1)).max())


def _scattered(reduced: ReducedModel, box: Box, wide: bool) -> FloatArray:
    """Random points all over the box, a quarter of them at small radii, in random order."""
    k, ends = len(box), np.array(box)
    rng = np.random.default_rng(0)
    unit = scipy.stats.qmc.Sobol(k, rng=rng).random_base2((MOST + TESTS).bit_length())
    small = (np.asarray(reduced.nonnegative) & (ends[:, 0] == 0)) & (rng.random(unit.shape) < 0.25)
    unit = np.where(small, unit**4, unit)
    rng.shuffle(unit)
    unit = unit[: MOST + TESTS]
    if wide:
        ends = np.arcsinh(ends)
        return np.asarray(np.clip(np.sinh(ends[:, 0] + unit * (ends[:, 1] - ends[:, 0])), *np.array(box).T))
    return np.asarray(ends[:, 0] + unit * (ends[:, 1] - ends[:, 0]))


def in_pieces(
    reduced: ReducedModel, points: FloatArray, of: Callable[[FloatArray], FloatArray] = np.asarray
) -> FloatArray:
    """Apply `of` to the features at points, chunk by chunk, so that it can be interrupted and needs
    little memory.
    """
    step = max(1, CHUNK // len(reduced.weights))
    starts = range(0, max(len(points), 1), step)
    return np.concatenate([of(reduced.features(points[at : at + step])) for at in starts])


def predictions(reduced: ReducedModel, points: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """f_q = ∫Φ_q dρ, with fewer nodes if there are many, and the error (Σ_q p_q δf_q²)^½ that these make."""
    n, q = len(points), len(reduced.weights)
    if n * q <= MOST_NUMBERS or q <= FEW:
        step = max(1, CHUNK // q)
        parts = (
            weights[at : at + step] @ reduced.features(points[at : at + step]) for at in range(0, n, step)
        )
        return np.asarray(sum(parts)), 0.0
    box = [
        (float(low), float(max(high, low + 1e-9)))
        for low, high in zip(points.min(0), points.max(0), strict=True)
    ]
    small = compact(reduced, box)
    f = small.function(predictions(small.model, points, weights)[0])
    return f, small.error * float(np.sqrt(reduced.weights @ f**2))


def _row_space(table: FloatArray, tolerance: float) -> FloatArray:
    """Orthonormal rows that span those of `table` up to the tolerance in mean square."""
    if table.shape[1] <= len(table):
        _, size, right = factors.svd(table)
    else:
        tall, small = factors.qr(table.T)
        _, size, turned = factors.svd(small.T)
        right = turned @ tall.T
    tail = np.sqrt(np.cumsum(np.square(size)[::-1])[::-1])
    return np.ascontiguousarray(right[: max(1, int((tail > tolerance * np.sqrt(len(table))).sum()))])
