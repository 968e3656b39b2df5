"""``mfcore sweep``: run what a file describes for every combination of some of its entries."""

from __future__ import annotations

import argparse
import copy
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._base.described import Described, described
from ..config import decode, read_table
from ..runs._solve import solve
from ..runs._trajectory import Trajectory
from ..sweeps import sweep
from ._run import checked, set_entry, watched

_HELP = """the file is one of `mfcore run` with a table of lists, whose combinations are the runs:
  [sweep]
  "model.data.delta" = [0.2, 0.4, 0.6]
  "method.neurons" = [100, 800]
  rng = [0, 1, 2]                      without it, every run has a seed of its own

Each run is kept in the folder as it ends; the same command goes on where it was stopped. After a change
of the file it refuses and says what has changed; with --fresh it starts again, and the results so far are
set aside in FOLDER/before-1. `mfcore show FOLDER` tells how far it is; mf.load(FOLDER) is the table of
results in Python.

examples:
  mfcore sweep grid.toml --out grid
  mfcore sweep grid.toml --out grid --workers 8 --threads 2
"""


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add(
        "sweep",
        help="run what a file describes for every combination of some entries",
        epilog=_HELP,
    )
    command.add_argument("config", metavar="CONFIG.toml", help="a run, and the table [sweep]")
    command.add_argument("--out", metavar="FOLDER", help="default: the name of CONFIG, in this folder")
    command.add_argument("--fresh", action="store_true", help="set the results in FOLDER aside, start again")
    command.add_argument("--workers", type=int, metavar="N", help="processes; default: one for each core")
    command.add_argument("--threads", type=int, default=1, metavar="N", help="of each run; default: 1")
    command.set_defaults(command=_sweep)


class FileRun:
    """The run of a file, with some of its entries changed: what `mf.sweep` calls."""

    def __init__(self, table: dict[str, Any], source: str) -> None:
        self._table, self._source = table, source
        self.__name__ = self.__qualname__ = f"run of {Path(source).name}"

    def rests_on(self) -> Described:
        """The entries on which the results rest: all but those that change no number."""
        table = {key: entry for key, entry in self._table.items() if key not in ("threads", "checkpoint")}
        return {name[1:]: entry for name, entry in described(table, "").items()}

    def __call__(self, *, rng: int, threads: int, **changes: Any) -> Trajectory:
        table = copy.deepcopy(self._table)
        for name, value in changes.items():
            set_entry(table, name, value)
        return solve(**{"rng": rng, "threads": threads, **decode(table, self._source)})


def _sweep(arguments: argparse.Namespace) -> int:
    source = Path(arguments.config)
    table = read_table(source) if source.is_file() else {}
    axes = table.pop("sweep", None)
    if not isinstance(axes, dict):
        raise ValueError(f'{source}: the table [sweep] is missing, such as "method.neurons" = [100, 800]')
    checked(table, source)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ cases failed")  # they are listed below
        result = sweep(
            FileRun(table, str(source)),
            axes,
            workers=arguments.workers,
            threads=arguments.threads,
            folder=arguments.out or source.with_suffix("").name,
            fresh=arguments.fresh,
            progress=watched(),
        )
    if "risk" in result and result["risk"].dims[-1] == "t":
        print(result["risk"].isel(t=-1).rename("final risk").to_series().to_string())
    failures = result.attrs["failures"].splitlines()
    for failure in failures:
        print(f"mfcore: failed: {failure}", file=sys.stderr)
    print(f"{result['failed'].size - len(failures)} runs, in {arguments.out or source.with_suffix('').name}")
    if any("interrupted" in failure for failure in failures):
        return int(arguments.termination.code)
    return 1 if failures else 0
