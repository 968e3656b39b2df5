"""Attack: requests that need more memory than there is are refused at once; requests that take hours
answer Ctrl-C.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import theory

from .children import Stopwatch
from .report import Report
from .runs import MODEL, NOISY, TWO

CUBE = mf.Model(
    mf.data.Dataset([[1.0, 0.5], [-1.0, 0.2]], [1.0, -1.0]),
    mf.Network(mf.activations.tanh),
    mf.init.Gaussian(0.5),
)
SPHERE = mf.data.MultiIndex(5, [0.0, 1.0], 1, inputs="sphere")
ANSWER = 10.0  # seconds; 0.5 on a machine of one's own
MOST = 4 << 30  # bytes that a child may take


def _huge() -> dict[str, Callable[[], Any]]:
    """Calls that cannot be met."""
    n = 10 ** Random(os.getpid()).randint(13, 18)
    rows = np.lib.stride_tricks.as_strided(np.ones(20), (10**11, 20), (0, 8))
    one = np.ones((3, 20))
    return {
        "save_at": lambda: mf.solve(MODEL, mf.SGD(4, 0.1), horizon=1.0, save_at=n),
        "keep": lambda: mf.solve(MODEL, mf.SGD(10**5, 0.1), horizon=1.0, save_at=10**6, keep="all"),
        "neurons of SGD": lambda: mf.solve(MODEL, mf.SGD(n, 0.1), horizon=1.0),
        "neurons of GD": lambda: mf.solve(MODEL, mf.GD(n, 0.1), horizon=1.0),
        "neurons of Particles": lambda: mf.solve(MODEL, mf.Particles(n), horizon=1.0),
        "neurons of Nonlinear": lambda: mf.solve(MODEL, mf.Nonlinear(n), horizon=1.0),
        "replicas": lambda: mf.solve(MODEL, mf.SGD(4, 0.1, replicas=n), horizon=1.0),
        "batch": lambda: mf.solve(MODEL, mf.SGD(4, 0.1, batch=n), horizon=1.0),
        "lsoda": lambda: mf.solve(MODEL, mf.Particles(10**5, method="lsoda"), horizon=1.0),
        "atoms": lambda: mf.solve(NOISY, mf.Atoms(n, method="heun", step=0.1), horizon=1.0),
        "JKO": lambda: mf.JKO(0.1, count=n),
        "cells": lambda: mf.PDE(cells=n),
        "gibbs": lambda: mf.gibbs(NOISY, cells=n),
        "draw": lambda: MODEL.data.draw(n),
        "first": lambda: MODEL.data.draw(2, first=2**63 - 1),
        "sample": lambda: mf.init.Gaussian(1.0).sample(MODEL.network, 20, n),
        "U": lambda: mf.U(MODEL, np.ones((10**6, 20))),
        "V": lambda: mf.V(MODEL, rows),
        "predict": lambda: mf.predict(MODEL, one, rows),
        "estimate": lambda: mf.estimate(MODEL, np.ones((10**6, 20)), samples=10),
        "chunk": lambda: mf.estimate(MODEL, one, samples=10**18, chunk=n),
        "directions": lambda: mf.distance(one, 2 * one, method="sliced", directions=n),
        "times": lambda: mf.log_times(1, 2, n),
        "quadrature": lambda: TWO.reduce().initial.quadrature(n),
        "nodes": lambda: TWO.reduce(nodes=n),
        "points of a path": lambda: theory.along(MODEL, one, 2 * one, points=n),
        "times of fluctuations": lambda: theory.fluctuations(CUBE, 1.0, n),
        "atoms at rest": lambda: theory.fixed_points(CUBE, atoms=n),
        "starts": lambda: theory.fixed_points(CUBE, starts=n),
        "starts of a diagnosis": lambda: theory.diagnose(CUBE, one[:, :2], starts=n),
        "quantised": lambda: theory.quantise(CUBE, one[:, :2], n),
        "networks of bounds": lambda: theory.bounds(CUBE, one[:, :2], replicas=n),
        "replicas of a ladder": lambda: theory.ladder(MODEL, 4, 0.1, horizon=1.0, replicas=n),
        "draws": lambda: theory.kernel_ridge(np.exp, SPHERE, samples=4, draws=n),
        "test inputs": lambda: theory.kernel_ridge(np.exp, SPHERE, samples=4, test=n),
        "degree": lambda: theory.zonal_spectrum(np.exp, 5, degree=n),
        "nodes of a law": lambda: mf.init.Chi(3, 1.0).quadrature(n),
    }


def _endless() -> dict[str, Callable[[], Any]]:
    """Calls that take little memory and all the time there is."""
    many, one = mf.MonteCarlo(10**15, 0), np.ones((3, 20))
    return {
        "V": lambda: mf.V(MODEL, one, expectation=many),
        "risk": lambda: mf.risk(MODEL, one, expectation=many),
        "estimate": lambda: mf.estimate(MODEL, one, samples=10**15),
        "held-out risk": lambda: mf.solve(MODEL, mf.GD(3, 0.1), horizon=1.0, risk=many),
        "GD": lambda: mf.solve(MODEL, mf.GD(3, 0.1, expectation=many), horizon=1.0),
        "steps": lambda: mf.solve(MODEL, mf.SGD(3, 1e-15), horizon=1.0),
    }


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Every request once, then again while there is time."""
    del seed, folder
    report, deadline = Report("requests"), time.monotonic() + seconds
    while True:
        for name in _huge():
            _refused(report, name)
        for name in _endless():
            _stopped(report, name)
        if time.monotonic() > deadline:
            return report


def _fork(calls: Callable[[], dict[str, Callable[[], Any]]], name: str) -> int:
    """A child that makes the call: exit code 0 for a result, 1 ValueError, 2 Ctrl-C, 3 anything else."""
    pid = os.fork()
    if pid:
        return pid
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        calls()[name]()
    except ValueError:
        code = 1
    except KeyboardInterrupt:
        code = 2
    except BaseException:
        code = 3
    os._exit(code)


def _ended(pid: int, seconds: float) -> int | None:
    watch = Stopwatch()
    while watch.seconds() < seconds:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _refused(report: Report, name: str) -> None:
    report.calls += 1
    code = _ended(_fork(_huge, name), ANSWER)
    report.outcomes["refused" if code == 1 else "other"] += 1
    if code != 1:
        how = "no answer" if code is None else f"exit code {code}"
        report.finding("lost", f"a request beyond memory ({name}): {how}, not ValueError")


def _stopped(report: Report, name: str) -> None:
    report.calls += 1
    pid = _fork(_endless, name)
    early = _wait_a_little(pid)
    if early is None:
        os.kill(pid, signal.SIGINT)
        report.kills += 1
        early = _ended(pid, ANSWER)
    report.outcomes["stopped" if early in (0, 2) else "other"] += 1
    if early not in (0, 2):
        report.finding(
            "lost", f"an endless request ({name}) did not stop within {ANSWER:.0f} s (code {early})"
        )


def _wait_a_little(pid: int) -> int | None:
    """Its exit code, or None if it is still there after a second."""
    for _ in range(100):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None
