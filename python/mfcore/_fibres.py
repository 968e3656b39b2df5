"""Functions of one coordinate that span a family of features, found on lines along that coordinate.

A fibre is a feature on a line, as a function of the coordinate that varies there. `Fibres` samples them on
panels that are halved until a polynomial resolves every fibre; `row_space` finds what they span.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from ._check import FloatArray

# Terms of a panel's polynomial. With 14 the features of kinked activations at d = 320 need twice as many
# samples in all for 1e-12, with 24 no fewer.
TERMS = 18
OVERSAMPLING = 1.25  # places per function
SKETCH = 256  # rows of the first random sketch of a large matrix

_POINTS = np.sin(np.pi * (np.arange(TERMS) - (TERMS - 1) / 2) / TERMS)  # Chebyshev points, increasing
_SERIES = np.linalg.inv(np.polynomial.chebyshev.chebvander(_POINTS, TERMS - 1))  # values to coefficients


class NotSeparableError(Exception):
    """The features are not smooth enough, or too dear, for products of functions of one coordinate."""


@dataclass
class Sampler:
    """√p_q Φ_q(z), with a count of the points and the largest entry so far."""

    function: Callable[[FloatArray], FloatArray]
    most: int  # points that may be asked for
    points: int = 0
    largest: float = 0.0

    def __call__(self, z: FloatArray) -> FloatArray:
        self.points += len(z)
        if self.points > self.most:
            raise NotSeparableError(f"more than {self.most} points")
        values = self.function(z)
        self.largest = max(self.largest, float(np.abs(values).max()))
        return values


class Fibres:
    """Fibres along coordinate c, sampled on panels that resolve them.

    Args:
        c: The coordinate.
        edges: First guess of the panels' edges.
        most: Panels at which to give up.
    """

    def __init__(self, c: int, edges: FloatArray, most: int) -> None:
        self.c, self.most = c, most
        self.panels = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        self.lines = np.empty((0, 0))
        self.values: list[FloatArray] = []  # of each panel: (TERMS, fibres)

    @property
    def edges(self) -> FloatArray:
        """Edges of the panels."""
        return np.array([self.panels[0][0], *(high for _, high in self.panels)])

    @property
    def points(self) -> FloatArray:
        """Where the panels are sampled."""
        return _places(self.panels)

    def add(self, sample: Sampler, lines: FloatArray, tolerance: float) -> None:
        """Sample lines through these points too; halve panels until all fibres are resolved."""
        fresh = self._sampled(sample, self.panels, lines)
        old = self.values
        self.values = [np.hstack(pair) for pair in zip(old, fresh, strict=True)] if old else fresh
        self.lines = np.vstack([self.lines, lines]) if old else lines
        pending, unchecked = [True] * len(self.panels), fresh
        while any(pending):
            # Two coefficients, one of an even and one of an odd polynomial: what follows is smaller.
            bad = [
                new and float(np.abs(_SERIES[-2:] @ values).max()) > tolerance * sample.largest
                for new, values in zip(pending, unchecked, strict=True)
            ]
            halves = [
                half for panel, b in zip(self.panels, bad, strict=True) if b for half in _halves(*panel)
            ]
            if len(self.panels) + len(halves) // 2 > self.most:
                raise NotSeparableError(f"more than {self.most} panels in coordinate {self.c}")
            found = iter(self._sampled(sample, halves, self.lines) if halves else [])
            panels, values, pending = [], [], []
            for panel, kept, b in zip(self.panels, self.values, bad, strict=True):
                panels += _halves(*panel) if b else [panel]
                values += [next(found), next(found)] if b else [kept]
                pending += [True, True] if b else [False]
            self.panels, self.values, unchecked = panels, values, values

    def functions(self, tolerance: float) -> FloatArray:
        """An orthonormal basis of the fibres at `points`, one function a column."""
        return np.ascontiguousarray(row_space(np.vstack(self.values).T, tolerance).T)

    def series(self, functions: FloatArray) -> FloatArray:
        """Chebyshev coefficients, (panels, TERMS, functions), of functions given at `points`."""
        return np.asarray(_SERIES @ functions.reshape(len(self.panels), TERMS, -1))

    def places(self, functions: FloatArray, old: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Places that determine a combination of the functions, the old ones first, and how.

        Returns:
            The places, and the matrix that maps values there to coefficients of the functions.
        """
        rank = functions.shape[1]
        series, edges = self.series(functions), self.edges
        there = _values(edges, series, old)
        while len(old) < min(math.ceil(OVERSAMPLING * rank), len(functions)):
            # Pivots in the metric of what the places so far determine: first what they leave open.
            metric = np.linalg.qr(np.vstack([there, 1e-6 * np.eye(rank)]), mode="r")
            weak = linalg.solve_triangular(metric.T, functions.T, lower=True)
            _, _, order = linalg.qr(weak, mode="economic", pivoting=True)
            count = min(math.ceil(OVERSAMPLING * rank), len(functions)) - len(old)
            new = order[: min(rank, count)]
            old, there = np.concatenate([old, self.points[new]]), np.vstack([there, functions[new]])
        return old, np.linalg.pinv(there)

    def _sampled(
        self, sample: Sampler, panels: list[tuple[float, float]], lines: FloatArray
    ) -> list[FloatArray]:
        z = _places(panels)
        points = np.repeat(lines[None], len(z), axis=0)
        points[:, :, self.c] = z[:, None]
        values = sample(points.reshape(-1, lines.shape[1]))
        return list(values.reshape(len(panels), TERMS, -1))


def row_space(matrix: FloatArray, tolerance: float) -> FloatArray:
    """Orthonormal rows, as few as span the rows of `matrix` up to `tolerance` in every entry."""
    rows, columns = matrix.shape
    sketch = SKETCH
    while True:
        # A random combination of rows spans what they span: enough of them for the rank, and a few more.
        exact = 2 * sketch >= min(rows, columns)
        mixed = matrix
        if not exact:
            mixed = np.random.default_rng(rows).standard_normal((sketch, rows)) @ matrix
        if len(mixed) > columns:
            mixed = np.linalg.qr(mixed, mode="r")
        _, sizes, right = np.linalg.svd(mixed, full_matrices=False)
        rank = _smallest_rank(matrix, right, tolerance, None if not exact else sizes)
        if rank is not None:
            return np.asarray(right[:rank])
        sketch *= 2


def _smallest_rank(
    matrix: FloatArray, right: FloatArray, tolerance: float, sizes: FloatArray | None
) -> int | None:
    """How many of the rows of `right` are needed; None if all of them, from a sketch, are not enough."""
    coordinates = matrix @ right.T
    rest = 0.0 if sizes is not None else float(np.abs(matrix - coordinates @ right).max())
    if rest > tolerance:
        return None
    low, high = 1, len(right)  # `high` is enough
    if sizes is not None:
        # No entry left out exceeds the first singular value left out, and the largest one is its mean
        # square at least.
        high = max(1, int(np.sum(sizes > tolerance)))
        low = max(1, int(np.sum(sizes > tolerance * np.sqrt(matrix.size))))
    while low < high:
        rank = (low + high) // 2
        left_out = coordinates[:, rank:high] @ right[rank:high]
        if np.abs(left_out).max() <= tolerance - rest:
            high = rank
        else:
            low = rank + 1
    return high


def _values(edges: FloatArray, series: FloatArray, z: FloatArray) -> FloatArray:
    """Functions given by their series on panels, at points."""
    panel = np.clip(np.searchsorted(edges, z, side="right") - 1, 0, len(series) - 1)
    low, high = edges[panel], edges[panel + 1]
    terms = np.polynomial.chebyshev.chebvander(((z - low) - (high - z)) / (high - low), TERMS - 1)
    return np.asarray(np.einsum("nt,ntf->nf", terms, series[panel]))


def _places(panels: list[tuple[float, float]]) -> FloatArray:
    ends = np.array(panels)
    centre, half = ends.mean(axis=1)[:, None], (ends[:, 1:] - ends[:, :1]) / 2
    return np.asarray((centre + half * _POINTS).ravel())


def _halves(low: float, high: float) -> list[tuple[float, float]]:
    middle = low + (high - low) / 2
    return [(low, middle), (middle, high)]
