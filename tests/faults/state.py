"""Attack: call the methods of stateful objects in every order: steppers, and runs cut anywhere."""

from __future__ import annotations

import copy
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import mfcore as mf
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from . import runs
from .report import Report

COUNT = {"calls": 0}
NET = mf.Network(mf.activations.tanh, output="trained")
SIZES = st.sampled_from([0.0, 1e-3, 0.1, 1e3, 1e100, 1e300])
BAD = st.sampled_from([float("nan"), float("inf"), -1.0, "x", None, [1.0, 2.0, 3.0, 4.0]])
CUT = mf.Model(mf.data.IsotropicGaussians(5, 0.5), runs.NET, mf.init.Radial(0.5))
METHODS = [
    mf.SGD(6, 1e-3),
    mf.GD(5, 1e-2),
    mf.Particles(4),
    mf.PDE(cells=24),
    mf.Atoms(),
    mf.JKO(0.02, count=12),
    mf.Nonlinear(4),
]


class Steppers(RuleBasedStateMachine):
    """An SGD stepper: finite whatever comes; refused calls change nothing; copies go the same way."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = np.random.default_rng(0).normal(size=(6, 4))
        self.sgd = mf.steppers.SGD(NET, self.theta, rng=1, temperature=0.1, threads=1)

    def _try(self, call: Any) -> None:
        COUNT["calls"] += 1
        before, steps = self.theta.copy(), self.sgd.steps
        try:
            call()
        except (ValueError, TypeError):
            assert np.array_equal(before, self.theta)
            assert steps == self.sgd.steps
        except FloatingPointError:
            pass

    @rule(h=SIZES, x=SIZES, y=SIZES)
    def step(self, h: float, x: float, y: float) -> None:
        self._try(lambda: self.sgd.step(np.full(3, x), y, h))

    @rule(h=SIZES, x=SIZES, n=st.integers(1, 40))
    def run(self, h: float, x: float, n: int) -> None:
        self._try(lambda: self.sgd.run(np.full((n, 3), x), np.ones(n), h))

    @rule(h=BAD | SIZES, x=BAD | SIZES)
    def misuse(self, h: Any, x: Any) -> None:
        self._try(lambda: self.sgd.step([x, 1.0, 1.0], 1.0, h))

    @rule()
    def twin(self) -> None:
        other = copy.deepcopy(self.sgd)
        for one in (other, self.sgd):
            self._try(lambda one=one: one.step([1.0, 0.0, 1.0], 1.0, 1e-3))
        assert np.array_equal(other.theta, self.theta)

    @invariant()
    def finite(self) -> None:
        assert np.isfinite(self.theta).all(), "theta is not finite"


class Runs(RuleBasedStateMachine):
    """A run that is cut, saved, loaded, resumed in any order ends with the bits of one left alone."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="mfcore-state-"))
        self.file = self.folder / "c.npz"
        self.method: Any = None
        self.run: Any = None

    @precondition(lambda self: self.run is None)
    @rule(method=st.sampled_from(METHODS), seconds=st.sampled_from([0.0, 1e-4, 1e-3, 1e-2]))
    def start(self, method: Any, seconds: float) -> None:
        self.method = method
        options: Any = {"horizon": 0.2, "save_at": 5, "rng": 0, "threads": 1, "checkpoint": self.file}
        with suppress(TimeoutError):  # where set-up takes half a second
            self._went(mf.solve(CUT, method, max_seconds=seconds, **options))

    @precondition(lambda self: self.run is not None and self.run.status == "out of time")
    @rule(seconds=st.sampled_from([0.0, 1e-3, 1e-2, None]), threads=st.sampled_from([1, 2]))
    def resume(self, seconds: float | None, threads: int) -> None:
        with suppress(TimeoutError):
            self._went(mf.resume(self.file, max_seconds=seconds, threads=threads))

    @precondition(lambda self: self.run is not None)
    @rule()
    def save_and_load(self) -> None:
        COUNT["calls"] += 1
        self.run.save(self.folder / "run.npz")
        assert runs.bits(mf.load(self.folder / "run.npz")) == runs.bits(self.run)

    def _went(self, run: Any) -> None:
        COUNT["calls"] += 1
        self.run = run
        if run.status == "completed":
            whole = mf.solve(CUT, self.method, horizon=0.2, save_at=5, rng=0, threads=1)
            assert runs.bits(run) == runs.bits(whole), "other bits after resuming"
            assert not self.file.exists()
        else:
            assert run.status == "out of time", run.status
            assert self.file.exists()

    def teardown(self) -> None:
        for file in self.folder.iterdir():
            file.unlink()
        self.folder.rmdir()


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Examples of both until the time is over."""
    del folder
    report, r, deadline = Report("state"), Random(seed), time.monotonic() + seconds
    while time.monotonic() < deadline:
        for machine in (Steppers, Runs):
            COUNT["calls"] = 0
            options = settings(
                max_examples=10,
                stateful_step_count=15,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
            )
            try:
                run_state_machine_as_test(seeded(r.randrange(2**32))(machine), settings=options)
                report.outcomes["as expected"] += 1
            except AssertionError as error:
                report.finding("silent", f"{machine.__name__}: {str(error)[:200] or repr(error)}")
            except Exception as error:
                report.finding("lost", f"{machine.__name__}: {type(error).__name__}: {str(error)[:200]}")
            report.calls += COUNT["calls"]
    return report
