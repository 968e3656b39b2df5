"""Attack: SIGINT and SIGTERM at random times, once and twice; the run ends with a message and can be
resumed.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf

from . import children, runs
from .report import Report

ANSWER = 10.0  # seconds; 0.5 on a machine of one's own


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Interrupt runs of every rung until the time is over."""
    report, r, deadline = Report("signals"), Random(seed), time.monotonic() + seconds
    wanted: dict[str, tuple[bytes, float]] = {}
    while time.monotonic() < deadline:
        name = r.choice(list(runs.RUNGS))
        if name not in wanted:
            began = time.monotonic()
            wanted[name] = runs.bits(runs.run(name, None, lambda _: 0.0)), time.monotonic() - began
        file = folder / "run.npz"
        file.unlink(missing_ok=True)
        bits, duration = wanted[name]
        kind = r.choice(["INT", "INT", "TERM", "INT twice"])
        report.calls += 1
        report.kills += 1

        def run(name: str = name, file: Path = file) -> str:
            runs.shorten(0.05)
            return str(runs.run(name, str(file), lambda _: 0.0).status)

        pid, pipe = children.start(run)
        time.sleep(r.uniform(0, 1.1 * duration))
        _send(r, pid, kind)
        said = children.end(pid, pipe, max(ANSWER, 3 * duration))
        report.outcomes[f"{kind}: {said.split(':')[0]}"] += 1
        expected = (
            ("ended with -15", "completed")
            if kind == "TERM"
            else ("interrupted", "completed", "KeyboardInterrupt")
        )
        if said.split(":")[0] not in expected:
            report.finding("lost", f"{name} after {kind}: {said[:200]}")
        elif said != "completed":
            _go_on(report, name, kind, file, bits)
    return report


def _send(r: Random, pid: int, kind: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM if kind == "TERM" else signal.SIGINT)
        if kind.endswith("twice"):
            time.sleep(r.uniform(0, 0.1))
            os.kill(pid, signal.SIGINT)
    except ProcessLookupError:  # it has ended
        pass


def _go_on(report: Report, name: str, kind: str, file: Path, wanted: bytes) -> None:
    """What the checkpoint has leads to the same bits."""

    def resumed() -> Any:
        again = mf.resume if file.exists() else None
        run = runs.run(name, str(file), lambda _: 0.0, again is not None)
        return "the same bits" if runs.bits(run) == wanted else "other bits"

    said = children.end(*children.start(resumed), 120.0)
    if said != "the same bits":
        report.finding(
            "silent" if said == "other bits" else "lost", f"{name} resumed after {kind}: {said[:200]}"
        )
