"""Arrays of the caller: neurons that are written in place, and samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.output import output


def own(theta: Any, least: int, row: int | None = None) -> FloatArray:
    """Check the caller's array or tensor, whose memory is written: a copy would be of no use."""
    if not hasattr(theta, "shape"):
        raise TypeError(f"theta must be a float64 NumPy array, got {type(theta).__name__}")
    shape = tuple(theta.shape)
    if len(shape) != 2 or shape[0] < 1 or (shape[1] != row if row is not None else shape[1] <= least):
        want = f"(any, {row})" if row is not None else f"(any, > {least})"
        raise ValueError(f"theta must have shape {want}, got {shape}")
    return output(theta, "theta", shape, "rows")


def inputs_of(X: npt.ArrayLike, d: int) -> FloatArray:
    """One input or several as rows of length d."""
    rows = check.array(X, "X")
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    return rows if rows.shape[1:] == (d,) else check.array(np.atleast_2d(rows), "X", shape=(None, d))
