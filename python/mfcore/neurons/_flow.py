"""The rung of `mf.GD` and `mf.Particles`: N neurons moved by the population gradient, with or without noise.

Beside the N neurons that make the field there may be followers, neurons without mass that move in it: then it
is they who are looked at, and the N are the auxiliary network of `mf.Nonlinear`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.rng import derive
from ..data import Dataset
from ..expectations._nodes import Nodes
from ..expectations._rules import Exact, Expectation
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._clock import FixedClock
from ..runs._ends import Ended, ended
from ..runs._rung import State
from ._integration import Integration
from ._sgd import check_memory, start_of

if TYPE_CHECKING:
    from ._integration import Integrator

_COPIES = 9  # copies of the neurons held at least: stages of a step, and the state between steps
# samples of up to so many bytes are drawn once; more are drawn again at every evaluation
_HELD_BYTES = 1 << 28
DRIVER = 2**63  # number of the seed of the neurons that drive followers without mass


class FlowRung:
    """A run of N neurons in their own field, by an integrator of the core or an implicit solver of SciPy."""

    reduced: ReducedModel | None = None

    def __init__(
        self,
        model: Model,
        neurons: int,
        expectation: Expectation | None,
        seed: int,
        threads: int,
        integrator: Callable[[_core.System, FloatArray], Integrator],
        tolerance: float | None,
        followers: int = 0,
        step: float | None = None,
    ) -> None:
        self.clock = None if step is None else FixedClock(step)
        check_memory(_COPIES * (neurons + followers), model, "neurons", neurons)
        start = population(model, neurons, followers, seed, threads)
        self._shown, self._tolerance = followers or neurons, tolerance
        self._w_at = model.network.row(0)
        system = system_of(model, neurons, expectation, threads, followers)
        self._run = Integration(partial(integrator, system), start, self.clock)

    @property
    def t(self) -> float:
        """The time reached."""
        return self._run.t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t; with fixed steps, to the step nearest to it."""
        run, end = self._run, self._run.advance(t, seconds)
        return ended(
            end, run.flow, self._tolerance, since=run.since, done=run.done, name=self._name_of_neuron
        )

    def _name_of_neuron(self, i: int) -> str:
        return f"neuron {i}, |w| = {np.linalg.norm(self._run.values()[i, self._w_at :]):.3g}"

    def measure(self) -> FloatArray:
        """The neurons, shape (N, D); the followers, if there are any."""
        rows = self._run.values()
        return rows if self._shown == len(rows) else rows[: self._shown].copy()

    def state(self) -> State:
        """Numbers and vectors of the integrator, and where it began if that was on the way."""
        return self._run.state()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._run.restore(state)

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: the end of a step."""
        return self._run.step_end(t)

    def take_over(self, earlier: FlowRung) -> None:
        """Go on from where a rung with other forces is: at the same step, or with steps chosen anew."""
        self._run.take_over(earlier._run)

    def meta(self) -> dict[str, Any]:
        """Steps done and refused, and evaluations of ∇Ψ."""
        return self._run.meta()


def population(model: Model, neurons: int, followers: int, seed: int, threads: int = 0) -> FloatArray:
    """Initial rows of the followers, the same for every method with this seed, then of the neurons they
    follow.
    """
    if not followers:
        return start_of(model, neurons, seed, threads)
    first = start_of(model, followers, seed, threads)
    others = start_of(model, neurons, derive(seed, DRIVER), threads)
    return np.concatenate([first, others])


def system_of(
    model: Model, neurons: int, expectation: Expectation | None, threads: int, followers: int = 0
) -> _core.System:
    """The system θ̇_i = −rates·∇Ψ_λ(θ_i; ρ_N) of N neurons, and of followers without mass in their field.

    Its gradients, decay and noise are those of `model._unit`: a tolerance or temperature for it is that over
    the square of the network's scale.
    """
    rows = followers + neurons
    masses = np.concatenate([np.zeros(followers), np.full(neurons, 1 / neurons)])
    model = model._unit
    evaluator = (expectation or Exact()).evaluator(model, threads)
    network, rates, ridge = model.network._core, rates_of(model.rates), float(model.ridge)
    if isinstance(evaluator, Nodes):
        sampler, seed, count = evaluator.sampler, evaluator.seed, evaluator.count
        stored = isinstance(model.data, Dataset) and sampler is model.data._node_sampler
        if not stored and 8 * count * (sampler.dimension + 1) <= _HELD_BYTES:
            sampler, seed = _core.finite_law(*sampler.draw(seed, 0, count)), 0
        return _core.System.nodes(network, rows, ridge, rates, sampler, seed, count, threads, masses)

    def gradient(theta: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):  # what is not finite is reported as divergence
            return evaluator.grad_psi(theta, theta[followers:], masses[followers:])

    return _core.System.calling(network, rows, int(model.d), ridge, rates, gradient, threads)


def rates_of(rates: Mapping[str, float] | None) -> tuple[float, float, float]:
    """The rates of a, b and w, 1 where the mapping leaves one out."""
    full = {"a": 1.0, "b": 1.0, "w": 1.0, **(rates or {})}
    return full["a"], full["b"], full["w"]
