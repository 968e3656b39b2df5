"""A folder with one file for each case that is done; a sweep that starts again does not do them again.

``sweep.json`` says what the results rest on, so that results of a function that has changed are not taken
for those of the present one. ``KEY.npz`` has the result of a case, ``KEY.failed.json`` why it has none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._base import files
from .._base.archive import read_archive, write_archive
from .._base.described import described, differences
from ._cases import Case, Plan, key_of
from ._identity import Identity
from ._record import NAME, Record, labels_of
from ._table import Columns
from ._work import Failed

_KEY = r"[0-9a-f]{24}"
RESULT, FAILURE = re.compile(rf"{_KEY}\.npz"), re.compile(rf"{_KEY}\.failed\.json")


class Store:
    """The results in a folder, those of one function and one seed.

    Args:
        folder: The folder; it is made if it is not there.
        describe: Describes what the results rest on, now.
        plan: The cases.
        fresh: Set aside what is there and start again.
    """

    def __init__(
        self, folder: str | os.PathLike[str], describe: Callable[[], Identity], plan: Plan, fresh: bool
    ) -> None:
        files.check_name(folder, "folder")
        self._folder = Path(folder)
        if self._folder.exists() and not self._folder.is_dir():
            raise ValueError(f"folder must be a folder or a new name, got the file {str(folder)!r}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._describe = describe
        given = Record.of(describe(), plan)
        self._first = given.values
        self._record = self._begun(given, fresh)

    def _begun(self, given: Record, fresh: bool) -> Record:
        """The record of the folder with the cases of this sweep, if its results are those of this sweep."""
        if fresh:
            _set_aside(self._folder)
        there = Record.read(self._folder)
        if not entries(self._folder, RESULT):  # nothing that could be taken for results of another function
            for file in entries(self._folder, FAILURE):
                file.unlink(missing_ok=True)
            given.write(self._folder)
            return given
        advice = "fresh=True (--fresh) sets them aside and starts again, another folder keeps both"
        rule = f"folder must be new or hold results of this sweep, got {str(self._folder)!r}"
        if there is None:
            raise ValueError(
                f"{rule}: its results have no {NAME}, as an older version of mfcore wrote them, which "
                f"cannot tell whether they are those of this function; mf.load reads them; {advice}"
            )
        if changed := there.changes(given):
            raise ValueError(f"{rule}: {'; '.join(changed)}; {advice}")
        before = json.dumps([there.axes, there.cases])
        there.add(given)
        if json.dumps([there.axes, there.cases]) != before:
            there.write(self._folder)
        return there

    def read(self, case: Case) -> Columns | None:
        """The columns of a case that was done before, or None."""
        file = self._folder / f"{key_of(case)}.npz"
        if not file.exists():
            return None
        columns, info = read_result(file)
        stored = {"digest": info["by"].get("digest"), **info["case"]}
        if different := differences(stored, {"digest": self._record.digest, **described(case, "case")}):
            raise ValueError(f"folder must hold results of one sweep, got {str(file)!r}: {different}")
        return columns

    def write(self, case: Case, columns: Columns) -> None:
        """Keep the columns of a case; the file is there whole or not at all."""
        self._note(case)
        info: dict[str, Any] = {
            "case": described(case, "case"),
            "by": {"digest": self._record.digest},
            "dims": {name: list(dims) for name, (dims, _) in columns.items()},
        }
        arrays = {name: values for name, (_, values) in columns.items()}
        write_archive(self._folder / f"{key_of(case)}.npz", arrays, info, "folder")
        (self._folder / f"{key_of(case)}.failed.json").unlink(missing_ok=True)

    def fail(self, case: Case, failure: Failed) -> None:
        """Keep why a case has no result; the next sweep tries it again."""
        self._note(case)
        text = json.dumps({"case": labels_of(case), "message": failure.message, "details": failure.details})
        file = self._folder / f"{key_of(case)}.failed.json"
        files.replace(file, lambda stream: stream.write(text.encode()), "folder")

    def end(self, brackets: list[Case]) -> None:
        """Keep what a bisection has found."""
        labelled = [labels_of(bracket) for bracket in brackets]
        if labelled != self._record.brackets:
            self._record.brackets = labelled
            self._record.write(self._folder)

    def _note(self, case: Case) -> None:
        """Note a case that a bisection has chosen, and values that the run itself has changed."""
        now = self._describe().values
        changed = {name for name in {*now, *self._first} if now.get(name) != self._first.get(name)}
        changing = sorted(changed - set(self._record.changing))
        if changing or key_of(case) not in self._record.cases:
            self._record.changing += changing
            self._record.add_cases({key_of(case): labels_of(case)})
            self._record.write(self._folder)


def read_result(file: Path) -> tuple[Columns, dict[str, Any]]:
    """The columns in the file of a case, and its description."""
    arrays, info = read_archive(file, "case", "folder")
    return {name: (tuple(info["dims"][name]), values) for name, values in arrays.items()}, info


def entries(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The files of a folder whose names are of this form, in the order of their names."""
    return sorted(file for file in folder.iterdir() if names.fullmatch(file.name))


def _set_aside(folder: Path) -> None:
    """Move what a sweep has left to the first new folder before-1, before-2, … inside of it."""
    there = [
        *entries(folder, re.compile(re.escape(NAME))),
        *entries(folder, FAILURE),
        *entries(folder, RESULT),
    ]
    if not there:
        return
    number = 1
    while (aside := folder / f"before-{number}").exists():
        number += 1
    aside.mkdir()
    for file in there:  # the record first: results without one are refused, if this is killed in between
        file.replace(aside / file.name)
