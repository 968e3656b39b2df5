"""Attack: threads and processes at once: daemons at exit, forks, pools, several writers of one file, shared
objects.

Everything must have the bits of one thread alone, and every process must end by itself with code 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf
import numpy as np

from . import children, runs
from .fuzz import child_environment
from .report import Report

LIMIT = 120.0  # seconds
ROWS = np.random.default_rng(1).normal(size=(60, 20)) / 5
REDUCED = runs.TWO.reduce()
CALLS: dict[str, Callable[[], Any]] = {
    "psi": lambda: mf.psi(runs.MODEL, ROWS, ROWS, threads=2),
    "grad_psi": lambda: mf.grad_psi(runs.WIDE, ROWS, ROWS, threads=2),
    "sampled": lambda: mf.V(runs.TWO, ROWS[:, :10], expectation=mf.MonteCarlo(2000, 0), threads=2),
    "estimate": lambda: mf.estimate(runs.MODEL, ROWS, samples=500, rng=0, threads=2).V,
    "draw": lambda: runs.MODEL.data.draw(1000, 0)[0],
    "features": lambda: REDUCED.features(np.abs(ROWS[:, :2])),
    "reduced psi": lambda: mf.psi(REDUCED, np.abs(ROWS[:, :2]), np.abs(ROWS[:, :2])),
    "gibbs": lambda: mf.gibbs(runs.NOISY, cells=200).measure.mass,
    "SGD": lambda: mf.solve(runs.MODEL, mf.SGD(20, 1e-4), horizon=0.1, rng=0, threads=2).final,
    "PDE": lambda: mf.solve(runs.WIDE, mf.PDE(cells=100), horizon=0.5, threads=2).final.mass,
    "Atoms": lambda: mf.solve(runs.MODEL, mf.Atoms(), horizon=0.5, threads=2).final.points,
    "JKO": lambda: mf.solve(runs.MODEL, mf.JKO(0.1, count=20), horizon=0.5, threads=2).final.points,
}

_DAEMON = """
import sys, threading, time
import mfcore as mf
from tests.faults import runs
def work():
    while True:
        runs.run({name!r}, None, lambda _: 0.0)
for _ in range({count}):
    threading.Thread(target=work, daemon=True).start()
time.sleep({wait})
"""

_SPAWN = """
import multiprocessing, sys
from tests.faults import threads
if __name__ == "__main__":
    with multiprocessing.get_context({how!r}).Pool(2) as pool:
        bits = pool.map(threads.bits_of, [{name!r}] * 4)
    print(len(set(bits)))
"""


def bits_of(name: str) -> bytes:
    """The numbers of one of the calls."""
    return np.asarray(CALLS[name]()).tobytes()


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """One attack after the other until the time is over."""
    report, r, deadline = Report("threads"), Random(seed), time.monotonic() + seconds
    # Forks and their results first, before this process has threads of its own.
    wanted = {
        name: children.end(*children.start(lambda name=name: bits_of(name).hex()[:4000]), LIMIT)
        for name in CALLS
    }
    while time.monotonic() < deadline:
        for one in (_together, _writers, _fork_while_busy, _at_exit, _pools):
            if time.monotonic() < deadline:
                one(report, r, folder, wanted)
    return report


def _at_exit(report: Report, r: Random, folder: Path, _: dict[str, str]) -> None:
    """A process that ends while daemon threads are inside `solve`."""
    name = r.choice(list(runs.RUNGS))
    script = _DAEMON.format(name=name, count=r.choice([1, 3]), wait=r.uniform(0.2, 1.0))
    _ends_well(report, script, f"a daemon thread in {name} at exit", folder)


def _pools(report: Report, r: Random, folder: Path, _: dict[str, str]) -> None:
    """A pool of processes, forked or spawned."""
    how, name = r.choice(["fork", "spawn", "forkserver"]), r.choice(list(CALLS))
    file = folder / "pool.py"
    file.write_text(_SPAWN.format(how=how, name=name))
    said = _ends_well(report, str(file), f"{name} in a pool ({how})", folder)
    if said not in ("1", None):
        report.finding("silent", f"{name} in a pool ({how}): {said} different results")


def _ends_well(report: Report, script: str, what: str, folder: Path) -> str | None:
    """What the script printed; None if it did not end with code 0."""
    command = [sys.executable, script] if script.endswith(".py") else [sys.executable, "-c", script]
    report.calls += 1
    report.kills += 1
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=child_environment(),
            capture_output=True,
            timeout=LIMIT,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        report.finding("lost", f"{what}: hang")
        return None
    report.outcomes["process ended" if done.returncode == 0 else "process died"] += 1
    if done.returncode:
        report.finding("lost", f"{what}: code {done.returncode}: {done.stderr.strip()[-200:]}")
        return None
    return done.stdout.strip()


def _together(report: Report, r: Random, folder: Path, wanted: dict[str, str]) -> None:
    """Several threads call the same things on the same objects."""
    del folder
    chosen = r.choices(list(CALLS), k=4)

    def work() -> str:
        found: list[str] = []

        def one(name: str) -> None:
            found.append(f"{name} " + ("same" if bits_of(name).hex()[:4000] == wanted[name] else "other"))

        threads = [threading.Thread(target=one, args=(name,)) for name in chosen for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ", ".join(sorted(set(found))) if len(found) == 8 else "an exception in a thread"

    _judge(report, work, f"{chosen} in threads")


def _fork_while_busy(report: Report, r: Random, folder: Path, wanted: dict[str, str]) -> None:
    """A fork while other threads compute; the child computes, too."""
    del folder
    # Calls that use the core alone: a child of a process that was inside NumPy's BLAS may hang there.
    ours = ["grad_psi", "sampled", "estimate", "draw"]
    busy, name = r.choice(ours), r.choice(ours)

    def work() -> str:
        stop = threading.Event()

        def loop() -> None:
            while not stop.is_set():
                bits_of(busy)

        thread = threading.Thread(target=loop)
        thread.start()
        time.sleep(r.uniform(0, 0.2))
        said = children.end(*children.start(lambda: bits_of(name).hex()[:4000]), LIMIT / 2)
        stop.set()
        thread.join()
        return (
            "same" if said == wanted[name] else said[:100] if "hang" in said or "ended" in said else "other"
        )

    _judge(report, work, f"{name} in a fork while a thread is in {busy}")


def _writers(report: Report, r: Random, folder: Path, _: dict[str, str]) -> None:
    """Threads and processes that save under one name, and one that reads what is there."""
    file = folder / "shared.npz"
    many = [mf.solve(runs.MODEL, mf.SGD(n, 1e-2), horizon=0.1, rng=0, threads=1) for n in (5, 50)]
    whole = {runs.bits(run) for run in many}
    many[0].save(file)

    def work() -> str:
        if os.fork() == 0:
            for _ in range(20):
                many[1].save(file)
            os._exit(0)
        failed: list[str] = []

        def save(run: Any) -> None:
            try:
                for _ in range(20):
                    run.save(file)
            except BaseException as error:
                failed.append(repr(error))

        threads = [threading.Thread(target=save, args=(r.choice(many),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        torn = "same"
        while any(thread.is_alive() for thread in threads):
            torn = torn if runs.bits(mf.load(file)) in whole else "other"
        os.wait()
        return failed[0] if failed else torn

    _judge(report, work, "writers of one file")
    left = [
        f.name
        for f in folder.iterdir()
        if f.name.startswith((".shared", "shared")) and f.name != "shared.npz"
    ]
    if left:
        report.finding("lost", f"writers of one file left {left[:3]} behind")


def _judge(report: Report, work: Callable[[], str], what: str) -> None:
    report.calls += 1
    report.kills += 1
    said = children.end(*children.start(work), LIMIT)
    report.outcomes["same bits" if "same" in said and "other" not in said else "not the same"] += 1
    if "other" in said:
        report.finding("silent", f"{what}: {said[:200]}")
    elif "same" not in said:
        report.finding("lost", f"{what}: {said[:200]}")
