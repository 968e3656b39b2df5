"""``mfcore show``: print a saved run or the folder of a sweep in words and draw its risk."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .._base import check, files
from .._base.archive import kind_of
from .._base.check import FloatArray
from ..runs._checkpoint import Found
from ..runs._trajectory import Trajectory, load
from ..sweeps._folder import read_folder
from ._folder import folder_summary

_ROWS = 10


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    show = add(
        "show",
        help="what a saved run gave, or how far a sweep is",
        description="Of a run: how it ended, its risk and observables; ± is the standard error for networks, "
        "the error of the discretisation for the limit. Of a checkpoint: the run until then. Of a sweep: its "
        "cases, how many are done, why others failed, and what the results rest on.",
        epilog="examples:\n  mfcore show run.npz\n  mfcore show run.npz --plot risk.png\n  mfcore show grid",
    )
    show.add_argument(
        "result", metavar="RESULT", help="a file of mfcore run, a checkpoint, or the folder of a sweep"
    )
    show.add_argument("--plot", metavar="FILE.png", help="also draw the risk (.svg, .pdf…; needs matplotlib)")
    show.add_argument("--log", metavar="AXES", default="", help="logarithmic axes of the picture: x, y or xy")
    show.add_argument("--force", action="store_true", help="overwrite a picture that exists")
    show.set_defaults(command=_show)


def _show(arguments: argparse.Namespace) -> None:
    if not Path(arguments.result).exists():
        raise ValueError(
            f"RESULT.npz must be a file, got {arguments.result!r}: neither a file nor the folder of a sweep"
        )
    check.choice(arguments.log, "--log", ("", "x", "y", "xy"))
    if arguments.plot:
        unused(Path(arguments.plot), "--plot", arguments.force)
        _check_format(Path(arguments.plot))
    result, text = _read(Path(arguments.result))
    print(text)
    if arguments.plot:
        from .. import plots

        axes, kind = plots.risk(result, log=arguments.log), Path(arguments.plot).suffix[1:]
        files.replace(arguments.plot, lambda file: axes.savefig(file, format=kind), "--plot")
        print(f"drawn in {arguments.plot}")


def _read(path: Path) -> tuple[Any, str]:
    """Read from a file or folder what plots take, and describe it in words."""
    if path.is_dir():
        folder = read_folder(path)
        return folder.dataset(), folder_summary(folder)
    if kind_of(path) == "plan":
        found = Found(path, allow_other_build=True)
        head = f"checkpoint of a run to t = {found.plan.horizon:g}, with which mf.resume goes on"
        return found.run, f"{head}\n{summary(found.run)}"
    result = load(path)
    return result, summary(result)


def unused(path: Path, name: str, force: bool) -> None:
    """Refuse an output file that exists or cannot be written: before the work, not after it."""
    try:
        exists = files.writable(path, name).exists()
    except OSError as error:
        raise ValueError(str(error)) from None
    if exists and not force:
        raise ValueError(f"{name} must be a new file, got {str(path)!r}: it exists; --force overwrites it")


def _check_format(picture: Path) -> None:
    """Refuse a file format that matplotlib cannot write, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    known = sorted(f".{kind}" for kind in Figure().canvas.get_supported_filetypes())
    if picture.suffix.lower() not in known:
        raise ValueError(f"--plot must end in one of {', '.join(known)}, got {str(picture)!r}")


def summary(run: Trajectory) -> str:
    """A run in one screenful of text: how it ended, what ran, and some of its save points."""
    lines = [f"{run.status}: {run.message}", *str(run.meta.get("model", "")).splitlines()]
    lines.append(str(run.meta.get("method", "")))
    facts = [f"{name} {run.meta[name]}" for name in ("seed", "threads", "steps") if name in run.meta]
    if "seconds" in run.meta:
        facts.append(f"{run.meta['seconds']:.3g} s")
    if "version" in run.meta:
        facts.append(f"mfcore {run.meta['version']}")
    lines += [", ".join(facts)] if facts else []
    if run.kept:
        times = [f"{t:g}" for t in run.kept]
        times[3:-1] = ["…"] if len(times) > 5 else times[3:-1]
        lines.append(f"{len(run.kept)} measures kept, t = {', '.join(times)}")
    if len(run.t):
        lines += ["", *_table(run)]
    return "\n".join(lines)


def _table(run: Trajectory) -> Iterable[str]:
    rows = np.unique(np.linspace(0, len(run.t) - 1, min(_ROWS, len(run.t))).round().astype(int))
    columns = {"t": [f"{t:.6g}" for t in run.t[rows]]}
    if run.risk is not None and run.error is not None:
        middle, error = _averaged(run.risk, run.error)
        columns["risk"] = [f"{x:.6g}" for x in middle[rows]]
        columns["±"] = [f"{x:.2g}" for x in error[rows]]
    for name, values in run.observed.items():
        if values.ndim == 1 or (run.risk is not None and values.shape == run.risk.shape):
            columns[name] = [f"{x:.6g}" for x in values.reshape(len(values), -1).mean(axis=1)[rows]]
    room = shutil.get_terminal_size((10_000, 24)).columns  # all of them where there is no terminal
    widths = {name: max(map(len, [name, *entries])) for name, entries in columns.items()}
    ends = np.cumsum([width + 2 for width in widths.values()]) - 2
    shown = [name for name, end in zip(columns, ends, strict=True) if end <= room or name in ("t", "risk")]
    yield "  ".join(f"{name:>{widths[name]}}" for name in shown)
    for k in range(len(rows)):
        yield "  ".join(f"{columns[name][k]:>{widths[name]}}" for name in shown)
    left = [name for name in [*columns, *run.observed] if name not in shown]
    if left:
        yield f"not shown: {', '.join(dict.fromkeys(left))}"


def _averaged(risk: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean over replicas and its standard error, to which the error of a shared sample is added."""
    if risk.ndim == 1:
        return risk, error
    spread = risk.std(axis=1, ddof=1) / np.sqrt(risk.shape[1])
    return risk.mean(axis=1), np.hypot(spread, error.mean(axis=1))
