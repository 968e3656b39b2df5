"""Free energies of atoms and of cells, with what a Newton step of the minimising-movement scheme needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from .._check import FloatArray
from ..reduce import ReducedModel

Mask = npt.NDArray[np.bool_]

_SMALLEST = 1e-6  # curvatures below this part of 1/τ count as this much, negative ones as positive
_ACCURACY = 1e-3  # of the solution of linear systems; more would be wasted on the next Newton step
_MOST_PRODUCTS = 500
_NUDGE = 1e-6  # second derivatives are differences of gradients; they decide the speed, not the solution


class Place(NamedTuple):
    """Variables x, and F there."""

    x: FloatArray
    z: FloatArray  # the points at which features are evaluated, shape (m, k)
    residual: FloatArray  # p_q (f_q − y_q)
    energy: float  # F; inf where x is not admissible
    size: float  # the sum of the sizes of F's terms: F is known to some 1e-16 of it
    risk: float


class Energy(Protocol):
    """F as a function of the variables x that describe ρ, and the transport between two such ρ."""

    bounded: Mask  # the entries of x that must be >= 0

    def at(self, x: FloatArray) -> Place:
        """F and all that its derivatives need."""
        ...

    def guess(self, place: Place, tau: float) -> FloatArray:
        """Where to look first for the minimum of F + W²/2τ."""
        ...

    def transport(self, move: FloatArray) -> float:
        """W², measured in the metric of the rates: Σ w |Δz|²/rate."""
        ...

    def slopes(self, place: Place) -> FloatArray:
        """∂Φ_q at the points in the coordinates that move, shape (m, c, Q)."""
        ...

    def curvature(self, place: Place, slopes: FloatArray) -> FloatArray:
        """Second derivatives of Ψ at the points, shape (m, c, c)."""
        ...

    def gradient(self, place: Place, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """The derivative of F + W²/2τ."""
        ...

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """The step of steepest descent in the metric of the transport, −τ·rate·g/w."""
        ...

    def newton(
        self,
        place: Place,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """The Newton step of the entries that are not fixed, from a Hessian made positive."""
        ...

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """The largest part of the step d that may be tried."""
        ...


class Field:
    """½R + (λ/2)∫|z|² of weighted points, from compiled features or from those of a hand-made model."""

    def __init__(self, reduced: ReducedModel, threads: int) -> None:
        self.reduced, self._threads = reduced, threads
        self.moving = np.flatnonzero(np.array(reduced.rates) > 0)
        self.rates = np.array(reduced.rates)[self.moving]
        self.decays = np.flatnonzero(reduced.decays) if reduced.ridge > 0 else np.empty(0, dtype=np.intp)
        self.decay = np.where(np.array(reduced.decays)[self.moving], reduced.ridge, 0.0)
        self.nonnegative = np.array(reduced.nonnegative)[self.moving]

    def value(self, z: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float, float]:
        """p(f − y), the energy, the sum of the sizes of its terms, and R."""
        reduced = self.reduced
        core = reduced._compiled
        phi = reduced.features(z) if core is None else core.features(z, self._threads)
        f = np.einsum("m,mq->q", w, phi)  # as fast as BLAS here, without its threads
        residual = reduced.weights * (f - reduced.targets)
        risk = float(residual @ (f - reduced.targets)) + reduced.noise
        penalty = 0.5 * reduced.ridge * float(w @ np.square(z[:, self.decays]).sum(axis=1))
        size = float(reduced.weights @ (f * f + reduced.targets**2)) + reduced.noise + penalty
        return residual, 0.5 * risk + penalty, size, risk

    def slopes(self, z: FloatArray) -> FloatArray:
        """∂Φ_q/∂z_c of the coordinates that move, shape (m, c, Q)."""
        core = self.reduced._compiled
        full = self.reduced._gradients(z) if core is None else core.gradients(z, self._threads)
        return np.ascontiguousarray(full[:, :, self.moving].transpose(0, 2, 1))

    def drift(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂Ψ_λ at the points, shape (m, c)."""
        return _across(slopes, residual) + self.decay * z[:, self.moving]

    def curvature(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the points by differences of the gradient, shape (m, c, c)."""
        here, second = _across(slopes, residual), np.empty((*slopes.shape[:2], slopes.shape[1]))
        for j, column in enumerate(self.moving):
            there = z.copy()
            there[:, column] += _NUDGE * (1 + np.abs(z[:, column]))
            change = _across(self.slopes(there), residual) - here
            second[:, j] = change / (there[:, column] - z[:, column])[:, None]
        return np.asarray(0.5 * (second + second.transpose(0, 2, 1)) + np.diag(self.decay))

    def coupling(self, slopes: FloatArray, v: FloatArray) -> FloatArray:
        """Σ_q p_q ∂Φ_q(z_i) Σ_j ∂Φ_q(z_j) v_j: what the change v of all points does to the drift of each."""
        c = slopes.reshape(-1, slopes.shape[2])
        return _across(slopes, self.reduced.weights * np.einsum("m,mq->q", v.ravel(), c))


def _across(slopes: FloatArray, nodes: FloatArray) -> FloatArray:
    """Σ_q slopes[m, c, q] nodes[q]."""
    flat = slopes.reshape(-1, slopes.shape[2])
    return np.einsum("mq,q->m", flat, nodes).reshape(slopes.shape[:2])


class AtomsEnergy:
    """F of weighted atoms at temperature 0: ½R + (λ/2)Σ w_i|z_i|². The variables are their places."""

    def __init__(self, field: Field, points: FloatArray, weights: FloatArray) -> None:
        self._field, self._points, self.weights = field, points, weights
        self.bounded = np.tile(field.nonnegative, (len(points), 1))

    def at(self, x: FloatArray) -> Place:
        """F and all that its derivatives need."""
        z = self._points.copy()
        z[:, self._field.moving] = x
        return Place(x, z, *self._field.value(z, self.weights))

    def guess(self, place: Place, tau: float) -> FloatArray:
        """Where the atoms are."""
        return place.x

    def transport(self, move: FloatArray) -> float:
        """Σ w_i |Δz_i|²/rate: that of one plan, hence at least W²."""
        return float(self.weights @ (move**2 @ (1 / self._field.rates)))

    def slopes(self, place: Place) -> FloatArray:
        """∂Φ_q at the atoms."""
        return self._field.slopes(place.z)

    def curvature(self, place: Place, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the atoms."""
        return self._field.curvature(place.z, place.residual, slopes)

    def gradient(self, place: Place, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """w_i [∂Ψ_λ(z_i) + Δz_i/(τ rate)]."""
        drift = self._field.drift(place.z, place.residual, slopes)
        return np.asarray(self.weights[:, None] * (drift + move / (tau * self._field.rates)))

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """−τ rate g_i/w_i."""
        return np.asarray(-tau * self._field.rates * g / self.weights[:, None])

    def newton(
        self,
        place: Place,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """From blocks w_i(∂²Ψ_λ + 1/(τ rate)), one per atom, and their coupling through the Q nodes.

        With the variables scaled by √(τ rate/w_i), blocks are I + √(τ rate) ∂²Ψ_λ √(τ rate).
        """
        free, speed = ~fixed, np.sqrt(tau * self._field.rates)
        blocks = curvature * speed[:, None] * speed * (free[:, :, None] & free[:, None, :])
        values, vectors = np.linalg.eigh(blocks)
        # Tiny and negative ones would send the step to saddle points and maxima.
        sizes = np.maximum(np.abs(1 + values), _SMALLEST)
        blocks = np.einsum("mac,mc,mbc->mab", vectors, sizes, vectors)
        inverse = np.einsum("mac,mc,mbc->mab", vectors, 1 / sizes, vectors)
        roots = np.sqrt(self.weights)[:, None] * speed * free

        def apply(v: FloatArray) -> FloatArray:
            return np.einsum("mab,mb->ma", blocks, v) + roots * self._field.coupling(slopes, roots * v)

        def precondition(v: FloatArray) -> FloatArray:
            return np.asarray(np.einsum("mab,mb->ma", inverse, v))

        scale = speed * free / np.sqrt(self.weights)[:, None]
        return np.asarray(scale * conjugate_gradients(apply, precondition, -g * scale))

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """Any step."""
        return 1.0


class CellsEnergy:
    """F of a density that is constant on cells of given masses. The variables are the edges of the cells.

    One coordinate moves; points of other coordinates (labels of rate 0) have cells of their own. In terms of
    the quantile function X, which is linear between levels s_j with X(s_j) the edges, F is
    ½R + (λ/2)∫X² − β⁻¹∫log X' ds − β⁻¹ e ∫log X ds, features, X² and log X taken at the centres of cells, as
    for any `mf.Density`; W² is exact.
    """

    def __init__(self, field: Field, labels: FloatArray, masses: FloatArray) -> None:
        reduced = field.reduced
        self._field, self.masses = field, masses  # (g, n)
        groups, n = masses.shape
        self._points = np.repeat(labels, n, axis=0)
        self._column = int(field.moving[0])
        self._rate = float(field.rates[0])
        self._heat, self._volume = reduced.temperature, reduced.volume[self._column]
        self.bounded = np.zeros((groups, n + 1), dtype=bool)
        self.bounded[:, 0] = field.nonnegative[0]
        # The entropy relative to the volume ω r^{d−1} dr of a radius in d = e + 1 dimensions (math.md §4).
        half = 0.5 * (self._volume + 1)
        sphere = math.log(2) + half * math.log(math.pi) - special.gammaln(half) if field.nonnegative[0] else 0
        self._constant = float(self._heat * (special.xlogy(masses, masses).sum() - sphere))

    def at(self, x: FloatArray) -> Place:
        """F and all that its derivatives need."""
        widths, centres = np.diff(x, axis=1), 0.5 * (x[:, 1:] + x[:, :-1])
        z = self._points.copy()
        z[:, self._column] = centres.ravel()
        residual, energy, size, risk = self._field.value(z, self.masses.ravel())
        if widths.min() <= 0 or (self._volume > 0 and centres.min() <= 0):
            return Place(x, z, residual, math.inf, math.inf, risk)
        logs = self._heat * self.masses * np.log(widths)
        energy += self._constant - float(logs.sum())
        size += abs(self._constant) + float(np.abs(logs).sum())
        if self._volume > 0:
            logs = self._heat * self._volume * self.masses * np.log(centres)
            energy -= float(logs.sum())
            size += float(np.abs(logs).sum())
        return Place(x, z, residual, energy, size, risk)

    def guess(self, place: Place, tau: float) -> FloatArray:
        """The edges; where cells are empty, spread by about as much as noise does in a step."""
        if math.isfinite(place.energy):
            return place.x
        levels = np.cumsum(self.masses, axis=1) / self.masses.sum(axis=1, keepdims=True)
        inner = special.ndtri(np.minimum(levels[:, :-1], 1 - 1e-16))
        ends = inner[:, :1] - 1, inner[:, -1:] + 1
        spread = np.concatenate([ends[0], inner, ends[1]], axis=1)
        x = place.x + math.sqrt(2 * self._heat * self._rate * tau) * spread
        if self.bounded.any():
            x += np.maximum(0, -x[:, :1])
        return np.asarray(x)

    def transport(self, move: FloatArray) -> float:
        """∫(ΔX)² ds/rate of a function that is linear in every cell."""
        left, right = move[:, :-1], move[:, 1:]
        return float((self.masses * (left**2 + left * right + right**2)).sum()) / (3 * self._rate)

    def slopes(self, place: Place) -> FloatArray:
        """∂Φ_q at the centres."""
        return self._field.slopes(place.z)

    def curvature(self, place: Place, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the centres."""
        return self._field.curvature(place.z, place.residual, slopes)

    def gradient(self, place: Place, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """Half of what a cell's centre feels goes to each of its edges."""
        m, widths = self.masses, np.diff(place.x, axis=1)
        drift = self._field.drift(place.z, place.residual, slopes)[:, 0].reshape(m.shape)
        if self._volume > 0:
            drift = drift - self._heat * self._volume / place.z[:, self._column].reshape(m.shape)
        left, right = move[:, :-1], move[:, 1:]
        g = np.zeros_like(place.x)
        g[:, :-1] += m * (drift / 2 + self._heat / widths + (2 * left + right) / (6 * tau * self._rate))
        g[:, 1:] += m * (drift / 2 - self._heat / widths + (left + 2 * right) / (6 * tau * self._rate))
        return g

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """−τ rate g/w, with half of each neighbour's mass for w."""
        w = np.zeros_like(g)
        w[:, :-1] += self.masses / 2
        w[:, 1:] += self.masses / 2
        return np.asarray(-tau * self._rate * g / w)

    def newton(
        self,
        place: Place,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """From a tridiagonal matrix, and the coupling of the centres through the Q nodes."""
        m, widths, step = self.masses, np.diff(place.x, axis=1), tau * self._rate
        bend = curvature[:, 0, 0].reshape(m.shape)
        if self._volume > 0:
            bend = bend + self._heat * self._volume / place.z[:, self._column].reshape(m.shape) ** 2
        # With |∂²Ψ + 1/τ| in place of ∂²Ψ + 1/τ the matrix is positive, whatever τ.
        bend = np.maximum(np.abs(bend * step + 1), _SMALLEST) / step - 1 / step
        stiff = self._heat / widths**2
        main, side = np.zeros_like(g), np.zeros_like(g)
        main[:, :-1] += m * (bend / 4 + stiff + 1 / (3 * step))
        main[:, 1:] += m * (bend / 4 + stiff + 1 / (3 * step))
        side[:, :-1] = m * (bend / 4 - stiff + 1 / (6 * step))
        free = ~fixed
        main[fixed] = 1.0
        side[:, :-1] *= free[:, :-1] & free[:, 1:]
        factor = linalg.cholesky_banded(
            np.stack([main.ravel(), side.ravel()]), lower=True, check_finite=False
        )

        def apply(v: FloatArray) -> FloatArray:
            v = np.where(free, v, 0.0)
            through = self._field.coupling(slopes, m * 0.5 * (v[:, 1:] + v[:, :-1])).reshape(m.shape)
            result = main * v
            result[:, :-1] += side[:, :-1] * v[:, 1:] + 0.5 * m * through
            result[:, 1:] += side[:, :-1] * v[:, :-1] + 0.5 * m * through
            return np.where(free, result, 0.0)

        def precondition(v: FloatArray) -> FloatArray:
            solved = linalg.cho_solve_banded((factor, True), v.ravel(), check_finite=False)
            return np.asarray(solved.reshape(v.shape))

        return conjugate_gradients(apply, precondition, np.where(free, -g, 0.0))

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """Nearly to where the first cell would be empty."""
        shrink = -(np.diff(d, axis=1) / np.diff(x, axis=1)).min()
        return min(1.0, 0.95 / shrink) if shrink > 0 else 1.0


def conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray], precondition: Callable[[FloatArray], FloatArray], b: FloatArray
) -> FloatArray:
    """Solve (T + GGᵀ)x = b, T the preconditioner: about as many products with G as GGᵀ has large eigenvalues.

    The features of a model have some twenty directions that matter, whatever Q. Unlike a factorisation
    (Woodbury) this needs no product of two matrices, for which BLAS would wake its threads at every step.
    """
    x, r = np.zeros_like(b), b
    z = precondition(r)
    p, rz = z, float((r * z).sum())
    enough = _ACCURACY**2 * rz
    for _ in range(_MOST_PRODUCTS):
        if rz <= enough:
            break
        q = apply(p)
        length = rz / float((p * q).sum())
        x = x + length * p
        r = r - length * q
        z = precondition(r)
        rz, before = float((r * z).sum()), rz
        p = z + (rz / before) * p
    return x
