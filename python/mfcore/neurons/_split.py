"""The rung of a network that is split over processes: each rank moves a slice of the neurons.

f_N(x) = Σ_ranks N⁻¹Σ_{i of the rank} σ*(x; θ_i), eq. (6.15), so that the residuals of a mini-batch, or of
all nodes of an average over the data, need one number of each rank for each sample, and nothing else is
exchanged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..expectations._nodes import Nodes
from ..expectations._rules import Exact, Expectation
from ..measures._pull import pull_back
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended
from ..runs._ranks import Ranks
from ..runs._rung import State
from ._flow import rates_of
from ._sgd import check_memory, start_of
from ._step_clock import StepClock
from ._update import Update

if TYPE_CHECKING:
    from ._methods import GD, SGD, Particles

_COPIES = 3  # copies of the neurons of a rank: now, pulled back, and of a sum of pieces
_SAMPLES = 1 << 14  # whose function values are exchanged in one message


class SplitRung:
    """The neurons of one rank under SGD or a flow of fixed steps, all ranks on the same clock.

    Args:
        method: `SGD`, `GD` or `Particles` with a communicator.
        scheme: ``"euler"`` (SGD is one of these), ``"heun"`` or ``"rk4"``.
        step: Step size h.
        model: What is learned.
        seed, threads: As of every rung.
    """

    reduced: ReducedModel | None = None

    def __init__(
        self, method: SGD | GD | Particles, scheme: str, step: float, model: Model, seed: int, threads: int
    ) -> None:
        self.ranks = ranks = Ranks(method.comm)
        self.total, size = method.neurons, ranks.size
        if self.total < size:
            raise ValueError(f"neurons must be >= {size}, the number of ranks, got {self.total}")
        self.first, last = (self.total * k // size for k in (ranks.rank, ranks.rank + 1))
        self.count = last - self.first
        check_memory(_COPIES * self.count, model, "neurons", self.total)
        self.clock = StepClock(step, getattr(method, "schedule", None))
        self._theta = start_of(model, self.total, seed, threads, (self.first, last))
        self._spare = np.empty_like(self._theta)  # for the neurons after a step
        self._network, self._scheme, self._threads = model._unit.network, scheme, threads
        self._steps, unit = 0, model._unit
        self._batch: int | None = getattr(method, "batch", None)  # of SGD; flows average over all nodes
        if self._batch is None:
            nodes = nodes_of(unit, getattr(method, "expectation", None))
            self._sampler, self._key, self._count = nodes.sampler, nodes.seed, nodes.count
        else:
            self._sampler, self._key, self._count = unit.data._run_sampler(), seed, self._batch
        rates = rates_of(unit.rates)
        self._options: dict[str, Any] = {
            "ridge": unit.ridge,
            "temperature": unit.temperature,
            "rates": rates,
            "seed": seed,
            "first_neuron": self.first,
            "threads": threads,
        }
        self._update = Update(
            unit.network,
            int(unit.d),
            unit.ridge,
            unit.temperature,
            rates,
            seed,
            self.first,
            tangent=scheme != "euler",
        )

    @property
    def t(self) -> float:
        """Σ h over the steps done."""
        return self.clock.time(self._steps)

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to the step nearest to time t, on all ranks alike."""
        last, end = self.clock.step(t), time.monotonic() + seconds
        with np.errstate(all="ignore"):  # what is not finite is reported as divergence
            while self._steps < last:
                stop, late = self.ranks.any(self.ranks.interrupted, time.monotonic() > end)
                if stop or late:
                    return Ended(End.interrupted if stop else End.out_of_time)
                moved = self._moved(float(self.clock.sizes(self._steps, 1)[0]))
                if self.ranks.any(moved is None)[0]:
                    return Ended(End.diverged, self._divergence())
                assert moved is not None  # or some rank would have said so
                self._theta, self._spare, self._steps = moved, self._theta, self._steps + 1
        return Ended(End.reached)

    def _moved(self, h: float) -> FloatArray | None:
        """The neurons of this rank after a step of size h. None: not finite."""
        if self._batch is not None and self._batch <= _SAMPLES:
            return self._moved_by_halves(h)
        moved = self._moved_by_velocities(h)
        return moved if moved is not None and check.finite(moved) else None

    def _moved_by_velocities(self, h: float) -> FloatArray | None:
        """Eqs. (6.9) and (6.15)."""
        theta, step = self._theta, self._steps
        first = self._velocity(theta)
        if first is None or self._scheme == "euler":
            return None if first is None else self._update.step(theta, first, h, step)
        if self._scheme == "heun":
            second = self._velocity(self._update.step(theta, first.copy(), h, step, project=False))
            if second is None:
                return None
            second += first
            return self._update.step(theta, second, h / 2, step, noise_of=h)
        slopes = first.copy()
        for part, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
            first *= part * h
            first += theta
            following = self._velocity(first)
            if following is None:
                return None
            first = following
            slopes += weight * first
        return self._update.step(theta, slopes, h / 6, step)

    def _moved_by_halves(self, h: float) -> FloatArray | None:
        """The same of SGD: the halves of a step in the core, between which shares of f are exchanged."""
        ((X, y, _),) = self._samples()
        moved, core = self._spare, self._network._core  # touched before: fresh memory would cost a tenth
        moved[...] = self._theta
        half = _core.SplitStep(core, moved, X, self.total, **self._options)
        residual = y - self.ranks.sum(half.forward())
        return moved if half.backward(residual, h, self._steps) else None

    def _velocity(self, theta: FloatArray) -> FloatArray | None:
        """The velocities of these neurons in the field of all. None, on all ranks alike: f is not finite."""
        network, pull = self._network, np.zeros(0)
        for X, y, share in self._samples():
            f = _core.predict(network._core, theta, None, X, self._threads)
            f *= len(theta) / self.total
            residual = y - self.ranks.sum(f)
            if not check.finite(residual):
                return None
            piece = pull_back(network, theta, X, residual, self._threads)
            if share == 1:
                pull = piece
            else:
                piece *= share
                pull = pull + piece if pull.size else piece
        return self._update.velocity(theta, pull)

    def _samples(self) -> Iterator[tuple[FloatArray, FloatArray, float]]:
        """Inputs and labels of this step, piece by piece, with the share of each piece in the average."""
        begin = 0 if self._batch is None else self._steps * self._batch
        for first in range(0, self._count, _SAMPLES):
            here = min(_SAMPLES, self._count - first)
            X, y = self._sampler.draw(self._key, begin + first, here)
            yield X, y, here / self._count

    def _divergence(self) -> str:
        return (
            f"the prediction or the update was no longer finite at step {self._steps} (t = {self.t:g}); the "
            "state returned is that before it. Try a smaller step"
        )

    def measure(self) -> FloatArray:
        """The neurons of this rank, shape (n, D)."""
        return self._theta.copy()

    def state(self) -> State:
        """The neurons of this rank, the steps done and their time."""
        return {"theta": self._theta, "steps": np.array(self._steps), "t": np.array(self.t)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        steps, t = int(state["steps"]), float(state["t"])
        if self.clock.time(steps) != t:
            raise ValueError(f"horizon must be {t:g}, where the last step was shortened, got another")
        self._theta, self._steps = np.array(state["theta"]), steps

    def meta(self) -> dict[str, Any]:
        """Steps done, the number of this rank and of all, and of the first neuron of this rank."""
        ranks = self.ranks
        return {"steps": self._steps, "rank": ranks.rank, "ranks": ranks.size, "first_neuron": self.first}


def nodes_of(model: Model, rule: Expectation | None) -> Nodes:
    """The nodes of an average over the data; a ValueError where there are none, as in closed forms."""
    evaluator = (rule or Exact()).evaluator(model)
    if not isinstance(evaluator, Nodes):
        raise ValueError(
            "expectation must be mf.MonteCarlo(samples, rng) for a network that is split over processes: a "
            f"closed form needs all pairs of neurons, got {rule!r}"
        )
    return evaluator


def refuse(comm: Any, **wanted: tuple[Any, Any, str]) -> None:
    """Refuse what cannot be split: of each argument its value, the value it must have, and why."""
    for name, (value, needed, why) in wanted.items():
        if comm is not None and value != needed:
            raise ValueError(
                f"{name} must be {needed!r} for a network that is split over processes, {why}, got {value!r}"
            )
