"""Arrays of the caller that are written: `out=`, and the neurons and masses of steppers."""

from __future__ import annotations

import weakref
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import check
from .check import FloatArray


def output(
    out: Any, name: str, shape: tuple[int, ...], layout: Literal["any", "rows", "C"] = "any"
) -> FloatArray:
    """The caller's memory as a NumPy array to write in: float64, aligned, writable, of this shape.

    Args:
        out: A NumPy array, or a tensor on the CPU that shares its memory by DLPack.
        name: Of the argument, for messages.
        shape: What is asked for.
        layout: "any" where a result is copied there; "rows" where the core writes rows in place, which must
            be without gaps and one after the other; "C" for C-contiguous.
    """
    to = out if isinstance(out, np.ndarray) else _shared(out, name)
    masked = isinstance(to, np.ma.MaskedArray)
    if to is None or masked or to.dtype != np.float64:
        kind = "a masked array" if masked else type(out).__name__ if to is None else to.dtype
        raise TypeError(f"{name} must be a float64 NumPy array, got {kind}")
    if to.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {to.shape}")
    if not to.flags.writeable:
        what = "array" if to is out else type(out).__name__
        raise ValueError(f"{name} must be writable, got a read-only {what}; np.array({name}) copies it")
    if not to.flags.aligned:
        raise ValueError(f"{name} must be aligned, got aligned=False")
    if layout == "C" and not to.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous, got strides {to.strides}")
    if layout == "rows" and not _in_rows(to):
        raise ValueError(
            f"{name} must have rows without gaps, one after the other, got strides {to.strides} for shape "
            f"{shape}; np.ascontiguousarray({name}) is a copy that has"
        )
    return to


class Held:
    """Keep the caller's array where it is for an object that knows its address.

    NumPy refuses to resize an array with a weak reference, even with ``refcheck=False``, which would leave
    addresses that are in use to others. A buffer would not be enough.
    """

    def __init__(self, array: FloatArray) -> None:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self._array, self._owner = weakref.ref(array), weakref.ref(owner)

    def __reduce__(self) -> tuple[type[Held], tuple[Any]]:
        return Held, (self._array(),)


def _shared(out: Any, name: str) -> npt.NDArray[Any] | None:
    """The memory of something that is no NumPy array, if it can be shared."""
    if not hasattr(out, "__dlpack__"):
        return None
    array = check.as_numpy(out, name)
    if array.flags.writeable:
        return array
    # NumPy before 2.1 gives every memory that comes by DLPack read-only.
    try:
        other = np.asarray(out)
    except Exception:
        return array
    return other if other.flags.writeable and np.shares_memory(other, array) else array


def _in_rows(array: FloatArray) -> bool:
    rows, columns = array.shape
    step, size = array.strides[0], array.itemsize
    together = columns == 1 or array.strides[1] == size
    return together and (rows == 1 or (step >= columns * size and step % size == 0))
