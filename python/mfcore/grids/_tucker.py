"""Search for the Tucker form (eq. (2.8)) of a family of functions on a box: sums of products of functions of
one coordinate.

Fibres along each coordinate on a few lines give functions of that coordinate; a tensor grid of places that
determine them gives the core; fresh random points tell the error. Where it is too large, lines are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ._fibres import Fibres, NotSeparableError, Sampler, panel_values, row_space, wider

MOST_POINTS = 400_000  # most points at which the functions may be evaluated
MOST_ENTRIES = 20_000_000  # most points times functions
MOST_NODES = 512  # most linearly independent functions
MOST_PANELS = 400  # most panels of a single coordinate
MOST_PANELS_EACH = 64  # most panels of one coordinate among several, whose lines multiply
SHARE = 0.4  # fraction of the tolerance allowed to each of panels, functions and nodes
SHARE_NODES = 0.1  # fraction of the tolerance allowed to the basis of the samples
ROUNDS = 12
FIRST_FIBRES = 96  # lines sampled first: more than the usual rank in two coordinates
TESTS = 256  # fresh points at which the error of each round is measured


@dataclass(frozen=True, eq=False)
class Tucker:
    """F_q(z) ≈ Σ A1_a(z_1) A2_b(z_2)… core_ab…,k nodes_kq, A_c being series on panels: eqs. (2.8), (2.10)."""

    edges: tuple[FloatArray, ...]
    series: tuple[FloatArray, ...]
    core: FloatArray
    nodes: FloatArray
    lines: tuple[FloatArray, ...]
    error: float = np.nan  # at fresh points, relative to the largest entry
    points: int = 0  # points at which the functions were evaluated

    def __call__(self, z: FloatArray) -> FloatArray:
        """F at points, shape (n, Q)."""
        pairs = zip(self.edges, self.series, strict=True)
        bases = [panel_values(edges, series, z[:, c]) for c, (edges, series) in enumerate(pairs)]
        return _core.product(_core.product(products(bases), self.core), self.nodes)


class Search:
    """Build a Tucker form of F on a box, adding lines where the error is largest.

    Args:
        function: F, from points (n, k) to (n, Q).
        size: Q.
        box: Lowest and highest value of each coordinate, (k, 2).
        graded: Coordinates where small values matter.
        tolerance: Of the error at fresh points.
        like: A form on another box, from whose panels and lines to start.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], FloatArray],
        size: int,
        box: FloatArray,
        graded: tuple[bool, ...],
        tolerance: float,
        like: Tucker | None,
    ) -> None:
        self.sample = Sampler(
            function=function,
            nodes=np.empty((0, size)),
            tolerance=tolerance * SHARE_NODES,
            most=min(MOST_POINTS, MOST_ENTRIES // size),
            most_nodes=MOST_NODES,
        )
        self.size, self.box, self.graded, self.tolerance = size, box, np.array(graded), tolerance
        self.k = len(box)
        self.rng = np.random.default_rng(0)
        self.places = [np.empty(0)] * self.k  # of a tensor grid, and ...
        self.values: FloatArray | None = None  # ... what was sampled there
        most = MOST_PANELS if self.k == 1 else MOST_PANELS_EACH
        edges = [_edges(limits, None if like is None else like.edges[c]) for c, limits in enumerate(box)]
        self.fibres = [Fibres(c, edges[c], most) for c in range(self.k)]
        count = max(4 * (self.k - 1), FIRST_FIBRES // size) if self.k > 1 else 0
        corner = box[:, 1:].T
        self.first = [
            np.vstack([self.draw(count) if like is None or self.k == 1 else like.lines[c], corner])
            for c in range(self.k)
        ]

    def run(self) -> Tucker:
        """The Tucker form; raises NotSeparableError if none is found within the limits."""
        lines, inner = self.first, SHARE * self.tolerance
        for _ in range(ROUNDS):
            for fibres, new in zip(self.fibres, lines, strict=True):
                fibres.add(self.sample, new, inner)
            found = self._fill(inner * self.sample.largest)
            points = self.draw(TESTS)
            deviation = np.abs(found(points) - self.sample.raw(points))
            error = float(deviation.max()) / max(self.sample.largest, np.finfo(float).tiny)
            if error <= self.tolerance:
                return replace(found, error=error, points=self.sample.points)
            if error < 4 * self.tolerance:
                inner /= 2
            rank = max(series.shape[2] for series in found.series)
            lines = [self._worst(points, deviation, rank)] * self.k
        raise NotSeparableError(f"an error of {error:.1e} after {ROUNDS} rounds")

    def draw(self, count: int) -> FloatArray:
        """Random points of the box: uniform ones, some on its upper faces, and radii of all orders of
        magnitude.
        """
        rng, shape = self.rng, (count, self.k)
        part = rng.random(shape)
        small = self.graded & (rng.random(shape) < 0.3)
        part = np.where(small, part * 10.0 ** rng.uniform(-12, 0, shape), part)
        part = np.where(rng.random(shape) < 0.05, 1.0, part)
        return np.asarray(self.box[:, 0] + part * (self.box[:, 1] - self.box[:, 0]))

    def _worst(self, points: FloatArray, deviation: FloatArray, rank: int) -> FloatArray:
        """Points for the next lines: first those with large and different deviations, then the largest."""
        if self.k == 1:
            return np.empty((0, 1))
        size = deviation.max(axis=1)
        failing = int(np.sum(size > self.tolerance * self.sample.largest))
        count = min(failing, max(2 * self.k, rank // (4 * self.size)))
        order = _core.pivots(deviation.T)
        different = order[: min(count, self.size)]
        large = [i for i in np.argsort(-size) if i not in different]
        return np.asarray(points[[*different, *large[: count - len(different)]]])

    def _fill(self, allowed: float) -> Tucker:
        inverses, series = [], []
        for fibres in self.fibres:
            functions = fibres.functions(allowed)
            series.append(fibres.series(functions))
            self.places[fibres.c], inverse = fibres.places(functions, self.places[fibres.c])
            inverses.append(inverse)
        values = self._grid_values()
        flat = values.reshape(-1, values.shape[-1])
        nodes = row_space(flat, allowed)  # fewer than the samples needed
        core = _core.product(flat, nodes.T).reshape(*values.shape[:-1], -1)
        for c, inverse in enumerate(inverses):
            turned = np.moveaxis(core, c, 0)
            mixed = _core.product(inverse, turned.reshape(len(turned), -1))
            core = np.moveaxis(mixed.reshape(-1, *turned.shape[1:]), 0, c)
        return Tucker(
            edges=tuple(fibres.edges for fibres in self.fibres),
            series=tuple(series),
            core=np.ascontiguousarray(core.reshape(-1, core.shape[-1])),
            nodes=_core.product(nodes, self.sample.nodes),
            lines=tuple(fibres.lines for fibres in self.fibres),
        )

    def _grid_values(self) -> FloatArray:
        """Values of F on the tensor grid of the sampling points, reusing those of an earlier grid."""
        grid = np.stack(np.meshgrid(*self.places, indexing="ij"), axis=-1)
        known = np.zeros(grid.shape[:-1], dtype=bool)
        old = self.values
        if old is not None:
            known[tuple(slice(0, n) for n in old.shape[:-1])] = True
        new = self.sample(grid[~known])
        combinations = len(self.sample.nodes)
        self.values = np.empty((*known.shape, combinations))
        self.values[~known] = new
        if old is not None:
            self.values[known] = wider(old, combinations).reshape(-1, combinations)
        return self.values


def products(bases: Sequence[FloatArray]) -> FloatArray:
    """Products of one function of each coordinate at each point, all combinations, the last index fastest."""
    out = bases[0]
    for basis in bases[1:]:
        out = (out[:, :, None] * basis[:, None, :]).reshape(len(out), -1)
    return out


def _edges(limits: FloatArray, like: FloatArray | None) -> FloatArray:
    low, high = limits
    inner = np.empty(0) if like is None else like[(like > low) & (like < high)]
    return np.concatenate([[low], inner, [high]])
