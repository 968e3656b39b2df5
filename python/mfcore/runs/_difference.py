"""Estimate the error of a risk from the predictions f_q of a run and of coarser runs."""

from __future__ import annotations

import math

from .._base.check import FloatArray

ALIGNED = 0.1  # cosine between residual and error that is assumed at least
_ROUNDING = 1e-14  # relative rounding error of the squares whose difference is taken
_LOWEST, _HIGHEST = 0.5, 2.0  # measured orders of convergence are clamped to this interval
_SAFE = 2.0


def error_between(
    residual: FloatArray,
    other: FloatArray,
    power: float,
    *,
    signs: FloatArray | float = 1.0,
    aligned: float = ALIGNED,
) -> float:
    """|R(r + e) − R(r)| for residuals r and r + e, taking r and e as aligned with a cosine of at least
    `aligned`.

    R(r + e) − R(r) = 2⟨r, e⟩ + |e|², residuals being √p_q (f_q − y_q). The inner product changes sign from
    time to time, when nothing else is smaller than before: it counts as no less than that share of |r||e|.
    Where weights have either sign, residuals are √|p_q| (f_q − y_q), the two products sums with the `signs`
    of p_q, and |r||e| still bounds the first. `power` is Σ |p_q| y_q², the scale of rounding errors.
    """
    e = other - residual
    square = float((e * e).sum())
    change = float((signs * e * (2 * residual + e)).sum())
    return error_of(change, square, float((residual * residual).sum()), power, aligned)


def error_of(change: float, square: float, size: float, power: float, aligned: float = ALIGNED) -> float:
    """`error_between` by R(r + e) − R(r), |e|² and |r|²."""
    largest = 2 * math.sqrt(size * square)
    return max(abs(change), aligned * (largest + square)) + _ROUNDING * (power + size)


def extrapolated(last: float, before: float) -> float:
    """The error of a run from differences of the risks: n nodes to n/2 (`last`), n/2 to n/4 (`before`).

    Differences that shrink by 2^p leave last/(2^p − 1). The order p is measured, but no more than 2 is
    believed, and features with kinks have less than 1: twice that is stated.
    """
    order = math.log2(before / last) if before > 0 and last > 0 else _HIGHEST
    order = min(max(order, _LOWEST), _HIGHEST)
    return _SAFE * last / (2**order - 1)
