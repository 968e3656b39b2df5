"""Derivatives of ∇Ψ in reduced coordinates, from features and their gradients (eqs. (13.1), (13.6))."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ._differences import SMOOTH, derivative

_HELD = 1e-9  # slopes ∂_rΨ at r = 0 above this are those of a kink


class OfFeatures:
    """Products with H and K of reduced points.

    K is exact; H is a difference of gradients of features. Features are even in a radius: gradients at r < 0
    are those at −r, with the sign of ∂_r changed.

    Args:
        reduced: The model.
        z: Atoms, shape (m, k).
        masses: Their masses.
    """

    def __init__(self, reduced: ReducedModel, z: FloatArray, masses: FloatArray) -> None:
        check.memory(32.0 * z.size * len(reduced.weights), "measure", len(z))
        self._reduced, self._masses, self.z = reduced, masses, z
        self._radii = np.array(reduced.nonnegative, dtype=bool)
        self._residual = reduced._residual(masses @ reduced.features(z))
        self.slopes = reduced._gradients(z)  # (m, Q, k)
        self.gradient = np.einsum("mqk,q->mk", self.slopes, self._residual)
        # At r = 0 a kink of σ can hold an atom back: eq. (5.8).
        self.held = self._radii & (z == 0) & (self.gradient > _HELD)
        self.error = 0.0
        self.hessians = self._second()

    def own(self, v: FloatArray) -> FloatArray:
        """Σ_q p_q (f_q − y_q) ∇²Φ_q(z_i) v_i."""
        return np.asarray(np.einsum("mij,mj->mi", self.hessians, v))

    def coupled(self, v: FloatArray) -> FloatArray:
        """The same, and Σ_q p_q ∇Φ_q(z_i) δf_q with δf = Σ_j w_j ⟨∇Φ_q(z_j), v_j⟩."""
        change = np.einsum("mqk,mk->q", self.slopes, self._masses[:, None] * v)
        pull = np.einsum("mqk,q->mk", self.slopes, self._reduced.weights * change)
        return np.asarray(self.own(v) + pull)

    def _second(self) -> FloatArray:
        """Σ_q p_q (f_q − y_q) ∇²Φ_q at every atom, (m, k, k)."""
        k = self.z.shape[1]
        out = np.empty((len(self.z), k, k))
        step = SMOOTH * (1 + float(np.abs(self.z).max()))
        for c in range(k):
            unit = np.eye(k)[c]
            out[:, :, c], error = derivative(partial(self._gradient, unit), step)
            self.error = max(self.error, error)
        return 0.5 * (out + out.transpose(0, 2, 1))

    def _gradient(self, unit: FloatArray, t: float) -> FloatArray:
        """∇Ψ at z + t·unit in the field of the atoms; 0 for what is held."""
        z = self.z + t * unit
        negative = self._radii & (z < 0)
        there = np.where(negative, -z, z)
        gradient = np.einsum("mqk,q->mk", self._reduced._gradients(there), self._residual)
        return np.where(self.held, 0.0, np.where(negative, -gradient, gradient))
