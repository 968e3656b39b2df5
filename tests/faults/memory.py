"""Attack: let allocations fail anywhere; MemoryError, or ValueError with the estimate, or the result."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf
import numpy as np

from . import children, runs
from .report import Report

ROWS = np.random.default_rng(0).normal(size=(400, 20)) / 5


def _calls() -> dict[str, Callable[[], Any]]:
    many = mf.MonteCarlo(20_000, 0)
    calls: dict[str, Callable[[], Any]] = {
        "V": lambda: mf.V(runs.MODEL, ROWS, threads=1),
        "U": lambda: mf.U(runs.MODEL, np.tile(ROWS, (3, 1)), threads=1),
        "psi": lambda: mf.psi(runs.WIDE, ROWS, ROWS, expectation=many, threads=1),
        "grad_psi": lambda: mf.grad_psi(runs.WIDE, ROWS, ROWS, expectation=many, threads=1),
        "estimate": lambda: mf.estimate(runs.MODEL, ROWS, samples=2000, rng=0, threads=1).V,
        "draw": lambda: runs.MODEL.data.draw(200_000, 0)[0],
        "distance": lambda: np.array(mf.distance(ROWS, 2 * ROWS)),
        "gibbs": lambda: mf.gibbs(runs.NOISY, cells=2000).measure.mass,
        "reduce": lambda: runs.TWO.reduce().features([[0.1, 0.2]]),
    }
    for name in ("SGD", "GD", "Particles", "PDE", "PDE, noise", "Atoms, noise", "JKO", "Nonlinear"):
        calls[name] = lambda name=name: np.frombuffer(runs.bits(runs.run(name, None, lambda _: 0.0)))
    return calls


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Calls with so many bytes left, until the time is over."""
    del folder
    report, r, deadline = Report("memory"), Random(seed), time.monotonic() + seconds
    wanted: dict[str, bytes] = {}
    while time.monotonic() < deadline:
        name, call = r.choice(list(_calls().items()))
        if name not in wanted:
            wanted[name] = np.asarray(call()).tobytes()
        left = int(10 ** r.uniform(5.0, 8.0))
        report.calls += 1
        report.kills += 1

        def limited(call: Callable[[], Any] = call, left: int = left, name: str = name) -> str:
            with open("/proc/self/statm") as file:
                have = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (have + left, have + left))
            return "result" if np.asarray(call()).tobytes() == wanted[name] else "other bits"

        said = children.end(*children.start(limited), 120.0)
        kind = said.split(":")[0]
        report.outcomes[kind] += 1
        if kind == "other bits":
            report.finding("silent", f"{name} with {left} bytes left: other bits")
        elif kind == "hang" or kind.startswith("ended"):
            report.finding("lost", f"{name} with {left} bytes left: {said}")
        elif kind not in ("result", "MemoryError", "ValueError"):
            report.finding("unclear", f"{name} with {left} bytes left: {said[:200]}")
    return report
