"""Checks of arguments. Every message names argument, rule and value: ``step must be > 0, got -0.1``."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Float = np.float64
FloatArray = npt.NDArray[np.float64]


def number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    finite: bool = True,
) -> float:
    """`value` as a float within the bounds given."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number | np.ndarray):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if np.iscomplexobj(value) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a real number, got {value!r}")
    x = float(value)
    rules = []
    if finite:
        rules.append((math.isfinite(x), "finite"))
    elif math.isnan(x):
        rules.append((False, "a number"))
    rules += [
        (x > above, f"> {above:g}"),
        (x >= at_least, f">= {at_least:g}"),
        (x < below, f"< {below:g}"),
        (x <= at_most, f"<= {at_most:g}"),
    ]
    shown = [text for ok, text in rules if not ok or "inf" not in text]
    if not all(ok for ok, _ in rules):
        raise ValueError(f"{name} must be {' and '.join(shown)}, got {value!r}")
    return x


def integer(value: Any, name: str, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """`value` as an int within the bounds given; whole floats such as 3.0 are accepted."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not float(value).is_integer():
        raise ValueError(f"{name} must be an integer, got {value!r}")
    n = int(value)
    if at_least is not None and n < at_least:
        raise ValueError(f"{name} must be >= {at_least}, got {n}")
    if at_most is not None and n > at_most:
        raise ValueError(f"{name} must be <= {at_most}, got {n}")
    return n


def choice(value: Any, name: str, options: Iterable[str]) -> str:
    """`value` if it is one of `options`; the message proposes the closest one."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    close = difflib.get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{hint}")


def array(
    value: Any, name: str, *, shape: Sequence[int | None] | None = None, empty: bool = False
) -> FloatArray:
    """`value` as a C-contiguous float64 array, the caller's own memory where its layout allows.

    `shape` gives the expected extents, None for a free one. NaN and infinities are refused.
    """
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        value = np.from_dlpack(value)
    try:
        raw = np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if raw.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {raw.dtype}")
    if shape is not None:
        fits = raw.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, raw.shape, strict=True)
        )
        if not fits:
            want = ", ".join("any" if n is None else str(n) for n in shape) + "," * (len(shape) == 1)
            raise ValueError(f"{name} must have shape ({want}), got {raw.shape}")
    if raw.size == 0 and not empty:
        raise ValueError(f"{name} must not be empty, got shape {raw.shape}")
    out = np.ascontiguousarray(raw, dtype=np.float64)
    if raw.ndim == 0:
        out = out.reshape(())
    if not np.isfinite(out).all():
        bad = np.argwhere(~np.isfinite(out))[0]
        at = ", ".join(map(str, bad))
        raise ValueError(f"{name} must be finite, got {out[tuple(bad)]} at [{at}]")
    return out


def output(out: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Check an array the caller wants the result in: float64, C-contiguous, writable, of this shape."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        kind = getattr(out, "dtype", type(out).__name__)
        raise TypeError(f"{name} must be a float64 NumPy array, got {kind}")
    if out.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        flags = f"c_contiguous={out.flags.c_contiguous}, writeable={out.flags.writeable}"
        raise ValueError(f"{name} must be C-contiguous and writable, got {flags}")
    return out
