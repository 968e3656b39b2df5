"""Features on a box as sums of products of functions of one coordinate each (Tucker form)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import linalg

from . import _check, _core
from ._check import FloatArray
from ._fibres import Fibres, NotSeparableError, Sampler, row_space, wider

if TYPE_CHECKING:
    from .reduce import ReducedModel

__all__ = ["NotSeparableError", "Separable"]

MOST_COORDINATES = 4  # that the core contracts
MOST_POINTS = 400_000  # at which features are evaluated, ...
MOST_ENTRIES = 20_000_000  # ... times nodes
MOST_PANELS = {1: 400}  # per coordinate; lines of several coordinates multiply
MOST_PANELS_EACH = 64
MOST_NODES = 512  # independent combinations of them
NODES_SHARE = 0.1  # of the tolerance, for what is lost at once
ROUNDS = 12
FIRST_FIBRES = 96  # more than the rank that is usual in two coordinates
TESTS = 256  # fresh points on which a round is measured


@dataclass(frozen=True, eq=False, repr=False)
class Separable:
    """√p_q Φ_q(z) ≈ Σ_k C_kq Σ_ab… L_ab…,k A1_a(z_1) A2_b(z_2)… on a box, with orthonormal rows of C.

    The nodes q disappear from the dynamics: with moments m = ∫ A1⊗A2⊗… dρ and v = C(√p y) the residual is
    e = Lᵀm − v, the risk |e|² + rest, and the potential has the coefficients L e. `compiled` does that.

    Attributes:
        box: Lowest and highest value of each coordinate, shape (k, 2).
        edges: Of the panels, one array per coordinate.
        series: Chebyshev coefficients of the functions A_c, shape (panels, terms, rank_c) each.
        core: L, shape (rank_1 · rank_2 ⋯, rank), the last coordinate's index fastest.
        nodes: C, shape (rank, Q).
        clamped: Which coordinates are radii: negative values count as 0.
        error: Largest deviation of √p_q Φ_q at random points, relative to the largest entry. The points
            are denser near radii of 0.
        points: How many points the features were evaluated at.
    """

    box: FloatArray
    edges: tuple[FloatArray, ...]
    series: tuple[FloatArray, ...]
    core: FloatArray
    nodes: FloatArray
    weights: FloatArray
    targets: FloatArray
    noise: float
    clamped: tuple[bool, ...]
    error: float
    points: int
    lines: tuple[FloatArray, ...]

    @classmethod
    def build(
        cls,
        reduced: ReducedModel,
        box: npt.ArrayLike,
        *,
        tolerance: float = 1e-12,
        like: Separable | None = None,
    ) -> Separable:
        """The features of `reduced` on a box, to `tolerance` times the largest √p_q Φ_q there.

        Args:
            reduced: Its features are evaluated, at a few thousand points in two coordinates.
            box: A pair (lowest, highest) per coordinate.
            tolerance: Of the measured error.
            like: The features on another box: their panels and lines are where the search starts.

        Raises:
            NotSeparableError: The features are not smooth enough, found out by a limited number of points.

        Examples:
            >>> import math, mfcore as mf
            >>> from mfcore._separable import Separable
            >>> law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
            >>> reduced = mf.Model(data=law, network=mf.Network(mf.activations.softplus)).reduce()
            >>> features = Separable.build(reduced, [(0, 2), (0, 1)])
            >>> features.covers([[1.0, 0.5], [2.5, 0.5]]), features.error < 1e-12
            (False, True)
        """
        limits = _check.array(box, "box", shape=(len(reduced.coordinates), 2))
        if not (limits[:, 0] < limits[:, 1]).all():
            raise ValueError(f"box must have lowest < highest in each row, got {limits.tolist()}")
        tolerance = _check.number(tolerance, "tolerance", above=0)
        if len(limits) > MOST_COORDINATES:
            raise NotSeparableError(f"more than {MOST_COORDINATES} coordinates")
        root = np.sqrt(reduced.weights)
        most = min(MOST_POINTS, MOST_ENTRIES // len(root))
        none = np.empty((0, len(root)))
        sample = Sampler(
            lambda z: reduced.features(z) * root, none, tolerance * NODES_SHARE, most, MOST_NODES
        )
        return _Search(sample, limits, reduced, tolerance, like).run()

    @cached_property
    def compiled(self) -> _core.SeparableFeatures:
        """Moments, residuals and potentials of moving points, in the core."""
        root = np.sqrt(self.weights)
        target = self.nodes @ (root * self.targets)
        rest = float(self.weights @ self.targets**2 - target @ target) + self.noise
        axes = list(zip(self.edges, self.series, self.clamped, strict=True))
        return _core.SeparableFeatures(axes, self.core, target.tolist(), rest)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of functions of each coordinate."""
        return tuple(a.shape[2] for a in self.series)

    def covers(self, z: npt.ArrayLike) -> bool:
        """Whether all points are in the box; a negative radius counts as 0."""
        points = np.asarray(z, dtype=np.float64).reshape(-1, len(self.box))
        points = np.where(self.clamped, np.maximum(points, 0.0), points)
        return bool(((points >= self.box[:, 0]) & (points <= self.box[:, 1])).all())

    def basis(self, coordinate: int, z: npt.ArrayLike, order: int = 0) -> FloatArray:
        """A_c at values of its coordinate, or derivatives of order 1 or 2, shape (n, rank_c)."""
        values, outside = self.compiled.basis(coordinate, np.asarray(z, dtype=np.float64), order)
        self._inside(outside)
        return values

    def features(self, z: npt.ArrayLike) -> FloatArray:
        """Φ_q at points, shape (n, Q)."""
        return self._at(z, [0] * len(self.box))

    def gradients(self, z: npt.ArrayLike) -> FloatArray:
        """∂Φ_q/∂z_c at points, shape (n, Q, k); at a negative radius those at 0."""
        k = len(self.box)
        return np.stack([self._at(z, [int(i == c) for i in range(k)]) for c in range(k)], axis=-1)

    def coefficients(self, f: FloatArray) -> FloatArray:
        """Coefficients of the potential of predictions f_q, for `compiled.potential`."""
        return np.asarray(self.core @ (self.nodes @ (np.sqrt(self.weights) * (f - self.targets))))

    def predictions(self, moments: FloatArray) -> FloatArray:
        """f_q of the moments of a measure, from `compiled.moments`."""
        return np.asarray((moments @ self.core) @ self.nodes / np.sqrt(self.weights))

    def _at(self, z: npt.ArrayLike, orders: Sequence[int]) -> FloatArray:
        points = np.asarray(z, dtype=np.float64).reshape(-1, len(self.box))
        bases = [self.basis(c, points[:, c], order) for c, order in enumerate(orders)]
        return np.asarray(_products(bases) @ self.core @ self.nodes / np.sqrt(self.weights))

    def _inside(self, outside: int) -> None:
        if outside:
            raise ValueError(f"z must be inside of the box {self.box.tolist()}, got {outside} points outside")

    def __repr__(self) -> str:
        functions = "×".join(map(str, self.ranks))
        return (
            f"Separable({functions} functions, {len(self.nodes)} of {self.nodes.shape[1]} nodes, "
            f"error={self.error:.1e})"
        )


class _Search:
    """Fibres on a few lines, then a tensor grid, then a test; more lines where it fails."""

    def __init__(
        self,
        sample: Sampler,
        box: FloatArray,
        reduced: ReducedModel,
        tolerance: float,
        like: Separable | None,
    ) -> None:
        self.sample, self.box, self.reduced, self.tolerance = sample, box, reduced, tolerance
        self.k = len(box)
        self.clamped = np.array(reduced.nonnegative)
        most = MOST_PANELS.get(self.k, MOST_PANELS_EACH)
        edges = [_edges(limits, None if like is None else like.edges[c]) for c, limits in enumerate(box)]
        self.fibres = [Fibres(c, edges[c], most) for c in range(self.k)]
        self.rng = np.random.default_rng(0)
        self.places = [np.empty(0)] * self.k  # of a tensor grid, and ...
        self.values: FloatArray | None = None  # ... the features there
        corner = box[:, 1:].T
        if like is not None:
            self.first = [np.vstack([lines, corner])[-1 if self.k == 1 else 0 :] for lines in like.lines]
        else:
            count = max(4 * (self.k - 1), FIRST_FIBRES // len(reduced.weights)) * (self.k > 1)
            self.first = [np.vstack([self._draw(count), corner]) for _ in range(self.k)]

    def run(self) -> Separable:
        lines = self.first
        inner = 0.4 * self.tolerance  # a share for each of panels, functions and nodes
        for _ in range(ROUNDS):
            for fibres, new in zip(self.fibres, lines, strict=True):
                fibres.add(self.sample, new, inner)
            found = self._fill(inner)
            points = self._draw(TESTS)
            want = self.sample.raw(points)
            bases = [found.basis(c, points[:, c]) for c in range(self.k)]
            deviation = np.abs(_products(bases) @ found.core @ found.nodes - want)
            error = float(deviation.max()) / max(self.sample.largest, np.finfo(float).tiny)
            if error <= self.tolerance:
                object.__setattr__(found, "error", error)
                object.__setattr__(found, "points", self.sample.points)
                return found
            if error < 4 * self.tolerance:
                inner /= 2
            lines = [self._worst(points, deviation, max(found.ranks))] * self.k
        raise NotSeparableError(f"an error of {error:.1e} after {ROUNDS} rounds")

    def _worst(self, points: FloatArray, deviation: FloatArray, rank: int) -> FloatArray:
        """Points for new lines: where deviations are large and differ, then where they are large."""
        if self.k == 1:
            return np.empty((0, 1))
        size = deviation.max(axis=1)
        failing = int(np.sum(size > self.tolerance * self.sample.largest))
        count = min(failing, max(2 * self.k, rank // (4 * len(self.reduced.weights))))
        _, _, order = linalg.qr(deviation.T, mode="economic", pivoting=True)
        different = order[: min(count, deviation.shape[1])]
        large = [i for i in np.argsort(-size) if i not in different]
        return np.asarray(points[[*different, *large[: count - len(different)]]])

    def _fill(self, inner: float) -> Separable:
        allowed = inner * self.sample.largest
        inverses, series = [], []
        for fibres in self.fibres:
            functions = fibres.functions(allowed)
            series.append(fibres.series(functions))
            self.places[fibres.c], inverse = fibres.places(functions, self.places[fibres.c])
            inverses.append(inverse)
        values = self._grid_values()
        nodes = row_space(values.reshape(-1, values.shape[-1]), allowed)  # fewer than the samples needed
        core = values @ nodes.T
        for c, inverse in enumerate(inverses):
            core = np.moveaxis(np.tensordot(inverse, core, (1, c)), 0, c)
        model = self.reduced
        return Separable(
            box=self.box,
            edges=tuple(fibres.edges for fibres in self.fibres),
            series=tuple(series),
            core=np.ascontiguousarray(core.reshape(-1, core.shape[-1])),
            nodes=nodes @ self.sample.nodes,
            weights=model.weights,
            targets=model.targets,
            noise=model.noise,
            clamped=model.nonnegative,
            error=math.nan,
            points=0,
            lines=tuple(fibres.lines for fibres in self.fibres),
        )

    def _grid_values(self) -> FloatArray:
        """Features on the tensor grid of the places; those of an earlier, smaller grid are known."""
        grid = np.stack(np.meshgrid(*self.places, indexing="ij"), axis=-1)
        known = np.zeros(grid.shape[:-1], dtype=bool)
        new = old = self.values
        if old is not None:
            known[tuple(slice(0, n) for n in old.shape[:-1])] = True
        if not known.all():
            new = self.sample(grid[~known])
        combinations = len(self.sample.nodes)
        values = np.empty((*known.shape, combinations))
        if old is not None:
            values[known] = wider(old, combinations).reshape(-1, combinations)
        if new is not old:
            values[~known] = new
        self.values = values
        return values

    def _draw(self, count: int) -> FloatArray:
        """Random points of the box: uniform, some on its upper faces, and radii of any order of magnitude."""
        rng, shape = self.rng, (count, self.k)
        part = rng.random(shape)
        small = self.clamped & (rng.random(shape) < 0.3)
        part = np.where(small, part * 10.0 ** rng.uniform(-12, 0, shape), part)
        part = np.where(rng.random(shape) < 0.05, 1.0, part)
        return np.asarray(self.box[:, 0] + part * (self.box[:, 1] - self.box[:, 0]))


def _edges(limits: FloatArray, like: FloatArray | None) -> FloatArray:
    low, high = limits
    ends = np.array([low, high])
    if like is None:
        return ends
    return np.concatenate([[low], like[(like > low) & (like < high)], [high]])


def _products(bases: Sequence[FloatArray]) -> FloatArray:
    """All products of functions at each point, the last index fastest."""
    out = bases[0]
    for basis in bases[1:]:
        out = (out[:, :, None] * basis[:, None, :]).reshape(len(out), -1)
    return out
