"""Means over w uniform on a sphere for a piecewise linear σ: one number in closed form, one by quadrature.

Let u be a point of the unit sphere, φ its angle to x, θ that of y to x. Then ⟨u, y⟩ = |y|(cos θ cos φ +
sin θ sin φ v), v a coordinate of a uniform point of the sphere of R^(d-1), independent of φ. Means over v are
incomplete beta functions. Means over φ have half-integer powers at the angles at which v = ±1 is a kink of σ;
between two of them, p and q, they are smooth in s, φ = p + (q − p) sin²(πs/2).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import special

from .._base.check import FloatArray
from ..activations import Activation

_CHUNK = 1 << 19  # numbers of one pass of quadrature


class KinkedMeans:
    """Means of a piecewise linear σ of radius·⟨u, ·⟩ + b, u uniform on the unit sphere of R^d, d ≥ 2."""

    def __init__(self, sigma: Activation, d: int, radius: float) -> None:
        self._d, self._radius = d, radius
        self._knots = np.array(sigma.kinks, dtype=float)
        pieces = sigma.pieces
        assert pieces is not None
        self._first, self._jumps = pieces.left_slope, np.array(pieces.jumps, dtype=float)
        self._origin = float(sigma(self._knots[0]))

    def value(self, norms: FloatArray, b: float) -> FloatArray:
        """E σ(radius·⟨u, x⟩ + b) for |x| = norms."""
        size = self._radius * norms
        return self._over(self._d, np.full(len(norms), b), size, b)[0]

    def pairs(
        self, X: FloatArray, Y: FloatArray, b: float, nodes: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E σσ, E σ'σ' and E σ'σ'⟨u, x⟩⟨u, y⟩, with so many nodes between two angles."""
        sums = np.empty((3, len(X), len(Y)))
        step = max(1, _CHUNK // (nodes * (3 * len(self._knots) + 1)))
        for i, x in enumerate(X):
            for j in range(0, len(Y), step):
                sums[:, i, j : j + step] = self._row(x, Y[j : j + step], b, nodes)
        return sums[0], sums[1], sums[2]

    def _row(self, x: FloatArray, Y: FloatArray, b: float, nodes: int) -> tuple[FloatArray, ...]:
        size, norms = float(np.linalg.norm(x)), np.linalg.norm(Y, axis=1)
        along = Y @ x / size if size > 0 else norms
        across = np.linalg.norm(Y - np.outer(along, x) / size, axis=1) if size > 0 else 0.0 * norms
        phi, shares = self._angles(size, norms, np.arctan2(across, along), b, nodes)
        one = self._radius * size * np.cos(phi)
        middle = b + self._radius * along[:, None] * np.cos(phi)
        spread = self._radius * across[:, None] * np.sin(phi)
        value, slope, moment = self._over(self._d - 1, middle, spread, b)
        first = self._origin + self._first * (one + b - self._knots[0])
        first_slope = np.full_like(one, self._first)
        for knot, jump in zip(self._knots, self._jumps, strict=True):
            first += jump * np.maximum(one + b - knot, 0.0)
            first_slope += jump * (one + b > knot)
        parts = first * value, first_slope * slope, first_slope * one * moment / self._radius**2
        return tuple((shares * part).sum(axis=1) for part in parts)

    def _angles(
        self, size: float, norms: FloatArray, theta: FloatArray, b: float, nodes: int
    ) -> tuple[FloatArray, FloatArray]:
        """Nodes of φ and their shares, for each y: between the angles at which something has a kink."""
        with np.errstate(divide="ignore", invalid="ignore"):
            own, others = (
                np.arccos(np.clip(np.nan_to_num((self._knots - b) / (self._radius * r)), -1.0, 1.0))
                for r in (np.array(size), norms[:, None])
            )
        total = theta[:, None] + others
        count = len(norms)
        ends = np.concatenate(
            [
                np.zeros((count, 1)),
                np.broadcast_to(own, (count, len(self._knots))),
                np.abs(theta[:, None] - others),
                np.minimum(total, 2 * math.pi - total),
                np.full((count, 1), math.pi),
            ],
            axis=1,
        )
        ends.sort(axis=1)
        s, weights = _rule(nodes)
        width = np.diff(ends, axis=1)[:, :, None]
        phi = ends[:, :-1, None] + width * np.sin(math.pi * s / 2) ** 2
        density = np.sin(phi) ** (self._d - 2) / special.beta((self._d - 1) / 2, 0.5)
        shares = width * density * (math.pi / 2 * np.sin(math.pi * s) * weights)
        return phi.reshape(count, -1), shares.reshape(count, -1)

    def _over(
        self, d: int, middle: FloatArray, spread: FloatArray, b: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E σ(z), E σ'(z), E σ'(z)(z − b) for z = middle + spread·v, v a coordinate of the sphere of R^d."""
        value = self._origin + self._first * (middle - self._knots[0])
        slope = np.full_like(middle, self._first)
        moment = self._first * (middle - b)
        for knot, jump in zip(self._knots, self._jumps, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                low = np.where(spread > 0, (knot - middle) / spread, np.where(middle > knot, -2.0, 2.0))
            above, first = _beyond(np.clip(low, -1.0, 1.0), d)
            value = value + jump * ((middle - knot) * above + spread * first)
            slope = slope + jump * above
            moment = moment + jump * ((middle - b) * above + spread * first)
        return value, slope, moment


@cache
def _rule(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss's rule on [0, 1]."""
    s, weights = np.polynomial.legendre.leggauss(nodes)
    return (s + 1) / 2, weights / 2


def _beyond(low: FloatArray, d: int) -> tuple[FloatArray, FloatArray]:
    """P(v > low) and E v·1(v > low) for a coordinate v of a uniform point of the unit sphere of R^d."""
    if d == 1:  # v = ±1
        return np.where(low >= 1, 0.0, np.where(low <= -1, 1.0, 0.5)), np.where(np.abs(low) < 1, 0.5, 0.0)
    rest = (1 - low) * (1 + low)
    tail = 0.5 * special.betainc((d - 1) / 2, 0.5, rest)
    factor = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / (2 * math.sqrt(math.pi))
    return np.where(low >= 0, tail, 1 - tail), factor * rest ** ((d - 1) / 2)
