"""Quadrature rules for the nodes of reduced models: how many, which, and products of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _core
from .._base.check import FloatArray, memory

# Gauss–Hermite nodes per direction, by their number: of a multi-index model, whose features are smooth where
# r > 0, and of inputs themselves, where they have the kinks of σ.
SMOOTH_GRID = {1: 80, 2: 32, 3: 20, 4: 12}
PLAIN_GRID = {1: 400, 2: 64, 3: 24}
LOW = 20  # dimensions below which chi_rule is made of panels
HIGH = 24  # and below which features with kinks alone need more than it has
ALONG = 8  # panels of a direction that features have kinks along
BESIDE = 4  # panels of features with kinks, beside an average over directions, whose nodes limit U
NEGLIGIBLE = 1e-16  # nodes that together weigh less are left out


def count(grid: dict[int, int], p: int, n: int | None, finer: bool) -> int:
    """Nodes for each of p directions: `n` if given, else those of `grid`; half as many more if `finer`."""
    if n is None and p not in grid:
        raise ValueError(
            f"data must have at most {max(grid)} directions for a grid of nodes, got {p}; "
            "reduce(nodes=…) makes a grid all the same"
        )
    given = grid[p] if n is None else n
    return _more(given) if finer else given


def chi(
    d: float, n: int | None, *, alone: bool, kinked: bool = False, finer: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Nodes of χ_d; in the limit features are functions of T(m, r) and the node is 1.

    Beside other averages low dimensions get no more than 100 nodes, 140 for features with kinks.
    Alone, gradients with kinks need more nodes than V and U.
    """
    if math.isinf(d):
        return np.ones(1), np.ones(1)
    if n is None and d < LOW and not alone:
        panels = 14 if kinked else 10
        return _core.panels_chi(d, _more(panels) if finer else panels)
    if n is None and alone and kinked and LOW <= d < HIGH:
        n = 104
    if n is None and not finer:
        return _core.chi_rule(d)
    given = len(_core.chi_rule(d)[0]) if n is None else n
    return _core.gauss_chi(d, _more(given) if finer else given)


def kinked_chi(d: float, n: int | None, *, alone: bool, finer: bool = False) -> _core.ChiPanels | None:
    """Panels of χ_d for features with kinks, where they are needed and no number of nodes is asked for."""
    if n is not None or d >= LOW:
        return None
    panels = _core.ChiPanels(d, 0 if alone else BESIDE)
    return _core.ChiPanels(d, _more(panels.panels)) if finer else panels


def kinked_direction(finer: bool = False) -> _core.NormalPanels:
    """Panels of one direction of Gaussian inputs, for features with kinks."""
    return _core.NormalPanels(_more(ALONG) if finer else ALONG)


def chi_beside_kinks(d: float, finer: bool = False) -> tuple[FloatArray, FloatArray]:
    """Nodes of χ_d beside such panels: averages along a direction are analytic in the norm s across it.

    With a slope w along the direction and r across it they vary as √(w² + r²s²) does: over w/r, or s if that
    is more, which the lengths of the panels follow.
    """
    if math.isinf(d) or d >= LOW:
        return chi(d, None, alone=False, finer=finer)
    ends = np.concatenate(
        [[0, 0.15, 0.35, 0.75], np.linspace(1.5, math.sqrt(d) + 5.5, 5), [math.sqrt(d) + 8]]
    )
    if finer:
        ends = np.sort(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))
    x, w = _core.gauss_legendre(10)
    half = np.diff(ends)[:, None] / 2
    s = (ends[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp((d - 1) * np.log(s / math.sqrt(d)) - (s * s - d) / 2)
    s, weights = pruned(s[:, None], weights / weights.sum())
    return s[:, 0], weights


def _more(n: int) -> int:
    return n + (n + 1) // 2


def tensor(rules: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Product of rules; nodes may be numbers or rows."""
    total = math.prod(len(w) for _, w in rules)
    memory(24.0 * total * sum(nodes.size // len(w) for nodes, w in rules), "nodes", total)
    points, weights = np.empty((1, 0)), np.ones(1)
    for nodes, w in rules:
        rows = nodes.reshape(len(w), -1)
        points = np.concatenate([np.repeat(points, len(w), axis=0), np.tile(rows, (len(points), 1))], axis=1)
        weights = np.multiply.outer(weights, w).ravel()
    return pruned(points, weights)


def pruned(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out the lightest nodes as long as they weigh next to nothing together."""
    order = np.argsort(weights)
    light = order[np.cumsum(weights[order]) < NEGLIGIBLE]
    keep = np.ones(len(weights), dtype=bool)
    keep[light] = False
    return points[keep], weights[keep] / weights[keep].sum()
