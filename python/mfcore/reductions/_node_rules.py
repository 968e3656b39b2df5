"""Choose the quadrature nodes of reduced models: how many, of which rule, and products of rules."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base.check import FloatArray, memory

# Gauss–Hermite nodes per direction, by the number of directions: for multi-index models, whose features are
# smooth where r > 0, and for inputs themselves, where features have the kinks of σ.
SMOOTH_GRID = {1: 80, 2: 32, 3: 20, 4: 12}
PLAIN_GRID = {1: 400, 2: 64, 3: 24}
LOW = 20  # dimensions below which chi_rule is made of panels
HIGH = 24  # and below which features with kinks alone need more than it has
ALONG = 8  # panels of a direction that features have kinks along
REACH = 8.3  # where the panels end, as 1e-16 of the mass is beyond; further for y that grow fast, until ...
MOST_REACH = 29.0  # ... here
PER_PANEL = 16  # what a panel in the tails may add to z²
BESIDE = 4  # panels of features with kinks, beside an average over directions, whose nodes limit U
NEGLIGIBLE = 1e-16  # nodes that together weigh less are left out, ...
LOST = 1e-12  # ... unless they have more than this share of E y²


def counts(
    grid: dict[int, int],
    p: int,
    degrees: tuple[int, ...] | None,
    power: int | None,
    n: int | None,
    finer: bool,
) -> list[int]:
    """Gauss nodes of each of p directions; 1.5 times as many if `finer`.

    Args:
        grid: Nodes per direction, by p, for features of σ that is no polynomial.
        p: The number of directions.
        degrees: Degrees of y in the directions; None if y is no polynomial.
        power: The degree of σ; None if σ is no polynomial. With `degrees` the nodes are exact for products
            of y and features, without exact for y² where it has a degree.
        n: What the user asks for, whatever else is known.
    """
    if n is not None:
        found = [n] * p
    elif power is not None and degrees is not None:
        found = [1 + max(power, m) for m in degrees]
    elif p in grid:
        found = [max(grid[p], 1 + (power or 0), 1 + m) for m in degrees or (0,) * p]
    else:
        raise ValueError(
            f"data must have at most {max(grid)} directions for a grid of nodes, got {p}; "
            "reduce(nodes=…) makes a grid all the same"
        )
    return [_more(count) for count in found] if finer else found


def chi(
    d: float,
    n: int | None,
    *,
    alone: bool,
    kinked: bool = False,
    finer: bool = False,
    degree: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of χ_d; at d = ∞ the single node 1, because features are functions of T(m, r) there.

    Features of a polynomial σ of this `degree` are polynomials of s². Of others, beside other averages low
    dimensions get no more than 100 nodes, 140 for features with kinks. Alone, gradients with kinks need more
    nodes than V and U.
    """
    if math.isinf(d):
        return np.ones(1), np.ones(1)
    if n is None and degree is not None:
        n = degree // 2 + 1
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
    """Panels of χ_d for features with kinks; None where no panels are needed or the user asked for `n`
    nodes.
    """
    if n is not None or d >= LOW:
        return None
    panels = _core.ChiPanels(d, 0 if alone else BESIDE)
    return _core.ChiPanels(d, _more(panels.panels)) if finer else panels


def kinked_direction(z: FloatArray, shares: FloatArray, finer: bool = False) -> _core.NormalPanels:
    """Panels of one direction of Gaussian inputs, for features with kinks.

    They end where Gauss nodes z with larger |z| have negligible shares of what is averaged.
    """
    sizes = np.abs(z)
    beyond = np.array([shares[sizes > size].sum() for size in sizes])
    end = min(max(REACH, float(sizes[beyond < NEGLIGIBLE].min())), MOST_REACH)
    if shares[sizes > REACH].sum() <= LOST:
        end = REACH
    panels = ALONG + 2 * math.ceil((end**2 - REACH**2) / (2 * PER_PANEL))  # even: kinks are often at 0
    return _core.NormalPanels(_more(panels) if finer else panels, end)


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
    """The tensor product of rules whose nodes are numbers or rows, the first outermost."""
    total = math.prod(len(w) for _, w in rules)
    memory(24.0 * total * sum(nodes.size // len(w) for nodes, w in rules), "nodes", total)
    points, weights = np.empty((1, 0)), np.ones(1)
    for nodes, w in rules:
        rows = nodes.reshape(len(w), -1)
        points = np.concatenate([np.repeat(points, len(w), axis=0), np.tile(rows, (len(points), 1))], axis=1)
        weights = np.multiply.outer(weights, w).ravel()
    return points, weights


def importance(weights: FloatArray, labels: Sequence[FloatArray]) -> FloatArray:
    """How much nodes count relative to their weights: 1, or y²/E y² where that is more, if the light nodes
    of some label have more than a share LOST of its E y².
    """
    heavy, light = np.ones(len(weights)), ~_kept(weights)
    for y in labels:
        mean = weights @ y**2
        if mean > 0 and weights[light] @ y[light] ** 2 > LOST * mean:
            heavy = np.maximum(heavy, y**2 / mean)
    return heavy


def pruned(
    points: FloatArray, weights: FloatArray, heavy: FloatArray | float | None = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Leave out the nodes that together count less than NEGLIGIBLE; if `heavy` is None, those of weight 0."""
    keep = weights > 0 if heavy is None else _kept(weights * heavy)
    return points[keep], weights[keep] / weights[keep].sum()


def _kept(shares: FloatArray) -> npt.NDArray[np.bool_]:
    order = np.argsort(shares)
    keep = np.ones(len(shares), dtype=bool)
    keep[order[np.cumsum(shares[order]) < NEGLIGIBLE]] = False
    return keep
