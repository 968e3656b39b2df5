"""F of weighted atoms without noise, as a function of their positions, for minimising movements (eq.
(8.5)).
"""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from ._field import SMALLEST, Evaluated, Mask, PointEnergy, conjugate_gradients


class AtomsEnergy:
    """F = ½R + (λ/2) Σ w_i|z_i|² of weighted atoms at temperature 0 as a function of their positions,
    eq. (8.5).
    """

    def __init__(self, field: PointEnergy, points: FloatArray, weights: FloatArray) -> None:
        self.field, self._points, self.weights = field, points, weights
        self.bounded = np.tile(field.nonnegative, (len(points), 1))

    def by(self, field: PointEnergy) -> AtomsEnergy:
        """The same atoms with features evaluated by another `PointEnergy`."""
        return AtomsEnergy(field, self._points, self.weights)

    def at(self, x: FloatArray) -> Evaluated:
        z = self._points.copy()
        z[:, self.field.moving] = x
        return Evaluated(x, z, *self.field.value(z, self.weights))

    def guess(self, place: Evaluated, tau: float) -> FloatArray:
        """The atoms themselves."""
        return place.x

    def transport(self, move: FloatArray) -> float:
        """Σ w_i |Δz_i|²/rate, the cost of moving each atom on its own, hence at least W²."""
        return float(self.weights @ (move**2 @ (1 / self.field.rates)))

    def slopes(self, place: Evaluated) -> FloatArray:
        return self.field.slopes(place.z)

    def curvature(self, place: Evaluated, slopes: FloatArray) -> FloatArray:
        return self.field.curvature(place.z, place.residual, slopes)

    def gradient(self, place: Evaluated, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """w_i [∂Ψ_λ(z_i) + Δz_i/(τ rate)], eq. (8.5)."""
        slope = self.field.potential_gradient(place.z, place.residual, slopes)
        return np.asarray(self.weights[:, None] * (slope + move / (tau * self.field.rates)))

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """−τ rate g_i/w_i."""
        return np.asarray(-tau * self.field.rates * g / self.weights[:, None])

    def newton(
        self,
        place: Evaluated,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """Newton step: blocks w_i(∂²Ψ_λ + 1/(τ rate)), one per atom, plus Σ_q p_q φ_q φ_qᵀ, by conjugate
        gradients.

        With the variables scaled by √(τ rate/w_i), blocks are I + √(τ rate) ∂²Ψ_λ √(τ rate).
        """
        free, speed = ~fixed, np.sqrt(tau * self.field.rates)
        blocks = curvature * speed[:, None] * speed * (free[:, :, None] & free[:, None, :])
        values, vectors = np.linalg.eigh(blocks)
        # The preconditioner must be positive: tiny and negative curvatures count as positive ones.
        sizes = np.maximum(np.abs(1 + values), SMALLEST)
        inverse = np.einsum("mac,mc,mbc->mab", vectors, 1 / sizes, vectors)
        roots = np.sqrt(self.weights)[:, None] * speed * free

        def apply(v: FloatArray) -> FloatArray:
            own = v + np.einsum("mab,mb->ma", blocks, v)
            return np.asarray(own + roots * self.field.through_data(slopes, roots * v))

        def precondition(v: FloatArray) -> FloatArray:
            return np.asarray(np.einsum("mab,mb->ma", inverse, v))

        scale = speed * free / np.sqrt(self.weights)[:, None]
        return np.asarray(scale * conjugate_gradients(apply, precondition, -g * scale))

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """1: any step is admissible."""
        return 1.0
