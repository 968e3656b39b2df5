"""The error of a risk from predictions of a run and of a coarser one."""

from __future__ import annotations

import numpy as np

from .._check import FloatArray
from ..reduce import ReducedModel

_ALIGNED = 0.1  # the least cosine of residual and error that is believed
_ROUNDING = 1e-14  # of the sum of squares that a risk is the difference of


def error_between(reduced: ReducedModel, f: FloatArray, other: FloatArray) -> float:
    """|R(f) − R(f + e)| for the error e = other − f of predictions f, but as if they were somewhat aligned.

    R(f + e) − R(f) = 2⟨f − y, e⟩ + |e|² in the mean over the nodes. The inner product changes sign from time
    to time: it counts as no less than _ALIGNED of |f − y||e|.
    """
    p, residual, e = reduced.weights, f - reduced.targets, other - f
    square = float(p @ e**2)
    inner = float((p * residual) @ e)
    largest = float(np.sqrt((p @ residual**2) * square))
    size = float(p @ f**2 + p @ reduced.targets**2) + reduced.noise
    return max(abs(2 * inner + square), _ALIGNED * (2 * largest + square)) + _ROUNDING * size
