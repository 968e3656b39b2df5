"""How well weighted atoms fit the data: their risk, its error by independent draws, and its change to others.

Atoms are known by their predictions f_q at the nodes of features or, of closed pairs, by themselves.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ..reductions._pairs import Pairs
from ..runs._difference import error_between, error_of
from ._field import chunks, features_at, gradients_at

_TOGETHER = 16  # neurons whose U among each other is computed for its diagonal


class Fit(Protocol):
    """A measure compared with the data."""

    @property
    def risk(self) -> float:
        """R(ρ)."""
        ...

    def error(self, other: Fit) -> float:
        """|R(ρ') − R(ρ)| of another measure as an error, see `error_between`."""
        ...

    def slopes(self, z: FloatArray) -> FloatArray:
        """∇Ψ(z; ρ), shape (n, k)."""
        ...

    def spread(self, z: FloatArray, weights: FloatArray) -> tuple[float, float, float]:
        """∫Ψdρ, ∫Ψ²dρ and ∫U(z, z)dρ − ∫∫U of ρ as these atoms (eqs. (10.1), (10.2))."""
        ...


class NodeFit:
    """Measure how well atoms fit by the predictions f_q at nodes."""

    def __init__(self, reduced: ReducedModel, f: FloatArray, threads: int) -> None:
        self._reduced, self._f, self._threads = reduced, f, threads

    @property
    def risk(self) -> float:
        """R = Σ p_q (y_q − f_q)² + τ²."""
        reduced = self._reduced
        return float(reduced.weights @ (reduced.targets - self._f) ** 2) + reduced.noise

    @property
    def residual(self) -> FloatArray:
        """√|p_q| (f_q − y_q)."""
        reduced = self._reduced
        return np.asarray(np.sqrt(np.abs(reduced.weights)) * (self._f - reduced.targets))

    def error(self, other: Fit) -> float:
        """|R(ρ') − R(ρ)| of another measure as an error."""
        assert isinstance(other, NodeFit)
        weights, targets = self._reduced.weights, self._reduced.targets
        power = float(np.abs(weights) @ targets**2)
        return error_between(self.residual, other.residual, power, signs=np.sign(weights))

    def slopes(self, z: FloatArray) -> FloatArray:
        """∇Ψ(z; ρ)."""
        gradients = gradients_at(self._reduced, z, self._threads)
        residual = self._reduced._residual(self._f)
        return np.stack([gradients[:, :, c] @ residual for c in range(z.shape[1])], axis=1)

    def spread(self, z: FloatArray, weights: FloatArray) -> tuple[float, float, float]:
        """∫Ψdρ, ∫Ψ²dρ and ∫U(z, z)dρ − ∫∫U, chunk by chunk."""
        reduced, first, second, own = self._reduced, 0.0, 0.0, 0.0
        residual = reduced._residual(self._f)
        for part in chunks(reduced, len(z)):
            phi = features_at(reduced, z[part], self._threads)
            psi = phi @ residual
            first += float(weights[part] @ psi)
            second += float(weights[part] @ psi**2)
            own += float(weights[part] @ (phi**2 @ reduced.weights))
        return first, second, own - float(reduced.weights @ self._f**2)


class PairFit:
    """Measure how well atoms fit by closed forms of their pairs."""

    def __init__(self, reduced: ReducedModel, z: FloatArray, weights: FloatArray, threads: int) -> None:
        assert reduced.pairs is not None
        self._pairs: Pairs = reduced.pairs.with_threads(threads)
        self._noise, self._z, self._weights = reduced.noise, z, weights
        self._v = self._pairs.V(z)
        self._own = self._pairs.interaction(z, z, weights)
        self.risk = max(self._pairs.power + float(weights @ (2 * self._v + self._own)), 0.0)

    def error(self, other: Fit) -> float:
        """|R(ρ') − R(ρ)| of another measure as an error: e has the square ∫∫U d(ρ' − ρ)d(ρ' − ρ)."""
        assert isinstance(other, PairFit)
        both = np.concatenate([other._z, self._z])
        signed = np.concatenate([other._weights, -self._weights])
        change = other.risk - self.risk
        square = max(float(signed @ self._pairs.interaction(both, both, signed)), 0.0)
        return error_of(change, square, max(self.risk - self._noise, 0.0), self._pairs.power)

    def slopes(self, z: FloatArray) -> FloatArray:
        """∇Ψ(z; ρ)."""
        return self._pairs.grad_psi(z, self._z, self._weights)

    def spread(self, z: FloatArray, weights: FloatArray) -> tuple[float, float, float]:
        """∫Ψdρ, ∫Ψ²dρ and ∫U(z, z)dρ − ∫∫U."""
        psi = self._v + self._own
        blocks = [z[at : at + _TOGETHER] for at in range(0, len(z), _TOGETHER)]
        own = np.concatenate([self._pairs.U(rows, rows).diagonal() for rows in blocks])
        return float(weights @ psi), float(weights @ psi**2), float(weights @ (own - self._own))
