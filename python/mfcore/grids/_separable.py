"""Features on a box as sums of products of functions of one coordinate each (Tucker form, eq. (2.8))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.limits import preparing
from ._fibres import NotSeparableError
from ._tucker import TESTS, Search, Tucker, products

if TYPE_CHECKING:
    from ..reductions._model import ReducedModel

__all__ = ["NotSeparableError", "Separable"]

MOST_COORDINATES = 4  # most coordinates that the core contracts


@dataclass(frozen=True, eq=False, repr=False)
class Separable:
    """√p_q Φ_q(z) ≈ Σ_k C_kq Σ_ab… L_ab…,k A1_a(z_1) A2_b(z_2)… on a box, with orthonormal rows of C.

    The nodes q disappear from the dynamics: with moments m = ∫ A1⊗A2⊗… dρ and v = C(√p y) the residual is
    e = Lᵀm − v, the risk |e|² + rest, and the potential has the coefficients L e. `compiled` does that.

    Attributes:
        box: Lowest and highest value of each coordinate, shape (k, 2).
        clamped: Which coordinates are radii: negative values count as 0.
        slope_error: As `error`, of √p_q ∂Φ_q/∂z_c, if it was asked for, else NaN. Narrow panels, which kinks
            and cones need, lose digits of slopes.
    """

    box: FloatArray
    tucker: Tucker
    weights: FloatArray
    targets: FloatArray
    noise: float
    clamped: tuple[bool, ...]
    slope_error: float = math.nan

    @classmethod
    def build(
        cls,
        reduced: ReducedModel,
        box: npt.ArrayLike,
        *,
        tolerance: float = 1e-12,
        slopes: float | None = None,
        like: Separable | None = None,
    ) -> Separable:
        """The features of `reduced` on a box, to `tolerance` times the largest √p_q Φ_q there.

        Args:
            reduced: Its features are evaluated, at about ten thousand points in two coordinates.
            box: A pair (lowest, highest) per coordinate.
            tolerance: Of the measured error.
            slopes: Of the measured error of slopes, which needs `reduced.gradients`; None: values only.
            like: The features on another box: their panels and lines are where the search starts.

        Raises:
            NotSeparableError: The features are not smooth enough, found out by a limited number of points.

        Examples:
            >>> import math, mfcore as mf
            >>> from mfcore.grids._separable import Separable
            >>> law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
            >>> reduced = mf.Model(data=law, network=mf.Network(mf.activations.softplus)).reduce()
            >>> features = Separable.build(reduced, [(0, 2), (0, 1)])
            >>> features.covers([[1.0, 0.5]]), features.covers([[2.5, 0.5]]), features.error < 1e-12
            (True, False, True)
        """
        limits = check.array(box, "box", shape=(len(reduced.coordinates), 2))
        if not (limits[:, 0] < limits[:, 1]).all():
            raise ValueError(f"box must have lowest < highest in each row, got {limits.tolist()}")
        tolerance = check.number(tolerance, "tolerance", above=0)
        if len(limits) > MOST_COORDINATES:
            raise NotSeparableError(f"more than {MOST_COORDINATES} coordinates")
        root = np.sqrt(reduced.weights)
        search = Search(
            lambda z: reduced.features(z) * root,
            len(root),
            limits,
            reduced.nonnegative,
            tolerance,
            None if like is None else like.tucker,
        )
        with preparing(f"features of {len(limits)} coordinates as sums of products"):
            tucker = search.run()
        found = cls(limits, tucker, reduced.weights, reduced.targets, reduced.noise, reduced.nonnegative)
        if slopes is None:
            return found
        assert reduced.gradients is not None  # wrapped by the model
        points = search.draw(TESTS)
        want = reduced.gradients(points) * root[:, None]
        deviation = float(np.abs(found.gradients(points) * root[:, None] - want).max())
        slope_error = deviation / max(float(np.abs(want).max()), np.finfo(float).tiny)
        if not slope_error <= slopes:
            raise NotSeparableError(f"an error of slopes of {slope_error:.1e}")
        return replace(found, slope_error=slope_error)

    @property
    def edges(self) -> tuple[FloatArray, ...]:
        """The edges of the panels, one array per coordinate."""
        return self.tucker.edges

    @property
    def series(self) -> tuple[FloatArray, ...]:
        """Chebyshev coefficients of the functions A_c, shape (panels, terms, rank_c) each."""
        return self.tucker.series

    @property
    def core(self) -> FloatArray:
        """L, shape (rank_1 · rank_2 ⋯, rank), the last coordinate's index fastest."""
        return self.tucker.core

    @property
    def nodes(self) -> FloatArray:
        """The orthonormal combinations of nodes C, shape (rank, Q)."""
        return self.tucker.nodes

    @property
    def error(self) -> float:
        """Largest deviation of √p_q Φ_q at random points, relative to the largest entry.

        The points are denser near radii of 0.
        """
        return self.tucker.error

    @property
    def points(self) -> int:
        """How many points the features were evaluated at."""
        return self.tucker.points

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of functions of each coordinate."""
        return tuple(series.shape[2] for series in self.series)

    @cached_property
    def compiled(self) -> _core.SeparableFeatures:
        """The same features in the core: moments, residuals and potentials of moving points."""
        root = np.sqrt(self.weights)
        target = self.nodes @ (root * self.targets)
        rest = float(self.weights @ self.targets**2 - target @ target) + self.noise
        axes = list(zip(self.edges, self.series, self.clamped, strict=True))
        return _core.SeparableFeatures(axes, self.core, target.tolist(), rest)

    def covers(self, z: npt.ArrayLike) -> bool:
        """Tell whether all points are in the box; a negative radius counts as 0."""
        points = np.asarray(z, dtype=np.float64).reshape(-1, len(self.box))
        points = np.where(self.clamped, np.maximum(points, 0.0), points)
        return bool(((points >= self.box[:, 0]) & (points <= self.box[:, 1])).all())

    def basis(self, coordinate: int, z: npt.ArrayLike, order: int = 0) -> FloatArray:
        """A_c at values of its coordinate, or derivatives of order 1 or 2, shape (n, rank_c)."""
        values, outside = self.compiled.basis(coordinate, np.asarray(z, dtype=np.float64), order)
        if outside:
            box = self.box[coordinate].tolist()
            raise ValueError(f"z[:, {coordinate}] must be within {box}, got {outside} values outside")
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
        return np.asarray(products(bases) @ self.core @ self.nodes / np.sqrt(self.weights))

    def __repr__(self) -> str:
        functions = "×".join(map(str, self.ranks))
        return (
            f"Separable({functions} functions, {len(self.nodes)} of {self.nodes.shape[1]} nodes, "
            f"error={self.error:.1e})"
        )
