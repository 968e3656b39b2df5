"""The same kernels on a crowded machine: two threads against one, beside busy processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from .harness import Case, Row, _agreement, shown
from .process import Address, Process

MOST = 1.5  # two threads may take at most so many times as long as one, whatever else runs
SECONDS = 120.0  # after which a busy process ends by itself
_BURN = (
    "import os, sys, time; end = time.monotonic() + float(sys.argv[1]); parent = int(sys.argv[2])\n"
    "while time.monotonic() < end and os.getppid() == parent: sum(range(30_000))"
)


@contextmanager
def crowd(processes: int, seconds: float = SECONDS) -> Iterator[None]:
    """Processes that do nothing but compute: they end here, after `seconds`, or when this process is gone."""
    arguments = [sys.executable, "-S", "-E", "-c", _BURN, str(seconds), str(os.getpid())]
    burning = [subprocess.Popen(arguments) for _ in range(processes)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
        for process in burning:
            process.wait()


def measure(case: Case, where: Address, processes: int, rounds: int) -> list[Row]:
    """Both contenders in turns, alone and crowded; the middle time of each counts, as a user meets it."""
    with tempfile.TemporaryDirectory() as folder:
        running = {name: Process(where, name, folder) for name in case.contenders}
        try:
            for process in running.values():
                process.wait()
            cold = {name: process.ask("first")["seconds"] for name, process in running.items()}
            for process in running.values():
                process.ask("result")
            agreement = _agreement(case, folder)
            alone = _middle(running, rounds)
            with crowd(processes):
                time.sleep(0.1 + 0.02 * processes)  # until they are up
                crowded = _middle(running, rounds)
        finally:
            for process in running.values():
                process.close()
    rows = []
    for times, words in ((alone, "alone"), (crowded, f"beside {processes}")):
        ratio = times["mfcore"] / times["1 thread"]
        agreed = agreement.get("1 thread")
        rows.append(
            Row(
                case=f"{case.name}, {words}",
                contender="2 threads",
                threads=2,
                seconds=times["mfcore"],
                cold=cold["mfcore"],
                faults=0.0,
                ratio=ratio,
                bar=MOST,
                agreement=agreed,
                peak_fraction=None,
                bound="",
                ok=agreed == 0.0 and (times is alone or ratio <= MOST),
            )
        )
    return rows


def _middle(running: dict[str, Process], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, process in running.items():
            times[name] += process.ask("again 1")["each"]
    return {name: median(seconds) for name, seconds in times.items()}


HEADING = f"{'kernel, two threads against one':52} {'alone':>20} {'crowded':>20} {'bits':>6}"


def line(rows: list[Row]) -> str:
    """A kernel's two ratios, each after the time of two threads."""
    parts = [f"{shown(r.seconds):>11} {r.ratio:6.2f} ×" for r in rows]
    name = rows[0].case.removesuffix(", alone")
    same = "same" if rows[0].agreement == 0.0 else "OTHER"
    late = "" if rows[1].ratio <= MOST else f"  ABOVE {MOST:g}"
    return f"{name:52} {' '.join(parts)} {same:>6}{late}"
