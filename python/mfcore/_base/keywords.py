"""Let public callables answer a misspelt keyword with the name that is closest to it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .check import did_you_mean, hint
from .registry import public_names

F = TypeVar("F", bound=Callable[..., Any])

# Names of other libraries: that of mfcore for the same, and what takes it.
_METHOD, _SOLVE, _MODEL = "a method such as mf.SGD", "mf.solve", "mf.Model"
_ELSEWHERE = {
    "seed": ("rng", _SOLVE),
    "random_state": ("rng", _SOLVE),
    "generator": ("rng", _SOLVE),
    "lr": ("step", _METHOD),
    "learning_rate": ("step", _METHOD),
    "step_size": ("step", _METHOD),
    "width": ("neurons", _METHOD),
    "n_neurons": ("neurons", _METHOD),
    "batch_size": ("batch", _METHOD),
    "weight_decay": ("ridge", _MODEL),
    "n_steps": ("steps", _SOLVE),
    "num_steps": ("steps", _SOLVE),
    "max_iter": ("steps", _SOLVE),
    "iterations": ("steps", _SOLVE),
    "n_epochs": ("epochs", _SOLVE),
    "num_epochs": ("epochs", _SOLVE),
    "T": ("horizon", _SOLVE),
    "t_max": ("horizon", _SOLVE),
    "n_jobs": ("threads", _SOLVE),
    "num_threads": ("threads", _SOLVE),
    "verbose": ("progress", _SOLVE),
    "callback": ("observe", _SOLVE),
    "callbacks": ("observe", _SOLVE),
    "measure": ("theta", ""),  # as functions of one argument call what others call a measure
    "theta": ("measure", ""),
    "x": ("X", ""),
    "inputs": ("X", ""),
}
_ELSEWHERE |= {name: (name, owner) for name, owner in list(_ELSEWHERE.values()) if owner}

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
                    text = f"{called} got an unknown keyword argument {key!r}{_meant(key, options)}"
                    raise TypeError(text) from None
            raise

    call._suggests = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _meant(key: str, options: list[str]) -> str:
    """The end of a message: the option that was meant, or who takes what was meant, or all options."""
    name, owner = _ELSEWHERE.get(key, (key, ""))
    if name in options:
        return f"; did you mean {name!r}?"
    close = did_you_mean(key, options)
    if owner and not close:
        return f"; {name} is an argument of {owner}"
    return close or hint(key, options, "it takes")


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
