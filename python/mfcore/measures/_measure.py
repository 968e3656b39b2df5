"""Measures ρ on neurons or on reduced coordinates: an array of equal masses, a `Cloud`, or a `Density`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable

MASS_TOLERANCE = 1e-9  # the masses of a measure may sum to 1 ± this


@configurable
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Cloud:
    """Weighted points: ρ = Σ_i weights[i] δ_{points[i]}.

    The arrays are used as they are, without a copy where their layout allows, through read-only views.

    Args:
        points: Shape (N, D); a one-dimensional array is N points on a line, D = 1.
        weights: N masses ≥ 0 that sum to 1 (within 1e-9; they are not rescaled). None: 1/N each.

    Examples:
        >>> import mfcore as mf
        >>> cloud = mf.Cloud([[0.0, 1.0], [2.0, 3.0]], weights=[0.25, 0.75])
        >>> cloud
        Cloud(points=<array 2×2>, weights=<array 2>)
        >>> len(cloud)
        2
    """

    points: FloatArray
    weights: FloatArray

    def __init__(self, points: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        rows = as_points(points, "points")
        n = len(rows)
        masses = np.full(n, 1.0 / n) if weights is None else _masses(weights, "weights", (n,))
        object.__setattr__(self, "points", _read_only(rows))
        object.__setattr__(self, "weights", _read_only(masses))

    def __len__(self) -> int:
        return len(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cloud):
            return False
        return np.array_equal(self.points, other.points) and np.array_equal(self.weights, other.weights)

    __hash__ = None  # type: ignore[assignment]  # its arrays are views of memory that may change

    def __repr__(self) -> str:
        n, columns = self.points.shape
        return f"Cloud(points=<array {n}×{columns}>, weights=<array {n}>)"


@configurable
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Density:
    """A piecewise constant density on a tensor grid of cells: what the PDE solvers return.

    Args:
        edges: For each coordinate the strictly increasing edges of its cells; for one coordinate simply that
            array.
        mass: Masses of the cells, ≥ 0, of shape (cells of coordinate 1, cells of coordinate 2, …). They sum
            to 1 (within 1e-9; they are not rescaled).

    Examples:
        >>> import mfcore as mf
        >>> rho = mf.Density(edges=[0.0, 1.0, 3.0], mass=[0.5, 0.5])
        >>> rho.centers[0].tolist(), rho.density.tolist()
        ([0.5, 2.0], [0.5, 0.25])
    """

    edges: tuple[FloatArray, ...]
    mass: FloatArray

    def __init__(self, edges: Sequence[npt.ArrayLike] | npt.ArrayLike, mass: npt.ArrayLike) -> None:
        axes = tuple(_edges(e, i) for i, e in enumerate(_per_coordinate(edges)))
        object.__setattr__(self, "edges", axes)
        object.__setattr__(self, "mass", _read_only(_masses(mass, "mass", tuple(len(e) - 1 for e in axes))))

    @property
    def centers(self) -> tuple[FloatArray, ...]:
        """The midpoints of the cells along each coordinate."""
        return tuple(0.5 * (e[1:] + e[:-1]) for e in self.edges)

    @property
    def volume(self) -> FloatArray:
        """The volume of each cell, in the shape of `mass`."""
        widths = [np.diff(e) for e in self.edges]
        return np.asarray(reduce(np.multiply.outer, widths))

    @property
    def density(self) -> FloatArray:
        """Mass over volume, in the shape of `mass`: with respect to da ds dr, without radial factors."""
        return np.asarray(self.mass / self.volume)

    def as_cloud(self) -> Cloud:
        """The centres of the cells with their masses, the last coordinate varying fastest.

        Examples:
            >>> import mfcore as mf
            >>> mf.Density(edges=([0, 1, 2], [0, 2]), mass=[[0.25], [0.75]]).as_cloud().points.tolist()
            [[0.5, 1.0], [1.5, 1.0]]
        """
        mesh = np.meshgrid(*self.centers, indexing="ij")
        return Cloud(np.stack([c.ravel() for c in mesh], axis=1), self.mass.ravel())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Density) or not np.array_equal(self.mass, other.mass):
            return False
        return all(np.array_equal(x, y) for x, y in zip(self.edges, other.edges, strict=True))

    __hash__ = None  # type: ignore[assignment]  # its arrays are views of memory that may change

    def __repr__(self) -> str:
        cells = "×".join(str(len(e) - 1) for e in self.edges)
        box = " × ".join(f"[{e[0]:g}, {e[-1]:g}]" for e in self.edges)
        return f"Density(edges=<{box}>, mass=<array {cells}>)"


def as_points(points: Any, name: str, row: int | None = None) -> FloatArray:
    """`points` as an array (N, row). One-dimensional input is one point, or N points if row is 1 or None.

    Examples:
        >>> from mfcore.measures._measure import as_points
        >>> as_points([1.0, 2.0, 3.0], "theta", row=3).shape, as_points([1.0, 2.0, 3.0], "z", row=1).shape
        ((1, 3), (3, 1))
    """
    array = check.array(points, name)
    if array.ndim == 1 and row in (None, 1):
        array = array[:, np.newaxis]
    elif array.ndim == 1 and len(array) == row:
        array = array[np.newaxis]
    if array.ndim != 2 or row not in (None, array.shape[1]):
        want = "(N, D)" if row is None else f"(N, {row})" + (" or (N,)" if row == 1 else f" or ({row},)")
        raise ValueError(f"{name} must have shape {want}, got {array.shape}")
    return array


def as_measure(measure: Any, name: str, row: int) -> tuple[FloatArray, FloatArray]:
    """The points (N, row) and the masses (N,), Σ = 1, of anything that stands for a measure.

    Args:
        measure: A `Cloud`, a `Density`, or an array of points of equal mass.
        name: What messages call it.
        row: Length of a point: of a neuron's row, or the number of reduced coordinates.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore.measures._measure import as_measure
        >>> points, weights = as_measure(mf.Density(edges=[0, 1, 2], mass=[0.25, 0.75]), "rho", row=1)
        >>> points.tolist(), weights.tolist()
        ([[0.5], [1.5]], [0.25, 0.75])
    """
    if isinstance(measure, Density):
        measure = measure.as_cloud()
    if not isinstance(measure, Cloud):
        points = as_points(measure, name, row)
        masses = np.empty(len(points))
        masses.fill(1.0 / len(points))
        return points, masses
    columns = measure.points.shape[1]
    if columns != row:
        raise ValueError(f"{name} must have points of length {row}, got {columns}")
    return measure.points, measure.weights


def _masses(mass: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    array = check.array(mass, name, shape=shape)
    if array.min() < 0:
        at = ", ".join(str(int(i)) for i in np.unravel_index(array.argmin(), shape))
        raise ValueError(f"{name} must be >= 0, got {array.min()} at [{at}]")
    total = float(array.sum())
    if abs(total - 1.0) > MASS_TOLERANCE:
        raise ValueError(f"{name} must sum to 1 within {MASS_TOLERANCE:g}, got a sum of {total!r}")
    return array


def _per_coordinate(edges: Any) -> tuple[Any, ...]:
    """One array of edges per coordinate; a flat array of numbers is the one coordinate of a 1-D grid."""
    if isinstance(edges, list | tuple) and edges and all(check.as_numpy(e, "edges").ndim > 0 for e in edges):
        return tuple(edges)
    if isinstance(edges, np.ndarray) and edges.ndim == 2:  # as many cells along each coordinate
        return tuple(edges)
    return (edges,)


def _edges(edges: Any, i: int) -> FloatArray:
    array = check.array(edges, f"edges[{i}]", shape=(None,))
    if len(array) < 2:
        raise ValueError(f"edges[{i}] must have at least 2 entries, got {len(array)}")
    steps = np.diff(array)
    if steps.min() <= 0:
        k = int(steps.argmin())
        raise ValueError(f"edges[{i}] must increase strictly, got {array[k]} before {array[k + 1]} at [{k}]")
    return _read_only(array)


def _read_only(array: FloatArray) -> FloatArray:
    view = array.view()
    view.flags.writeable = False
    return view
