"""Describe what the results of a function rest on: its code, and the functions and values that the code uses.

`identity` follows the function's defaults, closure and global names into all code that is the user's: neither
the standard library nor an installed package, whose code stays the same between two runs. It does not see
files that a function reads, nor the state of objects of other packages.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import json
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._base.described import OPAQUE, Described, described
from ._code import Code, code_of, imports_of, names_of

_MANY = 64  # a value of more entries is described by a hash of them
_LARGE = 1_000_000  # bytes of an array that is hashed once a sweep, not after each case
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # which differs from process to process
_INSTALLED = (*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),)


@dataclass
class Identity:
    """The code of functions, and the values that results rest on with the entries of each, by name."""

    code: dict[str, Code] = field(default_factory=dict)
    values: dict[str, Described] = field(default_factory=dict)

    def digest(self) -> str:
        """A short name of the content."""
        content = [{name: code["instructions"] for name, code in self.code.items()}, self.values]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def identity(run: Callable[..., Any], known: dict[int, Any] | None = None) -> Identity:
    """Describe `run`; `known` keeps hashes of large arrays from one call to the next.

    An object with a method `rests_on` describes itself: the method returns the entries by name.
    """
    follower = _Follower(module_of(run), {} if known is None else known)
    if hasattr(run, "rests_on"):
        follower.found.values = {name: {name: entry} for name, entry in run.rests_on().items()}
    else:
        named = getattr(run, "func", run)  # of functools.partial
        name = getattr(named, "__qualname__", type(named).__name__).rpartition("<locals>.")[2]
        follower.follow(run, name, always=True)
    return follower.found


def module_of(value: Any) -> str:
    """The module in which a function, a class or the class of an object is defined."""
    named = getattr(value, "func", value)
    name = str(getattr(named, "__module__", None) or type(named).__module__)
    return "__main__" if name == "__mp_main__" else name  # a script, as processes that it starts call it


class _Follower:
    """Collects the description; each object is described once."""

    def __init__(self, home: str, known: dict[int, Any]) -> None:
        self.found = Identity()
        self._home, self._known = home, known
        self._value_of = ""  # the name of the value whose parts are described
        self._seen: dict[
            int, tuple[str, Any]
        ] = {}  # by id: the first name, and the object, which stays alive

    def follow(self, value: Any, name: str, *, always: bool = False) -> None:
        """Describe a value that the code uses; with `always`, code of installed packages too."""
        outer, self._value_of = self._value_of, name
        self._part(value, name, always)
        self._value_of = outer

    def _enter(self, entries: Described) -> None:
        self.found.values.setdefault(self._value_of, {}).update(entries)

    def _part(self, value: Any, name: str, always: bool = False) -> None:
        value = value.item() if isinstance(value, np.generic) else value
        if value is None or isinstance(value, bool | int | float | str):
            self._enter({name: value})
            return
        if id(value) in self._seen:
            if (first := self._seen[id(value)][0]) != name:
                self._enter({name: f"the same as {first}"})
            return
        self._seen[id(value)] = name, value
        if isinstance(value, functools.partial):
            self.follow(value.func, name, always=always)
            arguments = [*enumerate(value.args), *value.keywords.items()]
            for key, argument in arguments:
                self.follow(argument, f"argument {key} of {name}")
        elif isinstance(value, types.MethodType):
            self.follow(value.__func__, name, always=always)
            self.follow(value.__self__, f"object of {name}")
        elif isinstance(value, staticmethod | classmethod):
            self.follow(value.__func__, name, always=always)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                if part is not None:
                    self.follow(part, name if part is value.fget else f"{name} (set)")
        elif isinstance(value, types.FunctionType) and (always or _users(value.__module__)):
            self._function(value, name)
        elif isinstance(value, type) and _users(value.__module__):
            self._class(value, name)
        elif hasattr(value, "__wrapped__"):  # such as what functools.cache returns
            self.follow(value.__wrapped__, name, always=always)
        elif isinstance(value, types.ModuleType | type) or (callable(value) and hasattr(value, "__name__")):
            self._enter({name: f"{module_of(value)} {value.__name__}"})
        else:
            self._value(value, name)

    def _function(self, function: types.FunctionType, name: str) -> None:
        self.found.code[name] = code_of(function.__code__, function.__globals__)
        code = function.__code__
        defaults = function.__defaults__ or ()
        last = zip(code.co_varnames[code.co_argcount - len(defaults) :], defaults, strict=False)
        for key, default in [*last, *(function.__kwdefaults__ or {}).items()]:
            self.follow(default, f"default {key} of {name}")
        for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.follow(cell.cell_contents, f"{key} of {name}")
            except ValueError:  # a name that the enclosing function has not set yet
                continue
        module = module_of(function)
        for path in names_of(code):
            self._global(function.__globals__, module, path)
        for imported in imports_of(code):
            self._imported(imported, function.__globals__)

    def _global(self, names: Mapping[str, Any], module: str, path: tuple[str, ...]) -> None:
        """Follow a global name; of a module of the user's, the attribute that the code reads."""
        key, *attributes = path
        if key not in names:  # a builtin, or not there yet
            return
        value, where = names[key], f"{module}.{key}"
        while isinstance(value, types.ModuleType) and attributes and _users(value.__name__):
            where = f"{value.__name__}.{attributes[0]}"
            value = getattr(value, attributes.pop(0), None)
        if not isinstance(value, types.ModuleType):
            self.follow(value, where.removeprefix(f"{self._home}."))

    def _imported(self, name: str, names: Mapping[str, Any]) -> None:
        """Take the whole code of a user's module that a function imports while it runs."""
        try:
            if name.startswith("."):
                name = importlib.util.resolve_name(name, names.get("__package__") or "")
            if not _users(name.partition(".")[0]):
                return
            spec = importlib.util.find_spec(name)
            if spec and spec.origin and spec.origin.endswith(".py"):
                code = compile(Path(spec.origin).read_bytes(), spec.origin, "exec", dont_inherit=True)
                self.found.code[name] = code_of(code, {})
        except (ImportError, ValueError, OSError, SyntaxError):  # the function itself will fail, and say why
            return

    def _class(self, kind: type, name: str) -> None:
        for base in kind.__bases__:
            if _users(base.__module__):
                self.follow(base, f"{name}, base {base.__qualname__}")
        for key, value in vars(kind).items():
            inner: Any = getattr(value, "__func__", value)
            generated = isinstance(inner, types.FunctionType) and inner.__code__.co_filename.startswith(
                "<str"
            )
            is_code = isinstance(inner, types.FunctionType | property)
            if not generated and (is_code or not key.startswith("__")):
                self.follow(value, f"{name}.{key}")

    def _value(self, value: Any, name: str) -> None:
        entries = self._plain(value, name)
        if entries is not None:
            if len(entries) > _MANY:
                text = json.dumps(entries, sort_keys=True, default=repr)
                entries = {name: f"{len(entries)} entries, SHA-256 {_hash(text.encode())}"}
            self._enter(entries)
            return
        parts: Iterable[tuple[Any, Any]]
        if isinstance(value, Mapping):
            parts = list(value.items())
        elif isinstance(value, list | tuple):
            parts = enumerate(value)
        elif dataclasses.is_dataclass(value):
            parts = [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
        elif hasattr(value, "__dict__") and (_ours(type(value)) or _users(type(value).__module__)):
            parts = list(vars(value).items())
        else:
            parts = []
            text = f"{sorted(map(repr, value))}" if isinstance(value, set | frozenset) else repr(value)
            if not text.startswith("<") and not _ADDRESS.search(text):
                self._enter({name: text if len(text) <= 200 else f"SHA-256 {_hash(text.encode())}"})
                return
        self._enter({f"{name}.kind": f"{module_of(type(value))}.{type(value).__qualname__}"})
        if _users(type(value).__module__):
            self.follow(type(value), type(value).__qualname__)
        for key, part in parts:
            self._part(part, f"{name}.{key}")

    def _plain(self, value: Any, name: str) -> Described | None:
        """The description of what is made of numbers, words and objects that files can hold; else None."""
        if isinstance(value, os.PathLike):
            return {name: os.fspath(value)}
        if isinstance(value, bytes | bytearray):
            return {name: f"{len(value)} bytes, SHA-256 {_hash(bytes(value))}"}
        if dataclasses.is_dataclass(value):  # its fields may be large arrays, which files would hold as lists
            return None
        try:
            if hasattr(value, "__array__"):
                return {name: self._array(value)}
            entries = described(value, name)
        except Exception:  # of whatever the user's object is; such as a set that cannot be sorted
            return None
        return None if OPAQUE in entries.values() else entries

    def _array(self, value: Any) -> Any:
        if id(value) in self._known:
            return self._known[id(value)][0]
        # A tensor that PyTorch differentiates must be asked for its numbers.
        numbers = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if numbers.dtype.kind in "biufc":
            content = np.ascontiguousarray(numbers).tobytes()
        else:
            content = _ADDRESS.sub("", repr(numbers.tolist())).encode()
        text = f"{numbers.dtype} of shape {numbers.shape}, SHA-256 {_hash(content)}"
        if numbers.nbytes > _LARGE:
            self._known[id(value)] = text, value
        return text


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _users(module: str | None) -> bool:
    """Whether a module is code that its user edits: not of the standard library, installed, or mfcore."""
    root = (module or "__main__").partition(".")[0]
    if (
        root in sys.stdlib_module_names
        or root in sys.builtin_module_names
        or root == __name__.partition(".")[0]
    ):
        return root == "__main__"
    there = sys.modules.get(module or "__main__")
    file = getattr(there, "__file__", None)
    if there is None:
        try:
            spec = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            spec = None
        file = spec.origin if spec else None
    if file is None:
        return True
    file = os.path.realpath(file)
    return not any(file.startswith(os.path.realpath(folder) + os.sep) for folder in _INSTALLED)
