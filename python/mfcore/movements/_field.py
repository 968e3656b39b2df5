"""The free energy F as a function of the variables x that describe ρ, for one minimising movement (eq.
(8.4)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray
from ..atoms._field import features_at, gradients_at
from ..reductions._model import ReducedModel

Mask = npt.NDArray[np.bool_]

SMALLEST = 1e-3  # preconditioners replace curvatures below this fraction of 1/τ by it
# relative accuracy of the solution of linear systems; more would be wasted on the next Newton step
_ACCURACY = 1e-3
_MOST_PRODUCTS = 500
# Relative step of the differences of gradients that give second derivatives; these decide the speed, not the
# solution.
_NUDGE = 1e-6


class Evaluated(NamedTuple):
    """Variables x that describe ρ, and F with its parts evaluated there."""

    x: FloatArray
    z: FloatArray  # points at which features are evaluated, shape (m, k)
    residual: FloatArray  # √p_q (f_q − y_q)
    energy: float  # F; inf where x is not admissible
    size: float  # sum of the absolute terms of F: rounding makes F uncertain by about 1e-16 of it
    risk: float


class Energy(Protocol):
    """F as a function of the variables x that describe ρ, and the transport between two such ρ."""

    bounded: Mask  # the entries of x that must be >= 0

    def at(self, x: FloatArray) -> Evaluated:
        """Evaluate F at the variables x, with all that its derivatives need."""
        ...

    def guess(self, place: Evaluated, tau: float) -> FloatArray:
        """Variables at which the search for the minimum of F + W²/2τ begins."""
        ...

    def transport(self, move: FloatArray) -> float:
        """W² of a change of the variables, in the metric of the rates: Σ w |Δz|²/rate."""
        ...

    def slopes(self, place: Evaluated) -> FloatArray:
        """√p_q ∂Φ_q at the points, for the coordinates that move, shape (m, c, Q)."""
        ...

    def curvature(self, place: Evaluated, slopes: FloatArray) -> FloatArray:
        """Second derivatives of Ψ at the points, shape (m, c, c)."""
        ...

    def gradient(self, place: Evaluated, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """The derivative of F + W²/2τ by the variables, `move` being their change so far."""
        ...

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """The step −τ·rate·g/w of steepest descent in the metric of the transport."""
        ...

    def newton(
        self,
        place: Evaluated,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """The Newton step of the variables that are not fixed, by a Hessian that is made positive."""
        ...

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """The largest part of the step d that leads to admissible variables."""
        ...


class PointEnergy:
    """½R + (λ/2)∫|z|² of weighted points and its derivatives, from compiled or hand-made features."""

    def __init__(self, reduced: ReducedModel, threads: int) -> None:
        self.reduced, self._threads = reduced, threads
        self.moving = np.flatnonzero(np.array(reduced.rates) > 0)
        self.rates = np.array(reduced.rates)[self.moving]
        self.decays = np.flatnonzero(reduced.decays) if reduced.ridge > 0 else np.empty(0, dtype=np.intp)
        self.decay = np.where(np.array(reduced.decays)[self.moving], reduced.ridge, 0.0)
        self.nonnegative = np.array(reduced.nonnegative)[self.moving]
        self._root = np.sqrt(reduced.weights)

    def features(self, z: FloatArray) -> FloatArray:
        """Φ_q at points, shape (m, Q)."""
        return features_at(self.reduced, z, self._threads)

    def gradients(self, z: FloatArray) -> FloatArray:
        """∂Φ_q/∂z_c at points, shape (m, Q, k)."""
        return gradients_at(self.reduced, z, self._threads)

    def value(self, z: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float, float]:
        """√p_q (f_q − y_q), the energy ½R + (λ/2)∫|z|², the sum of its absolute terms, and R."""
        reduced = self.reduced
        phi = self.features(z)
        f = np.einsum("m,mq->q", w, phi)  # as fast as BLAS here, without its threads
        residual = self._root * (f - reduced.targets)
        risk = float(residual @ residual) + reduced.noise
        penalty = self.penalty(z, w)
        size = float(reduced.weights @ (f * f + reduced.targets**2)) + reduced.noise + penalty
        return residual, 0.5 * risk + penalty, size, risk

    def penalty(self, z: FloatArray, w: FloatArray) -> float:
        """The decay term (λ/2)∫|z|² dρ."""
        return 0.5 * self.reduced.ridge * float(w @ np.square(z[:, self.decays]).sum(axis=1))

    def slopes(self, z: FloatArray) -> FloatArray:
        """√p_q ∂Φ_q/∂z_c for the coordinates that move, shape (m, c, Q)."""
        full = self.gradients(z)
        return np.ascontiguousarray(full[:, :, self.moving].transpose(0, 2, 1)) * self._root

    def potential_gradient(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂Ψ_λ at the points (eq. (2.2)), shape (m, c)."""
        return _across(slopes, residual) + self.decay * z[:, self.moving]

    def curvature(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the points, by differences of ∂Ψ_λ, shape (m, c, c)."""
        here, second = _across(slopes, residual), np.empty((*slopes.shape[:2], slopes.shape[1]))
        for j, column in enumerate(self.moving):
            there = z.copy()
            there[:, column] += _NUDGE * (1 + np.abs(z[:, column]))
            change = _across(self.slopes(there), residual) - here
            second[:, j] = change / (there[:, column] - z[:, column])[:, None]
        return np.asarray(0.5 * (second + second.transpose(0, 2, 1)) + np.diag(self.decay))

    def through_data(self, slopes: FloatArray, v: FloatArray) -> FloatArray:
        """Σ_q p_q ∂Φ_q(z_i) Σ_j ∂Φ_q(z_j) v_j: the change of ∂Ψ(z_i) if f changes as the points move by v."""
        c = slopes.reshape(-1, slopes.shape[2])
        return _across(slopes, np.einsum("m,mq->q", v.ravel(), c))


def _across(slopes: FloatArray, nodes: FloatArray) -> FloatArray:
    """Σ_q slopes[m, c, q] nodes[q]."""
    flat = slopes.reshape(-1, slopes.shape[2])
    return np.asarray(np.einsum("mq,q->m", flat, nodes).reshape(slopes.shape[:2]))


def conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray], precondition: Callable[[FloatArray], FloatArray], b: FloatArray
) -> FloatArray:
    """Solve Hx = b for H = T + GGᵀ by preconditioned conjugate gradients, stopping at a direction with
    negative curvature.

    Preconditioned by (about) T it takes as many products with G as GGᵀ has large eigenvalues: twenty at most
    for the features of a model, whatever Q. Unlike a factorisation (Woodbury) it needs no product of two
    matrices, for which BLAS would wake its threads at every step, nor a positive H: what is found before a
    direction of negative curvature is a direction of descent.
    """
    x, r = np.zeros_like(b), b
    z = precondition(r)
    p, rz = z, float((r * z).sum())
    enough = _ACCURACY**2 * rz
    for k in range(_MOST_PRODUCTS):
        if rz <= enough:
            break
        q = apply(p)
        bend = float((p * q).sum())
        if bend <= 0:
            return p if k == 0 else x
        x = x + rz / bend * p
        r = r - rz / bend * q
        z = precondition(r)
        rz, before = float((r * z).sum()), rz
        p = z + (rz / before) * p
    return x
