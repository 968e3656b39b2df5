"""Results side by side: what each run returned as named columns, and all of them as an `xarray.Dataset`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base import check
from ..runs._trajectory import Trajectory
from ._cases import Case
from ._work import Failed

Columns = dict[str, tuple[tuple[str, ...], np.ndarray]]  # by name: the dimensions, and the values


def columns_of(result: Any) -> Columns:
    """Return the columns of a result: a number or an array, a dict of them by name, or a trajectory."""
    if isinstance(result, Trajectory):
        data = result.to_xarray()
        columns = {str(name): (tuple(map(str, v.dims)), v.values) for name, v in data.variables.items()}
        columns["status"] = ((), np.array(result.status))
        columns["network"] = ((), np.array(isinstance(result.final, np.ndarray)))
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


def dataset(
    axes: Mapping[str, Sequence[Any]] | None,
    cases: Sequence[Case],
    outcomes: Sequence[Columns | Failed],
    brackets: Sequence[Case] = (),
) -> Any:
    """Make a variable of each column, over the axes of a grid (of all combinations) or over the cases."""
    import xarray

    over = axes or {"case": list(range(len(cases)))}
    shape = tuple(len(values) for values in over.values())
    done = [outcome for outcome in outcomes if not isinstance(outcome, Failed)]
    names = list(dict.fromkeys(name for columns in done for name in columns))
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {name: _labels(values) for name, values in over.items()}
    for name in names:
        found = [None if isinstance(o, Failed) else o.get(name) for o in outcomes]
        dims = next(column[0] for column in found if column)
        if name == "t" and dims == ("t",):
            coordinates["t"] = _times(over, [column[1] if column else None for column in found])
            continue
        inner = tuple(f"{d}_" if d in over else d for d in dims)
        values = _stacked([column[1] if column else None for column in found])
        variables[name if name not in over else f"{name}_"] = (
            (*over, *inner),
            values.reshape(*shape, *values.shape[1:]),
        )
    variables["failed"] = ([*over], np.array([isinstance(o, Failed) for o in outcomes]).reshape(shape))
    if axes is None or not axes:
        for name in dict.fromkeys(name for case in cases for name in case):
            coordinates[name] = ("case", _labels([case.get(name, math.nan) for case in cases]))
    failures = [
        f"{shown_case(case)}: {outcome.message}"
        for case, outcome in zip(cases, outcomes, strict=True)
        if isinstance(outcome, Failed)
    ]
    # Files hold text and variables as they are, and neither lists of words nor dicts.
    return xarray.Dataset(
        variables | _bracket_variables(brackets), coordinates, {"failures": "\n".join(failures)}
    )


def _times(axes: Mapping[str, Sequence[Any]], times: Sequence[np.ndarray | None]) -> Any:
    """The times of the save points: one series if those of all cases agree but for rounding, else series over
    the axes on which they depend. Those of a run that ended early agree with the others as far as they go.
    """
    longest = max((series for series in times if series is not None), key=len)
    if all(series is None or _close(series, longest[: len(series)]) for series in times):
        return ("t", longest)
    values = _stacked(times)
    values = values.reshape(*(len(labels) for labels in axes.values()), -1)
    dims = [*axes, "t"]
    for name in axes:
        first = np.fmax.reduce(values, axis=dims.index(name), keepdims=True)
        if _close(np.where(np.isnan(values), first, values), first):
            values = first.squeeze(dims.index(name))
            dims.remove(name)
    return (tuple(dims), values)


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def _bracket_variables(brackets: Sequence[Case]) -> dict[str, Any]:
    names = dict.fromkeys(name for bracket in brackets for name in bracket)
    return {f"bracket_{name}": ("bracket", _labels([b[name] for b in brackets])) for name in names}


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
