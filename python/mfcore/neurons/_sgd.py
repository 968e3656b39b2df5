"""The rung of `mf.SGD`: replicas of N neurons under one-pass stochastic gradient descent."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.check import FloatArray, memory, shown
from .._base.limits import unlimited
from .._base.rng import Seed, derive
from ..init import Points
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended
from ..runs._rung import State

if TYPE_CHECKING:
    from ._methods import SGD

_WHOLE = 1e-9  # of a step and of the time: a rest of less than this is rounding
_CHUNK = 1 << 16  # step sizes summed together when times are turned into steps

_COPIES = 3  # copies of the neurons of one replica: at the start, now, and inside a block
_REPLICA = 6000  # bytes of one replica beside its neurons


class SgdRung:
    """A run of replicas of one-pass SGD, all on the same clock."""

    reduced: ReducedModel | None = None

    def __init__(self, method: SGD, model: Model, seed: int, threads: int) -> None:
        self._method = method
        check_memory(_COPIES * method.neurons, model, "neurons", method.neurons)
        check_memory(_COPIES * method.neurons * method.replicas, model, "replicas", method.replicas)
        memory(float(_REPLICA) * method.replicas, "replicas", method.replicas)
        memory(16.0 * method.neurons * method.batch, "batch", method.batch)
        self._seeds = [seed] + [derive(seed, k) for k in range(1, method.replicas)]
        self._clock = self.clock = _Clock(method.step, method.schedule)
        unit, self._scale = model._unit, model.network.scale
        rates = {"a": 1.0, "b": 1.0, "w": 1.0, **(unit.rates or {})}
        n, last = method.neurons, max(0, method.neurons - 2)
        start_of(model, n, seed, threads, (last, n))  # what it refuses, it refuses now
        self._begin = partial(
            _core.Sgd,
            unit.network._core,
            [partial(_rows_of, model, n, s, threads) for s in self._seeds],
            [unit.data._run_sampler() for _ in self._seeds],
            self._seeds,
            batch=method.batch,
            ridge=float(unit.ridge),
            temperature=float(unit.temperature),
            rates=(rates["a"], rates["b"], rates["w"]),
            block=1 if method.coupled and model.temperature > 0 else 0,
            single_precision=method.precision == "float32",
            threads=threads,
            neurons=n,
        )

    @cached_property
    def _runs(self) -> _core.Sgd:
        """The networks, begun when the end of the clock is known."""
        return self._begin(self._clock.argument())

    @property
    def t(self) -> float:
        """Σ h over the steps done."""
        return self._clock.time(min(self._runs.steps))

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to the step nearest to time t."""
        try:
            end = self._runs.advance(self._clock.step(t), seconds)
        except KeyboardInterrupt:  # in a Python function, while replicas were at different steps
            with unlimited():
                self._runs.advance(max(self._runs.steps), math.inf)
            end = End.interrupted
        return Ended(end, self._divergence() if end is End.diverged else "")

    def _divergence(self) -> str:
        """The step at which the first replica diverged, and what to do."""
        step, which = min((at, k) for k, at in enumerate(self._runs.diverged_at) if at >= 0)
        of = f" of replica {which}" if len(self._seeds) > 1 else ""
        return (
            f"the prediction{of} was no longer finite at step {step} (t = {self._clock.time(step):g}); "
            f"the state returned{of} is that of step {self._runs.steps[which]}. "
            f"Try a smaller step than {self._method.step:g}"
        )

    def measure(self) -> FloatArray:
        """Neurons, (N, D) or (replicas, N, D)."""
        rows = self._runs.theta()
        return rows[0] if len(rows) == 1 else np.stack(rows)

    def predict(self, X: FloatArray) -> list[FloatArray]:
        """f_N on the rows of X, of each replica."""
        return [self._scale * f for f in self._runs.predict(X)]

    def state(self) -> State:
        """Neurons at the start of the current block, and the steps."""
        return self._runs.state()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Start again from the block, and go to the step."""
        self._runs.restore(dict(state))

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: the end of a block of steps."""
        block = self._runs.block_steps
        return self._clock.after(block * round(self._clock.steps_to(t) / block))

    def take_over(self, earlier: SgdRung) -> None:
        """Go on from where a rung with other forces is, at the end of a block."""
        state, steps = earlier.state(), np.array(earlier._runs.steps)
        neurons = np.stack(earlier._runs.theta())
        self.restore({**state, "anchor": steps, "step": steps, "neurons": neurons})

    def meta(self) -> dict[str, Any]:
        """Steps done and the length of the blocks they were done in (1: the plain sequential algorithm)."""
        return {
            "steps": min(self._runs.steps),
            "block_steps": self._runs.block_steps,
            "seeds": self._seeds,
        }


class _Clock:
    """The clock t_k = Σ_{j<k} h_j of step sizes h_k = h ξ(k h): from steps to times and back."""

    def __init__(self, step: float, schedule: Any) -> None:
        self._h, self._schedule, self._end = step, schedule, math.inf
        self._short: tuple[int, float] | None = None  # number and size of the last step, if it is shortened
        self._times = np.zeros(1)  # t at multiples of _CHUNK steps

    @property
    def end(self) -> float:
        """The time at which the last step is shortened; inf: nowhere."""
        return self._end

    @end.setter
    def end(self, end: float) -> None:
        self._end, self._short = math.inf, None
        k = self.step(end)
        k -= self.time(k) > end + _WHOLE * max(end, self._h)
        rest = end - self.time(k)
        self._end = end
        if rest > _WHOLE * max(end, self._h):
            self._short = k, rest

    @property
    def shortened(self) -> float:
        """The length of the shortened last step; 0 if there is none."""
        return 0.0 if self._short is None else self._short[1]

    def argument(self) -> Any:
        """Return the step sizes for the core: one, one with a shortened last step, or a function."""
        if self._schedule is not None:
            return self.sizes
        return self._h if self._short is None else (self._h, *self._short)

    def nearest(self, t: float) -> float:
        """The time nearest to t that a step ends at."""
        return self.time(self.step(t))

    def sizes(self, first: int, count: int) -> FloatArray:
        """h_k for k = first … first + count − 1."""
        sizes = self._unshortened(first, count)
        if self._short is not None and first <= self._short[0] < first + count:
            sizes[self._short[0] - first] = self._short[1]
        return sizes

    def _unshortened(self, first: int, count: int) -> FloatArray:
        if self._schedule is None:
            return np.full(count, self._h)
        k = np.arange(first, first + count, dtype=np.float64)
        values = self._schedule(k * self._h)
        try:
            factors = np.broadcast_to(np.asarray(values, dtype=np.float64), (count,))
        except (TypeError, ValueError):
            raise ValueError(
                f"schedule must return one number for each of the {count} it is given, got {shown(values)}"
            ) from None
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            at = int(np.argmin(np.isfinite(factors) & (factors > 0)))
            raise ValueError(
                f"schedule must be finite and > 0, got {factors[at]:g} at k·step = {k[at] * self._h:g}"
            )
        return np.asarray(self._h * factors)

    def time(self, step: int) -> float:
        """The time after `step` steps."""
        if self._short is not None and step > self._short[0]:
            return self._end + (self.after(step) - self.after(self._short[0] + 1))
        return self.after(step)

    def after(self, step: int) -> float:
        """The same of whole steps, none of them shortened."""
        if self._schedule is None:
            return step * self._h
        self._extend(lambda: len(self._times) * _CHUNK > step)
        chunk, rest = divmod(step, _CHUNK)
        return float(self._times[chunk] + self._unshortened(chunk * _CHUNK, rest).sum())

    def step(self, t: float) -> int:
        """The number of steps whose time is nearest to t; none that would end beyond the end."""
        step = self.steps_to(t)
        if self._short is None:
            return step
        last = self._short[0]
        return last + 1 if t > 0.5 * (self.after(last) + self._end) else min(step, last)

    def steps_to(self, t: float) -> int:
        """The same of whole steps, of which more than the run has may be meant."""
        if self._schedule is None:
            return round(t / self._h)
        self._extend(lambda: self._times[-1] > t)
        chunk = int(np.searchsorted(self._times, t, side="right")) - 1
        times = self._times[chunk] + np.concatenate(
            [[0.0], np.cumsum(self._unshortened(chunk * _CHUNK, _CHUNK))]
        )
        return chunk * _CHUNK + int(np.abs(times - t).argmin())

    def _extend(self, enough: Any) -> None:
        started = time.monotonic()
        while not enough():
            first = (len(self._times) - 1) * _CHUNK
            self._times = np.append(self._times, self._times[-1] + self._unshortened(first, _CHUNK).sum())
            if time.monotonic() - started > 10:
                raise ValueError(
                    f"schedule must let the clock reach the horizon, got t = {self._times[-1]:g} "
                    f"after {first} steps"
                )


def check_memory(rows: float, model: Model, name: str, value: Any) -> None:
    """Refuse a `value` that needs more rows of neurons than fit in memory."""
    memory(8.0 * rows * (model.row or 1), name, value)


def _rows_of(model: Model, neurons: int, seed: int, threads: int, first: int, count: int) -> FloatArray:
    return start_of(model, neurons, seed, threads, (first, first + count))


def start_of(
    model: Model, neurons: int, seed: int, threads: int = 0, rows: tuple[int, int] | None = None
) -> FloatArray:
    """The initial neurons, the same for every method with the same seed; `rows`: from one to another only."""
    if model.row is None:
        raise ValueError(
            f"data must have finite d for neurons, got {model.data!r}; at d=inf the rungs of the limit run: "
            "mf.PDE, mf.Atoms and mf.JKO"
        )
    if model.init is None:
        raise ValueError("init must be an initial law for a run to start from, got None")
    if isinstance(model.init, Points) and len(model.init.theta) != neurons:
        given = len(model.init.theta)
        raise ValueError(f"neurons must be {given}, the number of given points, got {neurons}")
    first, last = rows or (0, neurons)
    begin, end = first - first % 2, min(last + last % 2, neurons)  # both neurons of a pair
    check_memory(2 * (end - begin), model, "neurons", neurons)
    drawn = model.init.sample(
        model.network, int(model.d), end - begin, Seed(seed), first=begin, threads=threads or None
    )
    return drawn[first - begin : last - begin]
