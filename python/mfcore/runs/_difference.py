"""Estimate the error of a risk from the predictions f_q of a run and of coarser runs."""

from __future__ import annotations

import math

from .._base.check import FloatArray

_ALIGNED = 0.1  # cosine between residual and error that is assumed at least
_ROUNDING = 1e-14  # relative rounding error of the squares whose difference is taken
_LOWEST, _HIGHEST = 0.5, 2.0  # measured orders of convergence are clamped to this interval
_SAFE = 2.0


def error_between(residual: FloatArray, other: FloatArray, power: float) -> float:
    """|R(r + e) − R(r)| for residuals r and r + e, taking r and e as aligned with a cosine of at least
    _ALIGNED.

    R(r + e) − R(r) = 2⟨r, e⟩ + |e|², residuals being √p_q (f_q − y_q). The inner product changes sign from
    time to time, when nothing else is smaller than before: it counts as no less than _ALIGNED of |r||e|.
    `power` is E y², the scale of rounding errors.
    """
    e = other - residual
    square = float((e * e).sum())
    inner = 2 * float((residual * e).sum())
    largest = 2 * math.sqrt(float((residual * residual).sum()) * square)
    rounding = _ROUNDING * (power + float((residual * residual).sum()))
    return max(abs(inner + square), _ALIGNED * (largest + square)) + rounding


def extrapolated(last: float, before: float) -> float:
    """The error of a run from differences of the risks: n nodes to n/2 (`last`), n/2 to n/4 (`before`).

    Differences that shrink by 2^p leave last/(2^p − 1). The order p is measured, but no more than 2 is
    believed, and features with kinks have less than 1: twice that is stated.
    """
    order = math.log2(before / last) if before > 0 and last > 0 else _HIGHEST
    order = min(max(order, _LOWEST), _HIGHEST)
    return _SAFE * last / (2**order - 1)
