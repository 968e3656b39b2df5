"""Attack: full, small, read-only or vanished disks; an error at the start of a run, a warning later, and
the same bits.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf

from . import children, runs
from .report import Report

MESSAGES = (
    "ValueError",
    "OSError",
    "FileNotFoundError",
    "PermissionError",
    "IsADirectoryError",
    "NotADirectoryError",
    "FileExistsError",
)


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Every kind of bad place, for rungs in random order, until the time is over."""
    report, r, deadline = Report("disks"), Random(seed), time.monotonic() + seconds
    wanted: dict[str, bytes] = {}
    places = [_limited, _small, _gone, _folder, _full, _read_only]
    while time.monotonic() < deadline:
        name = r.choice(["SGD", "GD", "PDE", "JKO", "Atoms, noise"])
        if name not in wanted:
            wanted[name] = runs.bits(runs.run(name, None, lambda _: 0.0))
        for place in places:
            report.calls += 1
            report.kills += 1
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            said = place(lambda file, name=name: _run(name, file, wanted[name]), folder)
            if said is None:
                report.outcomes["not possible here"] += 1
                continue
            kind = said.split(":")[0]
            report.outcomes[kind] += 1
            where = place.__name__.strip("_")
            if kind == "other bits":
                report.finding("silent", f"{name} on a disk that is {where}: {said}")
            elif kind == "hang" or kind.startswith("ended"):
                report.finding("lost", f"{name} on a disk that is {where}: {said}")
            elif kind not in ("the same bits", *MESSAGES):
                report.finding("unclear", f"{name} on a disk that is {where}: {said}")
    return report


def _run(name: str, file: Path, wanted: bytes) -> str:
    runs.shorten(0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a checkpoint cannot be written is said so
        run = runs.run(name, str(file), lambda _: 0.0)
        same = runs.bits(run) == wanted
    try:
        run.save(file.with_name("saved.npz"))
        loaded = runs.bits(mf.load(file.with_name("saved.npz"))) == wanted
    except (OSError, ValueError):
        loaded = True  # refused: nothing was promised
    return "the same bits" if same and loaded else f"other bits: {run.status}"


Call = Callable[[Path], str]


def _said(function: Callable[[], Any]) -> str:
    return children.end(*children.start(function), 120.0)


def _limited(call: Call, folder: Path) -> str:
    """No file may be longer than 20 kB."""

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        return call(folder / "run.npz")

    return _said(limited)


def _small(call: Call, folder: Path) -> str | None:
    """A file system of 100 kB."""
    place = folder / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        return None
    try:
        return _said(lambda: call(place / "run.npz"))
    finally:
        subprocess.run(["umount", str(place)], check=False)


def _gone(call: Call, folder: Path) -> str:
    """The folder is removed while the run goes on."""
    place = folder / "gone"
    place.mkdir()
    child = children.start(lambda: call(place / "run.npz"))
    time.sleep(0.1)
    shutil.rmtree(place, ignore_errors=True)
    return children.end(*child, 120.0)


def _folder(call: Call, folder: Path) -> str:
    """A folder of that name is there."""
    (folder / "run.npz").mkdir()
    return _said(lambda: call(folder / "run.npz"))


def _full(call: Call, folder: Path) -> str | None:
    """A device on which nothing fits."""
    del folder
    return _said(lambda: call(Path("/dev/full"))) if Path("/dev/full").exists() else None


def _read_only(call: Call, folder: Path) -> str | None:
    """A folder in which nothing can be made. The superuser may all the same."""
    if os.geteuid() == 0:
        return None
    folder.chmod(0o500)
    try:
        return _said(lambda: call(folder / "run.npz"))
    finally:
        folder.chmod(0o700)
