"""`mf.solve`: run a method on a model and record it; `mf.resume`: go on after an interruption."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _check, _core
from ._build import build_info
from ._check import FloatArray
from ._observe import RiskMeter, standard_observables
from ._registry import from_config
from ._rng import RNG, seed_of
from ._rungs.rung import Method, Rung
from .expectation import Expectation
from .model import Model
from .trajectory import Measure, Trajectory, pack, plain, read_archive, unpack, write_archive

Observers = Mapping[str, Callable[[Any], Any]]

_CHECKPOINT_SECONDS = 10.0  # at most this much work is lost to a crash, beyond what a save point takes


@dataclass(frozen=True)
class _Plan:
    """What is recorded, and when."""

    horizon: float
    times: FloatArray
    kept: frozenset[float]
    risk: bool | Expectation


def solve(
    model: Model,
    method: Method,
    *,
    horizon: float,
    save_at: int | npt.ArrayLike | None = None,
    risk: bool | Expectation = True,
    observe: Observers | None = None,
    keep: str | npt.ArrayLike | None = None,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
) -> Trajectory:
    """Run one rung of the ladder from ρ₀ to the horizon on the clock t.

    Args:
        model: What is learned.
        method: What moves: `mf.SGD`, …
        horizon: T > 0.
        save_at: Times to record, increasing, or how many (evenly spaced, 0 and T included; default 51); see
            `log_times`. May be empty.
        risk: Record R(ρ_t): exactly where that is quick, else on a fixed held-out sample that all rungs
            share. An `Exact()` or `MonteCarlo(…)` chooses; False skips it.
        observe: Name to function of the measure (an (N, D) array for networks), recorded at save points
            beside the standard ones: mean and standard deviation of |w|, a and b.
        keep: Which measures to keep: ``"final"`` (default), ``"all"``, or some of the save points.
        rng: None, int, SeedSequence or Generator. The same one starts every method with the same neurons.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.
        progress: Show a bar (needs tqdm).
        checkpoint: File to keep the state of the run in, for `resume`. Removed at the end of a completed run.
        max_seconds: Stop after this much wall-clock time.

    Returns:
        The trajectory. Divergence, Ctrl-C and the time limit end it early, with a status and a message.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=50, step=1e-3), horizon=1.0, save_at=[0.0, 1.0], rng=0)
        >>> bool(run.risk[1] < run.risk[0])
        True
    """
    _check.instance(model, "model", Model, "an mf.Model")
    if not hasattr(method, "start"):
        raise TypeError(f"method must be a method such as mf.SGD(…), got {_check.shown(method)}")
    plan = _plan(horizon, save_at, risk, keep)
    observers = _observers(observe)
    seed = seed_of(rng)
    count = 0 if threads is None else _check.integer(threads, "threads", at_least=1)
    rung = method.start(model, seed, count)
    run = _Run(model, method, plan, observers, seed, rung)
    return run.go(checkpoint, max_seconds, progress)


def resume(
    checkpoint: str | os.PathLike[str],
    *,
    model: Model | None = None,
    method: Method | None = None,
    observe: Observers | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_seconds: float | None = None,
) -> Trajectory:
    """Continue a run from its checkpoint, to the same bits as if it had never been interrupted.

    Model and method come from the checkpoint, unless they contain Python functions, which it cannot hold:
    then pass them again, as well as `observe`. Other arguments are those of `solve`.

    Examples:
        >>> import mfcore as mf, tempfile
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = f"{folder}/run.npz"
        ...     method = mf.SGD(neurons=50, step=1e-5)
        ...     part = mf.solve(model, method, horizon=1.0, rng=0, checkpoint=file, max_seconds=0)
        ...     run = mf.resume(file)
        >>> part.status, run.status
        ('out of time', 'completed')
    """
    arrays, info = read_archive(checkpoint)
    if "plan" not in info:
        raise ValueError(f"checkpoint must be a file written by solve(checkpoint=…), got {str(checkpoint)!r}")
    model = _stored(model, info["model"], "model", Model)
    method = _stored(method, info["method"], "method", object)
    observers = _observers(observe)
    missing = sorted(set(info["observers"]) - set(observers))
    if missing:
        raise ValueError(f"observe must have the functions of the run, got none for {', '.join(missing)}")
    chosen = from_config(info["plan"]["risk"])
    plan = _Plan(info["plan"]["horizon"], arrays["plan/times"], frozenset(arrays["plan/kept"]), chosen)
    count = 0 if threads is None else _check.integer(threads, "threads", at_least=1)
    rung = method.start(model, info["seed"], count)
    rung.restore({name[6:]: a for name, a in arrays.items() if name.startswith("state/")})
    run = _Run(model, method, plan, observers, info["seed"], rung)
    run.restore(unpack({n[4:]: a for n, a in arrays.items() if n.startswith("run/")}, info["run"]))
    return run.go(checkpoint, max_seconds, progress)


def log_times(first: float, last: float, count: int) -> FloatArray:
    """`count` times from `first` to `last`, evenly spaced in log t.

    Examples:
        >>> import mfcore as mf
        >>> mf.log_times(0.01, 100.0, 5).tolist()
        [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    start = _check.number(first, "first", above=0)
    stop = _check.number(last, "last", above=start)
    n = _check.integer(count, "count", at_least=2)
    times = np.geomspace(start, stop, n)
    times[0], times[-1] = start, stop
    return times


class _Run:
    """A rung, its plan, and what has been recorded."""

    def __init__(
        self, model: Model, method: Method, plan: _Plan, observers: Observers, seed: int, rung: Rung
    ) -> None:
        self._model, self._method, self._plan, self._seed, self._rung = model, method, plan, seed, rung
        self._own = observers
        self._observers = {**standard_observables(model), **observers}
        self._meter = RiskMeter(model, plan.risk)
        self._t: list[float] = []
        self._risk: list[tuple[Any, Any]] = []
        self._observed: dict[str, list[Any]] = {name: [] for name in self._observers}
        self._kept: dict[float, Measure] = {}
        self._seconds = 0.0

    def restore(self, run: Trajectory) -> None:
        """Take over what a checkpoint had recorded."""
        self._t = run.t.tolist()
        if run.risk is not None and run.risk_error is not None:
            self._risk = list(zip(run.risk, run.risk_error, strict=True))
        self._observed = {name: list(run.observed[name]) for name in self._observers}
        self._kept = dict(run.kept)
        self._seconds = run.meta["seconds"]

    def go(
        self, checkpoint: str | os.PathLike[str] | None, max_seconds: float | None, progress: bool
    ) -> Trajectory:
        """Advance from save point to save point to the horizon."""
        limit = math.inf if max_seconds is None else _check.number(max_seconds, "max_seconds", at_least=0)
        begun, before = time.monotonic(), self._seconds
        status = "completed"
        targets = [*self._plan.times[len(self._t) :], self._plan.horizon]
        with _Bar(progress, self._plan.horizon) as bar:
            for k, target in enumerate(targets):
                status = self._reach(target, begun + limit, checkpoint, bar)
                self._seconds = before + time.monotonic() - begun
                if status != "completed":
                    break
                if k < len(targets) - 1:
                    self._record(target)
        if checkpoint is not None:
            if status == "completed":
                _remove(checkpoint)
            else:
                self._write(checkpoint)
        return self._trajectory(status)

    def _reach(self, target: float, deadline: float, checkpoint: Any, bar: _Bar) -> str:
        """Advance to `target`, with a checkpoint every few seconds. Returns the status."""
        last = time.monotonic()
        if checkpoint is not None and not self._t:
            self._write(checkpoint)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "out of time"
            slice_ = min(left, _CHECKPOINT_SECONDS if checkpoint is not None else left, bar.seconds)
            if self._rung.advance(target, slice_):
                return "completed"
            if self._rung.status != "running":
                return self._rung.status
            bar.show(self._rung.t)
            if checkpoint is not None and time.monotonic() - last >= _CHECKPOINT_SECONDS:
                self._write(checkpoint)
                last = time.monotonic()

    def _record(self, time_asked: float) -> None:
        measure = self._rung.measure()
        self._t.append(self._rung.t)
        self._risk.append(self._meter(measure))
        for name, function in self._observers.items():
            self._observed[name].append(np.asarray(function(measure), dtype=np.float64))
        if time_asked in self._plan.kept:
            self._kept[self._rung.t] = measure

    def _trajectory(self, status: str) -> Trajectory:
        shown = self._meter.active
        return Trajectory(
            t=np.array(self._t),
            risk=np.array([r for r, _ in self._risk]) if shown else None,
            risk_error=np.array([e for _, e in self._risk]) if shown else None,
            observed={name: np.array(values) for name, values in self._observed.items()},
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
                "threads": _core.resolve_threads(),
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
            "interrupted": f"stopped by Ctrl-C at t = {t:g} of {horizon:g}",
            "out of time": f"max_seconds passed at t = {t:g} of {horizon:g}",
        }.get(status) or self._rung.message

    def _write(self, checkpoint: str | os.PathLike[str]) -> None:
        recorded, info = pack(self._trajectory("interrupted"))
        arrays = {f"run/{name}": a for name, a in recorded.items()}
        arrays |= {f"state/{name}": a for name, a in self._rung.state().items()}
        arrays |= {"plan/times": self._plan.times, "plan/kept": np.array(sorted(self._plan.kept))}
        write_archive(
            checkpoint,
            arrays,
            {
                "run": info,
                "plan": {"horizon": self._plan.horizon, "risk": plain(self._plan.risk)},
                "model": plain(self._model),
                "method": plain(self._method),
                "observers": list(self._own),
                "seed": self._seed,
            },
        )


class _Bar:
    """A progress bar over the clock, if asked for."""

    def __init__(self, wanted: bool, horizon: float) -> None:
        self.seconds = math.inf
        self._bar: Any = None
        if wanted:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                raise ImportError("progress=True needs tqdm: pip install 'mfcore[progress]'") from None
            self._bar, self.seconds = tqdm(total=horizon, unit="t", unit_scale=True), 0.2

    def show(self, t: float) -> None:
        if self._bar is not None:
            self._bar.update(t - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _plan(horizon: Any, save_at: Any, risk: Any, keep: Any) -> _Plan:
    end = _check.number(horizon, "horizon", above=0)
    if save_at is None:
        save_at = 51
    if isinstance(save_at, int | np.integer) and not isinstance(save_at, bool):
        count = _check.integer(save_at, "save_at", at_least=0)
        times = np.linspace(0.0, end, count) if count != 1 else np.array([end])
    else:
        times = _check.array(save_at, "save_at", shape=(None,), empty=True)
        if len(times) and (times[0] < 0 or times[-1] > end or (np.diff(times) <= 0).any()):
            raise ValueError(f"save_at must increase from >= 0 to <= horizon = {end:g}, got {times}")
    if not isinstance(risk, bool | Expectation):
        raise TypeError(f"risk must be True, False, mf.Exact() or mf.MonteCarlo(…), got {_check.shown(risk)}")
    if keep is None or (isinstance(keep, str) and keep == "final"):
        kept: frozenset[float] = frozenset()
    elif isinstance(keep, str):
        _check.choice(keep, "keep", ("final", "all"))
        kept = frozenset(times.tolist())
    else:
        wanted = _check.array(keep, "keep", shape=(None,), empty=True)
        for t in wanted:
            if t not in times:
                raise ValueError(f"keep must name save points, got {t:g}; save_at has {times}")
        kept = frozenset(wanted.tolist())
    return _Plan(end, times, kept, risk)


def _observers(observe: Any) -> dict[str, Callable[[Any], Any]]:
    if observe is None:
        return {}
    _check.instance(observe, "observe", Mapping, 'a mapping such as {"name": function}')
    for name, function in observe.items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"observe must map names to functions, got {name!r}: {_check.shown(function)}")
    return dict(observe)


def _stored(given: Any, table: Any, name: str, kind: type) -> Any:
    if given is not None:
        return given
    if isinstance(table, str):
        raise ValueError(f"{name} must be passed again: the checkpoint could not hold {table}")
    value = from_config(table)
    _check.instance(value, name, kind, f"the {name} of the run")
    return value


def _remove(checkpoint: str | os.PathLike[str]) -> None:
    if os.path.exists(checkpoint):
        os.unlink(checkpoint)
