"""Convert objects to plain tables and back: the one grammar of configuration files.

A table with the entry ``kind`` is an object; every other table is a mapping. Places are dotted paths such as
``model.init.std``, so that a message can point at the entry it speaks of.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from .check import hint, shown

Table = dict[str, Any]
T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])

MOST_DEPTH = 100  # tables and lists may be nested so deep; a deeper value is damaged or contains itself

_CLASSES: dict[str, Any] = {}
_MODULES: list[ModuleType] = []


def configurable(cls: C) -> C:
    """Decorator: the dataclass `cls` may stand in configuration files, under its own name.

    So may a function, for what it returns.
    """
    _CLASSES[cls.__name__] = cls
    return cls


def configurable_module(module: ModuleType) -> None:
    """Let the kinds in ``module.KINDS`` be decoded by its own ``from_config(table)``."""
    if module not in _MODULES:
        _MODULES.append(module)


def public_names(module: ModuleType) -> list[str]:
    """Return the names that `module` offers: its ``__all__``, else the public names it defines itself."""
    names = getattr(module, "__all__", None)
    if names is None:
        own = vars(module).items()
        names = [name for name, value in own if getattr(value, "__module__", "") == module.__name__]
    return [name for name in names if not name.startswith("_") and name != "from_config"]


def to_config(value: Any, where: str = "", *, inside_object: bool = False) -> Any:
    """`value` in the types TOML has: numbers, strings, truth values, lists and tables."""
    _check_depth(where)
    if hasattr(value, "_to_config"):
        return to_config(value._to_config(), where, inside_object=True)
    if _CLASSES.get(type(value).__name__) is type(value):
        return table_of(value, where)
    if isinstance(value, Mapping):
        for key in value:
            _check_key(key, where, inside_object)
        return {
            key: to_config(entry, _join(where, key), inside_object=inside_object)
            for key, entry in value.items()
        }
    if isinstance(value, np.ndarray | np.generic):
        value = value.astype(float).tolist() if value.dtype == np.longdouble else value.tolist()
    if isinstance(value, list | tuple):
        return [
            to_config(entry, f"{where}[{i}]", inside_object=inside_object) for i, entry in enumerate(value)
        ]
    if isinstance(value, bool | int | float | str):
        return value
    if value is None:
        raise ValueError(f"{where} is None, which TOML cannot hold: leave it out")
    raise TypeError(f"{where} must be an object of mfcore or a plain value, got {shown(value)}")


def table_of(value: Any, where: str = "") -> Table:
    """Convert a dataclass to ``{"kind": its class, **fields}``; fields that are None by default and None are
    left out, and so are those by which two values are not compared, such as a communicator.
    """
    table: Table = {"kind": type(value).__name__}
    for field in dataclasses.fields(value):
        entry = getattr(value, field.name)
        if field.init and field.compare and not (entry is None and field.default is None):
            table[field.name] = to_config(entry, _join(where, field.name))
    return table


def shown_call(value: Any) -> str:
    """The dataclass `value` as a call of its class, with the arguments that are not the defaults."""
    fields = [(field, getattr(value, field.name)) for field in dataclasses.fields(value) if field.init]
    given = (f"{field.name}={entry!r}" for field, entry in fields if entry != field.default)
    return f"{type(value).__name__}({', '.join(given)})"


def from_config(value: Any, where: str = "", wanted: tuple[type, ...] = ()) -> Any:
    """The inverse of `to_config`: tables with a kind become objects again, at any depth.

    `wanted` are the types that the place is for, if they are known: an unknown kind is answered with theirs.
    """
    _check_depth(where)
    if isinstance(value, list):
        return [from_config(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        return {key: from_config(entry, _join(where, key)) for key, entry in value.items()}
    kind = value["kind"]
    if isinstance(kind, str) and kind in _CLASSES:
        return _build(_CLASSES[kind], value, where)
    for module in _MODULES:
        if isinstance(kind, str) and kind in module.KINDS:
            return _placed(partial(module.from_config, value), where)
    known = _kinds_of(wanted) or _kinds_of((object,))
    raise ValueError(f"{_at(where)}unknown kind {shown(kind)}{hint(kind, known, 'known kinds:')}")


def _build(cls: Any, table: Table, where: str) -> Any:
    fields = inspect.signature(cls).parameters
    given = {key: entry for key, entry in table.items() if key != "kind"}
    for key in given:
        if key not in fields:
            raise ValueError(f"{_at(where)}{cls.__name__} has no field {key!r}{hint(key, fields, 'it has')}")
    for key, field in fields.items():
        if key not in given and field.default is field.empty:
            raise ValueError(f"{_at(where)}{cls.__name__} needs the field {key!r}")
    values = {key: from_config(entry, _join(where, key), _types_of(cls, key)) for key, entry in given.items()}
    return _placed(lambda: cls(**values), where)


def _types_of(cls: Any, field: str) -> tuple[type, ...]:
    """The classes that a field is annotated with; none where the annotation, as a protocol, does not tell."""
    try:
        hint = get_type_hints(cls).get(field)
    except (NameError, TypeError):  # a name that is imported for type checkers alone
        return ()
    classes = [t for t in (hint, *get_args(hint)) if inspect.isclass(t) and t is not type(None)]
    return tuple(t for t in classes if not getattr(t, "_is_protocol", False))


def _kinds_of(types: tuple[type, ...]) -> list[str]:
    """Names of the kinds that are of one of these types. A module of kinds makes the types it defines."""
    own = [name for name, cls in _CLASSES.items() if inspect.isclass(cls) and issubclass(cls, types)]
    made = [
        name
        for module in _MODULES
        if object in types or any(t in vars(module).values() for t in types)
        for name in module.KINDS
    ]
    return sorted([*(_CLASSES if object in types else own), *made])


def _placed(build: Callable[[], T], where: str) -> T:
    try:
        return build()
    except KeyError as error:
        raise ValueError(f"{_at(where)}the field {error} is missing") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError, NotImplementedError) as error:
        raise ValueError(f"{_at(where)}{error}") from error


def _check_depth(where: str) -> None:
    if where.count(".") + where.count("[") > MOST_DEPTH:
        raise ValueError(f"{where[:60]}…: nested more than {MOST_DEPTH} levels deep")


def _check_key(key: Any, where: str, inside_object: bool) -> None:
    if not isinstance(key, str):
        raise TypeError(f"{_at(where)}names of entries must be strings, got {shown(key)}")
    if key == "kind" and not inside_object:
        raise ValueError(f"{_at(where)}the name 'kind' is reserved for objects")


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _at(where: str) -> str:
    return f"{where}: " if where else ""
