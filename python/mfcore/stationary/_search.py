"""Find the lowest points in a box of a potential Ψ_λ(z) = Σ_q r_q Φ_q(z) + λ|z|²/2 with r_q = p_q (f_q −
y_q).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from .._base.check import FloatArray
from .._base.limits import next_round
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._combinations import folded
from ._compact import FIRST, TESTS, Compact, afford, compact, seconds
from ._fields import NodeField, PairField, decay, gradient, potential
from ._pair_search import PairLandscape, pair_landscape
from ._span import SAMPLE, Span, span

SIDE = {1: 4001, 2: 97}  # most points per coordinate of a grid, by the number of coordinates
SCATTERED = 13  # log2 of the most quasi-random points, used where a grid would need too many
FEWEST = 32  # fewest points per coordinate of a grid
MOST_FEATURES = 1 << 22  # most points times nodes
MANY = 1 << 11  # models with more nodes are compressed
DENSER = 1.6  # factor of points per coordinate of the second, independent search
SAMPLED = FIRST + TESTS  # points at which `compact` evaluates all nodes, or more
POLISHED = 8  # number of local minima that are refined


@dataclass(frozen=True, eq=False)
class Landscape:
    """Points all over a box (spaced like 1 + |z|), with the features there, at which potentials are
    searched.
    """

    reduced: ReducedModel
    box: Box
    points: FloatArray  # (n, k)
    shape: tuple[int, ...] | None  # of the grid; None for scattered points
    reach: FloatArray  # (n, k): distance to the neighbouring points
    features: Span  # of the compressed model
    small: Compact

    def lowest(self, field: NodeField) -> tuple[FloatArray, FloatArray]:
        """Local minima of Ψ_λ, lowest first: points (m, k) and values."""
        model, residual = self.small.model, field.residual
        fewer = model.weights * self.small.restricted(residual / self.reduced.weights)
        scaled = self.features.moments(fewer / model.weights)
        values = self.features.values @ scaled + decay(self.reduced, self.points)
        size = max(float(np.ptp(values)), 1e-300)
        found = [self._polish(int(i), fewer, size) for i in self._candidates(values)]
        points = np.array([z for z, _ in found])
        depths = np.array([value for _, value in found])
        if self.small.rows is not None:
            depths = potential(self.reduced, points, residual)
        order = np.argsort(depths, kind="stable")
        return points[order], depths[order]

    def _candidates(self, values: FloatArray) -> FloatArray:
        if self.shape is None:
            return np.asarray(np.argsort(values)[: 2 * POLISHED])
        lower = scipy.ndimage.minimum_filter(values.reshape(self.shape), size=3, mode="nearest").ravel()
        local = np.flatnonzero(values <= lower)
        return np.asarray(local[np.argsort(values[local])][:POLISHED])

    def _polish(self, i: int, residual: FloatArray, size: float) -> tuple[FloatArray, float]:
        """Minimise Ψ_λ from point i within the distance of its neighbours; `size` scales Ψ for the
        stopping rules.
        """
        middle, reach = self.points[i], self.reach[i]
        reduced, one = folded(self.small.model, residual), np.ones(1)
        wide = 1.0 if self.shape is not None else np.inf
        ends = np.array(self.box)
        low, high = (np.clip((ends[:, side] - middle) / reach, -wide, wide) for side in (0, 1))

        def value(u: FloatArray) -> float:
            return float(potential(reduced, (middle + reach * u)[None], one)[0]) / size

        def slope(u: FloatArray) -> FloatArray:
            return np.asarray(gradient(reduced, (middle + reach * u)[None], one)[0] * reach / size)

        begin = np.zeros(len(middle))
        found = scipy.optimize.minimize(
            value,
            begin,
            jac=slope if differentiable(reduced) else None,
            bounds=scipy.optimize.Bounds(low, high),
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 100},
        )
        u = np.clip(found.x, low, high)
        best = min((value(begin), 0), (value(u), 1))
        return middle + reach * (u if best[1] else begin), best[0] * size


def landscape(reduced: ReducedModel, box: Box, *, again: Landscape | None = None) -> Landscape:
    """Sample features on a box: a tensor grid in one and two coordinates, quasi-random points in more.

    With another landscape of the same box, `again`, they are other points, and more of a grid: what the two
    find tells how well both search.
    """
    next_round("the landscape")
    k = len(box)
    ends = np.arcsinh(np.array(box))
    if again is not None:
        small = again.small
    elif len(reduced.weights) > MANY:
        plain = Compact(reduced, reduced)
        afford(seconds(plain, box, SAMPLED), plain, "a minimum over measures")
        small = compact(reduced, box, wide=True)
    else:
        small = Compact(reduced, reduced)
    allowed = MOST_FEATURES // len(small.model.weights)
    side = min(SIDE[k], max(FEWEST, int(allowed ** (1 / k)))) if k in SIDE else None
    if side is not None and again is not None:
        side = int(DENSER * side)
    if side is None:
        power = min(SCATTERED, max(10, int(math.log2(allowed + 1))))
        unit = scipy.stats.qmc.Sobol(k, rng=0 if again is None else 1).random_base2(power)
        spacing = (ends[:, 1] - ends[:, 0]) * 2.0 ** (-power / k)
    else:
        mesh = np.meshgrid(*[np.linspace(0.0, 1.0, side)] * k, indexing="ij")
        unit = np.stack([m.ravel() for m in mesh], axis=1)
        spacing = (ends[:, 1] - ends[:, 0]) / (side - 1)
    if again is None:  # the second search has as many points, or more of a grid
        both = len(unit) * (1 + (DENSER**k if side is not None else 1)) + 2 * min(len(unit), SAMPLE)
        afford(seconds(small, box, both), small, "a minimum over measures")
    points = np.sinh(ends[:, 0] + unit * (ends[:, 1] - ends[:, 0]))
    points = np.clip(points, *np.array(box).T)
    reach = spacing * np.cosh(np.arcsinh(points) + spacing)  # an upper bound of the distance on both sides
    shape = None if side is None else (side,) * k
    return Landscape(reduced, box, points, shape, reach, span(small.model, points), small)


def search(reduced: ReducedModel, box: Box) -> Landscape | PairLandscape:
    """Where potentials are searched: on features, or on closed pairs."""
    return landscape(reduced, box) if reduced.pairs is None else pair_landscape(reduced, box, False)


def lowest(place: Landscape | PairLandscape, field: NodeField | PairField) -> tuple[FloatArray, FloatArray]:
    """Local minima of Ψ_λ, lowest first: points (m, k) and values."""
    if isinstance(place, Landscape):
        assert isinstance(field, NodeField)
        return place.lowest(field)
    assert isinstance(field, PairField)
    return place.lowest(field)


def twice(
    place: Landscape | PairLandscape, field: NodeField | PairField
) -> tuple[tuple[FloatArray, float], float]:
    """The lowest point found by two independent searches, its Ψ_λ, and how much the two results differ."""
    other: Landscape | PairLandscape
    if isinstance(place, Landscape):
        other = landscape(place.reduced, place.box, again=place)
    else:
        other = pair_landscape(place.reduced, place.box, True)
    found = [lowest(p, field) for p in (place, other)]
    points, depths = zip(*[(z[0], float(value[0])) for z, value in found], strict=True)
    best = int(depths[1] < depths[0])
    return (points[best], depths[best]), abs(depths[1] - depths[0])


def differentiable(reduced: ReducedModel) -> bool:
    """Tell whether V and U of the model have gradients."""
    if reduced.pairs is not None:
        return True
    function: Any = reduced.gradients
    return function.function is not None
