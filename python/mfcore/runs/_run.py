"""A run in progress: from save point to save point, with records, checkpoints and a progress bar."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.bar import Bar
from .._base.build import build_info
from .._base.check import FloatArray
from .._base.limits import Limit
from ..expectations._rules import Expectation
from ..measures._tangent import TangentLimit
from ..model import Model
from ..reductions._model import ReducedModel
from ._checkpoint import Checkpoint, Plan, build
from ._ends import End, Ended
from ._observe import RiskMeter, reduced_observables, standard_observables
from ._reduced import model_of
from ._rung import LimitRung, Method, Rung, limit_of
from ._trajectory import Measure, Trajectory

Observers = Mapping[str, Callable[[Any], Any]]

_ENDED = ("completed", "stationary", "diverged")  # nothing is left to go on with


@dataclass(frozen=True)
class _Record:
    """What a save point adds: whole or not at all, whenever Ctrl-C comes."""

    t: float
    risk: Any
    error: Any
    observed: dict[str, FloatArray]


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
    ) -> None:
        self._model, self._method, self._plan, self._seed, self._rung = model, method, plan, seed, rung
        self._threads, self._own = threads, observers
        limit = limit_of(rung)
        if limit is not None:
            standard = reduced_observables(model, limit.reduced)
            standard |= {name: partial(_of_rung, limit, name) for name in limit.observed()}
            self._meter: RiskMeter | _OwnRisk = _OwnRisk(limit, plan.risk)
        else:
            nobody = isinstance(rung.measure(), TangentLimit)  # whose norms could be observed
            standard = {} if nobody else standard_observables(model)
            self._meter = RiskMeter(model_of(model), plan.risk, threads)
        self._observers = {**standard, **observers}
        self._records: list[_Record] = []
        self._kept: dict[float, Measure] = {}
        self._seconds, self._lost = 0.0, ""
        self._why = ""  # why the run ended, if it did by itself
        self._builds = [build()]

    def restore(self, run: Trajectory) -> None:
        """Take over what a checkpoint had recorded."""
        nothing = [None] * len(run.t)
        risks = nothing if run.risk is None else run.risk
        errors = nothing if run.error is None else run.error
        for k, (t, risk, error) in enumerate(zip(run.t.tolist(), risks, errors, strict=True)):
            observed = {name: np.asarray(run.observed[name][k]) for name in self._observers}
            self._records.append(_Record(t, risk, error, observed))
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
        targets = [*self._plan.times[len(self._records) :].tolist(), self._plan.horizon]
        with bar:
            try:
                for k, target in enumerate(targets):
                    ended = self._reach(target, limit, checkpoint, bar)
                    if not ended.reached:
                        status, self._why = ended.status, ended.message
                        break
                    if k < len(targets) - 1:
                        with limit:
                            self._record(target)
                        bar.show(self._rung.t)
                        if self._lost:
                            status, self._why = "diverged", self._lost
                            break
                if status == "stationary" and len(targets) > 1:  # nothing changes after: its last state
                    self._record(self._rung.t)
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

    def _record(self, time_asked: float) -> None:
        measure = self._rung.measure()
        with np.errstate(over="ignore", invalid="ignore"):  # a state about to diverge may square to infinity
            risk, error = self._meter(measure)
            observed = {name: self._value(name, measure) for name in self._observers}
        record = _Record(self._rung.t, risk, error, observed)
        if time_asked in self._plan.kept:  # signals are only looked for after the next call
            self._kept[time_asked] = measure
        self._records.append(record)
        of_ours = {"risk": risk} | {k: v for k, v in observed.items() if k not in self._own}
        lost = [name for name, value in of_ours.items() if value is not None and not _sound(name, value)]
        if lost:  # a state that is finite, but not what is made of it
            names = ", ".join(name if name == "risk" else f"observe[{name!r}]" for name in lost)
            self._lost = (
                f"no longer finite at t = {self._rung.t:g}: {names}, though the state is. "
                "Try a smaller step, or smaller numbers"
            )

    def _value(self, name: str, measure: Measure) -> FloatArray:
        """What an observer returns, as an array of the same shape as before."""
        try:
            result = self._observers[name](measure)
        except Exception as error:
            error.add_note(f"This was observe[{name!r}] at t = {self._rung.t:g}.")
            raise
        raw = np.asarray(result)
        if raw.dtype.kind not in "fiub":
            raise TypeError(f"observe[{name!r}] must return numbers, got {check.shown(result)}")
        if self._records and raw.shape != self._records[-1].observed[name].shape:
            raise ValueError(
                f"observe[{name!r}] must return arrays of one shape, got {raw.shape} at "
                f"t = {self._rung.t:g} after {self._records[-1].observed[name].shape}"
            )
        return raw.astype(np.float64)

    def _trajectory(self, status: str) -> Trajectory:
        records, shown = self._records, self._meter.active
        return Trajectory(
            t=np.array([record.t for record in records]),
            risk=np.array([record.risk for record in records]) if shown else None,
            error=np.array([record.error for record in records]) if shown else None,
            observed={name: np.array([r.observed[name] for r in records]) for name in self._observers},
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
                **self._rung.meta(),
            },
        )

    def _message(self, status: str) -> str:
        t, horizon = self._rung.t, self._plan.horizon
        return {
            "completed": f"reached t = {t:g}",
            "running": f"at t = {t:g} of {horizon:g}",  # this one and the next in checkpoints only
            "failed": f"stopped by an error at t = {t:g} of {horizon:g}",
            "interrupted": f"stopped by Ctrl-C at t = {t:g} of {horizon:g}",
            "out of time": f"max_seconds passed at t = {t:g} of {horizon:g}",
        }.get(status, self._why)

    def _content(self, status: str) -> tuple[Trajectory, dict[str, np.ndarray]]:
        """All that a checkpoint holds of a run that ended, or goes on, with this status."""
        return self._trajectory(status), self._rung.state()

    def _save(self, checkpoint: Checkpoint | None, status: str) -> None:
        if checkpoint is not None:
            checkpoint.save(partial(self._content, status))


class _OwnRisk:
    """The risk that a rung of the limit knows itself: the sum over its nodes, with the rung's own error.

    What the nodes themselves leave out of the average over the data, `ReducedModel.node_error`, is added.
    """

    def __init__(self, rung: LimitRung, rule: bool | Expectation) -> None:
        self.active, self._rung = rule is not False, rung
        self.description = "sum over nodes" if self.active else "not recorded"
        reduced = rung.reduced
        self._target = math.sqrt(float(reduced.weights @ reduced.targets**2))

    def __call__(self, _: Measure) -> tuple[Any, Any]:
        if not self.active:
            return None, None
        risk, error = self._rung.risk()
        size = max(1.0, self._target + math.sqrt(max(risk, 0.0)))  # at least that of f in the mean
        return risk, error + self._rung.reduced.risk_node_error(size)


def _sound(name: str, value: Any) -> bool:
    """Whether a recorded number says something: finite, or F = ∞, as it is for atoms under noise."""
    return bool((np.isfinite(value) | ((name == "free_energy") & np.isposinf(value))).all())


def _of_rung(rung: LimitRung, name: str, _: Measure) -> float:
    """What the rung itself says about the present measure."""
    return rung.observed()[name]
