"""Steppers `SGD` and `Flow` for loops of the user's own: neurons, samples and step sizes are the caller's,
updated in place.

A stepper keeps nothing to itself: all its state is the caller's array and the counters it shows. When a step
would leave the finite numbers it raises `FloatingPointError`, and the array holds the last finite state.
Threads that share a stepper wait for each other, step by step; which comes first is not determined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._base import check
from ._base.check import FloatArray
from ._base.rng import RNG, seed_of
from ._base.turn import Turn
from .density._steppers import FiniteVolume1D, FiniteVolume2D
from .expectations._rules import Expectation
from .measures._functions import require_finite
from .model import Model
from .network import Network
from .neurons._flow import rates_of, system_of
from .runs._ends import End, ended

__all__ = ["SGD", "FiniteVolume1D", "FiniteVolume2D", "Flow"]


class SGD:
    """Stochastic gradient descent on samples that the caller brings.

    θ_i ← θ_i + h[(y − f_N(x))∇σ*(x; θ_i) − λθ_i] + √(2h/β) g, as `mf.SGD`. The Langevin noise of step k is
    number k of the stream of `rng`: that of `mf.GD` and `mf.Particles`, so that runs can share it.

    Args:
        network: The network.
        theta: Neurons, rows [a, b, w…], updated in place: a writable C-contiguous float64 array (N, D).
        ridge: λ ≥ 0, acting on trained blocks.
        temperature: 1/β ≥ 0.
        rates: Speed of trained blocks, such as ``{"a": 10.0}``.
        rng: None, int, SeedSequence or Generator, for the noise.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Attributes:
        theta: The caller's own array.
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
        threads: int | None = None,
    ) -> None:
        check.instance(network, "network", Network, "an mf.Network")
        self.network, self.theta = network, _own(theta, network.row(0))
        self.steps = 0
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
        inputs = _inputs(X, self._d)
        with self._turn:
            value = _core.predict(self.network._core, self.theta, None, inputs, self._options["threads"])
            value *= self.network.scale
            require_finite(value, "f", theta=self.theta, X=inputs)
        return value

    def _samples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        inputs = _inputs(X, self._d)
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


class Flow:
    """The population gradient flow θ̇_i = −rate·∇Ψ_λ(θ_i; ρ_N) of a model, on the caller's neurons.

    Args:
        model: The model; its temperature must be 0, and its `init` is not used.
        theta: Neurons: a writable C-contiguous float64 array of shape (N, D), updated in place.
        expectation: `mf.Exact()`, the default, or `mf.MonteCarlo(samples, rng)`, a fixed set of samples.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Attributes:
        theta: The caller's own array.
        t: Time covered.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> model = mf.Model(mf.data.Linear([1.0, -1.0]), mf.Network(mf.activations.linear))
        >>> theta = np.zeros((3, 2))
        >>> flow = mf.steppers.Flow(model, theta)
        >>> flow.step(0.5)
        >>> theta[0].tolist(), flow.t
        ([0.5, -0.5], 0.5)
    """

    def __init__(
        self,
        model: Model,
        theta: FloatArray,
        *,
        expectation: Expectation | None = None,
        threads: int | None = None,
    ) -> None:
        check.instance(model, "model", Model, "an mf.Model")
        if model.row is None:
            raise ValueError(f"data must have finite d for neurons, got {model.data!r}")
        if model.temperature > 0:
            raise ValueError(
                f"temperature must be 0 for a flow, got {model.temperature:g}; noise is in mf.GD, "
                "mf.Particles(method='heun') and mf.steppers.SGD"
            )
        if expectation is not None:
            what = "mf.Exact() or mf.MonteCarlo(samples, rng)"
            check.instance(expectation, "expectation", Expectation, what)  # type: ignore[arg-type]
        self.model, self.theta, self.t = model, _own(theta, model.network.row(0), model.row), 0.0
        self._system = system_of(model, len(theta), expectation, check.threads(threads))
        self._turn = Turn()

    def __repr__(self) -> str:
        n, row = self.theta.shape
        return f"Flow({self.model!r}, theta=<array {n}×{row}>, t={self.t:g})"

    def velocity(self, out: FloatArray | None = None) -> FloatArray:
        """−rate·∇Ψ_λ at the present neurons, shape (N, D); `out` is an array of that shape to put it in.

        Raises:
            FloatingPointError: It is not finite; `out` is not written.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> model = mf.Model(mf.data.Linear([1.0, -1.0]), mf.Network(mf.activations.linear))
            >>> mf.steppers.Flow(model, np.zeros((1, 2))).velocity().tolist()
            [[1.0, -1.0]]
        """
        with self._turn:
            velocity = self._system(self.theta)
            if not check.finite(velocity):
                largest = np.abs(self.theta).max()
                raise FloatingPointError(
                    f"theta must be of a size at which the velocity is finite, got entries up to {largest:g}"
                )
        if out is None:
            return velocity
        check.output(out, "out", velocity.shape)[...] = velocity
        return out

    def step(self, h: float) -> None:
        """One Euler step of size h ≥ 0.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> model = mf.Model(mf.data.Linear([1.0]), mf.Network(mf.activations.linear))
            >>> flow = mf.steppers.Flow(model, np.zeros((1, 1)))
            >>> for _ in range(10):
            ...     flow.step(0.1)
            >>> flow.theta.round(6).tolist()  # 1 - 0.9^10
            [[0.651322]]
        """
        size = check.number(h, "h", at_least=0)
        if size > 0:
            with self._turn:
                self._go(_core.Flow.fixed(self._system, self.theta, "euler", size), size)

    def integrate(self, t: float, *, rtol: float = 1e-6, atol: float = 1e-9) -> None:
        """Follow the flow for a time t ≥ 0, with steps chosen by Dormand and Prince's 5(4) pair.

        Raises:
            FloatingPointError: The state left the finite numbers; `theta` and `t` are those before it.
            KeyboardInterrupt: Ctrl-C; `theta` and `t` are those reached.

        Examples:
            >>> import math, numpy as np, mfcore as mf
            >>> model = mf.Model(mf.data.Linear([1.0]), mf.Network(mf.activations.linear))
            >>> flow = mf.steppers.Flow(model, np.zeros((1, 1)))
            >>> flow.integrate(2.0)
            >>> bool(abs(flow.theta[0, 0] - (1 - math.exp(-2))) < 1e-6)
            True
        """
        duration = check.number(t, "t", at_least=0)
        rtol, atol = (check.number(v, n, above=0) for v, n in ((rtol, "rtol"), (atol, "atol")))
        if duration > 0:
            with self._turn:
                self._go(_core.Flow.dopri5(self._system, self.theta, rtol=rtol, atol=atol), duration)

    def _go(self, flow: _core.Flow, t: float) -> None:
        end = flow.advance(t, math.inf)
        self.theta[...] = flow.values().reshape(self.theta.shape)
        self.t += flow.t
        if end is End.interrupted:
            raise KeyboardInterrupt
        if end is not End.reached:
            raise FloatingPointError(ended(end, flow).message)


def _own(theta: Any, least: int, row: int | None = None) -> FloatArray:
    """Check the caller's array, whose memory is written: a copy would be of no use."""
    if not hasattr(theta, "shape"):
        raise TypeError(f"theta must be a float64 NumPy array, got {type(theta).__name__}")
    shape = np.shape(theta)
    if len(shape) != 2 or shape[0] < 1 or (shape[1] != row if row is not None else shape[1] <= least):
        want = f"(any, {row})" if row is not None else f"(any, > {least})"
        raise ValueError(f"theta must have shape {want}, got {shape}")
    return check.output(theta, "theta", shape)


def _inputs(X: npt.ArrayLike, d: int) -> FloatArray:
    rows = check.array(X, "X")
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    return rows if rows.shape[1:] == (d,) else check.array(np.atleast_2d(rows), "X", shape=(None, d))


def _checked_rates(rates: Any, network: Network) -> dict[str, float]:
    check.instance(rates, "rates", Mapping, 'a mapping such as {"a": 2.0}')
    for block in rates:
        if block not in network.trained:
            raise ValueError(f"rates must name trained blocks ({', '.join(network.trained)}), got {block!r}")
    return {block: check.number(rate, f"rates[{block!r}]", above=0) for block, rate in rates.items()}
