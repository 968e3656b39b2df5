"""Let public callables answer a misspelt keyword with the name that is closest to it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .check import hint
from .registry import public_names

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = __name__.partition(".")[0]


def suggesting(function: F, name: str | None = None) -> F:
    """Wrap `function` so that its TypeError for an unknown keyword proposes a known one.

    Examples:
        >>> from mfcore._base.keywords import suggesting
        >>> def run(model: object, *, horizon: float) -> None: ...
        >>> suggesting(run)(None, horizont=1.0)  # type: ignore
        Traceback (most recent call last):
        ...
        TypeError: run got an unknown keyword argument 'horizont'; did you mean 'horizon'?
    """
    called = name or function.__name__

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            parameters = inspect.signature(function).parameters.values()
            known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
            if not keywords or any(p.kind is p.VAR_KEYWORD for p in parameters):
                raise
            for key in keywords:
                if key not in known:
                    options = [name for name in known if name != "self"]
                    text = f"{called} got an unknown keyword argument {key!r}{hint(key, options, 'it takes')}"
                    raise TypeError(text) from None
            raise

    call._suggests = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def cover(*modules: ModuleType) -> None:
    """Let everything public in `modules` suggest: functions, and constructors and methods of classes.

    A wrapped function takes the place of the plain one in all modules of this package, so that there is one
    object of its name, which pickles by it.
    """
    wrapped: dict[int, tuple[Any, Any]] = {}
    for module in modules:
        for name in public_names(module):
            value = vars(module).get(name)
            if isinstance(value, FunctionType) and not hasattr(value, "_suggests"):
                wrapped.setdefault(id(value), (value, suggesting(value)))
            elif inspect.isclass(value):
                _cover_class(value)
    for module in [m for key, m in sys.modules.items() if key.partition(".")[0] == _PACKAGE]:
        for name, value in list(vars(module).items()):
            if id(value) in wrapped:
                setattr(module, name, wrapped[id(value)][1])


def _cover_class(cls: type) -> None:
    """The constructor of a class and its public methods, inherited ones included."""
    for owner, name, function in list(_methods(cls)):
        called = owner.__name__ if name == "__init__" else name
        setattr(owner, name, suggesting(function, called))


def _methods(cls: type) -> Iterator[tuple[type, str, FunctionType]]:
    for owner in cls.__mro__:
        if owner.__module__.partition(".")[0] != _PACKAGE:
            continue
        for name, value in vars(owner).items():
            public = name == "__init__" or not name.startswith("_")
            if public and isinstance(value, FunctionType) and not hasattr(value, "_suggests"):
                yield owner, name, value
