"""Expectations as sums over nodes, f_q = ∫σ*(x_q; ·)dρ and Ψ = Σ p_q (f_q − y_q) σ*(x_q; ·): eqs. (2.1) to
(2.4).

The nodes are those of a finite law, exactly, or Monte-Carlo samples; the core streams them, so that memory
does not grow with their number.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import _core
from .._base.check import FloatArray
from ..network import Network


@dataclass(frozen=True)
class Nodes:
    """Averages over nodes 0 … count−1 of a sampler, all of weight 1/count; implements `Evaluator`."""

    network: Network
    sampler: _core.Sampler
    seed: int
    count: int
    noise: float = 0.0  # E Var(y|x) where the nodes' targets are E[y|x]
    threads: int = 0

    def V(self, theta: FloatArray) -> FloatArray:
        """V(θ) = −E[y σ*(x; θ)]."""
        value, _, _ = self._potential(theta, None, None, value=True)
        return value

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(θ, θ') = E[σ*(x; θ) σ*(x; θ')]."""
        network = self.network._core
        return _core.interaction(
            network, theta, other, self.sampler, self.seed, self.count, threads=self.threads
        )

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(θ; ρ) = E[(f_ρ(x) − y) σ*(x; θ)]."""
        value, _, _ = self._potential(theta, points, weights, value=True)
        return value

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(θ; ρ) = E[(f_ρ(x) − y) ∇σ*(x; θ)]."""
        _, gradient, _ = self._potential(theta, points, weights, gradient=True)
        return gradient

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E(y − f_ρ(x))²."""
        _, _, risk = self._potential(points, points, weights)
        return risk + self.noise

    def _potential(
        self,
        theta: FloatArray,
        points: FloatArray | None,
        weights: FloatArray | None,
        value: bool = False,
        gradient: bool = False,
    ) -> tuple[FloatArray, FloatArray, float]:
        return _core.potential(
            self.network._core,
            theta,
            points,
            weights,
            self.sampler,
            self.seed,
            self.count,
            value=value,
            gradient=gradient,
            threads=self.threads,
        )
