"""Tensor grids of cells for densities in reduced coordinates: features at the centres, how grids grow and are
coarsened.

At most two coordinates move. Those that do not (rate 0) have a few cells, whose centres are Gauss nodes of
the initial law; the core sees them as further cells of the first moving coordinate, with walls between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ._factors import COMPRESSION, CUT, in_order
from ._fibres import NotSeparableError
from ._separable import Separable

MOST_NUMBERS = 1 << 26  # most numbers of a full table of features in two coordinates: 0.5 GB


@dataclass(frozen=True, eq=False)
class Grid:
    """Edges of the cells along every coordinate of a reduced model, and the features on them.

    Args:
        reduced: The model.
        edges: Of the cells of each coordinate, in its order.
        box: Of the separable features in two moving coordinates; wider than the grid, so that it may grow.
        features: Those of the box; None: not computed yet, or they are not separable.
    """

    reduced: ReducedModel
    edges: tuple[FloatArray, ...]
    box: FloatArray | None = None
    features: Separable | None = None

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """Numbers of the coordinates that move (rate > 0)."""
        return tuple(c for c, rate in enumerate(self.reduced.rates) if rate > 0)

    @cached_property
    def still(self) -> tuple[int, ...]:
        """Numbers of the coordinates at rest (rate 0)."""
        return tuple(c for c, rate in enumerate(self.reduced.rates) if rate == 0)

    @cached_property
    def centers(self) -> tuple[FloatArray, ...]:
        """Midpoints of the cells along each coordinate."""
        return tuple(0.5 * (e[1:] + e[:-1]) for e in self.edges)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each coordinate."""
        return tuple(len(e) - 1 for e in self.edges)

    @property
    def size(self) -> int:
        """Cells in all."""
        return math.prod(self.shape)

    @property
    def order(self) -> tuple[int, ...]:
        """The order of coordinates in the core: those at rest, then the moving ones."""
        return self.still + self.moving

    def to_core(self, mass: FloatArray) -> FloatArray:
        """Masses in the order of the core, flat."""
        return np.ascontiguousarray(mass.transpose(self.order)).ravel()

    def from_core(self, flat: FloatArray) -> FloatArray:
        """Masses of the core in the order and shape of the coordinates."""
        shape = tuple(self.shape[c] for c in self.order)
        return np.ascontiguousarray(flat.reshape(shape).transpose(np.argsort(self.order)))

    def axes(self) -> list[_core.GridAxis]:
        """Widths, conductances and watched ends of the one or two axes of the core."""
        repeat = math.prod(self.shape[c] for c in self.still)
        found = []
        for c in self.moving:
            width, centers = np.diff(self.edges[c]), self.centers[c]
            conductance = self.reduced.rates[c] / np.diff(centers)
            n = len(width)
            if c == self.moving[0]:
                conductance = np.tile(np.append(conductance, 0.0), repeat)[:-1]
                width = np.tile(width, repeat)
            else:
                repeat = 1
            ends = ([] if self.has_wall(c) else [0]) + [n - 1]
            watched = [k * n + end for k in range(repeat) for end in ends]
            found.append(_core.GridAxis(width, conductance, watched))
        return found

    def has_wall(self, c: int) -> bool:
        """Tell whether the grid ends at the wall r = 0 of a radius."""
        return bool(self.reduced.nonnegative[c] and self.edges[c][0] <= 0)

    def decay(self) -> FloatArray:
        """λ|z|²/2 over the decaying coordinates at the centres, in the order of the core."""
        reduced = self.reduced
        square = [reduced.ridge / 2 * z**2 * d for z, d in zip(self.centers, reduced.decays, strict=True)]
        total = np.zeros(())
        for c in self.order:
            total = np.add.outer(total, square[c])
        return np.asarray(total.ravel())

    def with_features(self, before: Grid | None = None) -> Grid:
        """A copy with separable features on a box around it (two moving coordinates); those of `before`
        if they cover it.
        """
        if len(self.moving) < 2:
            return self
        if before is not None and before.box is not None:
            ends = np.array([[e[0], e[-1]] for e in self.edges])
            fits = before.box[:, 0] <= ends[:, 0], before.box[:, 1] >= ends[:, 1]
            inside = np.logical_and(*fits)[list(self.moving)].all()
            if inside or before.features is None:  # not separable there: nor here
                return replace(self, box=before.box, features=before.features)
        return self.on_box(self._roomy_box())

    def on_box(self, box: FloatArray) -> Grid:
        """A copy with the separable features of a box, if the features are separable there."""
        try:
            return replace(self, box=box, features=Separable.build(self.reduced, box, tolerance=COMPRESSION))
        except NotSeparableError:
            return replace(self, box=box, features=None)

    def _roomy_box(self) -> FloatArray:
        """A box two lengths longer at each end of moving coordinates (radii not below 0), as features
        are costly to build.
        """
        box = np.empty((len(self.edges), 2))
        for c, (edges, centers) in enumerate(zip(self.edges, self.centers, strict=True)):
            low, high = (edges[0], edges[-1]) if c in self.moving else (centers[0], centers[-1])
            room = 2.0 * (high - low) if c in self.moving else 1e-3 * max(abs(low), abs(high), 1.0)
            # Short binary numbers, so that low + (high − low) is high exactly.
            unit = 2.0 ** (math.floor(math.log2(max(abs(low), abs(high)) + room)) - 20)
            box[c] = math.floor((low - room) / unit) * unit, math.ceil((high + room) / unit) * unit
            if self.reduced.nonnegative[c]:
                box[c, 0] = max(box[c, 0], 0.0)
        return box

    def diffusion_axes(self) -> list[_core.DiffusionAxis]:
        """The axes for the core with noise; coordinates at rest form a first axis if they have several
        cells.
        """
        reduced, found = self.reduced, []
        repeat = math.prod(self.shape[c] for c in self.still)
        if repeat > 1:
            found = [_core.DiffusionAxis(np.arange(repeat + 1.0), rate=0.0)]
        for c in self.moving:
            n = self.shape[c]
            ends = ([] if self.has_wall(c) else [0]) + [n - 1]
            rate, volume = reduced.rates[c], reduced.volume[c]
            found.append(_core.DiffusionAxis(self.edges[c], rate=rate, volume=volume, watched=ends))
        return found

    def still_log_volume(self, mass: FloatArray) -> float:
        """The mean over `mass` of the log volume of the cells in the coordinates at rest."""
        logs = np.zeros(())
        for c in self.still:
            e = self.edges[c]
            logs = np.add.outer(logs, _core.log_cell_volume(e[:-1], e[1:], self.reduced.volume[c]))
        return float((mass.sum(axis=self.moving) * logs).sum())

    def potential(self, threads: int = 0, *, split: bool = False) -> _core.GridPotential:
        """The compressed features at the centres (eq. (2.7)), for the core; `split`: coordinates at rest
        are their own axis.
        """
        reduced, decay = self.reduced, self.decay()
        root = np.sqrt(reduced.weights)
        if self.features is not None:
            parts = [self.features.basis(c, self.centers[c]) for c in range(len(self.edges))]
            factors = in_order(parts, self.features.core, self.order)
            first, second, core, nodes = _core.fewer_factors(*factors, self.features.nodes, CUT)
        elif len(self.moving) == 1 and not (split and len(self.edges[self.moving[0]]) - 1 < self.size):
            basis, turn, nodes = _core.factors_of_line(self._table() * root, COMPRESSION)
            first, second, core = basis @ turn, None, None
        else:
            first, second, core, nodes = _core.factors_of_table(
                self._table() * root, self.shape[self.moving[-1]], CUT
            )
        shift = nodes @ (root * reduced.targets)
        floor = float(reduced.weights @ reduced.targets**2 - shift @ shift)
        return _core.GridPotential(
            np.ascontiguousarray(first),
            second=second,
            core=core,
            shift=shift,
            floor=max(floor, 0.0) + reduced.noise,
            decay=decay,
            threads=threads,
        )

    def _table(self) -> FloatArray:
        """Φ_q at all centres in the order of the core, shape (cells, Q)."""
        numbers = self.size * len(self.reduced.weights)
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"cells × nodes must be at most {MOST_NUMBERS} where features are not separable to "
                f"{COMPRESSION:g}, got {numbers}; use fewer cells, or mf.Atoms"
            )
        mesh = np.meshgrid(*(self.centers[c] for c in self.order), indexing="ij")
        points = np.empty((mesh[0].size, len(self.edges)))
        for column, values in zip(self.order, mesh, strict=True):
            points[:, column] = values.ravel()
        return self.reduced.features(points)

    def coarse(self) -> Grid:
        """The grid whose cells along moving coordinates are pairs of cells of this one."""
        edges = tuple(_merged(e) if c in self.moving else e for c, e in enumerate(self.edges))
        return replace(self, edges=edges)

    def grown(self, c: int, side: int, most: int) -> Grid:
        """The grid made a quarter longer along coordinate `c` at its low (0) or high (1) side, of at
        most `most` cells.
        """
        edges = self.edges[c]
        if len(edges) - 1 + _quarter(edges) > most:
            if len(edges) % 2 == 0:  # an odd number of cells: one more, so that all have a partner
                edges = np.append(edges, 2 * edges[-1] - edges[-2])
            edges = _merged(edges)
        steps = np.arange(1, _quarter(edges) + 1)
        if side == 1:
            edges = np.append(edges, edges[-1] + steps * (edges[-1] - edges[-2]))
        else:
            new = (edges[0] - steps * (edges[1] - edges[0]))[::-1]
            if self.reduced.nonnegative[c] and new[0] < 0.5 * (edges[1] - edges[0]):
                # The last of them ends at the wall at 0 and is as wide as that takes.
                new = np.append(0.0, new[new > 0.5 * (edges[1] - edges[0])])
            edges = np.append(new, edges)
        return replace(self, edges=tuple(edges if i == c else e for i, e in enumerate(self.edges)))

    def trimmed(self, c: int, mass: FloatArray, least: float) -> Grid:
        """The grid without end cells of coordinate `c` that hold less than `least` together."""
        along = mass.sum(axis=tuple(i for i in range(mass.ndim) if i != c))
        low = 0 if self.has_wall(c) else int(np.searchsorted(np.cumsum(along), least)) // 4 * 4
        high = len(along) - int(np.searchsorted(np.cumsum(along[::-1]), least))
        edges = self.edges[c][low : high + 1]
        return replace(self, edges=tuple(edges if i == c else e for i, e in enumerate(self.edges)))


def transfer(mass: FloatArray, old: Grid, new: Grid) -> FloatArray:
    """Masses on another grid, each cell's mass spread evenly over it; exact where cells are merged."""
    for c, (a, b) in enumerate(zip(old.edges, new.edges, strict=True)):
        if a is not b and not np.array_equal(a, b):
            cuts = np.union1d(a, b[(b > a[0]) & (b < a[-1])])  # of pieces inside of one cell of either grid
            middle = 0.5 * (cuts[1:] + cuts[:-1])
            cell = np.searchsorted(a, middle) - 1
            # Mass outside of the new cells is in the outermost ones.
            to = np.clip(np.searchsorted(b, middle) - 1, 0, len(b) - 2)
            share = np.diff(cuts) / np.diff(a)[cell]
            rows = np.moveaxis(mass, c, -1)
            first = np.flatnonzero(np.diff(to, prepend=-1))  # piece of each new cell that has any
            moved = np.zeros((*rows.shape[:-1], len(b) - 1))
            moved[..., to[first]] = np.add.reduceat(rows[..., cell] * share, first, axis=-1)
            mass = np.moveaxis(moved, -1, c)
    return np.ascontiguousarray(mass)


def centered_edges(centers: FloatArray) -> FloatArray:
    """Edges of cells with given midpoints; a single cell has width 1."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    # Widths are w_{i+1} = 2 (c_{i+1} - c_i) - w_i: all are w_0 or minus w_0 plus something known.
    offset = np.zeros(len(centers))
    for i, gap in enumerate(np.diff(centers)):
        offset[i + 1] = 2 * gap - offset[i]
    low, high = max(0.0, float((-offset[::2]).max())), float(offset[1::2].min())
    if not low < high:
        raise ValueError(f"coordinates at rest must have nodes that are centres of cells, got {centers}")
    first = 0.5 * (low + high)
    width = offset + np.where(np.arange(len(centers)) % 2 == 0, first, -first)
    return np.append(centers - width / 2, centers[-1] + width[-1] / 2)


def _quarter(edges: FloatArray) -> int:
    """About a quarter of n cells, a multiple of 4, so that grids of pairs of pairs stay aligned."""
    return 4 * max(1, round((len(edges) - 1) / 16))


def _merged(edges: FloatArray) -> FloatArray:
    """Every other edge; the last of an odd number of cells is kept."""
    return edges[::2] if len(edges) % 2 == 1 else np.append(edges[:-1:2], edges[-1])
