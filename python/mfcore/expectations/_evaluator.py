"""The one interface behind `mf.V`, `mf.U`, `mf.psi`, `mf.grad_psi` and `mf.risk`.

Exact Gaussian formulas, sums over nodes (finite laws, Monte Carlo) and reduced models implement it; solvers
and functions know nothing else. Weight decay and what is trained are not its business:
`measures/_functions.py` adds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .._base.check import FloatArray


class Evaluator(Protocol):
    """Expectations over the data of one model. `points` (m, D) with `weights` (m,) are a measure ρ."""

    def V(self, theta: FloatArray) -> FloatArray:
        """V(θ) = −E[y σ*(x; θ)] for every row, shape (n,)."""
        ...

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(θ_i, θ'_j) = E[σ*(x; θ_i) σ*(x; θ'_j)], shape (n, m)."""
        ...

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(θ; ρ) = V(θ) + ∫U(θ, ·)dρ, shape (n,), without weight decay."""
        ...

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(θ; ρ) with respect to every entry of the rows, shape (n, D), without weight decay."""
        ...

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E(y − f_ρ(x))²."""
        ...


@dataclass(frozen=True)
class Scaled:
    """Expectations of a network with scale α: α² times those of scale 1 with labels y/α (eq. (11.1))."""

    unit: Evaluator
    square: float  # α²

    def V(self, theta: FloatArray) -> FloatArray:
        """V(θ) = −E[y σ*(x; θ)]."""
        return self.square * self.unit.V(theta)

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(θ, θ') = E[σ*(x; θ) σ*(x; θ')]."""
        return self.square * self.unit.U(theta, other)

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(θ; ρ) = E[(f_ρ(x) − y) σ*(x; θ)]."""
        return self.square * self.unit.psi(theta, points, weights)

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(θ; ρ) = E[(f_ρ(x) − y) ∇σ*(x; θ)]."""
        return self.square * self.unit.grad_psi(theta, points, weights)

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E(y − f_ρ(x))²."""
        return self.square * self.unit.risk(points, weights)
