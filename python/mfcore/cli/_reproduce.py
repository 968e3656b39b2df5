"""``mfcore reproduce``: make published figures, with a table of measured beside published numbers."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .. import experiments
from .._base import files
from .._base.build import build_info
from ._run import watched
from ._show import unused

_HELP = """Each writes NAME.png, NAME.svg, NAME.npz (its numbers) and NAME.md (its table). Ctrl-C ends it
early and keeps what was run until then in NAME-partial.npz; the exit code is 130.

examples:
  mfcore reproduce isotropic-gaussians --quick
  mfcore reproduce predictable-failure --out figures --seed 1
  mfcore reproduce all --quick --out figures
"""

_ALL = "all"
_PARTIAL = "-partial.npz"


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    width = max(len(name) for name in experiments.NAMES)
    names = "\n".join(f"  {name:<{width}}  {experiments.summary(name)}" for name in experiments.NAMES)
    reproduce = add(
        "reproduce",
        help="published figures, with a table of measured beside published numbers",
        epilog=f"experiments:\n{names}\n\n{_HELP}",
    )
    reproduce.add_argument("name", metavar="NAME", help="the experiment, see below, or all")
    reproduce.add_argument("--quick", action="store_true", help="less than a minute on two cores")
    reproduce.add_argument("--out", metavar="DIR", default=".", help="folder to write to; default: this one")
    reproduce.add_argument("--seed", metavar="S", type=int, default=0, help="default: 0")
    reproduce.add_argument("--force", action="store_true", help="overwrite files that exist")
    reproduce.set_defaults(command=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    names = experiments.NAMES if arguments.name == _ALL else (arguments.name,)
    for name in names:
        experiments.summary(name)  # an unknown name is an error before the folder is made
    if arguments.seed < 0:
        raise ValueError(f"--seed must be >= 0, got {arguments.seed}")
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for suffix in (*experiments.suffixes(name), _PARTIAL):
            unused(folder / (name + suffix), "--out", arguments.force)
    for k, name in enumerate(names, start=1):
        if len(names) > 1:
            print(f"{name}, {k} of {len(names)}", flush=True)
        code = _one(arguments, name, folder)
        if code:
            return code
    return 0


def _one(arguments: argparse.Namespace, name: str, folder: Path) -> int:
    """Run one experiment and write its files; returns the exit code."""
    work = experiments.Work(seed=arguments.seed, tell=_tell, progress=watched())
    try:
        report = experiments.run(name, quick=arguments.quick, work=work)
    except KeyboardInterrupt:
        return _keep(work, folder / (name + _PARTIAL))
    made = _made(arguments, name, work)
    written: list[Path] = []
    _print(report.table())
    print(report.agreement_line())

    def write(numbers: Path) -> None:
        written[:] = report.write(numbers.parent, made=made)

    saved, failure = files.rescue(write, folder / f"{name}.npz")
    if saved:
        print(f"{work.seconds():.0f} s; written: {', '.join(map(str, written))}")
    if failure:
        print(f"mfcore: error: {failure}", file=sys.stderr)
        return 1
    return 0


def _keep(work: experiments.Work, path: Path) -> int:
    where = "nothing was finished"
    if work.runs or work.arrays:
        saved, failure = files.rescue(lambda file: experiments.save_runs(file, work.runs, work.arrays), path)
        where = failure or f"what was run until then is in {saved}"
    print(f"mfcore: interrupted: {where}", file=sys.stderr)
    return 130


def _tell(line: str) -> None:
    print(line, flush=True)


def _made(arguments: argparse.Namespace, name: str, work: experiments.Work) -> str:
    quick = " --quick" if arguments.quick else ""
    command = f"mfcore reproduce {shlex.quote(name)}{quick} --seed {arguments.seed}"
    built, day = build_info(), time.strftime("%Y-%m-%d")
    threads = f"{built['threads']} thread" + "s" * (built["threads"] != 1)
    return (
        f"Made by `{command}` in {work.seconds():.0f} s ({work.processor_seconds():.0f} s of processor time) "
        f"on {day}: mfcore {built['version']}, {built['isa']}, {threads}."
    )


def _print(table: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = (cell.replace("**", "").ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())
