"""`Flow`: the population gradient flow on neurons of the caller."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.output import Held, output
from .._base.turn import Turn
from ..expectations._rules import Expectation
from ..model import Model
from ..neurons._flow import system_of
from ..runs._ends import End, ended
from ._arrays import own


class Flow:
    """The population gradient flow θ̇_i = −rate·∇Ψ_λ(θ_i; ρ_N) of a model, on the caller's neurons.

    Args:
        model: The model; its temperature must be 0, and its `init` is not used.
        theta: Neurons, updated in place: a writable float64 array (N, D) whose rows are without gaps, or a
            tensor on the CPU.
        expectation: `mf.Exact()`, the default, or `mf.MonteCarlo(samples, rng)`, a fixed set of samples.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Attributes:
        theta: The caller's own array (of a tensor: a NumPy view of it).
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
        self.model, self.theta, self.t = model, own(theta, model.network.row(0), model.row), 0.0
        self._held = Held(self.theta)
        self._options = (expectation, check.threads(threads))
        self._system = system_of(model, len(theta), *self._options)
        self._turn = Turn()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_system"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._system = system_of(self.model, len(self.theta), *self._options)

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
        output(out, "out", velocity.shape)[...] = velocity
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
