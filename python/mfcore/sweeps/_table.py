"""Results side by side: what each run returned as named columns, and all of them as an `xarray.Dataset`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base import check
from ..runs._trajectory import Trajectory
from ._cases import Case, Plan
from ._work import Failed

Columns = dict[str, tuple[tuple[str, ...], np.ndarray]]  # by name: the dimensions, and the values


def columns_of(result: Any) -> Columns:
    """What a run returned: a number or an array, a dict of them by name, or a trajectory."""
    if isinstance(result, Trajectory):
        data = result.to_xarray()
        columns = {str(name): (tuple(map(str, v.dims)), v.values) for name, v in data.variables.items()}
        columns["status"] = ((), np.array(result.status))
        return columns
    named = result if isinstance(result, Mapping) else {"value": result}
    columns = {}
    for name, value in named.items():
        values = np.asarray(value)
        if values.dtype.kind not in "biufU":
            raise TypeError(
                "run must return a number, an array, a dict of them by name, or a Trajectory, got "
                f"{name} = {check.shown(value)}"
            )
        columns[str(name)] = (tuple(f"{name}_{k}" for k in range(values.ndim)), values)
    return columns


def dataset(plan: Plan, cases: Sequence[Case], outcomes: Sequence[Columns | Failed]) -> Any:
    """One variable for each column, over the axes of the grid or over the cases."""
    import xarray

    axes = plan.shape or {"case": list(range(len(cases)))}
    shape = tuple(len(values) for values in axes.values())
    done = [outcome for outcome in outcomes if not isinstance(outcome, Failed)]
    names = list(dict.fromkeys(name for columns in done for name in columns))
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {name: _labels(values) for name, values in axes.items()}
    for name in names:
        found = [None if isinstance(o, Failed) else o.get(name) for o in outcomes]
        dims = next(column[0] for column in found if column)
        present = [column[1] for column in found if column]
        if name == "t" and all(np.array_equal(values, present[0]) for values in present):
            coordinates["t"] = present[0]
            continue
        inner = tuple(f"{d}_" if d in axes else d for d in dims)
        values = _stacked([column[1] if column else None for column in found])
        variables[name if name not in axes else f"{name}_"] = (
            (*axes, *inner),
            values.reshape(*shape, *values.shape[1:]),
        )
    variables["failed"] = ([*axes], np.array([isinstance(o, Failed) for o in outcomes]).reshape(shape))
    if plan.shape is None:
        for name in cases[0] if cases else ():
            coordinates[name] = ("case", _labels([case[name] for case in cases]))
    failures = [
        f"{shown_case(case)}: {outcome.message}"
        for case, outcome in zip(cases, outcomes, strict=True)
        if isinstance(outcome, Failed)
    ]
    attributes = {"failures": failures, **({"brackets": plan.brackets} if plan.brackets else {})}
    return xarray.Dataset(variables, coordinates, attributes)


def shown_case(case: Case) -> str:
    """A case in words, such as ``d=20, delta=0.5``."""
    return ", ".join(f"{name}={check.shown(value)}" for name, value in case.items())


def _labels(values: Sequence[Any]) -> np.ndarray:
    plain = all(isinstance(v, bool | int | float | str) for v in values)
    return np.array(values if plain else [repr(v) for v in values])


def _stacked(values: Sequence[np.ndarray | None]) -> np.ndarray:
    """All values in one array; what is missing or shorter is filled with NaN, and words with nothing."""
    present = [value for value in values if value is not None]
    if any(value.ndim != present[0].ndim for value in present):
        raise ValueError("run must return arrays of the same number of dimensions in every case")
    longest = tuple(max(sizes) for sizes in zip(*(value.shape for value in present), strict=True))
    kind = np.result_type(*present)
    if len(present) == len(values) and all(value.shape == longest for value in present):
        return np.stack(present).astype(kind)
    words = kind.kind == "U"
    out = np.full((len(values), *longest), "" if words else math.nan, kind if words else float)
    for k, value in enumerate(values):
        if value is not None:
            where: Any = (k, *(slice(size) for size in value.shape))
            out[where] = value
    return out
