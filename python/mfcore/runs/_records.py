"""Keep the records of the save points of a run, as arrays with one row for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.check import FloatArray

_FIRST_ROWS = 64  # that the arrays have room for; they double when they are full


@dataclass(frozen=True)
class Record:
    """What a save point adds: whole or not at all, whenever Ctrl-C comes."""

    t: float
    risk: Any
    error: Any
    observed: dict[str, FloatArray]


class Records(list[Record]):
    """The records of a run so far. Those that `series` has seen are not read again at the next call, so that
    a run may be looked at at each of many save points."""

    def __init__(self) -> None:
        super().__init__()
        self._columns: dict[str, FloatArray] = {}
        self._filled = 0

    def series(self, *names: str) -> tuple[FloatArray, ...]:
        """Copies of the series of these names: ``"t"``, ``"risk"``, ``"error"`` and those of observables."""
        for k in range(self._filled, len(self)):
            for name, value in _values(self[k]).items():
                self._room(name, value)[k] = value
            self._filled = k + 1
        return tuple(self._columns.get(name, np.empty(0))[: len(self)].copy() for name in names)

    def _room(self, name: str, value: Any) -> FloatArray:
        """The column of a name, with room for all records."""
        column = self._columns.get(name, np.empty((0, *np.shape(value))))
        if len(column) < len(self):
            larger = np.empty((max(_FIRST_ROWS, 2 * len(self)), *column.shape[1:]))
            larger[: len(column)] = column
            self._columns[name] = column = larger
        return column


def _values(record: Record) -> dict[str, Any]:
    """The numbers of a record by name; no observable is called ``"t"``, ``"risk"`` or ``"error"``."""
    risks = {} if record.risk is None else {"risk": record.risk, "error": record.error}
    return {"t": record.t, **risks, **record.observed}
