"""`mf.Annealed`: temperature and ridge as functions of time, constant on stretches (eq. (6.17))."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable, shown_call
from ..model import Model
from ..reductions._model import ReducedModel
from ._clock import Clock
from ._ends import Ended
from ._rung import LimitRung, Method, Rung, State, clock_of, labelled, part_of
from ._trajectory import Measure

Course = Callable[[float], float] | Any


class ChangingRung(Rung, Protocol):
    """A rung whose forces may change on the way."""

    def change_time(self, t: float) -> float:
        """The time nearest to t at which they may."""
        ...

    def take_over(self, earlier: Any) -> None:
        """Go on from where a rung of the same method with other forces is."""
        ...


@configurable
@dataclass(frozen=True, repr=False, eq=False)
class Annealed:
    """A method with temperature and ridge as functions of t, in place of those of the model.

    They are constant on stretches of the length `every`, at their values in the middle, so that laws differ
    from those of the functions by O(every²). All else, the steps and the numbers they draw, is that of the
    method. Free energies that `mf.PDE` records are those of the present temperature.

    Args:
        method: `mf.SGD`, `mf.GD`, `mf.Particles` with fixed steps, or `mf.PDE`, without tolerance.
        every: Length of a stretch, rounded to whole steps (blocks of steps of SGD), at least one.
        temperature: 1/β as a function of t, > 0 throughout, or rows (t, value) between which it is linear and
            beyond which it is constant, as files hold it. None: the model's.
        ridge: λ ≥ 0, in the same ways.

    Examples:
        >>> import math, mfcore as mf
        >>> model = mf.Model(
        ...     mf.data.Dataset([[1.0], [-1.0]], [1.0, -1.0]),
        ...     mf.Network(mf.activations.tanh), mf.init.Gaussian(std=1.0), ridge=0.1,
        ... )
        >>> cooling = mf.Annealed(
        ...     mf.Particles(200, method="heun", step=0.05), every=0.5,
        ...     temperature=lambda t: 1 / math.log(math.e + t),
        ... )
        >>> run = mf.solve(model, cooling, horizon=2.0, rng=0)
        >>> run.meta["stretches"], round(run.meta["temperature"], 4)
        (4, 0.668)
    """

    method: Method
    every: float
    temperature: Course | None = None
    ridge: Course | None = None

    def __post_init__(self) -> None:
        if isinstance(self.method, type | Annealed) or not hasattr(self.method, "begin"):
            raise TypeError(
                f"method must be a method such as mf.Particles(…), got {check.shown(self.method)}"
            )
        object.__setattr__(self, "every", check.number(self.every, "every", above=0))
        if getattr(self.method, "tolerance", None) is not None:
            raise ValueError(
                "method must have no tolerance to be annealed: nothing is at rest while forces change, got "
                f"{self.method!r}"
            )
        for name in ("temperature", "ridge"):
            course = getattr(self, name)
            if course is not None and not callable(course):
                object.__setattr__(self, name, _rows(course, name))
        if self.temperature is None and self.ridge is None:
            raise ValueError("temperature or ridge must be given, got None for both")

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> AnnealedRung:
        """A run of this method at t = 0."""
        return AnnealedRung(self, model, seed, threads)

    def at(self, t: float) -> dict[str, float]:
        """Temperature and ridge at time t, of those that are given."""
        t, found = check.number(t, "t", at_least=0), {}
        if self.temperature is not None:
            found["temperature"] = check.number(
                _value(self.temperature, t), f"temperature(t = {t:g})", above=0
            )
        if self.ridge is not None:
            found["ridge"] = check.number(_value(self.ridge, t), f"ridge(t = {t:g})", at_least=0)
        return found

    def __repr__(self) -> str:
        return shown_call(self)


class AnnealedRung:
    """A run of a method that is begun anew on each stretch, from where the one before has come to."""

    def __init__(self, method: Annealed, model: Model | ReducedModel, seed: int, threads: int) -> None:
        self._method, self._model, self._seed, self._threads = method, model, seed, threads
        self._stretch = 0
        self._part = self._begun(0)
        if not hasattr(self._part, "take_over"):
            raise ValueError(
                "method must be mf.SGD, mf.GD, mf.Particles or mf.PDE to be annealed, whose forces can "
                f"change on the way, got {method.method!r}"
            )
        if clock_of(self._part) is None and self._part.reduced is None:
            raise ValueError(f"method must have fixed steps to be annealed, got {method.method!r}")
        if self._end_of(0) <= 0:
            raise ValueError(f"every must be at least one step, got {method.every:g} with {method.method!r}")

    def _begun(self, stretch: int) -> ChangingRung:
        forces = self._method.at((stretch + 0.5) * self._method.every)
        model: Any = self._model
        if stretch > 0 and self._part.reduced is not None:  # the reduction is known
            model = self._part.reduced
        model = dataclasses.replace(model, **forces)
        return cast(ChangingRung, self._method.method.begin(model, self._seed, self._threads))

    def _end_of(self, stretch: int) -> float:
        return self._part.change_time((stretch + 1) * self._method.every)

    def _change(self, stretch: int) -> None:
        """Begin the stretch, from where the run is."""
        part = self._begun(stretch)
        self._set_end(part)
        part.take_over(self._part)
        self._part, self._stretch = part, stretch

    def _set_end(self, part: ChangingRung) -> None:
        """Let the clock of a new part end where that of this one does."""
        old, new = clock_of(self._part), clock_of(part)
        if old is not None and new is not None and math.isfinite(old.end):
            new.end = old.end

    @property
    def clock(self) -> Clock | None:
        """The clock of the method."""
        return clock_of(self._part)

    @property
    def reduced(self) -> ReducedModel | None:
        """The features whose coordinates the measures live in, of the limit."""
        return self._part.reduced

    @property
    def t(self) -> float:
        """The time reached."""
        return self._part.t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t, and change the forces on the way; at the end of a stretch they are still its own."""
        deadline = time.monotonic() + seconds
        while True:
            end = self._end_of(self._stretch)
            ended = self._part.advance(min(t, end), max(deadline - time.monotonic(), 0.0))
            if not ended.reached or t <= end:
                return ended
            self._change(self._stretch + 1)

    def measure(self) -> Measure:
        """ρ_t."""
        return self._part.measure()

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and its error, of the limit."""
        return cast(LimitRung, self._part).risk()

    def observed(self) -> Mapping[str, float]:
        """What the limit's rung records."""
        return cast(LimitRung, self._part).observed()

    def state(self) -> State:
        """The stretch, and the state of the run on it."""
        return {"stretch": np.array(self._stretch), **labelled("part", self._part.state())}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a stretch and a state on it."""
        part, stretch = self._part, int(state["stretch"])
        if stretch != self._stretch:
            part = self._begun(stretch)
            self._set_end(part)
        part.restore(part_of(state, "part"))
        self._part, self._stretch = part, stretch

    def meta(self) -> dict[str, Any]:
        """That of the method, the stretches begun, and the temperature and ridge of the last."""
        forces = self._method.at((self._stretch + 0.5) * self._method.every)
        return {**self._part.meta(), "stretches": self._stretch + 1, **forces}


def _value(course: Course, t: float) -> Any:
    return course(t) if callable(course) else float(np.interp(t, *np.transpose(course)))


def _rows(course: Any, name: str) -> list[list[float]]:
    rows: FloatArray = check.array(course, name, shape=(None, 2))
    if len(rows) == 0 or (np.diff(rows[:, 0]) <= 0).any():
        raise ValueError(f"{name} must be a function of t, or rows (t, value) of rising t, got {course!r}")
    return [[float(t), float(value)] for t, value in rows]
