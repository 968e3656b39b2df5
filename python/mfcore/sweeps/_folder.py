"""Read a folder of results without the function that made them: what `mf.load` and ``mfcore show`` do."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._base.archive import read_info, reading
from ._record import Record
from ._store import FAILURE, RESULT, entries, read_result
from ._table import Columns, dataset
from ._work import Failed


@dataclass(frozen=True)
class Folder:
    """A sweep in a folder: its record, and what became of each case."""

    record: Record | None  # None: an older version wrote the results
    axes: dict[str, list[Any]] | None
    cases: list[dict[str, Any]]
    outcomes: list[Columns | Failed]

    def dataset(self) -> Any:
        """The results as `mf.sweep` returns them."""
        return dataset(self.axes, self.cases, self.outcomes, self.record.brackets if self.record else ())


def read_folder(folder: Path) -> Folder:
    """Read the record and the results of a folder that `mf.sweep` has written."""
    record = Record.read(folder)
    files = entries(folder, RESULT)
    if record is None and not files:
        raise ValueError(
            f"path must be a file of mfcore or a folder of mf.sweep, got the folder {str(folder)!r}"
        )
    done: dict[str, Columns | Failed] = {file.name[:24]: read_result(file)[0] for file in files}
    for file in entries(folder, FAILURE):
        with reading(file, "path"):
            done.setdefault(file.name[:24], Failed(str(json.loads(file.read_text("utf-8"))["message"])))
    if record is None:
        cases = {file.name[:24]: _case(file) for file in files}
        return Folder(None, None, list(cases.values()), [done[key] for key in cases])
    if record.axes is None:
        outcomes = [done.get(key, _NOT_DONE) for key in record.cases]
        return Folder(record, None, list(record.cases.values()), outcomes)
    keys = {_text(labels): key for key, labels in record.cases.items()}
    grid = [
        dict(zip(record.axes, labels, strict=True)) for labels in itertools.product(*record.axes.values())
    ]
    outcomes = [done.get(keys.get(_text(labels), ""), _NOT_DONE) for labels in grid]
    return Folder(record, record.axes, grid, outcomes)


_NOT_DONE = Failed("not done")


def _case(file: Path) -> dict[str, Any]:
    """A case as the file of its result describes it."""
    return {name.removeprefix("case."): value for name, value in read_info(file, "case")["case"].items()}


def _text(labels: dict[str, Any]) -> str:
    return json.dumps(labels, sort_keys=True)
