"""Derivatives of ∇Ψ by differences of exact gradients, with the error that two steps show (eq. (13.6))."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray
from ..expectations._evaluator import Evaluator

SMOOTH = 5e-4  # step relative to 1 + |θ|: errors of order h⁴ and of rounding/h are below 1e-10
KINKED = 1e-5  # where third derivatives jump: errors of order h²


def derivative(
    function: Callable[[float], FloatArray], step: float, kinked: bool = False
) -> tuple[FloatArray, float]:
    """The derivative of function(t) at 0, and the largest difference to that with twice the step.

    Examples:
        >>> import numpy as np
        >>> from mfcore.perturbations._differences import derivative
        >>> value, error = derivative(lambda t: np.array([np.sin(t)]), 1e-3)
        >>> bool(abs(value[0] - 1) <= error + 1e-15 < 1e-11)
        True
    """
    central = [(function(h) - function(-h)) / (2 * h) for h in (step, 2 * step, 4 * step)]
    # Smooth functions have errors in even powers of h, functions with jumps of f'' also one in h.
    factor = 1.0 if kinked else 1 / 3
    fine, coarse = (one + factor * (one - two) for one, two in pairwise(central))
    return fine, float(np.abs(fine - coarse).max(initial=0.0))


class OfGradients:
    """Products with H and K by differences of the exact ∇Ψ.

    Args:
        evaluator: Expectations over the data.
        theta: Atoms, shape (m, D).
        masses: Their masses.
        kinked: Whether third derivatives of U jump where neurons are parallel.
    """

    held: npt.NDArray[np.bool_] | None = None

    def __init__(self, evaluator: Evaluator, theta: FloatArray, masses: FloatArray, kinked: bool) -> None:
        self._evaluator, self._theta, self._masses, self._kinked = evaluator, theta, masses, kinked
        self._scale = 1 + float(np.linalg.norm(theta, axis=1).max())
        self.gradient = evaluator.grad_psi(theta, theta, masses)
        self.error = 0.0

    def own(self, v: FloatArray) -> FloatArray:
        """d/dt ∇Ψ(θ_i + t v_i; ρ)."""
        return self._derivative(v, False)

    def coupled(self, v: FloatArray) -> FloatArray:
        """d/dt ∇Ψ(θ_i + t v_i; ρ_t), ρ_t the atoms θ_j + t v_j."""
        return self._derivative(v, True)

    def _derivative(self, v: FloatArray, together: bool) -> FloatArray:
        size = float(np.linalg.norm(v, axis=1).max())
        if size == 0:
            return np.zeros_like(v)

        def gradient(t: float) -> FloatArray:
            moved = self._theta + t * v
            return self._evaluator.grad_psi(moved, moved if together else self._theta, self._masses)

        step = (KINKED if self._kinked else SMOOTH) * self._scale / size
        value, error = derivative(gradient, step, self._kinked)
        self.error = max(self.error, error / size)
        return value
