"""``mfcore run``: call `mf.solve` with the arguments in a TOML file."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._base import check, files
from .._base.registry import Table
from ..config import decode, read_table
from ..runs._checkpoint import Found, HeldPath
from ..runs._length import horizon_of
from ..runs._plan import plan_of
from ..runs._solve import resume, solve
from ..runs._trajectory import Trajectory
from ._show import summary, unused

_HELP = """the file holds the arguments of mf.solve; objects are tables with their kind:
  horizon = 4.0                        needed, as are model and method; or steps = 4000, or epochs = 10
  save_at = 26                         or times, or
                                       { kind = "log_times", first = 0.01, last = 4.0, count = 30 }
  keep = [0.0, 4.0]                    or "all"
  rng = 0                              also: risk, threads, max_seconds, checkpoint
  [model]
  kind = "Model"
  data = { kind = "IsotropicGaussians", d = 40, delta = 0.8 }
  network = { kind = "Network", activation = { kind = "relu" } }
  init = { kind = "Radial", norm = 0.8 }
  [method]
  kind = "SGD"
  neurons = 800
  step = 1e-3
`mfcore list` names the kinds. In Python such a file is mf.solve(**mf.load_config(FILE)), and
mf.save_config({"model": model, "method": method, "horizon": 4.0}, FILE) writes one.

examples:
  mfcore run examples/run.toml
  mfcore run examples/run.toml --set model.data.d=100 --set 'method={kind="GD", neurons=200, step=0.1}'
  mfcore run long.toml --set checkpoint=long.checkpoint --resume --force

A run is resumed only if the file, as changed by --set, still describes it; what may differ is threads,
max_seconds and the names of files. In Python mf.resume(FILE, horizon=…) goes on to a later end.
Ctrl-C ends a run early: what there is is saved, the checkpoint stays, and the exit code is 130. So does
SIGTERM, which batch systems send; then the exit code is 143. So does max_seconds; then it is 124, as of
timeout(1).
"""

# The arguments of `mf.solve` that a file can hold: no functions; a terminal gets a progress bar anyway.
_KEYS = [name for name in inspect.signature(solve).parameters if name not in ("observe", "stop", "progress")]


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    run = add("run", help="run what a file describes, and save the result", epilog=_HELP)
    run.add_argument("config", metavar="CONFIG.toml", help="model, method and options of the run")
    run.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change an entry, such as method.neurons=800; VALUE is TOML, a bare word a string; repeatable",
    )
    run.add_argument("--out", metavar="FILE.npz", help="default: the name of CONFIG, in this folder")
    run.add_argument("--force", action="store_true", help="overwrite files that exist")
    run.add_argument("--resume", action="store_true", help="go on from the checkpoint that the file names")
    run.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a bar (needs tqdm); by default on a terminal, if tqdm is installed",
    )
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    source = Path(arguments.config)
    out = Path(arguments.out or source.with_suffix(".npz").name)
    options = _options(source, arguments.set)
    unused(out, "--out", arguments.force)
    place = _held_path(options, arguments)
    result = _solve(options, place, arguments)
    if result.status == "interrupted":
        result = dataclasses.replace(result, message=arguments.termination.told(result.message))
    saved, failure = files.rescue(result.save, out)
    if saved and place is not None:
        place.release()
    where = f"saved in {saved}" if saved else "not saved"
    print(f"{summary(result)}\n{where}")
    if result.status in ("diverged", "interrupted", "out of time"):
        print(f"mfcore: {result.status}: {result.message}; {where}", file=sys.stderr)
    if failure:
        print(f"mfcore: error: {failure}", file=sys.stderr)
        return 1
    codes: dict[str, int] = {"diverged": 1, "interrupted": arguments.termination.code, "out of time": LATE}
    return codes.get(result.status, 0)


def _held_path(options: dict[str, Any], arguments: argparse.Namespace) -> HeldPath | None:
    """The path of the checkpoint, which stays until the result is saved; None if none is named."""
    checkpoint = options.pop("checkpoint", None)
    begun = checkpoint is not None and files.target(checkpoint, "checkpoint").exists()
    if arguments.resume and not begun:
        where = "none is named" if checkpoint is None else f"{checkpoint!r} does not exist"
        raise ValueError(f"--resume needs the checkpoint of an unfinished run; {where}")
    if begun and not (arguments.resume or arguments.force):
        raise ValueError(f"checkpoint {checkpoint!r} exists: --resume goes on from it, --force starts again")
    return None if checkpoint is None else HeldPath(checkpoint, again=begun)


def _solve(options: dict[str, Any], place: HeldPath | None, arguments: argparse.Namespace) -> Trajectory:
    if arguments.resume and place is not None:
        _check_same(place, options, arguments.config)
        limits = {name: options[name] for name in ("threads", "max_seconds") if name in options}
        return resume(place, **limits, progress=_watched(arguments))
    try:
        return solve(**options, checkpoint=place, progress=_watched(arguments))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{arguments.config}: {error}") from error


def _check_same(checkpoint: HeldPath, options: dict[str, Any], source: str) -> None:
    """Refuse to resume a run if the file now describes another one."""
    lengths = {name: options[name] for name in LENGTHS if name in options}
    horizon = horizon_of(options["model"], options["method"], **lengths)
    plan = plan_of(
        horizon, **{name: options[name] for name in ("save_at", "risk", "keep", "test") if name in options}
    )
    run = {name: options[name] for name in ("model", "method") if name in options}
    Found(checkpoint).check(source, **run, plan=plan, seed=options.get("rng"))


def _options(source: Path, changes: list[str]) -> dict[str, Any]:
    """The arguments for `mf.solve`: those of the file, with the changes of the command line."""
    if not source.is_file():
        raise ValueError(f"CONFIG.toml must be a file, got {str(source)!r}")
    table = read_table(source)
    for change in changes:
        _set(table, change)
    checked(table, source)
    options: dict[str, Any] = decode(table, source)
    return options


def checked(table: Table, source: Path) -> None:
    """Raise unless the table has the entries of a run and no others."""
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"{source}: unknown entry {key!r}{check.hint(key, _KEYS, 'a run has')}")
    for key in ("model", "method"):
        if key not in table:
            raise ValueError(f"{source}: the entry {key!r} is missing; see mfcore run --help")
    if sum(key in table for key in LENGTHS) != 1:
        raise ValueError(
            f"{source}: one of the entries {', '.join(LENGTHS)} is needed; see mfcore run --help"
        )
    for key in ("model", "method"):
        if not isinstance(table[key], dict) or "kind" not in table[key]:
            raise ValueError(f'{source}: {key} must be a table with an entry such as kind = "{_LIKE[key]}"')


LENGTHS = ("horizon", "steps", "epochs")  # of which a run has one
LATE = 124  # exit code of a run that is out of time
_LIKE = {"model": "Model", "method": "SGD"}


def _set(table: Table, change: str) -> None:
    """Change one entry, named ``a.b.c=value``."""
    key, equals, text = change.partition("=")
    names = [name.strip() for name in key.split(".")]
    if not equals or not all(names):
        raise ValueError(f"--set must be KEY=VALUE, such as method.neurons=800, got {change!r}")
    try:
        set_entry(table, key, _value(text.strip()))
    except ValueError as error:
        raise ValueError(f"--set {change}: {error}") from None


def set_entry(table: Table, key: str, value: Any) -> None:
    """Change the entry of a dotted name; missing tables on the way are made."""
    names = [name.strip() for name in key.split(".")]
    for k, name in enumerate(names[:-1], start=1):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{'.'.join(names[:k])} is {check.shown(table)}, not a table")
    table[names[-1]] = value


def _value(text: str) -> Any:
    """Parse a value of TOML; text that is none is a string, so that words need no quotes."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _watched(arguments: argparse.Namespace) -> bool:
    """Tell whether to show a progress bar: as asked for, else where somebody sees it."""
    return watched() if arguments.progress is None else bool(arguments.progress)


def watched() -> bool:
    """Tell whether to show a progress bar: tqdm is installed and somebody sees the output."""
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return False
    return sys.stderr is not None and sys.stderr.isatty()
