"""Means over w uniform on a sphere: by homogeneity from Gaussian ones, over planes, or between kinks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy import special

from .. import _core
from .._base.check import FloatArray
from ..activations import Activation
from ._sphere_kinks import KinkedMeans

_TOLERANCE = 1e-10
_LEVELS = ((8, 16), (16, 32), (24, 64), (32, 128), (48, 256), (64, 512))  # nodes of radii and of angles
_BETWEEN = (16, 32, 64, 128, 256, 512)  # nodes between two angles of kinks
_INSTEAD = "w = mf.init.Radial(norm) has closed forms, or give measure="
_CHUNK = 1 << 20  # numbers of one pass of quadrature


class SphereMeans:
    """Means over w = radius·u, u uniform on the unit sphere of R^d.

    Raises:
        ValueError: σ has kinks and is not piecewise linear.
    """

    def __init__(self, sigma: Activation, d: int, radius: float, has_b: bool) -> None:
        self._sigma, self._d, self._radius = sigma, d, radius
        pieces = sigma.pieces
        knots = sigma.kinks
        origin = float(sigma(0.0)) if pieces is not None else 1.0
        self._homogeneous = pieces is not None and origin == 0 and not has_b and set(knots) <= {0.0}
        if knots and pieces is None:
            raise ValueError(
                f"network must have a smooth or piecewise linear activation where w is on a sphere at "
                f"infinite width, got {sigma!r}; {_INSTEAD}"
            )
        kinked = bool(knots) and not self._homogeneous and d > 1
        self._kinked = KinkedMeans(sigma, d, radius) if kinked else None

    def pairs(self, X: FloatArray, Y: FloatArray, b: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E σσ, E σ'σ' and E σ'σ'⟨u, x⟩⟨u, y⟩ at pre-activations radius·⟨u, ·⟩ + b."""
        kinked = self._kinked
        if kinked is not None:
            levels = (partial(kinked.pairs, X, Y, b, nodes) for nodes in _BETWEEN)
            one, two, three = _until_settled(levels, self._sigma)
            return one, two, three
        if not self._homogeneous:
            return self._by_quadrature(X, Y, b)
        core = _core.Network(self._sigma._core, output="one", bias="none")
        values = _core.pair_matrix(core, X, Y) / self._d  # of the unit sphere: E|g|² = d
        # Homogeneous: σ'(z)z = σ(z).
        return self._radius**2 * values, _core.pair_slopes(core, X, Y), values

    def value(self, norms: FloatArray, b: float) -> FloatArray:
        """E σ(radius·⟨u, x⟩ + b) for |x| = norms."""
        size = self._radius * norms
        if self._homogeneous:  # E|u_1| = Γ(d/2)/(√π Γ((d + 1)/2))
            half = (
                math.exp(math.lgamma(self._d / 2) - math.lgamma((self._d + 1) / 2)) / math.sqrt(math.pi) / 2
            )
            return np.asarray(half * (self._sigma(size) + self._sigma(-size)))

        if self._kinked is not None:
            return self._kinked.value(norms, b)

        def means(level: tuple[int, int]) -> tuple[FloatArray, ...]:
            x, _, shares = self._rule(level)
            return (self._sigma(size[:, None] * x + b) @ shares,)

        return _until_settled((partial(means, level) for level in _LEVELS), self._sigma)[0]

    def _by_quadrature(
        self, X: FloatArray, Y: FloatArray, b: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means over the part of u in the plane of x and y, rows of X in turn."""
        norms = np.linalg.norm(Y, axis=1)

        def means(level: tuple[int, int]) -> tuple[FloatArray, ...]:
            along, across, shares = self._rule(level)
            sums = np.empty((3, len(X), len(Y)))
            step = max(1, _CHUNK // len(shares))
            for i, x in enumerate(X):
                size = float(np.linalg.norm(x))
                one = size * along
                first, first_slope = self._at(one, b)
                for j in range(0, len(Y), step):
                    part = Y[j : j + step]
                    cosine = part @ x / size if size > 0 else norms[j : j + step]
                    rest = (
                        np.linalg.norm(part - np.outer(cosine, x) / (size or 1.0), axis=1)
                        if size > 0
                        else 0 * cosine
                    )
                    two = np.outer(cosine, along) + np.outer(rest, across)
                    second, second_slope = self._at(two, b)
                    sums[0, i, j : j + step] = second @ (shares * first)
                    sums[1, i, j : j + step] = second_slope @ (shares * first_slope)
                    sums[2, i, j : j + step] = (second_slope * two) @ (shares * first_slope * one)
            return tuple(sums)

        one, two, three = _until_settled((partial(means, level) for level in _LEVELS), self._sigma)
        return one, two, three

    def _at(self, u: FloatArray, b: float) -> tuple[FloatArray, FloatArray]:
        z = self._radius * u + b
        return self._sigma(z), self._sigma.derivative(z)

    def _rule(self, level: tuple[int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes of two coordinates of u, in a plane, and their shares: |part|² ~ Beta(1, d/2 − 1)."""
        radii, angles = level
        if self._d == 1:
            return np.array([1.0, -1.0]), np.zeros(2), np.full(2, 0.5)
        phi = 2 * math.pi * (np.arange(angles) + 0.5) / angles
        if self._d == 2:
            return np.cos(phi), np.sin(phi), np.full(angles, 1 / angles)
        t, weights = special.roots_jacobi(radii, self._d / 2 - 2, 0.0)
        size = np.sqrt((1 + t) / 2)
        shares = np.repeat(weights / weights.sum() / angles, angles)
        return np.outer(size, np.cos(phi)).ravel(), np.outer(size, np.sin(phi)).ravel(), shares


def _until_settled(
    levels: Iterable[Callable[[], tuple[FloatArray, ...]]], sigma: Activation
) -> tuple[FloatArray, ...]:
    before: tuple[FloatArray, ...] | None = None
    for means in levels:
        now = means()
        if before is not None and all(
            np.abs(new - old).max() <= _TOLERANCE * max(1.0, float(np.abs(new).max()))
            for new, old in zip(now, before, strict=True)
        ):
            return now
        before = now
    raise ValueError(
        f"X must be of a size at which quadrature over the sphere converges to {_TOLERANCE:g} for {sigma!r}; "
        f"{_INSTEAD}"
    )
