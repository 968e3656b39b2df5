"""Runs in the table of a sweep, grouped over seeds, as pictures take them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..measures._measure import Cloud
from ..runs._trajectory import Trajectory

_NO_ARGUMENTS = ("case", "rng", "seed", "seeds")  # the number of a case, and what differs by chance alone
_WIDTHS = ("neurons", "N", "width")  # last words of axes that are numbers of neurons
_OWN = ("risk", "error", "status", "network", "failed")  # variables that are no observables


def is_table(value: Any) -> bool:
    """Whether this is an `xarray.Dataset`, such as `mf.sweep` and `mf.load` return."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(value, xarray.Dataset)


def groups_of(table: Any) -> tuple[dict[str, list[Trajectory]], str]:
    """The runs of a table by the arguments in which they differ, those of several seeds as one group; and the
    arguments that all have in common.
    """
    if "failed" in table and bool(table["failed"].all()):
        raise ValueError("trajectories must have a run that ended, got a sweep whose cases have all failed")
    if "risk" not in table or "t" not in table["risk"].dims or "t" not in table.coords:
        there = ", ".join(map(str, table.data_vars)) or "no variables"
        raise ValueError(
            f"trajectories must be a sweep of a function that returns its Trajectory, got a table of {there}"
        )
    axes = [name for name in table["risk"].dims if name not in ("t", "replica")]
    places = np.ndindex(*(table.sizes[name] for name in axes))
    cases = [table.isel(dict(zip(axes, place, strict=True))) for place in places]
    cases = [one for one in cases if not bool(one.get("failed", False))]
    said = [
        {str(name): x.item() for name, x in one.coords.items() if x.ndim == 0 and name not in _NO_ARGUMENTS}
        for one in cases
    ]
    differ = [name for name in said[0] if len({str(values[name]) for values in said}) > 1]
    common = ", ".join(_entry(name, x) for name, x in said[0].items() if name not in differ)
    found: dict[str, list[Trajectory]] = {}
    for one, values in zip(cases, said, strict=True):
        width = next((x for name, x in values.items() if name.rpartition(".")[2] in _WIDTHS), 1)
        name = ", ".join(_entry(name, values[name]) for name in differ) or common or "mean"
        found.setdefault(name, []).append(_run(one, width))
    return {name: _as_long(runs) for name, runs in found.items()}, common if differ else ""


def _run(one: Any, width: Any) -> Trajectory:
    """One run of the table, up to its last save point; of its measure only the kind and width are known."""
    t, risk, error = (one[name].values for name in ("t", "risk", "error"))
    reached = np.isfinite(t) & np.isfinite(risk.reshape(len(t), -1)).all(axis=1)
    end = len(t) if reached.all() else int(np.argmin(reached))
    observed = {
        str(name): x.values[:end]
        for name, x in one.data_vars.items()
        if name not in _OWN and x.dims[:1] == ("t",)
    }
    replicas = risk.shape[1:]
    network = bool(one.get("network", True))
    final = np.zeros((*replicas, int(width), 1)) if network else Cloud(np.zeros((1, 1)), np.ones(1))
    return Trajectory(t[:end], risk[:end], error[:end], observed, final, {}, "completed", "")


def _as_long(runs: list[Trajectory]) -> list[Trajectory]:
    """The runs of a group as far as all of them went."""
    end = min(len(run.t) for run in runs)
    return [
        Trajectory(
            run.t[:end], run.risk[:end], run.error[:end], {k: x[:end] for k, x in run.observed.items()},
            run.final, {}, run.status, run.message,
        )
        for run in runs
    ]  # fmt: skip


def _entry(name: str, value: Any) -> str:
    last = name.rpartition(".")[2]
    word = {"neurons": "N", "delta": "Δ"}.get(last, last)
    return f"{word} = {f'{value:g}' if isinstance(value, float) else str(value)[:20]}"
