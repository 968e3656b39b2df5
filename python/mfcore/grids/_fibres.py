"""Find functions of one coordinate that span all features, by sampling the features on lines along that
coordinate.

A fibre is a feature on a line, as a function of the coordinate that varies there. `Fibres` samples them on
panels that are halved until a polynomial resolves every fibre; `row_space` finds what they span.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base.check import FloatArray

# Terms of the Chebyshev series on one panel, eq. (2.10). With 14 the features of kinked activations at
# d = 320 need twice as many samples in all for 1e-12, with 24 no fewer.
TERMS = 18
NARROWEST = 2.0**-40  # least length of a panel as a fraction of the axis: kinks need none shorter
OVERSAMPLING = 1.25  # sampling points per function
CHUNK = 4_000_000  # most numbers of features evaluated in one call
SKETCH = 256  # rows of the first random sketch of a large matrix

# Chebyshev points in [−1, 1], increasing
_POINTS = np.sin(np.pi * (np.arange(TERMS) - (TERMS - 1) / 2) / TERMS)
# matrix from values at these points to Chebyshev coefficients
_SERIES = np.linalg.inv(np.polynomial.chebyshev.chebvander(_POINTS, TERMS - 1))


class NotSeparableError(Exception):
    """Features are not smooth enough, or cost too much, to be written as products of functions of one
    coordinate.
    """


@dataclass
class Sampler:
    """√p_q Φ_q(z) in an orthonormal basis of combinations of nodes that grows with each sample.

    Args:
        function: From points, (n, k), to √p_q Φ_q, (n, Q).
        nodes: The basis, (combinations, Q): none to begin with.
        tolerance: What combinations may miss of an entry, relative to the largest entry.
        most: Points that may be asked for.
        most_nodes: Combinations at which to give up.
    """

    function: Callable[[FloatArray], FloatArray]
    nodes: FloatArray
    tolerance: float
    most: int
    most_nodes: int
    points: int = 0
    largest: float = 0.0  # largest entry seen

    def raw(self, z: FloatArray) -> FloatArray:
        """√p_q Φ_q(z), shape (n, Q), not yet in the basis."""
        self._afford(len(z))
        self.points += len(z)
        values = self.function(z)
        if not np.isfinite(values).all():
            raise NotSeparableError("features that are not finite")
        self.largest = max(self.largest, float(np.abs(values).max(initial=0.0)))
        return values

    def __call__(self, z: FloatArray) -> FloatArray:
        """Coordinates of √p_q Φ_q(z) in the basis, shape (n, combinations); the basis grows if needed."""
        self._afford(len(z))
        chunk = max(1, CHUNK // self.nodes.shape[1])
        parts = [np.empty((0, len(self.nodes)))]
        parts += [self._coordinates(self.raw(z[i : i + chunk])) for i in range(0, len(z), chunk)]
        return np.vstack([wider(part, len(self.nodes)) for part in parts])

    def _afford(self, count: int) -> None:
        if self.points + count > self.most:
            raise NotSeparableError(f"more than {self.most} points")

    def _coordinates(self, values: FloatArray) -> FloatArray:
        coordinates = _core.product(values, self.nodes.T)
        rest = values - _core.product(coordinates, self.nodes)
        allowed = self.tolerance * self.largest
        if len(self.nodes) and np.abs(rest).max() <= allowed:
            return coordinates
        new = row_space(rest, allowed, self.most_nodes)
        if len(self.nodes) + len(new) > self.most_nodes:
            raise NotSeparableError(f"more than {self.most_nodes} combinations of nodes")
        new = new - _core.product(_core.product(new, self.nodes.T), self.nodes)  # rounding of a small rest
        new, _ = _core.qr(new.T)
        self.nodes = np.vstack([self.nodes, new.T])
        return np.hstack([coordinates, _core.product(rest, new)])


class Fibres:
    """The features on lines along coordinate c, sampled on panels that are halved until they resolve them.

    Args:
        c: The coordinate.
        edges: First guess of the panels' edges.
        most: Panels at which to give up.
    """

    def __init__(self, c: int, edges: FloatArray, most: int) -> None:
        self.c, self.most = c, most
        self.panels = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        self.narrowest = NARROWEST * (edges[-1] - edges[0])
        self.lines = np.empty((0, 0))
        self.values: list[FloatArray] = []  # of each panel: (TERMS, lines, combinations)

    @property
    def edges(self) -> FloatArray:
        """Edges of the panels."""
        return np.array([self.panels[0][0], *(high for _, high in self.panels)])

    @property
    def points(self) -> FloatArray:
        """The points of the coordinate at which the panels are sampled."""
        return _places(self.panels)

    def add(self, sample: Sampler, lines: FloatArray, tolerance: float) -> None:
        """Sample lines through further points, halving panels; without points, only check the present panels.

        Panels are halved until all fibres are resolved.
        """
        if len(lines) > 0:
            fresh = self._sampled(sample, self.panels, lines)
            old = self._wider(len(sample.nodes)) if self.values else [panel[:, :0] for panel in fresh]
            self.values = [np.concatenate(pair, axis=1) for pair in zip(old, fresh, strict=True)]
            self.lines = np.vstack([self.lines.reshape(-1, lines.shape[1]), lines])
        else:
            fresh = self.values
        pending, unchecked = [True] * len(self.panels), fresh
        while any(pending):
            # Two coefficients, one of an even and one of an odd polynomial: what follows is smaller.
            bad = [
                new
                and float(np.abs(_SERIES[-2:] @ _flat(values)).max(initial=0.0)) > tolerance * sample.largest
                for new, values in zip(pending, unchecked, strict=True)
            ]
            halves = [
                half for panel, b in zip(self.panels, bad, strict=True) if b for half in _halves(*panel)
            ]
            narrowest = min((high - low for low, high in halves), default=math.inf)
            if len(self.panels) + len(halves) // 2 > self.most or narrowest < self.narrowest:
                raise NotSeparableError(f"too many or too narrow panels in coordinate {self.c}")
            found = iter(self._sampled(sample, halves, self.lines) if halves else [])
            panels: list[tuple[float, float]] = []
            values: list[FloatArray] = []
            pending = []
            for panel, kept, b in zip(self.panels, self.values, bad, strict=True):
                panels += _halves(*panel) if b else [panel]
                values += [next(found), next(found)] if b else [kept]
                pending += [True, True] if b else [False]
            self.panels, self.values, unchecked = panels, values, values

    def functions(self, tolerance: float) -> FloatArray:
        """An orthonormal basis of the sampled fibres at `points`, one function a column."""
        most = max(panel.shape[2] for panel in self.values)
        values = np.vstack([_flat(panel) for panel in self._wider(most)])
        return np.ascontiguousarray(row_space(values.T, tolerance).T)

    def series(self, functions: FloatArray) -> FloatArray:
        """Chebyshev coefficients, (panels, TERMS, functions), of functions given at `points`."""
        return np.asarray(_SERIES @ functions.reshape(len(self.panels), TERMS, -1))

    def places(self, functions: FloatArray, old: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points of the coordinate at which values determine every combination of the functions, and the
        interpolation from them.

        Returns:
            The places, and the matrix that maps values there to coefficients of the functions.
        """
        rank = functions.shape[1]
        series, edges = self.series(functions), self.edges
        there = panel_values(edges, series, old)
        while len(old) < min(math.ceil(OVERSAMPLING * rank), len(functions)):
            # Pivots in the metric of what the places so far determine: first what they leave open.
            _, metric = _core.qr(np.vstack([there, 1e-6 * np.eye(rank)]))
            order = _core.pivots(_core.solve_lower(metric.T, functions.T))
            count = min(math.ceil(OVERSAMPLING * rank), len(functions)) - len(old)
            new = order[: min(rank, count)]
            old, there = np.concatenate([old, self.points[new]]), np.vstack([there, functions[new]])
        left, sizes, right = _core.svd(there)
        return old, _core.product(right.T / sizes, left.T)

    def _sampled(
        self, sample: Sampler, panels: list[tuple[float, float]], lines: FloatArray
    ) -> list[FloatArray]:
        z = _places(panels)
        points = np.repeat(lines[None], len(z), axis=0)
        points[:, :, self.c] = z[:, None]
        values = sample(points.reshape(-1, lines.shape[1]))
        return list(values.reshape(len(panels), TERMS, len(lines), -1))

    def _wider(self, combinations: int) -> list[FloatArray]:
        return [wider(panel, combinations) for panel in self.values]


def wider(values: FloatArray, combinations: int) -> FloatArray:
    """Pad coordinates with zeros to the present size of a basis that has grown."""
    missing = combinations - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values


def row_space(matrix: FloatArray, tolerance: float, most: int | None = None) -> FloatArray:
    """As few orthonormal rows as represent the rows of `matrix` to `tolerance` in every entry.

    If more than `most` are needed: at least that many, but perhaps too few.
    """
    rows, columns = matrix.shape
    if not matrix.any():
        return np.eye(1, columns)
    sketch = SKETCH
    while True:
        # A random combination of rows spans what they span: enough of them for the rank, and a few more.
        exact = 2 * sketch >= min(rows, columns)
        mixed = matrix
        if not exact:
            mixed = _core.product(np.random.default_rng(rows).standard_normal((sketch, rows)), matrix)
        if len(mixed) > columns:
            _, mixed = _core.qr(mixed)
        _, sizes, right = _core.svd(mixed)
        rank = _smallest_rank(matrix, right, tolerance, None if not exact else sizes)
        if rank is not None or (most is not None and sketch > most):
            return np.asarray(right[:rank])
        sketch *= 2


def _smallest_rank(
    matrix: FloatArray, right: FloatArray, tolerance: float, sizes: FloatArray | None
) -> int | None:
    """How many rows of `right` represent `matrix` to the tolerance; None if all rows of a sketch do not."""
    coordinates = _core.product(matrix, right.T)
    rest = 0.0 if sizes is not None else float(np.abs(matrix - _core.product(coordinates, right)).max())
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
        left_out = _core.product(coordinates[:, rank:high], right[rank:high])
        if np.abs(left_out).max() <= tolerance - rest:
            high = rank
        else:
            low = rank + 1
    return high


def panel_values(edges: FloatArray, series: FloatArray, z: FloatArray) -> FloatArray:
    """Values of functions, given by Chebyshev series on panels, at points."""
    panel = np.clip(np.searchsorted(edges, z, side="right") - 1, 0, len(series) - 1)
    low, high = edges[panel], edges[panel + 1]
    terms = np.polynomial.chebyshev.chebvander(((z - low) - (high - z)) / (high - low), TERMS - 1)
    return np.asarray(np.einsum("nt,ntf->nf", terms, series[panel]))


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)


def _places(panels: list[tuple[float, float]]) -> FloatArray:
    ends = np.array(panels)
    centre, half = ends.mean(axis=1)[:, None], (ends[:, 1:] - ends[:, :1]) / 2
    return np.asarray((centre + half * _POINTS).ravel())


def _halves(low: float, high: float) -> list[tuple[float, float]]:
    middle = low + (high - low) / 2
    return [(low, middle), (middle, high)]
