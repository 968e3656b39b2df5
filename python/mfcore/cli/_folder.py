"""What ``mfcore show`` says of the folder of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..sweeps._folder import Folder
from ..sweeps._table import shown_case
from ..sweeps._work import Failed

_ROWS = 20  # so many cases that have no result are listed


def folder_summary(folder: Folder) -> str:
    """A sweep in text: how far it is, its axes, what its results rest on, and why cases have none."""
    return "\n".join(_lines(folder))


def _lines(folder: Folder) -> Iterator[str]:
    without = [
        (case, outcome)
        for case, outcome in zip(folder.cases, folder.outcomes, strict=True)
        if isinstance(outcome, Failed)
    ]
    left = sum(outcome.message == "not done" for _, outcome in without)
    record, count = folder.record, len(folder.cases)
    counts = f"{count} cases: {count - len(without)} done, {len(without) - left} failed, {left} not done"
    if record is None:
        yield f"sweep of an older version of mfcore, of which no sweep.json tells the function: {counts}"
    else:
        values = {name: entries.get(name) for name, entries in record.values.items()}
        yield f"sweep of {values['run']}, {counts}"
        for name, labels in (folder.axes or {}).items():
            yield f"{name}: {_listed(labels)}"
        yield f"rng {values['rng']}, mfcore {values['mfcore']}, digest {record.digest}"
        if record.code:
            yield f"code of {_listed(list(record.code))}"
        rest = [name for name in record.values if name not in ("run", "rng", "mfcore")]
        if rest:
            yield f"values of {_listed(rest)}"
        if record.changing:
            yield f"values that the runs change, which do not count: {_listed(record.changing)}"
        for bracket in record.brackets:
            yield f"bracket: {shown_case(bracket)}"
    done = [outcome for outcome in folder.outcomes if not isinstance(outcome, Failed)]
    if done:
        names = dict.fromkeys(name for columns in done for name in columns)
        yield f"results: {', '.join(names)}"
    for case, outcome in without[:_ROWS]:
        failed = "" if outcome.message == "not done" else "failed: "
        yield f"{failed}{shown_case(case)}: {outcome.message}"
    if len(without) > _ROWS:
        yield f"and {len(without) - _ROWS} more without a result"


def _listed(values: list[Any]) -> str:
    shown = [f"{x:g}" if isinstance(x, float) else str(x) for x in values]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:6], "…", *shown[-3:]])
