"""The energy of weighted atoms from separable features on a box (eq. (2.8)), for models whose features
are costly.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..atoms._boxes import enclosing, inside, separated
from ..grids._separable import Separable
from ..grids._tucker import products
from ..reductions._model import ReducedModel
from ._field import PointEnergy

_DEAR = 5_000_000  # nanoseconds per evaluation of all features beyond which separable features are built
JUMPS = 250  # series of neighbouring panels may differ by so many times rounding at their common edge


class TableEnergy(PointEnergy):
    """½R + (λ/2)∫|z|² from separable features on a box; points beyond its rim use the features themselves."""

    def __init__(self, reduced: ReducedModel, threads: int, box: FloatArray, table: Separable) -> None:
        super().__init__(reduced, threads)
        self.box, self._table = box, table
        root = np.sqrt(reduced.weights)
        self._target = table.nodes @ (root * reduced.targets)
        unreached = float(reduced.weights @ reduced.targets**2 - self._target @ self._target)
        self._rest = unreached + reduced.noise

    @classmethod
    def around(cls, reduced: ReducedModel, threads: int, z: FloatArray) -> PointEnergy:
        """A `TableEnergy` on a box around these points if features are costly and separable, else a
        `PointEnergy`.
        """
        if not is_dear(reduced, len(z)):
            return PointEnergy(reduced, threads)
        return cls.on(reduced, threads, enclosing(z, np.array(reduced.nonnegative)))

    @classmethod
    def on(cls, reduced: ReducedModel, threads: int, box: FloatArray | None) -> PointEnergy:
        """A `TableEnergy` on this box if features are separable there; a `PointEnergy` if not, or
        without a box.
        """
        found, table = None, None
        if box is not None:
            found, table = separated(reduced, box, np.array(reduced.nonnegative))
        return (
            PointEnergy(reduced, threads)
            if found is None or table is None
            else cls(reduced, threads, found, table)
        )

    def covering(self, z: FloatArray) -> PointEnergy:
        """This energy if its box holds all points, else one on another box."""
        if inside(self.box, z):
            return self
        return type(self).on(self.reduced, self._threads, enclosing(z, np.array(self.reduced.nonnegative)))

    def value(self, z: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float, float]:
        """As `PointEnergy.value`, the residual being that of the combinations of nodes."""
        if not self._table.covers(z):
            return super().value(z, w)
        moments, _ = self._table.compiled.moments(z, w, self._threads)
        f = np.einsum("a,ak->k", moments, self._table.core)
        residual = f - self._target
        risk = float(residual @ residual) + self._rest
        penalty = self.penalty(z, w)
        size = float(f @ f + self._target @ self._target) + self._rest + penalty
        return residual, 0.5 * risk + penalty, JUMPS * size, risk

    def slopes(self, z: FloatArray) -> FloatArray:
        """Derivatives of the combinations of nodes, for the coordinates that move, shape (m, c, rank)."""
        table = self._table
        if not table.covers(z):
            return super().slopes(z)
        columns = range(z.shape[1])
        parts = [
            _core.product(products([table.basis(c, z[:, c], int(c == j)) for c in columns]), table.core)
            for j in self.moving
        ]
        return np.stack(parts, axis=1)

    def curvature(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        if not self._table.covers(z):
            return super().curvature(z, residual, slopes)
        coefficients = np.einsum("ak,k->a", self._table.core, residual)
        _, _, second, _ = self._table.compiled.potential(coefficients, z, 2, self._threads)
        return np.asarray(second[:, self.moving][:, :, self.moving] + np.diag(self.decay))


def is_dear(reduced: ReducedModel, atoms: int) -> bool:
    """Tell whether features cost enough to build separable ones; an estimate, never a measured time."""
    compiled = reduced._compiled
    if compiled is None or compiled.coordinates != 2 or reduced.temperature > 0:
        return False
    return atoms * compiled.nanoseconds >= _DEAR
