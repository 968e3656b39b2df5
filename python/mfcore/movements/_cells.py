"""F of a density on cells of fixed masses, with noise, as a function of the edges of the cells (eqs.
(8.6), (8.7)).
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy import special

from .._base.check import FloatArray
from ._field import SMALLEST, Evaluated, Mask, PointEnergy, conjugate_gradients


class CellsEnergy:
    """F of a density that is constant on cells of given masses, as a function of the edges of the cells.

    One coordinate moves; points of other coordinates (labels of rate 0) have cells of their own. In terms of
    the quantile function X, which is linear between levels s_j with X(s_j) the edges, F is
    ½R + (λ/2)∫X² − β⁻¹∫log X' ds − β⁻¹ e ∫log X ds, features, X² and log X taken at the centres of cells, as
    for any `mf.Density`; W² is exact: eqs. (8.6), (8.7).
    """

    def __init__(self, field: PointEnergy, labels: FloatArray, masses: FloatArray) -> None:
        reduced = field.reduced
        self._field, self.masses = field, masses  # (g, n)
        groups, n = masses.shape
        self._points = np.repeat(labels, n, axis=0)
        self._column = int(field.moving[0])
        self._rate = float(field.rates[0])
        self._heat, self._volume = reduced.temperature, reduced.volume[self._column]
        self.bounded = np.zeros((groups, n + 1), dtype=bool)
        self.bounded[:, 0] = field.nonnegative[0]
        # The entropy is that of the full-dimensional law: relative to ω r^{d−1} dr (eq. (5.11)).
        entropy = float(special.xlogy(masses, masses).sum()) - reduced.log_volume
        self._constant = self._heat * entropy

    def at(self, x: FloatArray) -> Evaluated:
        widths, centres = np.diff(x, axis=1), 0.5 * (x[:, 1:] + x[:, :-1])
        z = self._points.copy()
        z[:, self._column] = centres.ravel()
        residual, energy, size, risk = self._field.value(z, self.masses.ravel())
        if widths.min() <= 0 or (self._volume and centres.min() <= 0):
            return Evaluated(x, z, residual, math.inf, math.inf, risk)
        logs = self._heat * self.masses * np.log(widths)
        energy += self._constant - float(logs.sum())
        size += abs(self._constant) + float(np.abs(logs).sum())
        if self._volume:
            logs = self._heat * self._volume * self.masses * np.log(centres)
            energy -= float(logs.sum())
            size += float(np.abs(logs).sum())
        return Evaluated(x, z, residual, energy, size, risk)

    def guess(self, place: Evaluated, tau: float) -> FloatArray:
        """The edges; where cells have width 0, spread by about as much as noise does in one step."""
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
        """W² = ∫(ΔX)² ds/rate of a quantile function X that is linear in every cell, eq. (8.6)."""
        left, right = move[:, :-1], move[:, 1:]
        return float((self.masses * (left**2 + left * right + right**2)).sum()) / (3 * self._rate)

    def slopes(self, place: Evaluated) -> FloatArray:
        return self._field.slopes(place.z)

    def curvature(self, place: Evaluated, slopes: FloatArray) -> FloatArray:
        return self._field.curvature(place.z, place.residual, slopes)

    def gradient(self, place: Evaluated, slopes: FloatArray, move: FloatArray, tau: float) -> FloatArray:
        """Eq. (8.7): half of what the centre of a cell feels goes to each of its edges."""
        m, widths = self.masses, np.diff(place.x, axis=1)
        slope = self._field.potential_gradient(place.z, place.residual, slopes)[:, 0].reshape(m.shape)
        if self._volume:
            slope = slope - self._heat * self._volume / place.z[:, self._column].reshape(m.shape)
        left, right = move[:, :-1], move[:, 1:]
        g = np.zeros_like(place.x)
        g[:, :-1] += m * (slope / 2 + self._heat / widths + (2 * left + right) / (6 * tau * self._rate))
        g[:, 1:] += m * (slope / 2 - self._heat / widths + (left + 2 * right) / (6 * tau * self._rate))
        return g

    def diagonal(self, g: FloatArray, tau: float) -> FloatArray:
        """−τ rate g/w, with half the mass of each neighbouring cell for the w of an edge."""
        w = np.zeros_like(g)
        w[:, :-1] += self.masses / 2
        w[:, 1:] += self.masses / 2
        return np.asarray(-tau * self._rate * g / w)

    def newton(
        self,
        place: Evaluated,
        slopes: FloatArray,
        curvature: FloatArray,
        g: FloatArray,
        fixed: Mask,
        tau: float,
    ) -> FloatArray:
        """Newton step: a tridiagonal matrix plus the interaction of the centres through the Q nodes, by
        conjugate gradients.
        """
        m, widths, step = self.masses, np.diff(place.x, axis=1), tau * self._rate
        bend = curvature[:, 0, 0].reshape(m.shape)
        if self._volume:
            bend = bend + self._heat * self._volume / place.z[:, self._column].reshape(m.shape) ** 2
        free, stiff = ~fixed, self._heat / widths**2
        joint = free[:, :-1] & free[:, 1:]

        def tridiagonal(kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
            main, side = np.zeros_like(g), np.zeros_like(g)
            main[:, :-1] += m * (kappa / 4 + stiff + 1 / (3 * step))
            main[:, 1:] += m * (kappa / 4 + stiff + 1 / (3 * step))
            side[:, :-1] = m * (kappa / 4 - stiff + 1 / (6 * step)) * joint
            main[fixed] = 1.0
            return main, side

        # With |∂²Ψ + 1/τ| in place of ∂²Ψ + 1/τ the matrix is positive, whatever τ.
        positive = np.maximum(np.abs(bend * step + 1), SMALLEST) / step - 1 / step
        main, side = tridiagonal(positive)
        band = np.stack([main.ravel(), side.ravel()])
        try:
            factor = scipy.linalg.cholesky_banded(band, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # almost singular: nothing but entropy holds the cells
            factor = np.stack([np.sqrt(band[0]), np.zeros_like(band[1])])
        main, side = tridiagonal(bend)

        def apply(v: FloatArray) -> FloatArray:
            v = np.where(free, v, 0.0)
            through = self._field.through_data(slopes, m * 0.5 * (v[:, 1:] + v[:, :-1])).reshape(m.shape)
            result = main * v
            result[:, :-1] += side[:, :-1] * v[:, 1:] + 0.5 * m * through
            result[:, 1:] += side[:, :-1] * v[:, :-1] + 0.5 * m * through
            return np.where(free, result, 0.0)

        def precondition(v: FloatArray) -> FloatArray:
            solved = scipy.linalg.cho_solve_banded((factor, True), v.ravel(), check_finite=False)
            return np.asarray(solved.reshape(v.shape))

        return conjugate_gradients(apply, precondition, np.where(free, -g, 0.0))

    def longest(self, x: FloatArray, d: FloatArray) -> float:
        """Nearly the part of the step at which some cell would have width 0."""
        shrink = -(np.diff(d, axis=1) / np.diff(x, axis=1)).min()
        return min(1.0, 0.95 / shrink) if shrink > 0 else 1.0
