"""Free energies of atoms and of cells, with what a Newton step of the minimising-movement scheme needs."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from .._check import FloatArray
from ..reduce import ReducedModel

Mask = npt.NDArray[np.bool_]

_SMALLEST = 1e-6  # curvatures below this part of 1/τ count as this much, negative ones as positive
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
        """∂Φ_q at the points in the coordinates that move, shape (m, Q, c)."""
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
        self.roots = np.sqrt(reduced.weights)

    def value(self, z: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float, float]:
        """p(f − y), the energy, the sum of the sizes of its terms, and R."""
        reduced = self.reduced
        core = reduced._compiled
        phi = reduced.features(z) if core is None else core.features(z, self._threads)
        f = w @ phi
        residual = reduced.weights * (f - reduced.targets)
        risk = float(residual @ (f - reduced.targets)) + reduced.noise
        penalty = 0.5 * reduced.ridge * float(w @ np.square(z[:, self.decays]).sum(axis=1))
        size = float(reduced.weights @ (f * f + reduced.targets**2)) + reduced.noise + penalty
        return residual, 0.5 * risk + penalty, size, risk

    def slopes(self, z: FloatArray) -> FloatArray:
        """∂Φ_q/∂z_c of the coordinates that move, shape (m, Q, c)."""
        core = self.reduced._compiled
        full = self.reduced._gradients(z) if core is None else core.gradients(z, self._threads)
        return np.ascontiguousarray(full[:, :, self.moving])

    def drift(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂Ψ_λ at the points, shape (m, c)."""
        psi = np.einsum("mqc,q->mc", slopes, residual)
        return np.asarray(psi + self.decay * z[:, self.moving])

    def curvature(self, z: FloatArray, residual: FloatArray, slopes: FloatArray) -> FloatArray:
        """∂²Ψ_λ at the points by differences of the gradient, shape (m, c, c)."""
        c = len(self.moving)
        here = np.einsum("mqc,q->mc", slopes, residual)
        second = np.empty((len(z), c, c))
        for j, column in enumerate(self.moving):
            there = z.copy()
            there[:, column] += _NUDGE * (1 + np.abs(z[:, column]))
            change = np.einsum("mqc,q->mc", self.slopes(there), residual) - here
            second[:, j] = change / (there[:, column] - z[:, column])[:, None]
        return np.asarray(0.5 * (second + second.transpose(0, 2, 1)) + np.diag(self.decay))


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
        """From blocks w_i(∂²Ψ_λ + 1/(τ rate)), one per atom, and w_i √p_q ∂Φ_q, one column per node.

        With the variables scaled by √(τ rate/w_i), blocks are I + √(τ rate) ∂²Ψ_λ √(τ rate).
        """
        scale = np.sqrt(tau * self._field.rates)
        free = ~fixed
        blocks = curvature * scale[:, None] * scale * (free[:, :, None] & free[:, None, :])
        values, vectors = np.linalg.eigh(blocks)
        # Tiny and negative ones would send the step to saddle points and maxima.
        sizes = np.maximum(np.abs(1 + values), _SMALLEST)
        inverse = np.einsum("mac,mc,mbc->mab", vectors, 1 / sizes, vectors)
        per_atom = scale / np.sqrt(self.weights)[:, None]  # x = per_atom · scaled variable
        factor = slopes.transpose(0, 2, 1) * self._field.roots  # (m, c, Q)
        factor = factor * (scale * np.sqrt(self.weights)[:, None] * free)[:, :, None]
        right = np.where(free, -g * per_atom, 0.0)
        shape = factor.shape
        flat = factor.reshape(-1, shape[2])
        if shape[2] > len(flat):
            dense = flat @ flat.T
            c = shape[1]
            spread = np.einsum("mac,mc,mbc->mab", vectors, sizes, vectors)
            for a in range(c):
                for b in range(c):
                    rows = np.arange(shape[0]) * c
                    dense[rows + a, rows + b] += spread[:, a, b]
            step = linalg.cho_solve(linalg.cho_factor(dense), right.ravel()).reshape(right.shape)
        else:
            solved = np.einsum("mab,mbq->maq", inverse, factor).reshape(flat.shape)
            plain = np.einsum("mab,mb->ma", inverse, right)
            step = plain - (solved @ _small(flat, solved, plain)).reshape(plain.shape)
        return np.asarray(np.where(free, step * per_atom, 0.0))

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
        self._constant = self._heat * (float(special.xlogy(masses, masses).sum()) - sphere)

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
        """From a tridiagonal matrix and w √p_q ∂Φ_q, one column per node."""
        m, widths, step = self.masses, np.diff(place.x, axis=1), tau * self._rate
        bend = curvature[:, 0, 0].reshape(m.shape)
        if self._volume > 0:
            bend = bend + self._heat * self._volume / place.z[:, self._column].reshape(m.shape) ** 2
        # With |∂²Ψ + 1/τ| in place of ∂²Ψ + 1/τ the matrix is positive, whatever τ.
        bend = np.maximum(np.abs(bend * step + 1), _SMALLEST) / step - 1 / step
        stiff = self._heat / widths**2
        main, side = np.zeros_like(place.x), np.zeros_like(place.x)
        for edge in (slice(None, -1), slice(1, None)):
            main[:, edge] += m * (bend / 4 + stiff + 1 / (3 * step))
        side[:, :-1] = m * (bend / 4 - stiff + 1 / (6 * step))
        factor = (m.ravel()[:, None] * self._field.roots * slopes[:, :, 0]).reshape(*m.shape, -1)
        spread = np.zeros((*place.x.shape, factor.shape[-1]))
        spread[:, :-1] += 0.5 * factor
        spread[:, 1:] += 0.5 * factor
        main[fixed], side[fixed], spread[fixed] = 1, 0, 0
        right = np.where(fixed, 0.0, -g)
        band = np.stack([main.ravel(), side.ravel()])
        flat = spread.reshape(-1, spread.shape[-1])
        if flat.shape[1] > len(flat):
            dense = flat @ flat.T + np.diag(band[0]) + np.diag(band[1, :-1], 1) + np.diag(band[1, :-1], -1)
            return np.asarray(linalg.cho_solve(linalg.cho_factor(dense), right.ravel()).reshape(g.shape))
        solved = linalg.solveh_banded(band, np.column_stack([right.ravel(), flat]), lower=True)
        plain, solved = solved[:, 0], solved[:, 1:]
        return np.asarray((plain - solved @ _small(flat, solved, plain)).reshape(g.shape))

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """Nearly to where the first cell would be empty."""
        shrink = -(np.diff(d, axis=1) / np.diff(x, axis=1)).min()
        return min(1.0, 0.95 / shrink) if shrink > 0 else 1.0


def _small(factor: FloatArray, solved: FloatArray, plain: FloatArray) -> FloatArray:
    """(I + GᵀT⁻¹G)⁻¹ Gᵀ(T⁻¹b), the Q × Q part of (T + GGᵀ)⁻¹ b = T⁻¹b − T⁻¹G of it (Woodbury)."""
    small = factor.T @ solved
    small[np.diag_indices_from(small)] += 1
    result: FloatArray = linalg.cho_solve(linalg.cho_factor(small), factor.T @ plain.ravel())
    return result
