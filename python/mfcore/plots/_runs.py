"""Read from trajectories what plots need: names, models, series with their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import special

from .._base import check
from .._base.check import FloatArray
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Trajectory, plain

Runs = Trajectory | Iterable[Trajectory] | Mapping[str, Trajectory]

_CONFIDENCE = 0.95


def named(trajectories: Runs) -> dict[str, Trajectory]:
    """Give each trajectory a name for the picture: the one given, or what tells it from the others."""
    if isinstance(trajectories, Trajectory):
        trajectories = [trajectories]
    if isinstance(trajectories, Mapping):
        given = {str(name): run for name, run in trajectories.items()}
        runs = list(given.values())
    elif isinstance(trajectories, Iterable):
        runs, given = list(trajectories), {}
    else:
        runs = [trajectories]
    for run in runs:
        check.instance(run, "trajectories", Trajectory, "what mf.solve returns, or several of them")
    if not runs:
        raise ValueError("trajectories must not be empty")
    return given or dict(zip(_names(runs), runs, strict=True))


def model_of(run: Trajectory) -> Model | ReducedModel:
    """The model of a run, from its record."""
    model = run.meta.get("model")
    if not isinstance(model, Model | ReducedModel):
        raise ValueError(
            f"trajectory must know its model to be drawn so, got {check.shown(model)}: of one with Python "
            "functions a file holds the repr only; put it back with dataclasses.replace(run, meta=…)"
        )
    return model


def is_network(run: Trajectory) -> bool:
    """Whether the run moved finitely many neurons, and not the measure of the limit."""
    return isinstance(run.final, np.ndarray)


def replicas(run: Trajectory) -> int:
    """The number of networks that ran side by side."""
    return len(run.final) if isinstance(run.final, np.ndarray) and run.final.ndim == 3 else 1


def center(run: Trajectory, values: FloatArray, error: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The mean of a series over replicas, and half of the 95 % interval of that mean.

    For networks that is a 95 % confidence interval, of the mean over replicas and of the samples that the
    risk is measured on, which replicas share. For the limit it is the stated error itself.
    """
    stated = np.zeros_like(values) if error is None else error
    if not is_network(run):
        return values, stated
    half = special.ndtri(0.5 + _CONFIDENCE / 2) * stated
    if values.ndim == 1:
        return values, half
    count = values.shape[1]
    factor = special.stdtrit(count - 1, 0.5 + _CONFIDENCE / 2) / np.sqrt(count)
    return values.mean(axis=1), np.hypot(factor * values.std(axis=1, ddof=1), half.mean(axis=1))


def series(run: Trajectory, name: str, values: FloatArray) -> FloatArray:
    """Check that `values` is one number per save point, and per replica."""
    several = replicas(run) > 1 and values.ndim == 2 and values.shape[1] == replicas(run)
    if values.ndim != 1 and not several:
        raise ValueError(f"{name} must be one number per save point to be drawn, got shape {values.shape}")
    return values


def _names(runs: list[Trajectory]) -> list[str]:
    names = [_name(run) for run in runs]
    entries = [_entries(run) for run in runs]
    for name in {name for name in names if names.count(name) > 1}:
        same = [k for k, other in enumerate(names) if other == name]
        keys = dict.fromkeys(key for k in same for key in entries[k])
        differing = [key for key in keys if len({str(entries[k].get(key)) for k in same}) > 1]
        for k in same:
            parts = [f"{key.rpartition('.')[2]} = {_short(entries[k].get(key))}" for key in differing]
            names[k] = ", ".join([name, *parts])
    for name in {name for name in names if names.count(name) > 1}:  # runs that differ in nothing but the seed
        for number, k in enumerate([k for k, other in enumerate(names) if other == name], start=1):
            names[k] = f"{name}, run {number}"
    return names


def _name(run: Trajectory) -> str:
    method = run.meta.get("method")
    kind = method.partition("(")[0] if isinstance(method, str) else type(method).__name__
    if not is_network(run):
        return kind
    return f"{kind}, N = {run.final.shape[-2]}"  # type: ignore[union-attr]


def _entries(run: Trajectory) -> dict[str, Any]:
    """All numbers and words that describe a run, by their dotted names."""
    flat: dict[str, Any] = {}

    def collect(value: Any, where: str) -> None:
        if isinstance(value, dict):
            for key, entry in value.items():
                collect(entry, f"{where}.{key}")
        elif not where.endswith(".neurons"):  # the name has it
            flat[where] = value

    for part in ("method", "model"):
        collect(plain(run.meta.get(part), {}, part), part)
    return flat


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)[:20]
