"""Hand results over: in the caller's array, if there is one, and never with numbers that are not finite."""

from __future__ import annotations

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.output import output


def check_out(out: FloatArray | None, *shape: int) -> None:
    """Refuse an unfit `out` before the work is done."""
    if out is not None:
        output(out, "out", shape)


def require_finite(result: FloatArray, what: str, **inputs: FloatArray) -> None:
    """Raise a ValueError naming the argument whose entries are too large, if `what` is not finite."""
    if not check.finite(result):
        raise ValueError(too_large(what, **inputs))


def give(result: FloatArray, out: FloatArray | None, what: str, **inputs: FloatArray) -> FloatArray:
    """Return the result, in `out` if that is given; a ValueError if it is not finite."""
    if not check.finite(result):  # as require_finite does, without the price of its call
        raise ValueError(too_large(what, **inputs))
    if out is None:
        return result
    output(out, "out", result.shape)[...] = result
    return out


def too_large(what: str, **inputs: FloatArray) -> str:
    """Name the argument with the largest entry, as squares of entries beyond 1e154 overflow."""
    sizes = {name: float(np.abs(array).max()) for name, array in inputs.items()}
    name = max(sizes, key=lambda name: sizes[name])
    return f"{name} must be of a size at which {what} is finite, got entries up to {sizes[name]:g}"
