"""Checks of arguments. Every message names argument, rule and value: ``step must be > 0, got -0.1``."""

from __future__ import annotations

import difflib
import math
import numbers
import os
import reprlib
import sys
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from .. import _core
from . import free_memory

FloatArray = npt.NDArray[np.float64]

_FEW = 4096  # entries up to which an array is checked at once, as the price of NumPy's calls counts there
_FLOAT64 = np.dtype(np.float64)
_SMALL_BYTES = 1 << 26  # requests for fewer bytes are granted without asking how much memory is free
MOST_THREADS = 4096  # more than any machine has; OpenMP ends the process if it cannot start them


def shown(value: Any) -> str:
    """`value` as messages quote it: one short line, NumPy scalars as plain numbers."""
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    brief = reprlib.Repr()
    brief.maxother = brief.maxstring = 80
    return " ".join(brief.repr(value).split())


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
    """`value` as a float within the bounds given. NaN never passes; infinities only with finite=False."""
    if type(value) is float and above < value < below and at_least <= value <= at_most and isfinite(value):
        return value
    if not _is_real(value):
        raise TypeError(f"{name} must be a real number, got {shown(value)}")
    try:
        x = float(value)
    except OverflowError:  # an integer beyond the range of a float
        x = math.inf if value > 0 else -math.inf
    bounds = [
        (x > above, above, ">"),
        (x >= at_least, at_least, ">="),
        (x < below, below, "<"),
        (x <= at_most, at_most, "<="),
    ]
    rules = [f"{sign} {bound:g}" for _, bound, sign in bounds if isfinite(bound)]
    if math.isnan(x) or (finite and math.isinf(x)):
        rules.insert(0, "finite" if finite else "a number")
    elif all(ok for ok, bound, _ in bounds if isfinite(bound)):
        return x
    raise ValueError(f"{name} must be {' and '.join(rules)}, got {shown(value)}")


def integer(value: Any, name: str, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """`value` as an int within the bounds given; whole floats such as 3.0 are accepted."""
    if not _is_real(value):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    try:
        n = int(value)
    except (OverflowError, ValueError):  # infinite, not a number
        n = None
    if n is None or n != value:
        raise ValueError(f"{name} must be an integer, got {shown(value)}")
    if at_least is not None and n < at_least:
        raise ValueError(f"{name} must be >= {at_least}, got {n}")
    if at_most is not None and n > at_most:
        raise ValueError(f"{name} must be <= {at_most}, got {n}")
    return n


def count(value: Any, name: str) -> int:
    """Check a count (of neurons, samples, …): an int >= 1 that fits into the 64-bit integers of the core."""
    return integer(value, name, at_least=1, at_most=2**63 - 1)


def times(
    value: Any, name: str, horizon: float, *, increasing: bool = True, empty: bool = False
) -> FloatArray:
    """Check an array of times, each between 0 and the horizon."""
    if not isinstance(value, str) and np.ndim(as_numpy(value, name)) == 0:
        kind = ValueError if _is_real(value) else TypeError
        raise kind(f"{name} must be a list of times, or an integer how many, got {shown(value)}")
    out = array(value, name, shape=(None,), empty=empty)
    wrong = np.flatnonzero((out < 0) | (out > horizon))
    if len(wrong):
        bad = f"{out[wrong[0]]:g} at [{wrong[0]}]"
        raise ValueError(f"{name} must be >= 0 and <= horizon = {horizon:g}, got {bad}")
    falls = 1 + np.flatnonzero(np.diff(out) <= 0)
    if increasing and len(falls):
        bad = f"{out[falls[0]]:g} at [{falls[0]}] after {out[falls[0] - 1]:g}"
        raise ValueError(f"{name} must increase, got {bad}")
    return out


def squares(values: FloatArray, name: str) -> None:
    """Refuse entries so large that the sum of their squares is not finite."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(values).sum())
    if not finite:
        raise ValueError(
            f"{name} must have squares of a finite sum, got entries up to {np.abs(values).max():g}"
        )


def finite(values: FloatArray) -> bool:
    """Tell whether all entries are finite. Few are multiplied by themselves, which is the quickest call."""
    if values.size <= _FEW and isfinite(np.vdot(values, values)):
        return True
    return _core.all_finite(values)


def memory(need: float, name: str, value: Any) -> None:
    """Refuse `value` if it needs more memory (`need` bytes or more) than is free.

    A request that cannot be met is so an error at once, which names the argument, and not a machine that
    swaps, or a process that the system ends.
    """
    if need < _SMALL_BYTES:
        return
    free = free_memory.free()
    if need > free:
        raise ValueError(
            f"{name} must fit in memory, of which {free_memory.shown(free)} are free, got {shown(value)}: "
            f"{free_memory.shown(need)} or more"
        )


def threads(value: Any) -> int:
    """Convert the argument `threads` for the core: the number itself, checked.

    None is the core's default, 0; but 1 in a worker process, whose neighbours have the other cores, unless
    `OMP_NUM_THREADS` says how many.
    """
    if type(value) is int and 0 < value <= MOST_THREADS:  # as it nearly always is: small calls feel the rest
        return value
    if value is not None:
        return integer(value, "threads", at_least=1, at_most=MOST_THREADS)
    loaded = sys.modules.get("multiprocessing.process")  # as it is in every worker
    worker = loaded is not None and loaded.parent_process() is not None
    return int(worker and not os.environ.get("OMP_NUM_THREADS"))


def boolean(value: Any, name: str) -> bool:
    """`value` if it is True or False; numbers and strings are refused."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def choice(value: Any, name: str, options: Iterable[str]) -> str:
    """`value` if it is one of `options`; the message proposes the closest one."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return str(value)
    listed = ", ".join(map(repr, options))
    raise ValueError(f"{name} must be one of {listed}, got {shown(value)}{did_you_mean(value, options)}")


def did_you_mean(value: Any, options: Iterable[str]) -> str:
    """The end of a message that proposes the option closest to `value`, or nothing."""
    by_lower = {option.lower(): option for option in options}
    close = difflib.get_close_matches(str(value).lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def hint(value: Any, options: Iterable[str], otherwise: str) -> str:
    """The end of a message about a name that is unknown: the closest one, or after `otherwise` all."""
    options = list(options)
    return did_you_mean(value, options) or f"; {otherwise} {', '.join(options) or 'none'}"


def instance(value: Any, name: str, kind: type[Any] | tuple[type[Any], ...], what: str) -> None:
    """Refuse `value` unless it is a `kind`; `what` says in words where such a thing comes from."""
    if not isinstance(value, kind):
        hint = (
            f"; call it: {value.__name__}(...)" if isinstance(value, type) and issubclass(value, kind) else ""
        )
        raise TypeError(f"{name} must be {what}, got {shown(value)}{hint}")


def array(
    value: Any, name: str, *, shape: Sequence[int | None] | None = None, empty: bool = False
) -> FloatArray:
    """`value` as a C-contiguous float64 array, the caller's own memory where its layout allows.

    `shape` gives the expected extents, None for a free one. NaN and infinities are refused, and so are masked
    entries: there is no number to use in their place.
    """
    if _is_plain(value) and (shape is None or _fits(value.shape, shape)):
        return value
    raw = as_numpy(value, name)
    if raw.dtype.kind not in "fiu":
        what = f"dtype {raw.dtype}" if raw.dtype != object else _objects(value, raw)
        raise TypeError(f"{name} must hold real numbers, got {what}")
    if shape is not None and not _fits(raw.shape, shape):
        want = ", ".join("any" if n is None else str(n) for n in shape) + "," * (len(shape) == 1)
        flat = len(shape) == 1 and raw.ndim == 2 and 1 in raw.shape
        remedy = f"; {name}.ravel() has one dimension" if flat else ""
        if len(shape) == 1 and raw.ndim == 0:
            remedy = f"; a single number goes in a list, [{shown(raw[()])}]"
        raise ValueError(f"{name} must have shape ({want}), got {raw.shape}{remedy}")
    if raw.size == 0 and not empty:
        raise ValueError(f"{name} must not be empty, got shape {raw.shape}")
    if raw.dtype != np.float64 or not raw.flags.carray:
        memory(8.0 * raw.size, name, raw)  # of a copy
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, which is refused below
        out = np.require(raw, np.float64, ["C", "A"])
    if not _core.all_finite(out):
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        at = f" at [{', '.join(map(str, bad))}]" if bad else ""
        raise ValueError(f"{name} must be finite, got {shown(raw[bad])}{at}")
    return out


def labels(value: Any, name: str, count: int) -> FloatArray:
    """Check labels: one number for each of `count` samples."""
    raw = as_numpy(value, name)
    if raw.ndim == 2 and raw.shape[1] > 1 and len(raw) == count:
        raise ValueError(
            f"{name} must have shape ({count},), got {raw.shape}: outputs are scalar. One column, such as "
            f"{name}[:, 0], is a problem of its own; a network of several outputs, which share w, is another"
        )
    out = array(value, name, shape=(None,))
    if len(out) != count:
        raise ValueError(f"{name} must have one label for each of the {count} rows of X, got {len(out)}")
    return out


def _is_plain(value: Any) -> TypeGuard[FloatArray]:
    """Tell whether `value` is a small array that passes every check and is used as it is."""
    return (
        type(value) is np.ndarray
        and value.dtype is _FLOAT64
        and 0 < value.size <= _FEW
        and (flags := value.flags).c_contiguous
        and flags.aligned
        and isfinite(np.vdot(value, value))
    )


def _fits(shape: tuple[int, ...], wanted: Sequence[int | None]) -> bool:
    if len(shape) != len(wanted):
        return False
    return all(want is None or want == have for want, have in zip(wanted, shape, strict=True))


def _is_real(value: Any) -> bool:
    """Tell whether `value` is one real number: no truth value, string, masked entry or array of several."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "fiu" and not isinstance(value, np.ma.MaskedArray)
    return isinstance(value, numbers.Real | np.integer | np.floating) and not isinstance(value, bool)


def as_numpy(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array of any kind of numbers, the memory of the caller where NumPy can share it."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise ValueError(
                f"{name} must not have masked entries, got {np.ma.getmaskarray(value).sum()} of them"
            )
        return np.asarray(value.data)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:  # another device, gradients
            raise TypeError(f"{name} must be an array that NumPy can share: {error}") from None
    try:
        return np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None


def _objects(value: Any, raw: npt.NDArray[Any]) -> str:
    """Describe in words why NumPy could store a value as Python objects only."""
    if raw.size == 0:
        return "none at all"
    odd = value if raw.ndim == 0 else next((item for item in raw.flat if not _is_real(item)), raw.flat[0])
    return shown(odd) + ("" if raw.ndim == 0 else " among its entries")
