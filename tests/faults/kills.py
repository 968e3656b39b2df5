"""Attack: kill −9 runs of every rung and `mfcore run` at random times and resume them; the same bits, and
little work lost.

A run is a forked child with checkpoints every `INTERVAL` seconds. It notes when it came to which save point;
after a kill the next child resumes, and what it does again must not have taken longer than the interval.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from random import Random

import mfcore as mf
import numpy as np

from . import runs
from .children import Stopwatch
from .fuzz import child_environment
from .report import Report

INTERVAL = 0.05  # seconds between checkpoints
SLACK = 0.5  # seconds for one slice of work and for writing
MOST = 20  # kills of one run; then it may end
LIMIT = 300.0  # seconds, after which a run hangs


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Runs of all rungs in turn until the time is over."""
    report, r = Report("kills"), Random(seed)
    deadline, wanted = time.monotonic() + seconds, {}
    names = list(runs.RUNGS)
    r.shuffle(names)
    while time.monotonic() < deadline:
        for name in names:
            if time.monotonic() > deadline:
                break
            if name not in wanted:
                wanted[name] = _alone(name, folder)
            _one_run(report, r, name, *wanted[name], folder)
        if time.monotonic() < deadline:
            _command(report, r, folder)
    return report


def _child(name: str, folder: Path, checkpoint: Path | None, again: bool) -> int:
    """Start a run in a child; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        runs.shorten(INTERVAL)
        with (folder / "ticks").open("a", buffering=1) as log:

            def tick(_: object) -> float:
                log.write(f"{time.process_time()}\n")  # not longer where crowded
                return 0.0

            done = runs.run(name, None if checkpoint is None else str(checkpoint), tick, again)
        (folder / "status").write_text(done.status)
        (folder / "bits").write_bytes(runs.bits(done))
        os._exit(0)
    except BaseException as error:
        (folder / "status").write_text(f"{type(error).__name__}: {error}")
        os._exit(3)


def _alone(name: str, folder: Path) -> tuple[bytes, float]:
    """The bits of a run that nobody disturbs, and its seconds: of a core, as the machine may be crowded."""
    _clear(folder)
    _, _, used = os.wait4(_child(name, folder, None, False), 0)
    return (folder / "bits").read_bytes(), used.ru_utime + used.ru_stime


def _clear(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_file():
            file.unlink()


def _one_run(report: Report, r: Random, name: str, wanted: bytes, duration: float, folder: Path) -> None:
    _clear(folder)
    checkpoint, most = folder / "run.npz", r.choice([1, MOST])
    report.calls += 1
    before: list[float] = []
    for attempt in range(most + 1):
        (folder / "ticks").write_text("")
        pid = _child(name, folder, checkpoint, checkpoint.exists())
        late = r.uniform(0, 1.2 * duration) if attempt < most else LIMIT
        code = _wait(pid, late)
        ticks = [float(line) for line in (folder / "ticks").read_text().splitlines()]
        if code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            report.kills += 1
            before = ticks
            continue
        status = (folder / "status").read_text() if (folder / "status").exists() else "nothing said"
        report.outcomes[status] += 1
        if code != 0 or status != "completed":
            report.finding("lost", f"{name} ended with {status!r} (code {code}) after {attempt} kills")
        elif (folder / "bits").read_bytes() != wanted:
            report.finding("silent", f"{name} has other bits after {attempt} kills")
        elif attempt == 1 and before:
            # The save points done again begin with this one.
            first = max(0, runs.POINTS - len(ticks))
            again = before[-1] - before[first] if first < len(before) else 0.0
            if again > INTERVAL + SLACK:
                report.finding(
                    "lost", f"{name}: {again:.1f} s of work again, with checkpoints every {INTERVAL} s"
                )
        return


def _wait(pid: int, seconds: float) -> int | None:
    """The exit code, or None if the child still runs after so long."""
    watch = Stopwatch()
    while watch.seconds() < seconds:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


_CONFIG = """
checkpoint = "run.checkpoint"
horizon = 1.0
rng = 3
save_at = 20
threads = 1
[model]
kind = "Model"
data = { kind = "IsotropicGaussians", d = 20, delta = 0.5 }
network = { kind = "Network", activation = { kind = "relu" } }
init = { kind = "Radial", norm = 0.5 }
[method]
kind = "SGD"
neurons = 100
step = 2e-7
"""
# As the command line would, with checkpoints more often.
_MAIN = f"from tests.faults import runs; runs.shorten({INTERVAL}); from mfcore.cli import main; main()"


def _command(report: Report, r: Random, folder: Path) -> None:
    """`mfcore run`, killed, then with --resume until it is done: the numbers of a run left alone."""
    _clear(folder)
    (folder / "run.toml").write_text(_CONFIG)
    report.calls += 1
    for attempt in range(4):
        more = ["--resume"] if (folder / "run.checkpoint").exists() else []
        out = ["--out", "out.npz", "--force"]
        command = [sys.executable, "-c", _MAIN, "run", "run.toml", *out, *more]
        with (folder / "log").open("ab") as log:
            child = subprocess.Popen(command, cwd=folder, env=child_environment(), stdout=log, stderr=log)
        try:
            code = child.wait(r.uniform(1.0, 8.0) if attempt < 3 else LIMIT)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            report.kills += 1
            continue
        found = _numbers(folder / "out.npz")
        if code or found is None:
            text = (folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
            report.finding("lost", f"mfcore run ended with code {code}: {text}")
        elif found.tobytes() != _expected().tobytes():
            report.finding("silent", f"mfcore run has other bits after {attempt} kills")
        return


@cache
def _expected() -> np.ndarray:
    method = mf.SGD(100, 2e-7)
    found = mf.solve(runs.MODEL, method, horizon=1.0, rng=3, save_at=20, threads=1).risk
    assert found is not None
    return found


def _numbers(path: Path) -> np.ndarray | None:
    try:
        found = mf.load(path).risk
    except (OSError, ValueError):
        return None
    return np.asarray(found)
