"""A measure as searches for the least risk see it: its risk, Ψ_λ, and the least squares of its weights."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ..reductions._pairs import Pairs
from ._compact import in_pieces


class Field(Protocol):
    """Ψ_λ of a measure."""

    risk: float  # R of the measure
    node_risk: float  # what sums over nodes may change of it

    def at(self, points: FloatArray) -> FloatArray:
        """Ψ_λ at points."""
        ...


class Weighted(Protocol):
    """Atoms whose weights are wanted: minimise |A c − t|²/2 + Σ c_j λ|z_j|²/2."""

    columns: FloatArray  # A, (Q, m)
    target: FloatArray  # t

    def half_risk(self, c: FloatArray) -> float:
        """(R − τ²)/2 of the weights c."""
        ...

    def slopes(self, c: FloatArray) -> FloatArray:
        """∇Ψ_λ at the atoms, (m, k)."""
        ...


class NodeField:
    """Of features at nodes, by the residual p_q (f_q − y_q)."""

    def __init__(self, reduced: ReducedModel, f: FloatArray) -> None:
        self._reduced = reduced
        self.residual = reduced.weights * (f - reduced.targets)
        self.risk = float(reduced.weights @ np.square(f - reduced.targets)) + reduced.noise
        self.node_risk = reduced.risk_node_error(max(1.0, float(np.abs(f).max())))

    def at(self, points: FloatArray) -> FloatArray:
        """Ψ_λ at points."""
        return potential(self._reduced, points, self.residual)


class NodeWeighted:
    """Of features at nodes."""

    def __init__(self, reduced: ReducedModel, z: FloatArray) -> None:
        self._reduced, self._z, self._phi = reduced, z, reduced.features(z)
        scale = np.sqrt(reduced.weights)
        self.columns, self.target = (self._phi * scale).T, scale * reduced.targets

    def half_risk(self, c: FloatArray) -> float:
        """(R − τ²)/2 of the weights c."""
        return float(0.5 * self._reduced.weights @ self._off(c) ** 2)

    def slopes(self, c: FloatArray) -> FloatArray:
        """∇Ψ_λ at the atoms."""
        return gradient(self._reduced, self._z, self._reduced.weights * self._off(c))

    def _off(self, c: FloatArray) -> FloatArray:
        return np.asarray(c @ self._phi - self._reduced.targets)


class PairField:
    """Of closed pairs, by the atoms of the measure; `weights` 0 stand for no measure."""

    def __init__(self, reduced: ReducedModel, atoms: FloatArray, weights: FloatArray) -> None:
        self._reduced, self._atoms, self._weights = reduced, atoms, weights
        pairs = _pairs_of(reduced)
        self.risk = pairs.risk(atoms, weights)
        size = math.sqrt(pairs.power) + math.sqrt(self.risk)
        self.node_risk = reduced.risk_node_error(max(1.0, size))

    def at(self, points: FloatArray) -> FloatArray:
        """Ψ_λ at points."""
        psi = _pairs_of(self._reduced).psi(points, self._atoms, self._weights)
        return np.asarray(psi + decay(self._reduced, points))

    def slopes(self, points: FloatArray) -> FloatArray:
        """∇Ψ_λ at points."""
        found = _pairs_of(self._reduced).grad_psi(points, self._atoms, self._weights)
        return found + self._reduced.ridge * np.asarray(self._reduced.decays) * points


class PairWeighted:
    """Of closed pairs: columns are a root of the Gram matrix of neurons and target."""

    def __init__(self, reduced: ReducedModel, z: FloatArray) -> None:
        self._reduced, self._z = reduced, z
        pairs, m = _pairs_of(reduced), len(z)
        gram = np.empty((m + 1, m + 1))
        gram[:m, :m] = pairs.U(z, z)
        gram[:m, m] = gram[m, :m] = -pairs.V(z)
        gram[m, m] = pairs.power - reduced.noise
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self.columns, self.target = root[:, :m], root[:, m]

    def half_risk(self, c: FloatArray) -> float:
        """(R − τ²)/2 of the weights c."""
        return float(0.5 * np.square(self.columns @ c - self.target).sum())

    def slopes(self, c: FloatArray) -> FloatArray:
        """∇Ψ_λ at the atoms."""
        return PairField(self._reduced, self._z, c).slopes(self._z)


def field_of(reduced: ReducedModel, atoms: FloatArray, weights: FloatArray) -> NodeField | PairField:
    """Ψ_λ of weighted atoms."""
    if reduced.pairs is not None:
        return PairField(reduced, atoms, weights)
    return NodeField(reduced, weights @ reduced.features(atoms))


def weighted_of(reduced: ReducedModel, atoms: FloatArray) -> NodeWeighted | PairWeighted:
    """The least squares of the weights of these atoms."""
    return NodeWeighted(reduced, atoms) if reduced.pairs is None else PairWeighted(reduced, atoms)


def decay(reduced: ReducedModel, points: FloatArray) -> FloatArray:
    """λ|z|²/2 over the coordinates that decay."""
    kept = points[:, np.asarray(reduced.decays, dtype=bool)]
    return np.asarray(0.5 * reduced.ridge * np.square(kept).sum(axis=1))


def potential(reduced: ReducedModel, points: FloatArray, residual: FloatArray) -> FloatArray:
    """Ψ_λ at points."""
    return np.asarray(in_pieces(reduced, points, lambda phi: phi @ residual) + decay(reduced, points))


def gradient(reduced: ReducedModel, points: FloatArray, residual: FloatArray) -> FloatArray:
    """∇Ψ_λ at points, (n, k)."""
    slopes = np.einsum("nqk,q->nk", reduced._gradients(points), residual)
    return np.asarray(slopes + reduced.ridge * np.asarray(reduced.decays) * points)


def _pairs_of(reduced: ReducedModel) -> Pairs:
    assert reduced.pairs is not None
    return reduced.pairs
