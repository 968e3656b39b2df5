"""What `mfcore bench` does: run the groups of cases, print their tables, write them to a file."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from json import dumps
from typing import Any

from mfcore import _core
from mfcore._base import check, files

from . import calls as calls_of
from . import harness
from . import load as crowded
from . import scaling as growth
from . import split as on_ranks
from .harness import Case, Row
from .process import Address

MODULES = (
    "cases_core",
    "cases_expectation",
    "cases_sgd",
    "cases_layers",
    "cases_fresh",
    "cases_flow",
    "cases_density",
    "cases_lazy",
    "cases_many",
)
LOADED = ("cases_load",)


def main(
    *,
    quick: bool = False,
    json: str | None = None,
    cases: list[str] | None = None,
    load: int | None = None,
    calls: bool = False,
    scaling: bool = False,
    split: bool = False,
    picture: str | None = None,
) -> int:
    """Run all groups of cases (or those named); 0 if every result agrees and holds its bar.

    `quick` runs small sizes and few repeats: a check that everything runs and agrees, bars not applied.
    `load` compares two threads with one beside so many busy processes, `calls` lists what small calls cost,
    `scaling` how time and memory grow, with a `picture`, and `split` what a step costs on two processes.
    """
    if calls:
        rows: list[Any] = calls_of.main(quick)
        good = quick or all(row.ok for row in rows)
    elif scaling:
        rows = growth.main(quick, cases, picture)
        good = True
    elif split:
        rows = on_ranks.main(quick)
        good = on_ranks.good(rows, quick)
    elif load is not None:
        rows = _loaded(quick, cases, check.integer(load, "load", at_least=0, at_most=1000))
        good = quick or all(r.ok for r in rows)
    else:
        rows = _compared(quick, cases)
        good = all(r.ok for r in rows)
    if json:
        report = {"build": _core.build_info(), "quick": quick, "rows": [asdict(r) for r in rows]}
        files.replace(json, lambda file: file.write((dumps(report, indent=1) + "\n").encode()), "json")
    return 0 if good else 1


def _found(modules: tuple[str, ...], quick: bool, names: list[str] | None) -> Iterator[tuple[Address, Case]]:
    """Every case of the groups named, or of all, with the address at which other processes find it."""
    groups: dict[str, tuple[str, Callable[[bool], Iterator[Case]]]] = {}
    for module in modules:
        for build in importlib.import_module(f"{__package__}.{module}").CASES:
            groups[build.__name__] = (module, build)
    for name in names or ():
        check.choice(name, "case", groups)
    for name, (module, build) in groups.items():
        if not names or name in names:
            for number, case in enumerate(build(quick)):
                yield (module, name, number, quick), case


def _compared(quick: bool, names: list[str] | None) -> list[Row]:
    rows: list[Row] = []
    print(harness.table([]), flush=True)
    for where, case in _found(MODULES, quick, names):
        if quick:
            case.bars, case.peak_bar = {}, None
        measured = harness.measure(case, where, repeats=1 if quick else 7)
        print(harness.table(measured).partition("\n")[2], flush=True)
        rows += measured
    return rows


def _loaded(quick: bool, names: list[str] | None, processes: int) -> list[Row]:
    rows: list[Row] = []
    print(crowded.HEADING, flush=True)
    for where, case in _found(LOADED, quick, names):
        measured = crowded.measure(case, where, processes, rounds=1 if quick else 5)
        print(crowded.line(measured), flush=True)
        rows += measured
    return rows
