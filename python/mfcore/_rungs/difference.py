"""The error of a risk from predictions of a run and of a coarser one."""

from __future__ import annotations

import math

from .._check import FloatArray

_ALIGNED = 0.1  # the least cosine of residual and error that is believed
_ROUNDING = 1e-14  # of the squares that the risk is a difference of


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
