"""Find the lowest points in a box of a potential Ψ_λ made of closed pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from .._base.check import FloatArray
from .._base.limits import next_round
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._fields import PairField

SCATTERED = 11  # log2 of the quasi-random points
POLISHED = 16  # of which so many of the lowest are followed to the bottom


@dataclass(frozen=True, eq=False)
class PairLandscape:
    """Points all over a box (spaced like 1 + |z|), at which potentials are searched."""

    reduced: ReducedModel
    box: Box
    points: FloatArray  # (n, k)

    def lowest(self, field: PairField) -> tuple[FloatArray, FloatArray]:
        """Local minima of Ψ_λ, lowest first: points (m, k) and values."""
        values = field.at(self.points)
        size = max(float(np.ptp(values)), 1e-300)
        starts = self.points[np.argsort(values)[:POLISHED]]
        points = np.array([self._polish(z, field, size) for z in starts])
        depths = field.at(points)
        order = np.argsort(depths, kind="stable")
        return points[order], depths[order]

    def _polish(self, middle: FloatArray, field: PairField, size: float) -> FloatArray:
        """Minimise Ψ_λ from a point, in units of its size."""
        reach, ends = 0.1 * (1 + np.abs(middle)), np.array(self.box)

        def value(u: FloatArray) -> tuple[float, FloatArray]:
            z = (middle + reach * u)[None]
            return float(field.at(z)[0]) / size, field.slopes(z)[0] * reach / size

        found = scipy.optimize.minimize(
            value,
            np.zeros(len(middle)),
            jac=True,
            bounds=scipy.optimize.Bounds(*[(ends[:, side] - middle) / reach for side in (0, 1)]),
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 100},
        )
        both = np.clip(np.stack([middle, middle + reach * found.x]), *ends.T)
        return np.asarray(both[int(field.at(both).argmin())])


def pair_landscape(reduced: ReducedModel, box: Box, again: bool) -> PairLandscape:
    """Quasi-random points of a box; `again`: other ones."""
    next_round("the landscape")
    ends = np.arcsinh(np.array(box))
    unit = scipy.stats.qmc.Sobol(len(box), rng=int(again)).random_base2(SCATTERED)
    points = np.sinh(ends[:, 0] + unit * (ends[:, 1] - ends[:, 0]))
    return PairLandscape(reduced, box, np.clip(points, *np.array(box).T))
