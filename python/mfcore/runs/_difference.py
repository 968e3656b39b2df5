"""The error of a risk from predictions of a run and of coarser ones."""

from __future__ import annotations

import math

from .._base.check import FloatArray

_ALIGNED = 0.1  # the least cosine of residual and error that is believed
_ROUNDING = 1e-14  # of the squares that the risk is a difference of
_LOWEST, _HIGHEST = 0.5, 2.0  # orders of convergence that are believed
_SAFE = 2.0


def error_between(residual: FloatArray, other: FloatArray, power: float) -> float:
    """|R(r + e) − R(r)| of residuals r and r + e, but as if r and e were somewhat aligned.

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
    """Error of a run from its difference to half the nodes, and from that of these to a quarter.

    Differences that shrink by 2^p leave last/(2^p − 1). The order p is measured, but no more than 2 is
    believed, and features with kinks have less than 1: twice that is stated.
    """
    order = math.log2(before / last) if before > 0 and last > 0 else _HIGHEST
    order = min(max(order, _LOWEST), _HIGHEST)
    return _SAFE * last / (2**order - 1)
