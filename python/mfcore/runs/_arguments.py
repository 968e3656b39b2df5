"""Checks of the arguments of `mf.solve` that are more than a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._base import check
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ._checkpoint import Plan
from ._observe import standard_observables
from ._rung import Method
from ._stopping import Stopper
from ._trajectory import Measure

_LONGEST_NAME = 1000


def checked_stop(stop: Any, plan: Plan) -> Stopper | None:
    """The argument `stop`, if it is a function and there are save points to ask it at."""
    if stop is not None and not callable(stop):
        raise TypeError(
            "stop must be a function of the trajectory so far, such as lambda run: run.risk[-1] < 1e-3, "
            f"got {check.shown(stop)}"
        )
    if stop is not None and not len(plan.times):
        raise ValueError("save_at must have times at which stop is asked, got none")
    checked: Stopper | None = stop
    return checked


def bytes_of(measure: Measure) -> int:
    """What a measure that is kept takes."""
    if isinstance(measure, Cloud):
        return measure.points.nbytes + measure.weights.nbytes
    return measure.mass.nbytes if isinstance(measure, Density) else int(measure.nbytes)


def checked_observers(observe: Any, model: Model | ReducedModel) -> dict[str, Callable[[Any], Any]]:
    if observe is None:
        return {}
    check.instance(observe, "observe", Mapping, 'a mapping such as {"name": function}')
    for name, function in observe.items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"observe must map names to functions, got {name!r}: {check.shown(function)}")
        if not name.isprintable() or len(name) > _LONGEST_NAME:  # they name members of archives
            raise ValueError(
                f"observe must have printable names of at most {_LONGEST_NAME} characters, got {name[:80]!r}"
            )
        if name in ("t", "risk", "error", "test_risk", "test_error", *standard_observables(model)):
            raise ValueError(f"observe must not use names that mfcore records itself, got {name!r}")
    return dict(observe)


def check_method(method: Any) -> None:
    if isinstance(method, type) or not hasattr(method, "begin"):
        raise TypeError(f"method must be a method such as mf.SGD(…), got {check.shown(method)}")


def check_step(method: Method, horizon: float) -> None:
    """Refuse fixed steps that the clock cannot count."""
    for stepping in (method, getattr(method, "driver", None)):
        for name in ("step", "tau"):
            step = getattr(stepping, name, None)
            if step is not None and step > horizon:
                raise ValueError(f"{name} must be <= horizon = {horizon:g}, got {step:g}")
            if step is not None and horizon / step > 2**53:
                raise ValueError(
                    f"{name} must be at least horizon / 2^53 = {horizon / 2**53:g}, got {step:g}"
                )
