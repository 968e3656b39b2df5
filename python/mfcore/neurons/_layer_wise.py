"""`mf.LayerWise`: the first layer alone by SGD that keeps small weights on a sphere and clips large ones.

Abbe, Boix-Adserà, Misiakiewicz (2023), algorithm 1, whose second part is `mf.theory.second_layer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray, memory
from .._base.registry import configurable
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended
from ..runs._reduced import model_of
from ..runs._rung import State
from ._flow import rates_of
from ._sgd import check_memory, start_of
from ._step_clock import StepClock

_COPIES = 4  # of the neurons: at the start, before and after a step, and when they are looked at


@configurable
@dataclass(frozen=True)
class LayerWise:
    """Train the first layer alone by SGD, so that a network learns one coordinate after the other.

    On a sphere a neuron that has found a coordinate has no norm left for the next one. Here each neuron keeps
    the norm of its small weights only: those that have never been as large as `reach`. They take a step along
    their sphere and are brought back to it. The others, which have been found, take a plain step and are
    kept in [−clip, clip]. Output weights and biases are at rest; a second part, `mf.theory.second_layer`,
    fits output weights. On the clock t = k·h, one step per `batch` fresh samples (eqs. (12.8), (12.9)).

    Args:
        neurons: N.
        step: h.
        reach: r > 0: a weight that has been as large counts as found.
        clip: Δ ≥ reach, the largest size of a weight that has been found.
        batch: Samples per step; their gradients are averaged.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.Staircase(20, [(0,), (0, 1)]),
        ...     network=mf.Network(mf.activations.hermite([0.0, 1.0, 1.0]), output="fixed"),
        ...     init=mf.init.Product(a=mf.init.Constant(0.01), w=mf.init.Radial(1.0)),
        ... )
        >>> run = mf.solve(model, mf.LayerWise(4, step=0.1, batch=20), horizon=200.0, rng=0)
        >>> run.final[:, 1:3].round(2).tolist()  # z_0 is found, and is where it is clipped
        [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    neurons: int
    step: float
    reach: float = 0.5
    clip: float = 1.0
    batch: int = 1

    def __post_init__(self) -> None:
        for name in ("neurons", "batch"):
            object.__setattr__(self, name, check.count(getattr(self, name), name))
        object.__setattr__(self, "step", check.number(self.step, "step", above=0))
        object.__setattr__(self, "reach", check.number(self.reach, "reach", above=0))
        object.__setattr__(self, "clip", check.number(self.clip, "clip", at_least=self.reach))

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> LayerWiseRung:
        """A run of this method at t = 0."""
        return LayerWiseRung(self, model_of(model), seed, threads)


class LayerWiseRung:
    """N neurons whose first layer is trained."""

    reduced: ReducedModel | None = None

    def __init__(self, method: LayerWise, model: Model, seed: int, threads: int) -> None:
        network = model.network
        if network.sphere:
            raise ValueError(
                "network must have sphere=False for mf.LayerWise, which keeps weights on a sphere itself, "
                f"got {network!r}"
            )
        for name, value in (("ridge", model.ridge), ("temperature", model.temperature)):
            if value:
                raise ValueError(f"{name} must be 0 for mf.LayerWise, got {value:g}")
        check_memory(_COPIES * method.neurons, model, "neurons", method.neurons)
        start = start_of(model, method.neurons, seed, threads)
        memory(8.0 * method.batch * (method.neurons + start.shape[1]), "batch", method.batch)
        self._method, self._threads = method, threads
        self.clock = StepClock(method.step, None)
        unit = model._unit
        self._begin = partial(
            _core.LayerWise,
            unit.network._core,
            start,
            unit.data._run_sampler(),
            seed,
            batch=method.batch,
            reach=method.reach,
            clip=method.clip,
            rate=rates_of(unit.rates)[2],
        )

    @cached_property
    def _run(self) -> _core.LayerWise:
        """The network, begun when the end of the clock is known."""
        return self._begin(self.clock.argument())

    @property
    def t(self) -> float:
        """The time reached."""
        return self.clock.time(self._run.step)

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to the step nearest to t."""
        try:
            end = self._run.advance(self.clock.step(t), seconds, self._threads)
        except KeyboardInterrupt:  # in a Python function that draws samples; no step was under way
            end = End.interrupted
        if end is not End.diverged:
            return Ended(end)
        return Ended(
            end,
            f"the weights were no longer finite after step {self._run.step} (t = {self.t:g}); the state "
            f"returned is that before it. Try a smaller step than {self._method.step:g}",
        )

    def measure(self) -> FloatArray:
        """The neurons, shape (N, D)."""
        return self._run.theta()

    def state(self) -> State:
        """Neurons, which weights are small, the norms that these keep, and the steps."""
        return self._run.state()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._run.restore(dict(state))

    def meta(self) -> dict[str, Any]:
        """Steps done, and how many weights have been found."""
        return {"steps": self._run.step, "found": self._run.found}
