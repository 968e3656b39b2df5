"""A folder with one file for each case that is done; a sweep that starts again does not do them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._base import files
from .._base.archive import read_archive, write_archive
from .._base.described import described, differences
from ._cases import Case, key_of
from ._table import Columns


class Store:
    """The results in a folder, those of one function and one seed."""

    def __init__(self, folder: str | os.PathLike[str], run: str, seed: int) -> None:
        files.check_name(folder, "folder")
        self._folder = Path(folder)
        if self._folder.exists() and not self._folder.is_dir():
            raise ValueError(f"folder must be a folder or a new name, got the file {str(folder)!r}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._by = {"run": run, "rng": seed}

    def read(self, case: Case) -> Columns | None:
        """The columns of a case that was done before, or None."""
        file = self._file(case)
        if not file.exists():
            return None
        arrays, info = read_archive(file, "case", "folder")
        there = {**info["by"], **info["case"]}
        if different := differences(there, {**self._by, **described(case, "case")}):
            raise ValueError(
                f"folder must be new or hold results of this sweep, got {str(self._folder)!r}: {different}"
            )
        return {name: (tuple(info["dims"][name]), values) for name, values in arrays.items()}

    def write(self, case: Case, columns: Columns) -> None:
        """Keep the columns of a case; the file is there whole or not at all."""
        info: dict[str, Any] = {
            "case": described(case, "case"),
            "by": self._by,
            "dims": {name: list(dims) for name, (dims, _) in columns.items()},
        }
        arrays = {name: values for name, (_, values) in columns.items()}
        write_archive(self._file(case), arrays, info, "folder")

    def _file(self, case: Case) -> Path:
        return self._folder / f"{key_of(case)}.npz"
