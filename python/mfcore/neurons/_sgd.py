"""The rung of `mf.SGD`: replicas of N neurons under one-pass stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.check import FloatArray, memory
from .._base.limits import unlimited
from .._base.rng import Seed, derive
from ..init import Points
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended
from ..runs._rung import State
from ._step_clock import StepClock

if TYPE_CHECKING:
    from ._methods import SGD

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
        self._clock = self.clock = StepClock(method.step, method.schedule)
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
