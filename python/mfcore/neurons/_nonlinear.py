"""The rung of `mf.Nonlinear`: independent neurons in the field of the limit (eqs. (6.14), (5.7)).

Neurons see the law ρ_t through the residuals c_q(t) = p_q(f_q(t) − y_q) of another rung, the driver, alone
(of closed pairs, through the driver's atoms): in reduced coordinates
ż = −rate·(Σ_q c_q(t) ∇Φ_q(z) + λz), to which w answers with ẇ = ṙ·w/r in the part with norm r. Without noise
directions are frozen, so that the k coordinates of each neuron are integrated, and lifted when looked at.
With noise the neurons are, in full dimension.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..atoms._field import features_at, gradients_at
from ..measures._measure import Density, as_measure
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._project import Coordinates
from ..runs._clock import FixedClock
from ..runs._ends import GOES_ON, End, Ended, ended
from ..runs._rung import LimitRung, State, clock_of, labelled, part_of
from ._integration import Integration
from ._sgd import start_of

_MARKS = 8  # times kept, more than one attempt of a step needs
_BITS = 44  # leading bits of a time that count: sums of steps that differ by rounding are the same time
_ENTRIES = 1 << 22  # most numbers of gradients of features held at a time


class _Mark(NamedTuple):
    """What the driver's field at one time is made of, and the state of the driver there."""

    t: float
    residual: FloatArray  # c_q(t); of closed pairs, rows of points and, last, masses
    state: dict[str, np.ndarray]


class _Late(Exception):
    """The driver did not reach the time asked for: it ended, or the seconds allowed have passed."""


class DriverResiduals:
    """The residuals c_q(t) of a run of the limit (the driver), for increasing t, and again for the last
    few t.
    """

    def __init__(self, driver: LimitRung, threads: int) -> None:
        self.driver, self.deadline, self._threads = driver, math.inf, threads
        self.ended = Ended(End.reached)  # how the driver's last stretch did
        self._reduced = driver.reduced
        self._marks: list[_Mark] = []
        self._at = 0.0  # where the driver is
        self._edges: tuple[FloatArray, ...] = ()
        self._table = np.empty((0, 0))

    def __call__(self, t: float) -> FloatArray:
        """The residuals c_q(t), p_q (f_q − y_q) at time t."""
        for mark in reversed(self._marks):
            if mark.t == t:
                residual: FloatArray = mark.residual
                return residual
        if t < self._at:
            while self._marks[-1].t > t:
                self._marks.pop()
            self._at = self._marks[-1].t
            self.driver.restore(self._marks[-1].state)
        self.ended = self.driver.advance(t, max(self.deadline - time.monotonic(), 0.0))
        if not self.ended.reached:
            self._stopped()
        self._at = t
        return self._record(t)

    def state(self) -> State:
        """The state of the driver at the earliest time that may be asked for again."""
        t, state = (self._marks[0].t, self._marks[0].state) if self._marks else (0.0, self.driver.state())
        return {"recorded": np.array(t), **state}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._marks.clear()
        self._at = float(state["recorded"])
        self.driver.restore({name: values for name, values in state.items() if name != "recorded"})
        self._record(self._at)

    def change(self, t: float, other: DriverResiduals) -> None:
        """Go on at time t from where a driver with other forces is."""
        other.deadline = math.inf
        other(t)  # brings it there
        driver: Any = self.driver
        driver.take_over(other.driver)
        self._marks, self._at = [], t
        self._record(t)

    def _record(self, t: float) -> FloatArray:
        """Compute the residuals at time t, where the driver is, and keep them with its state."""
        residual = self._measured() if self._reduced.pairs else self._reduced._residual(self._outputs())
        self._marks = [*self._marks[1 - _MARKS :], _Mark(t, residual, self.driver.state())]
        return residual

    def _measured(self) -> FloatArray:
        """The driver's measure as rows of points and, last, masses."""
        measure = as_measure(self.driver.measure(), "measure", len(self._reduced.coordinates))
        return np.column_stack(measure)

    def _outputs(self) -> FloatArray:
        """f_q = ∫Φ_q dρ of the driver's measure; features on a grid are kept while the grid stays the
        same.
        """
        measure = self.driver.measure()
        if not isinstance(measure, Density):
            points, weights = as_measure(measure, "measure", len(self._reduced.coordinates))
            return np.asarray(weights @ features_at(self._reduced, points, self._threads))
        same = len(self._edges) == len(measure.edges)
        if not same or not all(map(np.array_equal, self._edges, measure.edges)):
            self._edges = measure.edges
            self._table = features_at(self._reduced, measure.as_cloud().points, self._threads)
        return np.asarray(measure.mass.ravel() @ self._table)

    def _stopped(self) -> None:
        """A driver at rest makes the same field from now on; any other that stops, stops the neurons."""
        if self.ended.end is End.stationary:
            return
        self._at = self.driver.t
        if self.ended.end is End.interrupted:
            raise KeyboardInterrupt
        raise _Late


class NonlinearRung:
    """A run of N independent neurons in the field of a rung of the limit."""

    reduced: ReducedModel | None = None

    def __init__(
        self,
        model: Model,
        neurons: int,
        driver: LimitRung,
        seed: int,
        threads: int,
        integrator: Callable[[_core.System, FloatArray], _core.Flow],
        step: float | None,
    ) -> None:
        self._features, self._field, self._step = driver.reduced, DriverResiduals(driver, threads), step
        self._threads, self.clock = threads, None if step is None else FixedClock(step)
        self._start = start_of(model, neurons, seed)
        self._coordinates = Coordinates(model.network, model.data, driver.reduced.coordinates)
        self._noisy = model.temperature > 0
        z = self._coordinates.of(self._start)
        self._walls = np.array(driver.reduced.nonnegative)
        self._frozen = (z == 0) & self._walls  # a part that is 0 has no direction to move in
        rows, speed, walls = z, np.array(driver.reduced.rates), np.array(driver.reduced.nonnegative)
        apex = driver.reduced._apex
        if self._noisy:
            rows, speed, apex = self._start, model._entry_speeds, _core.Apex()
            walls = np.zeros(len(speed), dtype=bool)
        self._shape = rows.shape
        # The clock is the last entry: it moves by itself, and no error or noise goes by it.
        system = _core.System.function(
            np.append(np.tile(speed, neurons), 0.0),
            self._velocity,
            np.append(np.tile(walls, neurons), False),
            apex,
            rows.shape[1],
        )
        self._run = Integration(partial(integrator, system), np.append(rows, 0.0), self.clock)

    @property
    def features(self) -> ReducedModel:
        """The reduced model that drives the neurons."""
        return self._features

    @property
    def t(self) -> float:
        """The time reached."""
        return self._run.t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t; with fixed steps, to the step nearest to it."""
        field, run = self._field, self._run
        field.deadline = time.monotonic() + seconds
        if self.clock is not None and (of_driver := clock_of(field.driver)) is not None:
            of_driver.end = self.clock.end
        try:
            end = run.advance(t, seconds)
        except _Late:
            end = field.ended.end
        if end is End.reached and field.ended.end is End.stationary and field.driver.t <= self.t:
            end = End.stationary
        if end in GOES_ON or field.ended.end in GOES_ON:
            return ended(end, run.flow, since=run.since, done=run.done, remedy="Try fixed steps, step=…")
        return Ended(end, f"the driver ended at t = {field.driver.t:g}: {field.ended.message}")

    def measure(self) -> FloatArray:
        """Neurons, shape (N, D)."""
        rows = self._run.values()[:-1].reshape(self._shape)
        return rows if self._noisy else self._coordinates.lift(self._start, rows)

    def state(self) -> State:
        """Return the state of the integration, and that of the driver."""
        return self._run.state() | labelled("driver", self._field.state())

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._run.restore(state)
        self._field.restore(part_of(state, "driver"))

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: t, or the end of a step of all that steps."""
        driver: Any = self._field.driver
        if self.clock is None:
            return float(driver.change_time(t))
        clock = clock_of(driver)
        if (
            clock is not None
            and abs(driver.change_time(self.clock.step) - self.clock.step) > 1e-9 * self.clock.step
        ):
            raise ValueError(
                f"step must be that of the driver where forces change with time, got {self.clock.step:g} and "
                f"a driver whose first step ends at {clock.nearest(self.clock.step):g}"
            )
        return self._run.step_end(t)

    def take_over(self, earlier: NonlinearRung) -> None:
        """Go on from where a rung with other forces is, in the field of its driver."""
        self._field.change(earlier.t, earlier._field)
        self._run.take_over(earlier._run)

    def meta(self) -> dict[str, Any]:
        """Steps done and refused, evaluations of the velocity, and what the driver has to say."""
        return {**self._run.meta(), "driver": self._field.driver.meta()}

    def _velocity(self, y: FloatArray) -> FloatArray:
        """The velocity of the state (rows, t), whose last entry is the time itself."""
        rows = y[:-1].reshape(self._shape)
        residual = self._field(self._rounded(y[-1]))
        with np.errstate(all="ignore"):  # what is not finite is reported as divergence
            if self._noisy:
                velocity = self._descent(self._coordinates.of(rows), residual)
                velocity = self._coordinates.lift_velocity(rows, velocity)
            else:
                velocity = self._descent(rows, residual)
                velocity[self._frozen] = 0.0
                waiting = self._walls & (rows == 0)  # radii, until they are pushed away from their end
                velocity[waiting] = np.maximum(velocity[waiting], 0.0)
        return np.append(velocity, 1.0)

    def _descent(self, z: FloatArray, residual: FloatArray) -> FloatArray:
        """−rate·(Σ_q c_q ∇Φ_q(z) + λz), negative radii being replaced by 0."""
        reduced = self._features
        z = np.where(self._walls, np.maximum(z, 0.0), z)
        gradient = self._gradient(z, residual)
        gradient += reduced.ridge * np.array(reduced.decays) * z
        return -np.array(reduced.rates) * gradient

    def _gradient(self, z: FloatArray, residual: FloatArray) -> FloatArray:
        """∇Ψ(z) in the driver's field."""
        reduced = self._features
        if reduced.pairs is not None:
            if not np.isfinite(z).all():  # reported as divergence
                return np.full(z.shape, np.nan)
            points, masses = np.ascontiguousarray(residual[:, :-1]), residual[:, -1].copy()
            return reduced.pairs.with_threads(self._threads).grad_psi(z, points, masses)
        gradient = np.empty_like(z)
        block = max(1, _ENTRIES // (len(residual) * z.shape[1]))
        for first in range(0, len(z), block):
            rows = slice(first, first + block)
            gradient[rows] = np.matmul(residual, gradients_at(reduced, z[rows], self._threads))
        return gradient

    def _rounded(self, t: float) -> float:
        """The time that a sum of steps stands for: a multiple of half a step, or _BITS leading bits."""
        if self.clock is not None and self.clock.in_last(t):
            near = abs(t - self.clock.end) <= 2.0**-_BITS * self.clock.end
            return self.clock.end if near else t
        if self._step is not None:
            return 0.5 * self._step * round(2 * t / self._step)
        mantissa, exponent = math.frexp(t)
        return math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS)
