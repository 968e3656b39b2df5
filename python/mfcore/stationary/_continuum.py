"""The dual of the free energy as an integral over the continuum, with the error of the integral.

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
from ._newton import Places, Solution, newton
from ._search import decay
from ._span import Span

NODES = {1: (10, 16), 2: (16, 24), 3: (16, 24)}  # of a panel's two rules, by the number of coordinates
FEW_NODES = (11, 15)
FIRST = {1: 24, 2: 2}  # panels per coordinate to begin with; else one
MOST_NUMBERS = 1 << 25  # points times features
MOST_POINTS = 1 << 17
MOST_ROUNDS = 60
GOAL = {1: 2e-14}  # of the two relative errors in one coordinate, ...
ENOUGH = 1e-10  # ... and in more
BY_CHANCE = 2e-12  # by which they may be larger: at a kink two rules can agree and be wrong
DEEP = 45.0  # logs below the top at which a density does not matter
STEEP = 14.0  # logs by which a density may change in a panel
MOST_LOG = 50.0  # above the top that the finer rule has seen
ROOM = {1: 0.25, 2: 0.1}  # of the box that is added at an end of it, for the tails
LEFT_OUT = 5e-12  # mass beyond a box without room around it: see EMPTY in `extent`
PROBES = 65  # of a panel, between its nodes
SMALL = 0.1  # of the largest error: not worth halving yet


@dataclass(frozen=True, eq=False)
class Continuum:
    """The maximiser of D, or a point given, and how far the integrals may be off.

    Args:
        found: Masses of the nodes, the dual point h, the moments ∫F dρ_h, D(h).
        where: The nodes.
        integral: Error of log Z.
        moments: Error of ∫F dρ_h.
        outside: Mass near the end of the nodes, where there is an end.
    """

    found: Solution
    where: Places
    integral: float
    moments: float
    outside: float

    @property
    def risk(self) -> float:
        """|∫F dρ − t|² and what cannot be reached."""
        t = self.where.features
        return float(np.square(self.found.mean - t.target).sum()) + t.unreached

    @property
    def spread(self) -> float:
        """(∫|F − ∫F dρ|²dρ)^½."""
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
    """The stationary law by quadrature, the search for it starting at `f`.

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
    """The box with room for tails around it."""
    out: Box = []
    for (low, high), radius in zip(box, reduced.nonnegative, strict=True):
        room = ROOM.get(len(box), 0.0) * (high - low)
        out.append((max(low - room, 0.0) if radius else low - room, high + room))
    return out


def _nodes(reduced: ReducedModel, axes: list[FloatArray], counts: list[int]) -> Places:
    """Tensor nodes of all panels, so many for each panel of an axis."""
    sides, logs = [], np.zeros(())
    for edges, n in zip(axes, counts, strict=True):
        x, w = _core.gauss_legendre(n)
        half = 0.5 * np.diff(edges)[:, None]
        sides.append((0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel())
        logs = np.add.outer(logs, np.log(half * w * (2 / w.sum())).ravel())
    points = np.stack([m.ravel() for m in np.meshgrid(*sides, indexing="ij")], axis=1)
    return _places(reduced, points, logs.ravel())


def _places(reduced: ReducedModel, points: FloatArray, log_weights: FloatArray) -> Places:
    root = np.sqrt(reduced.weights)
    values = reduced.features(points) * root  # all at once: a grid has points that differ in little
    return Places(
        points,
        log_weights + log_factor(points, reduced.volume),
        decay(reduced, points),
        Span(values, None, root * reduced.targets, root, reduced.noise),
        1 / reduced.temperature,
        reduced.log_volume,
    )


@dataclass(frozen=True, eq=False)
class _Errors:
    """What two rules differ by in the panels of each axis, relative to Z: of 1, and of F − ∫F dρ."""

    ones: list[FloatArray]
    means: list[FloatArray]

    @classmethod
    def of(
        cls,
        reduced: ReducedModel,
        fine: Places,
        found: Solution,
        axes: list[FloatArray],
        counts: tuple[int, int],
    ) -> _Errors:
        """Of a rule that is rough along one axis, for each axis."""
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
        """The same for one coordinate, with what both rules miss at the ends of panels."""
        return _Errors([self.ones[0] + more[0]], [self.means[0] + more[1]])

    @property
    def integral(self) -> float:
        return float(sum(errors.sum() for errors in self.ones))

    @property
    def moments(self) -> float:
        return float(sum(errors.sum() for errors in self.means))

    def wrong(self, where: Places, found: Solution, steep: list[FloatArray], goal: float) -> list[FloatArray]:
        """How wrong panels are: those with more than 1 should be halved."""
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


def rounding(where: Places, found: Solution) -> float:
    """Relative rounding errors of masses: those of exponents, which can be large."""
    heavy = found.mass > 1e-3 * found.mass.max()
    potential = np.abs(where.features.values[heavy]) @ np.abs(found.h - where.features.target)
    size = np.abs(where.log_volume[heavy]) + where.beta * (potential + where.decay[heavy])
    return 4e-16 * (1 + float(size.max()))


def _exponent(where: Places, h: FloatArray) -> FloatArray:
    return np.asarray(where.log_volume - where.beta * where.potential(h))


def _panel_sums(
    where: Places, logs: FloatArray, found: Solution, axes: list[FloatArray], counts: list[int], c: int
) -> tuple[FloatArray, FloatArray]:
    """∫ of 1 and of F − ∫F dρ over the panels of axis c."""
    g = np.exp(np.minimum(logs, MOST_LOG))
    panels = len(axes[c]) - 1
    before = math.prod(n * (len(e) - 1) for e, n in zip(axes[:c], counts[:c], strict=True))
    index = np.arange(len(g)).reshape(before, panels, -1)
    blocks = [index[:, p].ravel() for p in range(panels)]
    sums = np.array([g[block] @ where.features.values[block] for block in blocks])
    ones = np.array([g[block].sum() for block in blocks])
    return ones, sums - ones[:, None] * found.mean


def _ends(
    reduced: ReducedModel, where: Places, found: Solution, edges: FloatArray, nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Errors by kinks between an end of a panel and the first node, which no rule sees.

    There the polynomial through the nodes misses the integrand at the end; the error is at most the area of
    that triangle.
    """
    x, w = _core.gauss_legendre(nodes)
    at_ends = np.linalg.solve(
        np.polynomial.legendre.legvander(x, nodes - 1).T,
        np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), nodes - 1).T,
    )
    there = _places(reduced, edges[:, None], np.zeros(len(edges)))
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


def _steep(where: Places, found: Solution, axes: list[FloatArray], nodes: int) -> FloatArray:
    """Panels of the one axis in which the density changes too much.

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
    """The axes with panels halved where that is wanted: all, or on one axis, or None."""
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


def _outside(where: Places, found: Solution, box: Box) -> float:
    """Mass in the room around the box: more than there is beyond."""
    if len(box) not in ROOM:
        return LEFT_OUT
    ends = np.array(box)
    beyond = ((where.points < ends[:, 0]) | (where.points > ends[:, 1])).any(axis=1)
    return float(found.mass[beyond].sum())
