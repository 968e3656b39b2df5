"""Discretise the initial law for minimising movements: weighted atoms, or cells with their masses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .._base.check import FloatArray
from ..init._blocks import Chi, Scalar
from ..measures._measure import Cloud, Density
from ..reductions._init import ReducedInit
from ..reductions._model import ReducedModel

Quantile = Callable[[FloatArray], FloatArray]


def quantile_levels(n: int) -> tuple[FloatArray, FloatArray]:
    """Levels s_0 = 0 < … < s_n = 1 at which a quantile function is taken, and their differences, small at
    both ends.

    With equal masses an end cell would be as wrong as its mass 1/n. Those at s(j/n) with s(u) = u³(10 − 15u +
    6u²) have masses of order n⁻³ there.
    """
    u = np.arange(n + 1) / n
    lower = _smooth(u)
    s = np.where(u <= 0.5, lower, 1 - lower[::-1])
    masses = np.diff(lower)
    masses = np.where(u[1:] <= 0.5, masses, masses[::-1])
    return s, masses / masses.sum()


def start_atoms(reduced: ReducedModel, start: Cloud | Density | None, count: int) -> Cloud:
    """ρ₀ as weighted atoms: those given as `start`, or about `count` of the initial law or of a density."""
    if isinstance(start, Cloud):
        return Cloud(start.points[start.weights > 0], start.weights[start.weights > 0])
    if isinstance(start, Density) and len(start.edges) > 1:
        return start_atoms(reduced, start.as_cloud(), count)
    if isinstance(start, Density):
        constant, column, quantile = np.zeros(1), 0, _density_quantile(start)
    else:
        found = _one_coordinate(reduced)
        if found is None:
            return _nodes(_initial(reduced), count)
        constant, column, quantile = found
    # The midpoint rule in u for ∫g(X(s)) ds, s = s(u): the weights s' vanish at both ends.
    u = (np.arange(count) + 0.5) / count
    weights = (u * (1 - u)) ** 2
    points = np.tile(constant, (count, 1))
    points[:, column] = _at(quantile, _smooth(u))
    return Cloud(points, weights / weights.sum())


def gauss_coordinates(reduced: ReducedModel) -> int:
    """How many coordinates of the initial law get Gauss nodes: all random ones if there are several,
    else none.
    """
    law = reduced.initial
    if law is None or _one_coordinate(reduced) is not None:
        return 0
    return int(np.log2(len(law.quadrature(2)[0])))


def start_cells(
    reduced: ReducedModel, start: Cloud | Density | None, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ρ₀ as cells of one moving coordinate: labels (g, k), masses (g, n) and edges (g, n + 1)."""
    column = int(np.flatnonzero(reduced.rates)[0])
    s, masses = quantile_levels(count)
    labels, shares, quantiles = _laws(reduced, start, column)
    edges = np.empty((len(labels), count + 1))
    for g, quantile in enumerate(quantiles):
        edges[g, 1:-1] = _at(quantile, s[1:-1])
        # The outermost cells, which may have no end, are centred at their medians.
        ends = _at(quantile, np.array([s[1] / 2, 1 - s[1] / 2]))
        edges[g, 0] = 2 * ends[0] - edges[g, 1]
        edges[g, -1] = 2 * ends[1] - edges[g, -2]
    if reduced.nonnegative[column]:
        edges = np.maximum(edges, 0.0)
    return labels, np.multiply.outer(shares, masses), edges


def _smooth(u: FloatArray) -> FloatArray:
    return np.asarray(u**3 * (10 - 15 * u + 6 * u**2))


def _initial(reduced: ReducedModel) -> Any:
    if reduced.initial is None:
        raise ValueError(
            f"start must be an mf.Cloud or mf.Density ({', '.join(reduced.coordinates)}): the model has no "
            "initial law in these coordinates; got None"
        )
    return reduced.initial


def _laws(
    reduced: ReducedModel, start: Cloud | Density | None, column: int
) -> tuple[FloatArray, FloatArray, list[Quantile]]:
    """The labels (values of the coordinates at rest), their masses, and for each the quantile function
    of the moving coordinate.
    """
    if isinstance(start, Cloud):
        others = np.delete(start.points, column, axis=1)
        values, which = np.unique(others, axis=0, return_inverse=True)
        which = which.ravel()
        labels = np.insert(values, column, 0.0, axis=1)
        shares = np.bincount(which, weights=start.weights).astype(np.float64)
        x, w = start.points[:, column], start.weights
        quantiles = [_cloud_quantile(x[which == g], w[which == g]) for g in range(len(labels))]
        kept = np.flatnonzero(shares > 0)
        return labels[kept], shares[kept], [quantiles[g] for g in kept]
    if isinstance(start, Density):
        if len(start.edges) > 1:
            raise ValueError(
                "start must be an mf.Cloud where coordinates of rate 0 are labels and temperature is > 0, "
                f"got {start!r}"
            )
        return np.zeros((1, 1)), np.ones(1), [_density_quantile(start)]
    law = _initial(reduced)
    if len(law.quadrature(2)[0]) == 1:  # a point
        return _laws(reduced, _nodes(law, 1), column)
    found = _one_coordinate(reduced)
    if found is None or found[1] != column:
        raise ValueError(
            "start must be an mf.Cloud or mf.Density at temperature > 0 where "
            f"{reduced.coordinates[column]!r} has no quantile function or is not all that is random, as in "
            f"{law!r}; got None"
        )
    constant, _, quantile = found
    return constant[None], np.ones(1), [quantile]


def _one_coordinate(reduced: ReducedModel) -> tuple[FloatArray, int, Quantile] | None:
    """Values of all coordinates, the one that is random and its quantiles; None if several are random."""
    law = _initial(reduced)
    k = len(reduced.coordinates)
    if not isinstance(law, ReducedInit):
        if k == 1 and hasattr(law, "quantile"):
            return np.zeros(1), 0, law.quantile
        return None
    constant, varying, quantile = np.zeros(k), [], None
    column = 0
    for block in law._blocks:
        points = block.quadrature(2)[0]
        if len(points) == 1:
            constant[column : column + points.shape[1]] = points[0]
        else:
            varying.append(column)
            quantile = _block_quantile(block)
        column += points.shape[1]
    if len(varying) != 1 or quantile is None:
        return None
    return constant, varying[0], quantile


def _block_quantile(block: Any) -> Quantile | None:
    if isinstance(block, Scalar):
        return block.law.quantile
    if isinstance(block, Chi):
        return lambda s: block.scale * np.sqrt(2 * special.gammaincinv(block.d / 2, s))
    return None


def _density_quantile(density: Density) -> Quantile:
    """The quantile function of a density in one coordinate, linear in every cell."""
    cumulated = np.concatenate([[0.0], np.cumsum(density.mass)])
    return lambda s: np.asarray(np.interp(s, cumulated / cumulated[-1], density.edges[0]))


def _cloud_quantile(x: FloatArray, w: FloatArray) -> Quantile:
    order = np.argsort(x, kind="stable")
    x, cumulated = x[order], np.cumsum(w[order])

    def quantile(s: FloatArray) -> FloatArray:
        at = np.searchsorted(cumulated, s * cumulated[-1], side="left")
        return np.asarray(x[np.minimum(at, len(x) - 1)])

    return quantile


def _at(quantile: Quantile, s: FloatArray) -> FloatArray:
    return np.asarray(quantile(s), dtype=np.float64)


def _nodes(law: Any, count: int) -> Cloud:
    """The largest tensor product of Gauss nodes with at most `count` points."""
    varying = np.log2(len(law.quadrature(2)[0]))
    n = max(1, int(count ** (1 / varying) + 1e-9)) if varying > 0 else 1
    points, weights = law.quadrature(n)
    return Cloud(points[weights > 0], weights[weights > 0] / weights[weights > 0].sum())
