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
from ._sweeps import groups_of, is_table

Group = Trajectory | Iterable[Trajectory]  # one run, or several to average
# A table of `mf.sweep` counts as runs.
Runs = Trajectory | Iterable[Group] | Mapping[str, Group]

_CONFIDENCE = 0.95


def named(trajectories: Runs) -> dict[str, list[Trajectory]]:
    """The runs of each series by a name for the picture: the one given, or what tells it from the others."""
    return labelled(trajectories)[0]


def labelled(trajectories: Runs) -> tuple[dict[str, list[Trajectory]], str]:
    """The runs of each series by name, and what their names leave out as all have it in common."""
    if isinstance(trajectories, Trajectory):
        trajectories = [trajectories]
    if is_table(trajectories):
        return groups_of(trajectories)
    if isinstance(trajectories, Mapping):
        groups = [_group(group) for group in trajectories.values()]
        names: list[str] | None = [str(name) for name in trajectories]
    else:
        groups = [_group(group) for group in trajectories] if isinstance(trajectories, Iterable) else []
        names = None
        if not isinstance(trajectories, Iterable):
            _group(trajectories)
    if not groups:
        raise ValueError("trajectories must not be empty")
    common = ""
    if names is None:
        names, common = _names(groups)
    return dict(zip(names, groups, strict=True)), common


def _group(group: Any) -> list[Trajectory]:
    """The runs of one series, of one kind."""
    if is_table(group):
        group = [run for runs in groups_of(group)[0].values() for run in runs]
    runs = [group] if isinstance(group, Trajectory) or not isinstance(group, Iterable) else list(group)
    for run in runs:
        check.instance(
            run, "trajectories", Trajectory, "what mf.solve returns, several of them, or groups of them"
        )
    if not runs:
        raise ValueError("trajectories must not have an empty group")
    if len({is_network(run) for run in runs}) > 1:
        raise ValueError("trajectories must have groups of networks alone or of limits alone, got a mixture")
    return runs


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
    """Tell whether the run moved finitely many neurons, and not the measure of the limit."""
    return isinstance(run.final, np.ndarray)


def replicas(run: Trajectory) -> int:
    """The number of networks that ran side by side."""
    return len(run.final) if isinstance(run.final, np.ndarray) and run.final.ndim == 3 else 1


def widths(runs: list[Trajectory]) -> list[int]:
    """The numbers of neurons of several networks."""
    return [int(run.final.shape[-2]) for run in runs]


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
    return mean(values, half)


def mean(values: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means over the columns with half of their 95 % intervals (Student's t), to which the intervals `half`
    of the values themselves are added, as of one measurement that all columns share.
    """
    count = values.shape[1]
    if count == 1:
        return values[:, 0], half[:, 0]
    factor = special.stdtrit(count - 1, 0.5 + _CONFIDENCE / 2) / np.sqrt(count)
    return values.mean(axis=1), np.hypot(factor * values.std(axis=1, ddof=1), half.mean(axis=1))


def average(
    runs: list[Trajectory], values: list[FloatArray], errors: list[FloatArray | None]
) -> tuple[FloatArray, FloatArray]:
    """The mean of a series over all networks of a group, with half of its 95 % interval."""
    if len(runs) == 1:
        return center(runs[0], values[0], errors[0])
    first = runs[0].t
    for run in runs[1:]:
        if run.t.shape != first.shape or not np.allclose(run.t, first, rtol=1e-9, atol=1e-12):
            raise ValueError("trajectories must have the same save points in a group, got different ones")
    factor = special.ndtri(0.5 + _CONFIDENCE / 2) if is_network(runs[0]) else 1.0
    columns = [x.reshape(len(first), -1) for x in values]
    halves = [
        np.zeros_like(x) if error is None else factor * error.reshape(len(first), -1)
        for x, error in zip(columns, errors, strict=True)
    ]
    return mean(np.concatenate(columns, axis=1), np.concatenate(halves, axis=1))


def series(run: Trajectory, name: str, values: FloatArray) -> FloatArray:
    """Check that `values` is one number per save point, and per replica."""
    several = replicas(run) > 1 and values.ndim == 2 and values.shape[1] == replicas(run)
    if values.ndim != 1 and not several:
        raise ValueError(f"{name} must be one number per save point to be drawn, got shape {values.shape}")
    return values


def _names(groups: list[list[Trajectory]]) -> tuple[list[str], str]:
    """Names of series by what they differ in, and what all have in common."""
    firsts = [group[0] for group in groups]
    kinds = [_kind(run) for run in firsts]
    widths = [run.final.shape[-2] if is_network(run) else None for run in firsts]
    sizes = [width for width in widths if width is not None]
    # A limit has no width: that of a single network beside it stands at the network.
    tell_kind = len(set(kinds)) > 1 or len(groups) == 1
    tell_width = len(set(sizes)) > 1 or len(sizes) == 1
    heads = [
        [kind] * tell_kind + [f"N = {width}"] * (tell_width and width is not None)
        for kind, width in zip(kinds, widths, strict=True)
    ]
    common = [kinds[0]] * (not tell_kind) + [f"N = {width}" for width in sizes[:1] if not tell_width]
    names = [", ".join(head) for head in heads]
    entries = [_shared(group) for group in groups]
    for name in {name for name in names if names.count(name) > 1}:
        same = [k for k, other in enumerate(names) if other == name]
        for k, more in zip(same, _differing([entries[k] for k in same]), strict=True):
            names[k] = ", ".join([*heads[k], *more])
    for name in {name for name in names if names.count(name) > 1}:  # they differ in nothing but the seed
        for number, k in enumerate([k for k, other in enumerate(names) if other == name], start=1):
            names[k] = ", ".join([part for part in (name, f"run {number}") if part])
    return names, ", ".join(common)


def _differing(entries: list[dict[str, Any]]) -> list[list[str]]:
    """For each run, "name = value" of all entries in which the runs differ.

    Where they differ in the kind of an object, its own entries are left out.
    """
    keys = dict.fromkeys(key for one in entries for key in one)
    keys = {key: None for key in keys if len({str(one.get(key)) for one in entries}) > 1}
    kinds = [key.removesuffix(".kind") for key in keys if key.endswith(".kind")]
    keys = {
        key: None
        for key in keys
        if key.endswith(".kind") or not any(key.startswith(f"{kind}.") for kind in kinds)
    }
    return [[_entry(key, one[key]) for key in keys if key in one] for one in entries]


def _entry(key: str, value: Any) -> str:
    name = key.rpartition(".")[2]
    if name == "kind":
        return str(value)
    return f"{'Δ' if name == 'delta' else name} = {_short(value)}"


def _kind(run: Trajectory) -> str:
    method = run.meta.get("method")
    return method.partition("(")[0] if isinstance(method, str) else type(method).__name__


def _shared(group: list[Trajectory]) -> dict[str, Any]:
    """The entries that all runs of a group agree in."""
    first, *others = (_entries(run) for run in group)
    return {key: x for key, x in first.items() if all(str(one.get(key)) == str(x) for one in others)}


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
