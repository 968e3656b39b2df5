"""Derivatives of ∇Ψ as sums over the nodes of the data: exact, and without a matrix over parameters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ..expectations._rules import Expectation, MonteCarlo
from ..model import Model


def nodes_of(model: Model, expectation: Expectation | None) -> tuple[FloatArray, FloatArray] | None:
    """Inputs and labels of the data's nodes or of samples, all of one weight; None for Gaussian laws."""
    law = model.data
    if isinstance(expectation, MonteCarlo):
        X, y = law._iid_sampler.draw(int(expectation.seed or 0), 0, expectation.samples)
        return X, y
    nodes = law._node_sampler
    if nodes is None:
        return None
    check.memory(8.0 * nodes.size * nodes.dimension, "data", nodes.size)
    X, y = nodes.draw(0, 0, nodes.size)
    return X, y


class OnNodes:
    """Products with H and K of neurons α·a·σ(⟨w, x⟩ + b): eq. (13.5). Kinks of σ have no second derivative.

    Args:
        model: A model, whose network and its scale are taken.
        theta: Atoms, shape (m, D).
        masses: Their masses.
        X: Nodes, shape (n, d), of weight 1/n.
        y: Their labels.
    """

    error = 0.0
    held: npt.NDArray[np.bool_] | None = None

    def __init__(
        self, model: Model, theta: FloatArray, masses: FloatArray, X: FloatArray, y: FloatArray
    ) -> None:
        network = model.network
        check.memory(40.0 * len(X) * len(theta), "measure", len(theta))
        self._has_a, self._has_b, self._row = network.has_a, network.has_b, network.row(0)
        self._X, self._masses = X, masses
        self._a = theta[:, 0] if network.has_a else np.ones(len(theta))
        z = X @ theta[:, self._row :].T
        if network.has_b:
            z += theta[:, self._row - 1]
        self._value = network.activation(z)
        self._slope = network.activation.derivative(z)
        self._bend = self._a * network.activation.second_derivative(z)
        self._scale = network.scale
        self.predicted = self._scale * (self._value @ (self._a * masses))
        self._residual = (self.predicted - y) * (self._scale / len(X))
        self.gradient = self._pull(self._residual)

    def own(self, v: FloatArray) -> FloatArray:
        """Σ_q p_q (f_q − y_q) ∇²σ*(x_q; θ_i) v_i."""
        along = self._along(v)
        across = self._slope * along
        gain = self._bend * along
        if self._has_a:
            gain += self._slope * v[:, 0]
        across, gain = self._residual[:, None] * across, self._residual[:, None] * gain
        out = np.empty_like(v)
        out[:, self._row :] = gain.T @ self._X
        if self._has_b:
            out[:, self._row - 1] = gain.sum(axis=0)
        if self._has_a:
            out[:, 0] = across.sum(axis=0)
        return out

    def coupled(self, v: FloatArray) -> FloatArray:
        """The same, and Σ_q p_q ∇σ*(x_q; θ_i) δf_q with δf = Σ_j w_j ⟨∇σ*_j, v_j⟩."""
        move = self._a * self._slope * self._along(v)
        if self._has_a:
            move += self._value * v[:, 0]
        change = self._scale**2 / len(self._X) * (move @ self._masses)
        return self.own(v) + self._pull(change)

    def _along(self, v: FloatArray) -> FloatArray:
        """The change of ⟨w, x⟩ + b, nodes by atoms."""
        along = self._X @ v[:, self._row :].T
        if self._has_b:
            along += v[:, self._row - 1]
        return np.asarray(along)

    def _pull(self, nodes: FloatArray) -> FloatArray:
        """Σ_q c_q ∇(aσ)(x_q; θ_i) of numbers c at the nodes."""
        gain = nodes[:, None] * (self._a * self._slope)
        out = np.empty((len(self._a), self._row + self._X.shape[1]))
        out[:, self._row :] = gain.T @ self._X
        if self._has_b:
            out[:, self._row - 1] = gain.sum(axis=0)
        if self._has_a:
            out[:, 0] = nodes @ self._value
        return out
