"""Functions of a measure for several networks at once, (replicas, N, D), and for a run in place of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Protocol, TypeVar

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.output import output
from ..model import Model
from ..reductions._model import ReducedModel

F = TypeVar("F", bound=Callable[..., Any])


class Run(Protocol):
    """The parts of a `Trajectory` that functions of measures use: its end, and its model in `meta`."""

    @property
    def final(self) -> Any:
        """The measure at the end."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """Model, method and more."""
        ...


def per_replica(function: F) -> F:
    """Decorator: map a function of (model, …, measure, …) over an array of measures (replicas, N, D).

    Results are stacked along a first axis; an argument `theta` of three dimensions is taken apart likewise,
    and `out` filled. Where the function has X, a run may stand for model and measure.
    """
    names = list(signature(function).parameters)
    takes_runs, place = "X" in names, names.index("measure")

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if takes_runs and args and is_run(args[0]):
            args = (model_of_run(args[0]), args[0].final, *args[1:])
        measure = args[place] if len(args) > place else keywords.get("measure")
        if not isinstance(measure, np.ndarray) or measure.ndim != 3:
            return function(*args, **keywords)
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or set(given) & set(keywords):
            return function(*args, **keywords)  # which says what is wrong
        given |= keywords
        out = given.pop("out", None)
        results = [function(**given | one) for one in _replicas(given.get("theta"), measure)]
        if out is None:
            return np.stack(results)
        output(out, "out", np.shape(results))[...] = results
        return out

    return call  # type: ignore[return-value]


def _replicas(theta: Any, measure: FloatArray) -> Iterator[dict[str, FloatArray]]:
    """The arguments of each replica."""
    if not isinstance(theta, np.ndarray) or theta.ndim != 3:
        yield from ({"measure": rows} for rows in measure)
        return
    if len(theta) != len(measure):
        raise ValueError(f"theta must have {len(measure)} replicas, as measure, got {len(theta)}")
    for points, rows in zip(theta, measure, strict=True):
        yield {"theta": rows if theta is measure else points, "measure": rows}


def is_run(value: Any) -> bool:
    """Tell whether this is a `Trajectory`, which is of a room below this one."""
    return isinstance(getattr(value, "meta", None), Mapping) and hasattr(value, "final")


def model_of_run(run: Run) -> Model | ReducedModel:
    """The model of a run."""
    model = run.meta.get("model")
    if isinstance(model, Model | ReducedModel):
        return model
    raise ValueError(
        f"model must be known to the run, got {check.shown(model)}, as a file could not hold it; use "
        "predict(model, run.final, X)"
    )
