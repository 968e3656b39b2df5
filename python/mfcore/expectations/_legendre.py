"""Legendre polynomials in dimension d, and polynomials of few directions as sums of harmonics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import hermite_e
from scipy.linalg import eigh_tridiagonal

from .._base.check import FloatArray

Monomials = dict[tuple[int, ...], float]  # exponents to coefficients
_NODES_PER_TERM = 2  # of a rule: aliases come from beyond three times the last degree


@dataclass(frozen=True)
class Legendre:
    """A Gauss rule for u = ⟨ω, x⟩/√d, and the polynomials e_k that are orthonormal in it, e_0 … e_{count−1}.

    Attributes:
        d: Dimension.
        nodes: Of the rule, in (−1, 1).
        weights: Their masses, sum 1.
        weighted: weights·e_k, one column for each k.
    """

    d: int
    nodes: FloatArray
    weights: FloatArray
    weighted: FloatArray

    @staticmethod
    @cache
    def of(d: int, count: int) -> Legendre:
        """The rule for `count` polynomials; exact for products of two of them, and beyond."""
        size = _NODES_PER_TERM * count
        k = np.arange(1.0, size)  # u e_k = β_{k+1} e_{k+1} + β_k e_{k−1}, eq. (4.28)
        squares = k * (k + d - 3)
        squares[1:] /= ((2 * k + d - 2) * (2 * k + d - 4))[1:]
        squares[0] = 1 / d
        nodes, vectors = eigh_tridiagonal(np.zeros(size), np.sqrt(squares))
        # Entry k of a vector is e_k at its node times the root of the weight: small where that is, too.
        weights = vectors[0] ** 2
        weighted = (vectors[:count] * vectors[0]).T
        return Legendre(d, nodes, weights, weighted)

    def polynomials(self, t: FloatArray, count: int) -> Iterator[FloatArray]:
        """P_0(t), P_1(t), …, of value 1 at t = 1."""
        for p, _ in self._recursion(t, count, False):
            yield p

    def with_slopes(self, t: FloatArray, count: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """(P_k, P_k') for k = 0, 1, …"""
        yield from self._recursion(t, count, True)

    def _recursion(self, t: FloatArray, count: int, slopes: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
        """P_{k+1} = ((2k + d − 2) t P_k − k P_{k−1})/(k + d − 2), and its derivative."""
        last, now = np.zeros_like(t), np.ones_like(t)
        last_slope, slope = np.zeros_like(t), np.zeros_like(t)
        for k in range(count):
            yield now, slope
            up, down = 1.0, 0.0
            if k:
                up, down = (2 * k + self.d - 2) / (k + self.d - 2), k / (k + self.d - 2)
            if slopes:
                last_slope, slope = slope, up * (now + t * slope) - down * last_slope
            last, now = now, up * t * now - down * last


@cache
def even_moments(d: int, count: int) -> FloatArray:
    """E |√d u| e_k(u) for k = 0 … count − 1, 0 where k is odd: eq. (4.31)."""
    mean = math.exp(0.5 * math.log(d) + math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    out = np.zeros(count)
    value, root = mean, 1.0  # λ_k = E |√d u| P_k(u), and √m_k
    for k in range(0, count, 2):
        out[k] = value * root
        value *= -(k - 1) / (k + d + 1)
        root *= math.sqrt(_growth(d, k) * _growth(d, k + 1))
    return out


def _growth(d: int, k: int) -> float:
    """m_{k+1}/m_k of the numbers of harmonics, m_k = (2k + d − 2)/(k + d − 2)·C(k + d − 2, k)."""
    if k == 0:
        return float(d)
    return (2 * k + d) * (k + d - 2) / ((2 * k + d - 2) * (k + 1))


class Harmonics:
    """A target on the sphere as Σ_k φ_k: values of φ_k/√m_k at directions ω, by the coordinates ⟨e_j, ω⟩."""

    def __init__(self, d: int, parts: list[Monomials] | None, series: FloatArray | None) -> None:
        self._d, self._parts, self._series = d, parts, series

    @staticmethod
    def of_series(series: FloatArray, d: int) -> Harmonics:
        """Σ_k f_k e_k(⟨e, ω⟩) of one direction."""
        return Harmonics(d, None, series)

    @staticmethod
    def of_polynomial(coefficients: Mapping[tuple[int, ...], float], d: int) -> Harmonics:
        """Of Σ_α c_α Π_j h_{α_j}(√d ζ_j), from the top degree downwards: eq. (4.32)."""
        left = _monomials(coefficients, math.sqrt(d))
        degree = max((sum(key) for key in left), default=0)
        parts: list[Monomials] = []
        for n in range(degree, -1, -1):
            piece = {key: c for key, c in left.items() if sum(key) == n}
            part, k = dict(piece), n
            while k >= 2 and piece:
                gap = n * (n + d - 2) - (k - 2) * (k + d - 4)
                piece = {key: -c / gap for key, c in _laplacian(piece).items()}
                part.update(piece)
                k -= 2
            for key, c in part.items():
                left[key] = left.get(key, 0.0) - c
            left = {key: c for key, c in left.items() if sum(key) < n}
            parts.append(part)
        return Harmonics(d, parts[::-1], None)

    def scaled(self, factor: float) -> Harmonics:
        """The same times a factor."""
        assert self._parts is not None
        parts = [{key: factor * c for key, c in part.items()} for part in self._parts]
        return Harmonics(self._d, parts, None)

    def power(self) -> float:
        """E φ², by the moments of ζ."""
        assert self._parts is not None
        return math.fsum(
            c * c2 * _moment(tuple(map(sum, zip(key, key2, strict=True))), self._d)
            for part in self._parts
            for key, c in part.items()
            for key2, c2 in part.items()
        )

    def at(self, e: FloatArray, count: int, slopes: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
        """φ_k/√m_k at rows of coordinates, with its gradient in them, for k below `count`."""
        if self._series is not None:
            for k, (p, slope) in enumerate(Legendre.of(self._d, count).with_slopes(e, count)):
                yield self._series[k] * p[:, 0], self._series[k] * slope
            return
        assert self._parts is not None
        root = 1.0
        for k, part in enumerate(self._parts[:count]):
            value, slope = np.zeros(len(e)), np.zeros_like(e)
            for key, c in part.items():
                powers = np.array(key)
                value += c * np.prod(e**powers, axis=1)
                for j in np.flatnonzero(powers) if slopes else ():
                    less = powers - (np.arange(len(key)) == j)
                    slope[:, j] += c * powers[j] * np.prod(e**less, axis=1)
            yield value / root, slope / root
            root *= math.sqrt(_growth(self._d, k))


def _monomials(coefficients: Mapping[tuple[int, ...], float], scale: float) -> Monomials:
    """Coefficients of monomials in ζ of a Hermite series in z = scale·ζ."""
    out: Monomials = {}
    for alpha, c in coefficients.items():
        tables = [
            hermite_e.herme2poly([0.0] * k + [1.0]) / math.sqrt(math.factorial(k)) * scale ** np.arange(k + 1)
            for k in alpha
        ]
        product = np.array(c)
        for table in tables:
            product = np.multiply.outer(product, table)
        for at in np.argwhere(product):
            key = tuple(map(int, at))
            out[key] = out.get(key, 0.0) + float(product[tuple(at)])
    return out


def _laplacian(terms: Monomials) -> Monomials:
    out: Monomials = {}
    for key, c in terms.items():
        for j, k in enumerate(key):
            if k >= 2:
                less = (*key[:j], k - 2, *key[j + 1 :])
                out[less] = out.get(less, 0.0) + k * (k - 1) * c
    return out


@cache
def _moment(key: tuple[int, ...], d: int) -> float:
    """E Π ζ_j^{α_j} on the unit sphere: Π (α_j − 1)!! / (d(d + 2)…(d + |α| − 2)); 0 if one is odd."""
    if any(k % 2 for k in key):
        return 0.0
    above = math.prod(math.prod(range(1, k, 2)) for k in key)
    return above / math.prod(range(d, d + sum(key), 2))
