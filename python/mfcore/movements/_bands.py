"""The energy of weighted points from features that are tabulated on bands of one radius, for models whose
features are costly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._base.check import FloatArray
from ..grids._separable import NotSeparableError, Separable
from ..reductions._model import ReducedModel
from ._field import PointEnergy
from ._table import JUMPS

_DEAR = 50_000_000  # nanoseconds per evaluation of all features beyond which they are tabulated
_LAST = 64  # bands, up to r = 2^63; points beyond use the features themselves


class BandsEnergy(PointEnergy):
    """½R + (λ/2)∫|z|² from features tabulated on the bands 0 ≤ r ≤ 1, 1 ≤ r ≤ 2, 2 ≤ r ≤ 4, ….

    A band is tabulated when a point first lies in it. Its table depends on the band alone, so that results do
    not depend on where the run has been. Bands without a table use the features themselves.
    """

    def __init__(self, reduced: ReducedModel, threads: int) -> None:
        super().__init__(reduced, threads)
        self._bands: dict[int, Separable | None] = {}

    def value(self, z: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float, float]:
        """As `PointEnergy.value`, with a larger size: two tables differ a little where their bands meet."""
        residual, energy, size, risk = super().value(z, w)
        return residual, energy, JUMPS * size, risk

    def features(self, z: FloatArray) -> FloatArray:
        return self._by_band(z, lambda band, part: band.features(part), super().features)

    def gradients(self, z: FloatArray) -> FloatArray:
        return self._by_band(z, lambda band, part: band.gradients(part), super().gradients)

    def curvature(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the points, from second derivatives of the tables, shape (m, 1, 1)."""

        def by_table(band: Separable, part: FloatArray) -> FloatArray:
            second = band.basis(0, part[:, 0], 2) @ (band.core @ (band.nodes @ residual))
            return np.asarray(second[:, None, None] + self.decay)

        def by_features(part: FloatArray) -> FloatArray:
            return PointEnergy.curvature(self, part, residual, self.slopes(part))

        return self._by_band(z, by_table, by_features)

    def _by_band(
        self,
        z: FloatArray,
        by_table: Callable[[Separable, FloatArray], FloatArray],
        otherwise: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        """The rows that each point's band, or what serves where it has no table, gives its points."""
        r = z[:, 0]
        numbers = np.where(np.isfinite(r), np.clip(np.frexp(np.maximum(r, 0.5))[1], 0, _LAST), _LAST)
        result = None
        for number in np.unique(numbers):
            rows, band = numbers == number, self._band(int(number))
            part = otherwise(z[rows]) if band is None else by_table(band, z[rows])
            if result is None:
                result = np.empty((len(z), *part.shape[1:]))
            result[rows] = part
        assert result is not None  # there are points
        return result

    def _band(self, number: int) -> Separable | None:
        if number == _LAST:
            return None
        if number not in self._bands:
            low, high = (0.0 if number == 0 else 2.0 ** (number - 1)), 2.0**number
            try:
                self._bands[number] = Separable.build(self.reduced, [(low, high)])
            except NotSeparableError:
                self._bands[number] = None
        return self._bands[number]


def serves(reduced: ReducedModel, points: int) -> bool:
    """Tell whether features are those of one radius and so costly that tables pay, by an estimate."""
    compiled = reduced._compiled
    if compiled is None or compiled.coordinates != 1 or not reduced.nonnegative[0]:
        return False
    return points * compiled.nanoseconds >= _DEAR
