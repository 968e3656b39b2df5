"""Quadrature on panels: the nodes of a rule, and what two rules differ by, panel after panel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..measures._cells import log_factor
from ..reductions._model import ReducedModel
from ._fields import decay
from ._newton import Solution, Support
from ._span import Span

DEEP = 45.0  # where the log density is so far below its maximum, it does not matter
STEEP = 14.0  # the log density may change by so much within a panel
MOST_LOG = 50.0  # the log density may exceed the maximum seen by the finer rule by so much
PROBES = 65  # points of a panel between its nodes at which the density is checked
SMALL = 0.1  # panels with errors below this fraction of the largest are not halved yet


def nodes_of(reduced: ReducedModel, axes: list[FloatArray], counts: list[int]) -> Support:
    """The tensor product of Gauss nodes of all panels, with given numbers of nodes per panel of each axis."""
    sides, logs = [], np.zeros(())
    for edges, n in zip(axes, counts, strict=True):
        x, w = _core.gauss_legendre(n)
        half = 0.5 * np.diff(edges)[:, None]
        sides.append((0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel())
        logs = np.add.outer(logs, np.log(half * w * (2 / w.sum())).ravel())
    points = np.stack([m.ravel() for m in np.meshgrid(*sides, indexing="ij")], axis=1)
    return support_at(reduced, points, logs.ravel())


def support_at(reduced: ReducedModel, points: FloatArray, log_weights: FloatArray) -> Support:
    """Points as masses of a law, with log quadrature weights to which those of the volume are added."""
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
class PanelErrors:
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
    ) -> PanelErrors:
        """Compare the fine rule with rules that are coarser along one axis, for each axis."""
        ones, means = [], []
        exponent = _exponent(fine, found.h)
        top = float(exponent.max())
        total = float(np.exp(exponent - top).sum())
        k, (nodes, fewer) = len(axes), counts
        for c in range(k):
            mixed = [fewer if i == c else nodes for i in range(k)]
            rough = nodes_of(reduced, axes, mixed)
            one, mean = _panel_sums(fine, exponent - top, found, axes, [nodes] * k, c)
            other, another = _panel_sums(rough, _exponent(rough, found.h) - top, found, axes, mixed, c)
            ones.append(np.abs(one - other) / total)
            means.append(np.sqrt(np.square(mean - another).sum(axis=1)) / total)
        return cls(ones, means)

    def with_ends(self, more: tuple[FloatArray, FloatArray]) -> PanelErrors:
        """The errors of one coordinate, with what kinks near the ends of panels add."""
        return PanelErrors([self.ones[0] + more[0]], [self.means[0] + more[1]])

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


def errors_at_ends(
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
    there = support_at(reduced, edges[:, None], np.zeros(len(edges)))
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


def steep_panels(where: Support, found: Solution, axes: list[FloatArray], nodes: int) -> FloatArray:
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
