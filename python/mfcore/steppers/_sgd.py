"""`SGD`: stochastic gradient descent on samples that the caller brings, whole steps and halves of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.output import Held
from .._base.rng import RNG, seed_of
from .._base.turn import Turn
from ..measures._results import require_finite
from ..network import Network
from ..neurons._flow import rates_of
from ._arrays import inputs_of, own


class SGD:
    """Stochastic gradient descent on samples that the caller brings.

    θ_i ← θ_i + h[(y − f_N(x))∇σ*(x; θ_i) − λθ_i] + √(2h/β) g, as `mf.SGD`. The Langevin noise of step k is
    number k of the stream of `rng`: that of `mf.GD` and `mf.Particles`, so that runs can share it.

    Args:
        network: The network.
        theta: Neurons, rows [a, b, w…], updated in place: a writable float64 array (N, D) whose rows are
            without gaps, or a tensor on the CPU.
        ridge: λ ≥ 0, acting on trained blocks.
        temperature: 1/β ≥ 0.
        rates: Speed of trained blocks, such as ``{"a": 10.0}``.
        rng: None, int, SeedSequence or Generator, for the noise.
        first_neuron: Number of the first of these neurons in a network that is split over several steppers,
            by `forward` and `backward`: noise has the address of its neuron in the whole.
        total: Neurons of the whole network; those of `theta`, if it is not split.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Attributes:
        theta: The caller's own array (of a tensor: a NumPy view of it).
        steps: Steps done: the number of the next one. May be set, to go on where another stepper stopped.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> theta = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> sgd = mf.steppers.SGD(mf.Network(mf.activations.linear), theta)
        >>> sgd.step([1.0, 1.0], 2.0, 0.5)  # f = 1: both neurons move by 0.5 (2 - 1) x
        >>> theta.tolist(), sgd.steps
        ([[1.5, 0.5], [0.5, 1.5]], 1)
    """

    def __init__(
        self,
        network: Network,
        theta: FloatArray,
        *,
        ridge: float = 0.0,
        temperature: float = 0.0,
        rates: Mapping[str, float] | None = None,
        rng: RNG = None,
        first_neuron: int = 0,
        total: int | None = None,
        threads: int | None = None,
    ) -> None:
        check.instance(network, "network", Network, "an mf.Network")
        self.network, self.theta = network, own(theta, network.row(0))
        self._held = Held(self.theta)
        self.steps = 0
        here = len(self.theta)
        self._first = check.integer(first_neuron, "first_neuron", at_least=0)
        self._total = here if total is None else check.integer(total, "total", at_least=self._first + here)
        if total is None and self._first:
            raise ValueError(f"total must be given with first_neuron, got first_neuron={first_neuron}")
        self._whole = self._total == here
        self._ahead: FloatArray | None = None  # inputs of a step whose second half is to come
        self._half: _core.SplitStep | None = None  # that step
        self._d = self.theta.shape[1] - network.row(0)
        speeds = rates_of({} if rates is None else _checked_rates(rates, network))
        square = network.scale**2  # the core takes the steps of eq. (11.1), without scale
        self._options: dict[str, Any] = {
            "ridge": check.number(ridge, "ridge", at_least=0) / square,
            "temperature": check.number(temperature, "temperature", at_least=0) / square,
            "rates": tuple(square * speed for speed in speeds),
            "seed": seed_of(rng),
            "threads": check.threads(threads),
        }
        self._turn = Turn()

    def __repr__(self) -> str:
        n, row = self.theta.shape
        return f"SGD({self.network!r}, theta=<array {n}×{row}>, steps={self.steps})"

    def step(self, X: npt.ArrayLike, y: npt.ArrayLike, h: float) -> None:
        """One step of size h, the gradient averaged over the rows of X.

        Args:
            X: One input, shape (d,), or several, shape (B, d).
            y: Their labels: a number or shape (B,).
            h: Step size ≥ 0.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> theta = np.zeros((4, 3))
            >>> sgd = mf.steppers.SGD(mf.Network(mf.activations.tanh), theta, temperature=0.1, rng=0)
            >>> sgd.step(np.eye(3), [1.0, 0.0, -1.0], 0.01)
            >>> sgd.steps
            1
        """
        if not self._whole:
            raise ValueError(self._part("step"))
        inputs, labels = self._samples(X, y)
        size = check.number(h, "h", at_least=0)
        core = self.network._core
        with self._turn:
            if not _core.sgd_step(core, self.theta, inputs, labels, size, self.steps, **self._options):
                raise FloatingPointError(self._message())
            self.steps += 1

    def run(self, X: npt.ArrayLike, y: npt.ArrayLike, h: npt.ArrayLike) -> None:
        """Do one step per row of X, one after the other: what a loop over `step` does, up to rounding.

        Long runs without noise are done in blocks, many times faster.

        Args:
            X: Inputs, shape (B, d).
            y: Labels, shape (B,).
            h: Step size ≥ 0, one number or shape (B,).

        Raises:
            FloatingPointError: A prediction, or what a step would leave, is not finite; `theta` and `steps`
                are those before that step.
            KeyboardInterrupt: Ctrl-C; `theta` and `steps` are those reached.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> law = mf.data.IsotropicGaussians(d=10, delta=0.5)
            >>> theta = np.random.default_rng(0).normal(size=(50, 10))
            >>> sgd = mf.steppers.SGD(mf.Network(mf.activations.relu), theta)
            >>> sgd.run(*law.draw(1000, rng=0), h=1e-3)
            >>> sgd.steps
            1000
        """
        if not self._whole:
            raise ValueError(self._part("run"))
        inputs, labels = self._samples(X, y)
        sizes = check.array(h, "h", empty=True)
        if sizes.ndim == 0:
            sizes = np.full(len(inputs), float(sizes))
        elif sizes.shape != (len(inputs),):
            check.array(sizes, "h", shape=(len(inputs),))
        if sizes.min() < 0:
            raise ValueError(f"h must be >= 0, got {sizes.min()}")
        core = self.network._core
        with self._turn:
            done, finite = _core.sgd_run(core, self.theta, inputs, labels, sizes, self.steps, **self._options)
            self.steps += done
            if not finite:
                raise FloatingPointError(self._message())
        if done < len(inputs):
            raise KeyboardInterrupt

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """f_N(x) for one input, shape (d,), or several, shape (B, d); returns shape (1,) or (B,).

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> sgd = mf.steppers.SGD(mf.Network(mf.activations.linear), np.array([[1.0, 0.0], [0.0, 1.0]]))
            >>> sgd.predict([[2.0, 4.0]])
            array([3.])
        """
        inputs = inputs_of(X, self._d)
        with self._turn:
            value = _core.predict(self.network._core, self.theta, None, inputs, self._options["threads"])
            value *= self.network.scale
            require_finite(value, "f", theta=self.theta, X=inputs)
        return value

    def forward(self, X: npt.ArrayLike) -> FloatArray:
        """First half of a step: what these neurons add to f_N(x), α/total·Σσ*(x; θ_i), shape (B,).

        Summed over the steppers of a split network it is f_N(x).

        Args:
            X: One input, shape (d,), or several, shape (B, d). `backward` moves the neurons by them.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> network, theta = mf.Network(mf.activations.linear), np.array([[1.0, 0.0], [0.0, 1.0]])
            >>> half, other = (
            ...     mf.steppers.SGD(network, theta[k : k + 1], first_neuron=k, total=2) for k in (0, 1)
            ... )
            >>> half.forward([2.0, 4.0]) + other.forward([2.0, 4.0])
            array([3.])
        """
        inputs = inputs_of(X, self._d)
        with self._turn:
            ahead = inputs.copy()
            value, half = self._first_half(ahead)
            value *= self.network.scale
            require_finite(value, "f", theta=self.theta, X=inputs)
            self._ahead, self._half = ahead, half
        return value

    def backward(self, residual: npt.ArrayLike, h: float) -> None:
        """Second half of a step: move the neurons by the residuals y − f_N(x) of the inputs of `forward`.

        Both halves are `step` up to rounding, noise to the bit.

        Args:
            residual: y − f_N(x) of the whole network, a number or shape (B,).
            h: Step size ≥ 0.

        Raises:
            FloatingPointError: The update is not finite; `theta` is that before it.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> theta = np.array([[1.0, 0.0], [0.0, 1.0]])
            >>> sgd = mf.steppers.SGD(mf.Network(mf.activations.linear), theta)
            >>> sgd.backward(2.0 - sgd.forward([1.0, 1.0]), 0.5)
            >>> theta.tolist()
            [[1.5, 0.5], [0.5, 1.5]]
        """
        size = check.number(h, "h", at_least=0)
        if self._ahead is None:
            raise ValueError("backward must come after forward, whose inputs it takes")
        inputs = self._ahead
        errors = np.atleast_1d(check.array(residual, "residual"))
        if errors.shape != (len(inputs),):
            check.array(errors, "residual", shape=(len(inputs),))
        with self._turn:
            half = self._half or self._first_half(inputs)[1]  # of a copy, which has the inputs alone
            if not half.backward(errors / self.network.scale, size, self.steps):
                raise FloatingPointError(self._message())
            self.steps += 1
            self._ahead = self._half = None

    def _first_half(self, inputs: FloatArray) -> tuple[FloatArray, _core.SplitStep]:
        """The next step of these neurons and their share in the predictions, without scale."""
        core, options = self.network._core, self._options
        half = _core.SplitStep(core, self.theta, inputs, self._total, first_neuron=self._first, **options)
        return half.forward(), half

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_half": None}

    def _part(self, what: str) -> str:
        return (
            f"total must be the number of neurons of theta for {what}, which knows no others, got "
            f"{self._total} for {len(self.theta)} neurons; a split network takes forward and backward"
        )

    def _samples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        inputs = inputs_of(X, self._d)
        labels = np.array([y]) if isinstance(y, float) and math.isfinite(y) else check.array(y, "y")
        if labels.ndim == 0:
            labels = labels[np.newaxis]
        if labels.shape != (len(inputs),):
            check.array(labels, "y", shape=(len(inputs),))
        return inputs, labels if self.network.scale == 1 else labels / self.network.scale

    def _message(self) -> str:
        return (
            f"the prediction or the update was no longer finite at step {self.steps}; theta holds the state "
            "before it. Try a smaller h"
        )


def _checked_rates(rates: Any, network: Network) -> dict[str, float]:
    check.instance(rates, "rates", Mapping, 'a mapping such as {"a": 2.0}')
    for block in rates:
        if block not in network.trained:
            raise ValueError(f"rates must name trained blocks ({', '.join(network.trained)}), got {block!r}")
    return {block: check.number(rate, f"rates[{block!r}]", above=0) for block, rate in rates.items()}
