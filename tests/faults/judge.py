"""Decide whether the outcome of a call is one of those that are promised."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import mfcore as mf
import numpy as np

PROMISED = (ValueError, TimeoutError, TypeError)
# Beside them: states that leave the numbers (steppers), files and extras that are not there.
ALSO = ("FloatingPointError", "FileNotFoundError", "IsADirectoryError", "ImportError")
# Not finite by definition, and documented.
INFINITE = {
    "Estimate": {"V_error", "U_error", "grad_V_error"},  # of one sample
    "Certificate": {"value", "gap"},  # free energies of points
    "Theorem": {"left", "right"},  # sides that are not computed for the model at hand
    "Diagnosis": {"hole"},  # in reduced coordinates there are no directions
    "Laziness": {"displacement", "kappa"},  # no bound where a kernel is singular; Df = 0
    "RegressionDraws": {"neurons"},
    "RiskPath": {"length"},  # of mixtures
    "Linearized": {"neurons"},  # infinitely many
    "Stability": {"multiplicities"},  # at d = ∞
    "Trajectory": {"error"},  # not asked for
    "Bound": {"constant", "measured", "err"},
}
_REDUCED = (
    "features",
    "table",
    "U",
    "V",
    "psi",
    "grad_psi",
    "risk",
)  # what floating point gives: see its docstring
# Where b is empty and a is not; of what is not finite, and derivatives beyond the largest number.
MAY_BE_INFINITE = ("mfcore.kl", "activations.")
MAY_BE_INFINITE += tuple(f"reduced{k}.{name}" for k in range(3) for name in _REDUCED)
# Quantiles of 0 and 1 of a normal law.
MAY_BE_INFINITE += ("scalar0.quantile", "scalar3.quantile")
ENDED_WELL = ("completed", "stationary", "interrupted", "out of time")


def numbers_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All floats and arrays of floats in a result, with where they are."""
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        yield path, value
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        for k, item in enumerate(value[:20]):
            yield from numbers_of(item, f"{path}[{k}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from numbers_of(item, f"{path}[{key!r}]")
    elif isinstance(value, mf.Model | mf.Network):
        return
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        allowed = INFINITE.get(type(value).__name__, set())
        for f in dataclasses.fields(value):
            if f.name not in (*allowed, "d", "meta", "dims", "log_volume") and hasattr(value, f.name):
                yield from numbers_of(getattr(value, f.name), f"{path}.{f.name}")


def unfinished(result: Any) -> bool:
    """Whether a status or message says that numbers may be missing."""
    status = getattr(result, "status", None)
    return bool(getattr(result, "message", "")) and status not in ENDED_WELL


def not_finite(name: str, result: Any) -> str | None:
    """Where the first number is that is not finite without a word; None if there is none."""
    if unfinished(result) or name.startswith(MAY_BE_INFINITE):
        return None
    for path, value in numbers_of(result):
        if not np.isfinite(value).all():
            return path or "the result"
    return None


def unclear(error: BaseException, names: frozenset[str]) -> str | None:
    """What is wrong with an exception; None if it is of a promised kind and names an argument."""
    kind, text = type(error).__name__, str(error)
    if kind in ALSO:
        return None
    ours = type(error).__module__.startswith("mfcore") and isinstance(error, PROMISED)
    if not ours and type(error) not in PROMISED:
        return f"{kind}: {text}"
    if "incompatible" in text and "The following" in text:
        return f"{kind} with a raw signature: {text}"
    if re.search(r"must be given \w+,", text):
        return None
    words = re.split(r"\W+", text.split("\n")[0])
    if words and (words[0] in names | {"kind", "argument"} or any(len(w) > 1 and w in names for w in words)):
        return None
    return f"{kind} that names no argument: {text}"


def snapshot(arguments: Mapping[str, Any]) -> dict[str, bytes]:
    """The bytes of the arrays among the arguments, but for those that are there to be written."""
    written = ("out", "theta", "mass") if "theta" in arguments or "mass" in arguments else ("out",)
    kept = {n: a for n, a in arguments.items() if isinstance(a, np.ndarray) and n not in written}
    return {name: array.tobytes() for name, array in kept.items() if array.dtype != object}
