"""Independent blocks of the initial law in reduced coordinates: samples, Gauss nodes, and masses of grid
cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from scipy import special

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG, number_of
from ._scalar import ScalarLaw, nodes_count

_TAIL = 1e-12
_SPHERE_NODES = 1500  # nodes of a point on a sphere, which has one or two free coordinates


def cell_edges(edges: Sequence[FloatArray], coordinates: int) -> list[FloatArray]:
    """Increasing edges of cells, checked: one array for each coordinate."""
    if not isinstance(edges, list | tuple) or len(edges) != coordinates:
        raise ValueError(
            f"edges must be a list of {coordinates} arrays, one for each coordinate, got {check.shown(edges)}"
        )
    found = [check.array(e, f"edges[{c}]", shape=(None,)) for c, e in enumerate(edges)]
    for c, e in enumerate(found):
        if len(e) < 2 or not (np.diff(e) > 0).all():
            raise ValueError(f"edges[{c}] must be two or more numbers that increase, got {check.shown(e)}")
    return found


class BlockLaw(Protocol):
    """The law of a few reduced coordinates that are independent of the others."""

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n independent draws, shape (n, m)."""
        ...

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Nodes, shape (at most n, m), and weights of sum 1."""
        ...

    def support(self) -> list[tuple[float, float]]:
        """For each coordinate the interval with all but about 1e-12 of the mass; a point where it is
        known.
        """
        ...

    def cell_masses(self, edges: Sequence[FloatArray]) -> FloatArray:
        """Masses of the cells of a grid; mass beyond the grid goes to the outermost cells."""
        ...


@dataclass(frozen=True)
class Point:
    """Coordinates with known values."""

    values: tuple[float, ...]

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.tile(np.array(self.values), (n, 1))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        return np.array([self.values]), np.ones(1)

    def support(self) -> list[tuple[float, float]]:
        return [(value, value) for value in self.values]

    def cell_masses(self, edges: Sequence[FloatArray]) -> FloatArray:
        """Masses of the cells around the point, chosen so that their mean is the point."""
        return share_among_cells(*self.quadrature(1), edges)


@dataclass(frozen=True)
class Scalar:
    """One coordinate with a law of `mfcore.init`."""

    law: ScalarLaw

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draws by inversion of the distribution function."""
        return self.law.quantile(rng.random(n)).reshape(n, 1)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        nodes, weights = self.law.quadrature(n)
        return nodes.reshape(-1, 1), weights

    def support(self) -> list[tuple[float, float]]:
        low, high = (float(self.law.quantile(u)) for u in (0.0, 1.0))
        if math.isinf(low) or math.isinf(high):
            first, last = self.law.quantile(np.array([_TAIL, 1 - _TAIL])).tolist()
            low, high = first if math.isinf(low) else low, last if math.isinf(high) else high
        return [(low, high)]

    def cell_masses(self, edges: Sequence[FloatArray]) -> FloatArray:
        """Differences of the distribution function at the edges; a constant is treated as a `Point`."""
        if self.law.std == 0:
            return Point((self.law.mean,)).cell_masses(edges)
        return _differences(self.law.cdf(edges[0][1:-1]))


@dataclass(frozen=True)
class Chi:
    """A radius scale·χ_d, the norm of scale·N(0, I_d), for `mf.ReducedInit`.

    Examples:
        >>> import mfcore as mf
        >>> points, weights = mf.init.Chi(40, 0.1).quadrature(4)
        >>> round(float(weights @ points[:, 0] ** 2), 12)  # d·scale²
        0.4
    """

    d: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", check.number(self.d, "d", above=0))
        object.__setattr__(self, "scale", check.number(self.scale, "scale", above=0))

    def sample(self, n: int, rng: RNG = None) -> FloatArray:
        """Draws √χ², from random numbers of NumPy, shape (n, 1)."""
        count = check.count(n, "n")
        check.memory(16.0 * count, "n", n)
        if not isinstance(rng, np.random.Generator):
            number_of(rng)  # refuses what is no seed
        return self.scale * np.sqrt(np.random.default_rng(rng).chisquare(self.d, (count, 1)))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Gauss nodes, exact for polynomials in r² of degree 2n − 1."""
        nodes, weights = _core.gauss_chi(self.d, nodes_count(n))
        return self.scale * nodes[:, None], weights

    def support(self) -> list[tuple[float, float]]:
        low = special.gammaincinv(self.d / 2, _TAIL)
        high = special.gammainccinv(self.d / 2, _TAIL)
        return [(self.scale * math.sqrt(2 * low), self.scale * math.sqrt(2 * high))]

    def cell_masses(self, edges: Sequence[FloatArray]) -> FloatArray:
        """Differences of the distribution function of χ_d, for the edges of one coordinate."""
        inner = np.maximum(cell_edges(edges, 1)[0][1:-1], 0.0) / self.scale
        return _differences(special.gammainc(self.d / 2, inner**2 / 2))


@dataclass(frozen=True)
class SpherePoint:
    """Parts of a uniform point on a sphere: `directions` coordinates, then the norms of blocks of `dims`.

    With `implied` the last norm is left out: the others tell it.
    """

    radius: float
    directions: int
    dims: tuple[float, ...]
    implied: bool = False

    @property
    def columns(self) -> int:
        """How many coordinates a point has."""
        return self.directions + len(self.dims) - self.implied

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Normalised Gaussian coordinates, and norms of blocks of them."""
        along = rng.standard_normal((n, self.directions))
        norms = [np.sqrt(rng.chisquare(d, (n, 1))) for d in self.dims]
        parts = np.concatenate([along, *norms], axis=1)
        return self.on_sphere(parts)

    def on_sphere(self, parts: FloatArray) -> FloatArray:
        """The points in the directions of rows of all parts, shape (n, columns)."""
        scaled = self.radius * parts / np.linalg.norm(parts, axis=1, keepdims=True)
        return np.asarray(scaled[:, : self.columns])

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Nodes one coordinate after the other: Gegenbauer nodes for coordinates, Jacobi nodes for norms."""
        left, rest = self.directions + sum(self.dims), np.full(1, self.radius)
        points, weights = np.empty((1, 0)), np.ones(1)
        for _ in range(self.directions):
            u, w = _core.gauss_gegenbauer(left, n)
            points, weights, rest = _extend(points, weights, rest, u, w)
            left -= 1
        for d in self.dims:
            if d == left:
                return (points if self.implied else np.column_stack([points, rest])), weights
            # The share of the first block in |x|² is Beta(d/2, (left − d)/2).
            t, w = special.roots_jacobi(n, (left - d) / 2 - 1, d / 2 - 1)
            points, weights, rest = _extend(points, weights, rest, np.sqrt((1 + t) / 2), w / w.sum())
            left -= d
        return points, weights

    def support(self) -> list[tuple[float, float]]:
        """Quantiles, by |k coordinates|²/|x|² ~ Beta(k/2, (n − k)/2) in n dimensions."""
        n = self.directions + sum(self.dims)
        found = []
        for k in (*[1.0] * self.directions, *self.dims):
            low, high = (1.0, 1.0) if k == n else special.betaincinv(k / 2, (n - k) / 2, [_TAIL, 1 - _TAIL])
            found.append((self.radius * math.sqrt(low), self.radius * math.sqrt(high)))
        return [(-high, high) for _, high in found[: self.directions]] + found[self.directions : self.columns]

    def cell_masses(self, edges: Sequence[FloatArray]) -> FloatArray:
        """Masses of many nodes, each shared among the cells around it: the law has no density in these
        coordinates.
        """
        return share_among_cells(*self.quadrature(_SPHERE_NODES), edges)


def _differences(inner: FloatArray) -> FloatArray:
    """Masses of cells as differences of the distribution function at their edges."""
    return np.diff(inner, prepend=0.0, append=1.0)


def share_among_cells(points: FloatArray, weights: FloatArray, edges: Sequence[FloatArray]) -> FloatArray:
    """Masses of cells from weighted points, each shared by the two nearest centres per coordinate, keeping
    means.

    Examples:
        >>> import numpy as np
        >>> from mfcore.init._blocks import share_among_cells
        >>> share_among_cells(np.array([[1.25]]), np.ones(1), [np.arange(4.0)]).tolist()
        [0.25, 0.75, 0.0]
    """
    mass = np.zeros(tuple(len(e) - 1 for e in edges))
    lower, part = [], []
    for column, e in zip(points.T, edges, strict=True):
        centers = 0.5 * (e[1:] + e[:-1])
        index = np.clip(np.searchsorted(centers, column, side="right") - 1, 0, max(len(centers) - 2, 0))
        lower.append(index)
        gap = centers[index + 1] - centers[index] if len(centers) > 1 else np.inf
        part.append(np.clip((column - centers[index]) / gap, 0.0, 1.0))
    for corner in product((0, 1), repeat=len(edges)):
        share = weights.copy()
        for up, p in zip(corner, part, strict=True):
            share = share * (p if up else 1 - p)
        held = share > 0  # a corner outside of the grid holds nothing
        np.add.at(mass, tuple((i + up)[held] for i, up in zip(lower, corner, strict=True)), share[held])
    return mass


def _extend(
    points: FloatArray, weights: FloatArray, rest: FloatArray, u: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Append a coordinate u·rest to points with remaining radius `rest`; √(1 − u²)·rest remains."""
    points = np.repeat(points, len(u), axis=0)
    coordinate = np.multiply.outer(rest, u).ravel()
    rest = np.multiply.outer(rest, np.sqrt(np.maximum((1 - u) * (1 + u), 0))).ravel()
    return np.column_stack([points, coordinate]), np.multiply.outer(weights, w).ravel(), rest
