"""`mf.LayerWise`: the first layer alone by SGD that keeps small weights on a sphere and clips large ones.

Abbe, Boix-Adserà, Misiakiewicz (2023), algorithm 1, whose second part is `mf.theory.second_layer`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._clock import FixedClock
from ..runs._ends import End, Ended
from ..runs._reduced import model_of
from ..runs._rung import State
from ._flow import rates_of
from ._sgd import check_memory, start_of

_COPIES = 8  # of the neurons: with what a step makes of them
_BLOCK = 1 << 20  # numbers of inputs drawn at a time
_LOOK = 0.05  # seconds between two questions whether to stop


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
        self._method, self._seed = method, seed
        self._unit = model._unit
        self._sampler = self._unit.data._run_sampler()
        self._speed = rates_of(self._unit.rates)[2]
        self._at = network.row(0)
        self._theta = np.array(start_of(model, method.neurons, seed, threads))
        self.clock = FixedClock(method.step)
        self._short, self._steps = 0.0, 0  # of the last step, once it is done
        w = self._theta[:, self._at :]
        self._norms = np.linalg.norm(w, axis=1)
        self._small = np.abs(w) < method.reach
        self._drawn: tuple[int, FloatArray, FloatArray] | None = None

    @property
    def t(self) -> float:
        """The time reached."""
        return self._steps * self._method.step + self._short

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to the step nearest to t."""
        most, deadline = self.clock.whole(t), time.monotonic() + seconds
        asked = time.monotonic()
        while self._steps < most or (self.clock.ends(t) and not self._short):
            last = self._steps >= most
            if not self._step(self.clock.shortened if last else self._method.step):
                return Ended(
                    End.diverged,
                    f"the weights were no longer finite after step {self._steps} (t = {self.t:g}); the state "
                    f"returned is that before it. Try a smaller step than {self._method.step:g}",
                )
            if last:
                self._short = self.clock.shortened
            else:
                self._steps += 1
            now = time.monotonic()
            if now - asked > _LOOK:
                asked = now
                if now > deadline:
                    return Ended(End.out_of_time)
        return Ended(End.reached)

    def _step(self, h: float) -> bool:
        """One step in place; False, nothing done, if a prediction is not finite."""
        network, at = self._unit.network, self._at
        X, y = self._samples()
        w = self._theta[:, at:]
        z = X @ w.T
        if network.has_b:
            z += self._theta[:, at - 1]
        a = self._theta[:, 0] if network.has_a else np.ones(len(w))
        with np.errstate(all="ignore"):
            residual = y - network.activation(z) @ a / len(a)
            pull = network.activation.derivative(z) * a * residual[:, None]
            moved = self._moved(w, (h * self._speed / len(y)) * (pull.T @ X))
        if not np.isfinite(moved).all():
            return False
        w[:] = moved
        self._small &= np.abs(w) < self._method.reach
        return True

    def _moved(self, w: FloatArray, move: FloatArray) -> FloatArray:
        """Weights after a step: eq. (12.8) for the small ones, (12.9) for the others."""
        small = np.where(self._small, w, 0.0)
        squares = np.maximum((small**2).sum(axis=1), np.finfo(float).tiny)
        along = (move * small).sum(axis=1) / squares
        moved = np.where(self._small, small + move - along[:, None] * small, 0.0)
        norms = np.linalg.norm(moved, axis=1)
        moved *= (self._norms / np.where(norms > 0, norms, 1.0))[:, None]
        clip = self._method.clip
        return np.where(self._small, moved, np.clip(w + move, -clip, clip))

    def _samples(self) -> tuple[FloatArray, FloatArray]:
        """Those of the present step, of a block of them that is drawn at once."""
        batch, d = self._method.batch, self._theta.shape[1] - self._at
        count = max(1, _BLOCK // (batch * d))
        block, k = divmod(self._steps, count)
        if self._drawn is None or self._drawn[0] != block:
            self._drawn = (block, *self._sampler.draw(self._seed, block * count * batch, count * batch))
        _, X, y = self._drawn
        return X[k * batch : (k + 1) * batch], y[k * batch : (k + 1) * batch]

    def measure(self) -> FloatArray:
        """The neurons, shape (N, D)."""
        return self._theta.copy()

    def state(self) -> State:
        """Neurons, which weights are small, the norms that these keep, and the steps."""
        return {
            "theta": self._theta.copy(),
            "small": self._small.copy(),
            "norms": self._norms.copy(),
            "steps": np.array([self._steps, bool(self._short)]),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._theta, self._small = np.array(state["theta"]), np.array(state["small"])
        self._norms = np.array(state["norms"])
        self._steps = int(state["steps"][0])
        self._short = self.clock.shortened if state["steps"][1] else 0.0

    def meta(self) -> dict[str, Any]:
        """Steps done, and how many weights have been found."""
        return {"steps": self._steps + bool(self._short), "found": int((~self._small).sum())}
