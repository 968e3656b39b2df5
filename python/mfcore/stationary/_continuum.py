"""The dual D of the free energy (eq. (9.1)) by integrals over continuous z instead of cells, with the error
of the integrals.

D(f) has the integral Z(f) = ∫v e^{−βΨ_λ(z; f)}dz. Every coordinate has panels, and each of them two
Gauss–Legendre rules: what they differ by, panel after panel, is the error, and panels where it matters are
halved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..measures._cells import log_factor
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._newton import Solution, Support, newton
from ._search import decay
from ._span import Span

# Gauss nodes of the finer and the coarser rule on a panel are compared: by the number of coordinates
NODES = {1: (10, 16), 2: (16, 24), 3: (16, 24)}
FEW_NODES = (11, 15)
FIRST = {1: 24, 2: 2}  # panels per coordinate to begin with, by the number of coordinates; else one
MOST_NUMBERS = 1 << 25  # most points times features
MOST_POINTS = 1 << 17
MOST_ROUNDS = 60
GOAL = {1: 2e-14}  # relative error of the integrals that is aimed at, in one coordinate
ENOUGH = 1e-10  # the same in more coordinates
BY_CHANCE = 2e-12  # added to the stated errors: at a kink two rules can agree by chance
DEEP = 45.0  # where the log density is so far below its maximum, it does not matter
STEEP = 14.0  # the log density may change by so much within a panel
MOST_LOG = 50.0  # the log density may exceed the maximum seen by the finer rule by so much
# fraction of the box that is added at each end for the tails, by the number of coordinates
ROOM = {1: 0.25, 2: 0.1}
LEFT_OUT = 5e-12  # mass beyond a box without room around it: see EMPTY in `_extent`
PROBES = 65  # points of a panel between its nodes at which the density is checked
SMALL = 0.1  # panels with errors below this fraction of the largest are not halved yet


@dataclass(frozen=True, eq=False)
class Continuum:
    """The maximiser of D (eq. (9.1)), or a given point, and the error of its integrals.

    Args:
        found: Masses of the nodes, the dual point h, the moments ∫F dρ_h, D(h).
        where: The nodes.
        integral: Error of log Z.
        moments: Error of ∫F dρ_h.
        outside: Mass near the end of the nodes, where there is an end.
    """

    found: Solution
    where: Support
    integral: float
    moments: float
    outside: float

    @property
    def risk(self) -> float:
        """R = |∫F dρ − t|² plus the part of R that no measure reaches."""
        t = self.where.features
        return float(np.square(self.found.mean - t.target).sum()) + t.unreached

    @property
    def spread(self) -> float:
        """The standard deviation (∫|F − ∫F dρ|²dρ)^½ of the features under the law."""
        deviation = np.square(self.where.features.values - self.found.mean).sum(axis=1)
        return float(np.sqrt(self.found.mass @ deviation))


def continuum(
    reduced: ReducedModel,
    box: Box,
    f: FloatArray,
    tolerance: float,
    *,
    fixed: bool = False,
    ends: bool = False,
    enough: float = 0.0,
) -> Continuum:
    """The stationary law by adaptive quadrature; Newton's method starts at `f`.

    Args:
        reduced: A model with few nodes.
        box: Where the mass is.
        f: Where Newton starts, or, if `fixed`, the argument of D.
        tolerance: Gap at which Newton stops.
        fixed: Integrate for `f` alone.
        ends: Whether space ends where the box does.
        enough: Relative errors that matter little beside those of the model's features.
    """
    k = len(box)
    goal = max(GOAL.get(k, ENOUGH), enough)
    sides = box if ends else wider(reduced, box)
    rough, nodes = NODES.get(k, FEW_NODES)
    axes = [np.linspace(low, high, FIRST.get(k, 1) + 1) for low, high in sides]
    most = min(MOST_POINTS, MOST_NUMBERS // (len(reduced.weights) + 8))
    h = np.sqrt(reduced.weights) * f
    for _ in range(MOST_ROUNDS):
        where = _nodes(reduced, axes, [nodes] * k)
        if fixed:
            mass, log_z = where.law(h)
            found = Solution(mass, h, mass @ where.features.values, where.dual(h, log_z), 0)
        else:
            found = newton(where, h, tolerance)
            h = found.h
        errors = _Errors.of(reduced, where, found, axes, (nodes, rough))
        if k == 1:
            errors = errors.with_ends(_ends(reduced, where, found, axes[0], nodes))
        steep = (
            [_steep(where, found, axes, nodes)]
            if k == 1
            else [np.zeros(len(e) - 1, dtype=bool) for e in axes]
        )
        halved = _affordable(axes, errors.wrong(where, found, steep, goal), most / nodes**k)
        if halved is None:
            break
        axes = halved
    outside = 0.0 if ends else _outside(where, found, box)
    out = Continuum(found, where, errors.integral + BY_CHANCE, errors.moments, outside)
    return replace(out, moments=out.moments + BY_CHANCE * out.spread)


def wider(reduced: ReducedModel, box: Box) -> Box:
    """The box with room added for the tails."""
    out: Box = []
    for (low, high), radius in zip(box, reduced.nonnegative, strict=True):
        room = ROOM.get(len(box), 0.0) * (high - low)
        out.append((max(low - room, 0.0) if radius else low - room, high + room))
    return out


def _nodes(reduced: ReducedModel, axes: list[FloatArray], counts: list[int]) -> Support:
    """The tensor product of Gauss nodes of all panels, with given numbers of nodes per panel of each axis."""
    sides, logs = [], np.zeros(())
    for edges, n in zip(axes, counts, strict=True):
        x, w = _core.gauss_legendre(n)
        half = 0.5 * np.diff(edges)[:, None]
        sides.append((0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel())
        logs = np.add.outer(logs, np.log(half * w * (2 / w.sum())).ravel())
    points = np.stack([m.ravel() for m in np.meshgrid(*sides, indexing="ij")], axis=1)
    return _support(reduced, points, logs.ravel())


def _support(reduced: ReducedModel, points: FloatArray, log_weights: FloatArray) -> Support:
    root = np.sqrt(reduced.weights)
    values = reduced.features(points) * root  # all at once: a grid has points that differ in little
    return Support(
        points,
        log_weights + log_factor(points, reduced.volume),
        decay(reduced, points),
        Span(values, None, root * reduced.targets, root, reduced.noise),
        1 / reduced.temperature,
        reduced.log_volume,
    )


@dataclass(frozen=True, eq=False)
class _Errors:
    """Differences between two quadrature rules in the panels of each axis, relative to Z: of ∫1 and of
    ∫(F − ∫F dρ).
    """

    ones: list[FloatArray]
    means: list[FloatArray]

    @classmethod
    def of(
        cls,
        reduced: ReducedModel,
        fine: Support,
        found: Solution,
        axes: list[FloatArray],
        counts: tuple[int, int],
    ) -> _Errors:
        """Compare the fine rule with rules that are coarser along one axis, for each axis."""
        ones, means = [], []
        exponent = _exponent(fine, found.h)
        top = float(exponent.max())
        total = float(np.exp(exponent - top).sum())
        k, (nodes, fewer) = len(axes), counts
        for c in range(k):
            mixed = [fewer if i == c else nodes for i in range(k)]
            rough = _nodes(reduced, axes, mixed)
            one, mean = _panel_sums(fine, exponent - top, found, axes, [nodes] * k, c)
            other, another = _panel_sums(rough, _exponent(rough, found.h) - top, found, axes, mixed, c)
            ones.append(np.abs(one - other) / total)
            means.append(np.sqrt(np.square(mean - another).sum(axis=1)) / total)
        return cls(ones, means)

    def with_ends(self, more: tuple[FloatArray, FloatArray]) -> _Errors:
        """The errors of one coordinate, with what kinks near the ends of panels add."""
        return _Errors([self.ones[0] + more[0]], [self.means[0] + more[1]])

    @property
    def integral(self) -> float:
        return float(sum(errors.sum() for errors in self.ones))

    @property
    def moments(self) -> float:
        return float(sum(errors.sum() for errors in self.means))

    def wrong(
        self, where: Support, found: Solution, steep: list[FloatArray], goal: float
    ) -> list[FloatArray]:
        """For each panel its error over the tolerated one: panels above 1 should be halved."""
        size = rounding(where, found)
        deviation = np.square(where.features.values - found.mean).sum(axis=1)
        spread = float(np.sqrt(found.mass @ deviation))
        scale = max(goal, size)
        relative = [
            np.maximum(one / scale, mean / (scale * max(spread, 1e-300))) * len(one)
            for one, mean in zip(self.ones, self.means, strict=True)
        ]
        largest = max(float(r.max()) for r in relative)
        several = SMALL * largest if len(relative) > 1 else 0.0
        kept = [np.where(r >= several, r, 0.0) for r in relative]
        return [np.where(s, np.maximum(r, largest + 2), r) for r, s in zip(kept, steep, strict=True)]


def rounding(where: Support, found: Solution) -> float:
    """The relative rounding error of the masses, from the size of the terms of their exponents."""
    heavy = found.mass > 1e-3 * found.mass.max()
    potential = np.abs(where.features.values[heavy]) @ np.abs(found.h - where.features.target)
    size = np.abs(where.log_volume[heavy]) + where.beta * (potential + where.decay[heavy])
    return 4e-16 * (1 + float(size.max()))


def _exponent(where: Support, h: FloatArray) -> FloatArray:
    return np.asarray(where.log_volume - where.beta * where.potential(h))


def _panel_sums(
    where: Support, logs: FloatArray, found: Solution, axes: list[FloatArray], counts: list[int], c: int
) -> tuple[FloatArray, FloatArray]:
    """∫1 and ∫(F − ∫F dρ) over each panel of axis c."""
    g = np.exp(np.minimum(logs, MOST_LOG))
    panels = len(axes[c]) - 1
    before = math.prod(n * (len(e) - 1) for e, n in zip(axes[:c], counts[:c], strict=True))
    index = np.arange(len(g)).reshape(before, panels, -1)
    blocks = [index[:, p].ravel() for p in range(panels)]
    sums = np.array([g[block] @ where.features.values[block] for block in blocks])
    ones = np.array([g[block].sum() for block in blocks])
    return ones, sums - ones[:, None] * found.mean


def _ends(
    reduced: ReducedModel, where: Support, found: Solution, edges: FloatArray, nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Bound the error by kinks between an end of a panel and its first node, which no rule sees.

    There the polynomial through the nodes misses the integrand at the end; the error is at most the area of
    that triangle.
    """
    x, w = _core.gauss_legendre(nodes)
    at_ends = np.linalg.solve(
        np.polynomial.legendre.legvander(x, nodes - 1).T,
        np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), nodes - 1).T,
    )
    there = _support(reduced, edges[:, None], np.zeros(len(edges)))
    widths = np.diff(edges)[:, None] * (w / w.sum())
    inside = _exponent(where, found.h) - np.log(widths).ravel()
    top = inside.max()
    total = float(np.exp(inside - top) @ widths.ravel())
    values = []
    for place, exponent in ((where, inside), (there, _exponent(there, found.h))):
        g = np.exp(np.minimum(exponent - top, MOST_LOG)) / total
        values.append(np.column_stack([g, g[:, None] * (place.features.values - found.mean)]))
    reached = np.einsum("pnf,ne->epf", values[0].reshape(len(edges) - 1, nodes, -1), at_ends)
    missed = np.abs(reached - np.stack([values[1][:-1], values[1][1:]])).sum(axis=0)
    area = 0.25 * (1 - x.max()) * np.diff(edges)  # half of the distance from an end to the first node
    return missed[:, 0] * area, np.sqrt(np.square(missed[:, 1:]).sum(axis=1)) * area


def _steep(where: Support, found: Solution, axes: list[FloatArray], nodes: int) -> FloatArray:
    """The panels of the one axis in which the log density changes by more than STEEP.

    Also between the nodes, by the polynomial through them: a peak may be narrower than they are dense.
    """
    x, w = _core.gauss_legendre(nodes)
    widths = np.diff(axes[0])[:, None] * (w / w.sum())
    density = where.log_volume - where.beta * where.potential(found.h) - np.log(widths).ravel()
    profile = density.reshape(-1, nodes)
    there = np.polynomial.legendre.legvander(np.linspace(-1, 1, PROBES), nodes - 1)
    back = np.linalg.solve(np.polynomial.legendre.legvander(x, nodes - 1).T, there.T)
    profile = np.hstack([profile, profile @ back])
    profile = np.maximum(profile, profile.max() - DEEP)
    return np.asarray(np.ptp(profile, axis=1) > STEEP)


def _affordable(axes: list[FloatArray], wrong: list[FloatArray], most: float) -> list[FloatArray] | None:
    """The axes with the wanted panels halved: on all axes, or on one, or None if that takes too many
    points.
    """
    for threshold in (1.0, *sorted({float(w.max()) for w in wrong})):
        out = [
            np.unique(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])[w >= threshold]]))
            for edges, w in zip(axes, wrong, strict=True)
        ]
        if all(len(new) == len(old) for new, old in zip(out, axes, strict=True)):
            return None
        if np.prod([float(len(e) - 1) for e in out]) <= most:
            return out
    return None


def _outside(where: Support, found: Solution, box: Box) -> float:
    """Mass in the room added around the box: more than there is beyond it."""
    if len(box) not in ROOM:
        return LEFT_OUT
    ends = np.array(box)
    beyond = ((where.points < ends[:, 0]) | (where.points > ends[:, 1])).any(axis=1)
    return float(found.mass[beyond].sum())
