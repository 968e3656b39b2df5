"""Functions of spans given as pointers: numba's cfunc, SciPy's LowLevelCallable, ctypes."""

from __future__ import annotations

import _ctypes
import ctypes
import re
from typing import Any, NamedTuple

import numpy as np

from .._base.check import FloatArray

SIGNATURE = "void f(int64 n, double* z, double* value, double* slope, double* curvature, void* user)"
_POINTERS = {"double *", "void *", "const double *"}
_COUNTS = {"long", "long long", "int64_t", "ssize_t", "npy_int64", "npy_intp"}
_SPAN = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 5)


class Span(NamedTuple):
    """A function of spans, and what it is given as `user`."""

    address: int
    user: int = 0

    def __call__(self, z: FloatArray) -> list[FloatArray]:
        """Value, slope and curvature; NaN where the function fills nothing."""
        out = [np.full_like(z, np.nan) for _ in range(3)]
        _SPAN(self.address)(len(z), z.ctypes.data, *(x.ctypes.data for x in out), self.user)
        return out


def span_of(function: Any) -> Span | None:
    """The function of spans behind an object, None if it is a plain callable.

    Raises:
        ValueError: It is a pointer to a function with other arguments.
    """
    if isinstance(function, _ctypes.CFuncPtr):
        if function.argtypes is not None:
            _check(getattr(function.restype, "__name__", None), [_name(t) for t in function.argtypes])
        return Span(_address(function))
    if hasattr(function, "address") and hasattr(function, "ctypes"):  # numba's cfunc
        return span_of(function.ctypes)
    if type(function).__name__ == "LowLevelCallable":
        return _of_capsule(next(iter(function)))
    return None


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise ValueError(f"function must not be a null pointer, got {function!r}")
    return address


def _of_capsule(capsule: Any) -> Span:
    """The capsule of a LowLevelCallable: its name is the signature, its context the user data."""

    def ask(name: str, result: Any, *arguments: bytes) -> Any:
        prototype = ctypes.PYFUNCTYPE(result, ctypes.py_object, *[ctypes.c_char_p] * len(arguments))
        return prototype((f"PyCapsule_{name}", ctypes.pythonapi))(capsule, *arguments)

    label = ask("GetName", ctypes.c_char_p) or b""
    found = re.fullmatch(r"(.+?) \((.*)\)", label.decode())
    if found:
        _check(None if found[1] == "void" else found[1], found[2].split(", "))
    return Span(ask("GetPointer", ctypes.c_void_p, label), ask("GetContext", ctypes.c_void_p) or 0)


def _name(kind: type[Any]) -> str:
    """A ctypes type as in C."""
    if issubclass(kind, ctypes.c_void_p):
        return "void *"
    if issubclass(kind, ctypes._Pointer):
        return f"{_name(kind._type_)} *"
    return {"c_int64": "int64_t", "c_long": "long", "c_longlong": "long long", "c_ssize_t": "ssize_t"}.get(
        kind.__name__, kind.__name__.removeprefix("c_")
    )


def _check(result: str | None, arguments: list[str]) -> None:
    fits = len(arguments) == 6 and arguments[0] in _COUNTS and _POINTERS.issuperset(arguments[1:])
    if result is not None or not fits:
        raise ValueError(f"function must be {SIGNATURE}, got {result or 'void'} f({', '.join(arguments)})")
