"""Measures that stand for themselves in pictures of runs: at every time they are what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._base import check
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Trajectory
from ..stationary import Stationary
from ._runs import model_of
from ._sweeps import is_table


def with_measures(given: Any, model: Model | ReducedModel | None) -> Any:
    """Put runs without save points in the place of measures, alone, in a list or in a mapping."""
    check.instance(model, "model", (Model, ReducedModel, type(None)), "an mf.Model or mf.ReducedModel")
    if isinstance(given, Mapping) and not is_table(given):
        return {name: _as_run(one, model) for name, one in given.items()}
    if isinstance(given, Trajectory | Density | Cloud | Stationary | np.ndarray):
        return _as_run(given, model)
    several = isinstance(given, Iterable) and not is_table(given)
    return [_as_run(one, model) for one in given] if several else given


def timeless(run: Trajectory) -> bool:
    """Whether this is a measure that was given as such."""
    return not len(run.t)


def drawn_model(run: Trajectory) -> Model | ReducedModel | None:
    """The model whose coordinates a run has; None for a measure that was given without."""
    return None if timeless(run) and run.meta["model"] is None else model_of(run)


def _as_run(given: Any, model: Model | ReducedModel | None) -> Any:
    kinds = {Stationary: "Gibbs law", Density: "density", Cloud: "atoms", np.ndarray: "neurons"}
    for kind, name in kinds.items():
        if isinstance(given, kind):
            measure = given.measure if isinstance(given, Stationary) else given
            if isinstance(measure, np.ndarray):
                measure = check.array(measure, "trajectories")
            meta = {"model": model, "method": name}
            return Trajectory(np.empty(0), None, None, {}, measure, {}, "completed", "", meta)
    return given
