"""Linear decay on nodes, exactly in time: modes of the kernel (eq. (11.5)), all or Krylov's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from .. import _core
from .._base import factors
from .._base.check import FloatArray

MOST_EXACT = 4000  # nodes whose modes are all computed
_KRYLOV = 400  # modes of more nodes: as many steps of Lanczos
_LOST = 1e-13  # relative size of what is left of a vector at which its space is exhausted


@dataclass(frozen=True)
class Modes:
    """A vector b in modes of a symmetric matrix A ⪰ 0: h(A)b = basis·(h(values)·parts).

    Attributes:
        values: Eigenvalues, or Ritz values.
        basis: One column per mode.
        parts: Coefficients of b.
        coupling: 0 for all modes; else what A leads out of the space by, and how far each mode reaches there.
    """

    values: FloatArray
    basis: FloatArray
    parts: FloatArray
    coupling: FloatArray

    def apply(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """h(A)b."""
        return np.asarray(self.basis @ (function(self.values) * self.parts))

    def decay_error(self, t: float) -> float:
        """A bound for |e^{−At}b − its value here|: ∫₀ᵗ of the part that leaves the space (eq. (11.6))."""
        if t == 0 or not self.coupling.any():
            return 0.0
        times = np.concatenate([[0.0], np.geomspace(min(t, 1e-6 / max(self.values.max(), 1e-300)), t, 400)])
        leaving = np.abs(np.exp(-np.multiply.outer(times, self.values)) @ (self.coupling * self.parts))
        return float(scipy.integrate.trapezoid(leaving, times))


def modes_of(matrix: FloatArray, vectors: list[FloatArray]) -> list[Modes]:
    """Each vector in modes of a symmetric positive semidefinite matrix."""
    if len(matrix) <= MOST_EXACT:
        values, basis = factors.eigh(matrix)
        values = np.maximum(values, 0.0)  # rounding may leave some below 0
        return [Modes(values, basis, b @ basis, np.zeros(len(values))) for b in vectors]
    return [_krylov(matrix, b) for b in vectors]


def _krylov(matrix: FloatArray, b: FloatArray) -> Modes:
    """Lanczos' modes of b, each vector orthogonalised against all before it, twice."""
    size, steps = float(np.linalg.norm(b)), min(_KRYLOV, len(b))
    basis = np.zeros((steps, len(b)))
    alpha, beta = np.zeros(steps), np.zeros(steps)
    vector, done = b / (size or 1.0), 0
    while done < steps:
        _core.check_stop()
        basis[done] = vector
        after = matrix @ vector
        alpha[done] = vector @ after
        done += 1
        for _ in range(2):
            after -= basis[:done].T @ (basis[:done] @ after)
        beta[done - 1] = np.linalg.norm(after)
        if beta[done - 1] <= _LOST * abs(alpha[0]) or done == len(b):
            beta[done - 1] = 0.0
            break
        vector = after / beta[done - 1]
    values, inner = scipy.linalg.eigh_tridiagonal(alpha[:done], beta[: done - 1])
    coupling = beta[done - 1] * inner[-1]
    return Modes(np.maximum(values, 0.0), basis[:done].T @ inner, size * inner[0], coupling)
