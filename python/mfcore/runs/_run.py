"""A run in progress: from save point to save point, with records, checkpoints and a progress bar."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._base.bar import Bar
from .._base.build import build_info
from .._base.check import FloatArray
from .._base.limits import Limit
from ..expectations._rules import MonteCarlo
from ..measures._functions import predict
from ..measures._tangent import TangentLimit
from ..model import Model
from ..reductions._model import ReducedModel
from ._advice import advise_overfitting, advise_rise, learned_samples, training_risk
from ._checkpoint import Checkpoint, Plan, build
from ._clock import Stop, off_clock, stops, with_looks
from ._ends import End, Ended
from ._guard import Guard
from ._meters import HeldOut, OwnRisk, of_rung, sound
from ._observe import RiskMeter, observation, reduced_observables, standard_observables
from ._records import Record, Records
from ._reduced import model_of
from ._rung import Method, Rung, clock_of, limit_of
from ._stopping import Stopper, met
from ._trajectory import Measure, Trajectory

Observers = Mapping[str, Callable[[Any], Any]]

_ENDED = ("completed", "stationary", "diverged")  # nothing is left to go on with


class Run:
    """A rung, its plan, and what has been recorded."""

    def __init__(
        self,
        model: Model | ReducedModel,
        method: Method,
        plan: Plan,
        observers: Observers,
        seed: int,
        rung: Rung,
        threads: int,
        stop: Stopper | None = None,
    ) -> None:
        self._model, self._method, self._plan, self._seed, self._rung = model, method, plan, seed, rung
        self._threads, self._own, self._stop = threads, observers, stop
        limit = limit_of(rung)
        if limit is not None:
            standard = reduced_observables(model, limit.reduced)
            standard |= {name: partial(of_rung, limit, name) for name in limit.observed()}
            self._meter: RiskMeter | OwnRisk = OwnRisk(limit, plan.risk)
        else:
            infinite = not hasattr(rung, "predict") and isinstance(rung.measure(), TangentLimit)
            standard = {} if infinite else standard_observables(model)  # of infinitely many: no norms
            self._meter = RiskMeter(model_of(model), plan.risk, threads)
        if plan.test is not None:
            standard |= HeldOut(plan.test, partial(predict, model, X=plan.test.X)).observables()
        self._observers = {**standard, **observers}
        self._guard = Guard(model, None if limit is None else limit.reduced)
        self._limit = limit
        self._clock = clock_of(rung)
        self._stops = stops(self._clock, plan.times.tolist())
        self._training: float | None = None
        self._records = Records()
        self._answered = True  # whether `stop` has been asked at the last save point
        self._kept: dict[float, Measure] = {}
        self._seconds, self._lost = 0.0, ""
        self._why = ""  # why the run ended, if it did by itself
        self._builds = [build()]

    def restore(self, run: Trajectory) -> None:
        """Take over what a checkpoint had recorded."""
        self._guard.start = np.array(run.meta["rough_start_risk"]) if "rough_start_risk" in run.meta else None
        nothing = [None] * len(run.t)
        risks = nothing if run.risk is None else run.risk
        errors = nothing if run.error is None else run.error
        for k, (t, risk, error) in enumerate(zip(run.t.tolist(), risks, errors, strict=True)):
            observed = {name: np.asarray(run.observed[name][k]) for name in self._observers}
            self._records.append(Record(t, risk, error, observed))
        at_record = len(run.t) > 0 and run.t[-1] == self._rung.t
        self._answered = run.status == "stopped" or not at_record
        self._kept = dict(run.kept)
        self._seconds = run.meta["seconds"]
        earlier = run.meta["builds"]
        self._builds = [*earlier, *(now for now in self._builds if now != earlier[-1])]

    def go(self, checkpoint: Checkpoint | None, limit: Limit, bar: Bar) -> Trajectory:
        """Advance from save point to save point to the horizon. Ctrl-C ends the run, wherever it comes."""
        status = "running"
        while True:
            try:
                if status == "running":
                    status = self._go(checkpoint, limit, bar)
                if checkpoint is not None and status in _ENDED:
                    checkpoint.end(partial(self._content, status))
                else:
                    self._save(checkpoint, status)
                return self._trajectory(status)
            except KeyboardInterrupt:
                if status == "interrupted":  # again, while the end is recorded
                    raise
                status = "interrupted"

    def _go(self, checkpoint: Checkpoint | None, limit: Limit, bar: Bar) -> str:
        """From where it is to the horizon. Returns the status."""
        if checkpoint is not None:
            checkpoint.write(partial(self._content, "running"))  # what cannot be written is an error now
        begun, before = time.monotonic(), self._seconds
        status = "completed"
        points, horizon = self._stops[len(self._records) :], self._plan.horizon
        targets = [*with_looks(self._clock, points, self._rung.t, horizon), Stop(horizon, ())]
        with bar:
            try:
                if not self._answered and self._is_met(limit):
                    return "stopped"
                for k, target in enumerate(targets):
                    if self._guard.start is None and target.t > 0:
                        with limit:
                            self._guard.start = self._risk_now()
                    ended = self._reach(target.t, limit, checkpoint, bar)
                    if not ended.reached:
                        status, self._why = ended.status, ended.message
                        break
                    if k < len(targets) - 1:
                        with limit:
                            if target.asked:
                                self._record(target)
                            if self._clock is not None and not (target.asked and self._meter.active):
                                self._lost = self._lost or self._blown(self._risk_now())
                        bar.show(self._rung.t)
                        if self._lost:
                            status, self._why = "diverged", self._lost
                            break
                        if target.asked and self._is_met(limit):
                            status = "stopped"
                            break
                if status == "stationary" and points:  # nothing changes after: its last state
                    self._record(Stop(self._rung.t, ()))
                if status == "completed":
                    with limit:
                        status = self._judged()
            except _core.OutOfTime:
                status = "out of time"
            except Exception:  # of a function of the user's: what was done until then is not lost
                self._seconds = before + time.monotonic() - begun
                self._save(checkpoint, "failed")
                raise
            finally:
                self._seconds = before + time.monotonic() - begun
        return status

    def _reach(self, target: float, limit: Limit, checkpoint: Checkpoint | None, bar: Bar) -> Ended:
        """Advance to `target`, with a checkpoint whenever one is due."""
        while True:
            if checkpoint is not None and checkpoint.wait() <= 0:
                self._save(checkpoint, "running")
            left = limit.left
            if left <= 0:
                return Ended(End.out_of_time)
            slice_ = min(left, math.inf if checkpoint is None else checkpoint.wait(), bar.seconds)
            with limit:
                ended = self._rung.advance(target, slice_)
            if ended.end is End.interrupted and limit.expired:
                return Ended(End.out_of_time)
            if ended.end is not End.out_of_time:
                return ended
            bar.show(self._rung.t)

    def _risk_now(self) -> Any:  # for the guard
        with np.errstate(over="ignore", invalid="ignore"):
            return self._limit.risk()[0] if self._limit is not None else self._guard.rough_of(self._rung)

    def _is_met(self, limit: Limit) -> bool:
        """Whether `stop` ends the run at the save point where it is."""
        self._answered = False
        if self._stop is not None:
            with limit:
                if met(self._stop, self._trajectory("running"), self._rung.t):
                    return True
        self._answered = True
        return False

    def _judged(self) -> str:
        """Judge a run that has reached the horizon: completed, or diverged on the last stretch."""
        last = self._records[-1] if self._records and self._meter.active else None
        at_end = last is not None and last.t == self._rung.t
        risk = last.risk if last is not None and at_end else self._risk_now()
        self._why = self._blown(risk)
        if self._why:
            return "diverged"
        if at_end:
            series = self._records.series("t", "risk", "error")
            advise_rise(self._method, self._model, self._guard.power, *series)
        if last is not None and at_end and self._training is None:
            measure = self._rung.measure()
            rule = learned_samples(self._method, self._model, measure)
            if rule is not None:
                self._training = self._training_risk(rule, measure)
                advise_overfitting(rule, self._training, last.risk, last.error)
        return "completed"

    def _training_risk(self, rule: MonteCarlo, measure: Any) -> float:
        return training_risk(rule, model_of(self._model), measure)

    def _blown(self, risk: Any) -> str:
        """Why a run of this risk has diverged; empty if it has not."""
        if self._guard.start is None:  # at t = 0
            return ""
        lost = "" if np.isfinite(risk).all() else f"the risk is no longer finite at t = {self._rung.t:g}"
        return self._guard.why(risk, self._rung.t) or lost

    def _record(self, stop: Stop) -> None:
        measure = self._rung.measure()
        with np.errstate(over="ignore", invalid="ignore"):  # of a state about to diverge
            risk, error = self._meter(measure)
            observed = {name: self._value(name, measure) for name in self._observers}
        record = Record(self._rung.t, risk, error, observed)
        for asked in stop.asked:  # signals are only looked for after the next call
            if asked in self._plan.kept:
                self._kept[asked] = measure
        self._records.append(record)
        of_ours = {"risk": risk} | {k: v for k, v in observed.items() if k not in self._own}
        lost = [name for name, value in of_ours.items() if value is not None and not sound(name, value)]
        if lost:  # a state that is finite, but not what is made of it
            names = ", ".join(name if name == "risk" else f"observe[{name!r}]" for name in lost)
            self._lost = (
                f"no longer finite at t = {self._rung.t:g}: {names}, though the state is. "
                "Try a smaller step, or smaller numbers"
            )
        elif risk is not None and self._guard.start is not None:
            self._lost = self._guard.why(risk, self._rung.t)

    def _value(self, name: str, measure: Measure) -> FloatArray:
        """What an observer returns, as an array of the same shape as before."""
        if name not in self._own:
            return np.asarray(self._observers[name](measure), dtype=np.float64)
        before = self._records[-1].observed[name] if self._records else None
        return observation(self._own[name], name, measure, before, self._rung.t)

    def _trajectory(self, status: str) -> Trajectory:
        t, risk, error, *observed = self._records.series("t", "risk", "error", *self._observers)
        shown = self._meter.active
        return Trajectory(
            t=t,
            risk=risk if shown else None,
            error=error if shown else None,
            observed=dict(zip(self._observers, observed, strict=True)),
            final=self._rung.measure(),
            kept=dict(self._kept),
            status=status,
            message=self._message(status),
            meta={
                "model": self._model,
                "method": self._method,
                "horizon": self._plan.horizon,
                "seed": self._seed,
                "version": build_info()["version"],
                "isa": build_info()["isa"],
                "builds": self._builds,
                "threads": _core.resolve_threads(self._threads),
                "seconds": self._seconds,
                "t": self._rung.t,
                "risk": self._meter.description,
                **self._judgement(),
                **self._rung.meta(),
            },
        )

    def _judgement(self) -> dict[str, Any]:
        """Return the numbers that the run was judged by, as far as they are known."""
        start = None if self._guard.start is None else np.asarray(self._guard.start).tolist()
        known = {"rough_start_risk": start, "training_risk": self._training}
        return {name: value for name, value in known.items() if value is not None}

    def _message(self, status: str) -> str:
        t, horizon = self._rung.t, self._plan.horizon
        return {
            "completed": f"reached t = {t:g}{off_clock(self._clock, self._stops)}",
            "running": f"at t = {t:g} of {horizon:g}",  # this one and the next in checkpoints only
            "failed": f"stopped by an error at t = {t:g} of {horizon:g}",
            "stopped": f"stop was met at t = {t:g} of {horizon:g}",
            "interrupted": f"stopped by Ctrl-C at t = {t:g} of {horizon:g}",
            "out of time": f"max_seconds passed at t = {t:g} of {horizon:g}",
        }.get(status, self._why)

    def _content(self, status: str) -> tuple[Trajectory, dict[str, np.ndarray]]:  # of a checkpoint
        return self._trajectory(status), self._rung.state()

    def _save(self, checkpoint: Checkpoint | None, status: str) -> None:
        if checkpoint is not None:
            checkpoint.save(partial(self._content, status))
