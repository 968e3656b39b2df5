"""Flatten arguments to {dotted name: plain value}, by which two runs are compared field by field."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from .registry import to_config

Described = dict[str, Any]

# description of a function or other object that no file can hold: all of them compare equal
OPAQUE = "a Python object"
_LONG = 16  # arrays with more numbers than this are described by a hash
_SHOWN = 8  # a message lists at most so many differences


def described(value: Any, where: str) -> Described:
    """Flatten `value` to plain numbers, strings and hashes of arrays: one entry per field, at any depth.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore._base.described import described
        >>> described(mf.init.Gaussian(std=0.5), "init")
        {'init.kind': 'Gaussian', 'init.std': 0.5}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return {where: value}
    if isinstance(value, Mapping):
        return _joined({f"{where}.{key}": entry for key, entry in value.items()})
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return _of_list(sorted(value) if isinstance(value, set | frozenset) else value, where)
    if hasattr(value, "_to_config"):
        try:
            return described(to_config(value), where)
        except (TypeError, ValueError):  # a part of it has no form in files
            pass
    if dataclasses.is_dataclass(value):
        fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init and f.compare]
        # Fields that are None are left out, as in files.
        entries = {f"{where}.{name}": entry for name, entry in fields if entry is not None}
        return {f"{where}.kind": type(value).__name__, **_joined(entries)}
    return {where: OPAQUE}


def differences(stored: Described, given: Described) -> str:
    """List in words the entries in which two descriptions differ; empty if they agree."""
    found = [
        f"{name}: {_shown(stored, name)} there, {_shown(given, name)} given"
        for name in [*given, *(name for name in stored if name not in given)]
        if not _same(stored, given, name)
    ]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _joined(entries: Mapping[str, Any]) -> Described:
    return {name: leaf for where, entry in entries.items() for name, leaf in described(entry, where).items()}


def _of_list(value: Any, where: str) -> Described:
    try:
        numbers = np.asarray(value)
    except ValueError:  # rows of different lengths
        numbers = np.empty(0, dtype=object)
    if numbers.dtype.kind in "biuf" and numbers.size > _LONG:
        bits = np.ascontiguousarray(numbers, dtype=np.float64).tobytes()
        return {where: f"numbers of shape {numbers.shape}, SHA-256 {hashlib.sha256(bits).hexdigest()[:32]}"}
    if numbers.dtype.kind in "biuf":
        return {where: numbers.tolist()}
    return _joined({f"{where}[{k}]": entry for k, entry in enumerate(value)})


def _same(stored: Described, given: Described, name: str) -> bool:
    """Tell whether two entries are equal, NaN counting as equal to NaN."""
    if (name in stored) != (name in given):
        return False
    one, other = stored[name], given[name]
    return bool(one == other) or json.dumps(one) == json.dumps(other)


def _shown(values: Described, name: str) -> str:
    return repr(values[name]) if name in values else "nothing"
