"""Runs of models whose temperature or ridge is a function of t: forces constant on stretches (eq. (6.17))."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from .._base.course import Course, changes, forces_at
from ..model import Model
from ..reductions._model import ReducedModel
from ._clock import Clock
from ._ends import Ended
from ._rung import LimitRung, Method, Rung, State, clock_of, labelled, part_of
from ._trajectory import Measure

_CHANGE = 0.02  # a force may change by this fraction of its value on a stretch,
_LEAST = 1e-4  # or by this fraction of its largest value so far,
_RISE = 2e-3  # or, where it rises, of its largest value from now to twice the time, or to t = 1
_LOOKS = np.linspace(0.0, 1.0, 9)  # where on a stretch it is looked at
_FINEST = 2.0**-40  # least length of a stretch, relative to 1 + t: a force that jumps is not followed further


class ChangingRung(Rung, Protocol):
    """A rung whose forces may change on the way."""

    def change_time(self, t: float) -> float:
        """The time nearest to t at which they may."""
        ...

    def take_over(self, earlier: Any) -> None:
        """Go on from where a rung of the same method with other forces is."""
        ...


def begin(method: Method, model: Model | ReducedModel, seed: int, threads: int) -> Rung:
    """A run of the method at t = 0, of a model whose forces may be functions of t."""
    if not changes(model):
        return method.begin(model, seed, threads)
    return ChangedRung(method, model, seed, threads)


class Stretches:
    """The times at which the forces of a run change: a function of the forces and of the method alone.

    Args:
        forces: Those that are functions of t.
        change_time: The time nearest to a time at which the method can change them.
    """

    def __init__(self, forces: list[Course], change_time: Callable[[float], float]) -> None:
        self._forces, self._change_time = forces, change_time
        self._knots = sorted({t for force in forces for t in force.knots if t > 0})
        self._rows = all(force.knots for force in forces)
        self._largest = [0.0] * len(forces)
        self._ends = [0.0]
        self._length = 1.0

    def begin(self, stretch: int) -> float:
        """When a stretch begins."""
        while len(self._ends) <= stretch:
            self._ends.append(self._next(self._ends[-1]))
        return self._ends[stretch]

    def end(self, stretch: int) -> float:
        """When it ends."""
        return self.begin(stretch + 1)

    def middle(self, stretch: int) -> float:
        """Return the time at which the forces of a stretch are taken."""
        first, last = self.begin(stretch), self.end(stretch)
        return first if math.isinf(last) else 0.5 * (first + last)

    def _next(self, start: float) -> float:
        """The end of the stretch that begins at `start`: at most twice as long as the last."""
        knot = next((t for t in self._knots if self._change_time(t) > start), math.inf)
        if math.isinf(knot) and self._rows:  # constant from here on
            return math.inf
        for k, force in enumerate(self._forces):
            self._largest[k] = max(self._largest[k], force(start))
        ahead = [_largest(force, start) for force in self._forces]
        length = min(2 * self._length, knot - start)
        while length > _FINEST * (1 + start) and not self._smooth(start, length, ahead):
            if self._change_time(start + 0.5 * length) <= start:  # it is one step
                break
            length *= 0.5
        self._length = length
        while (end := self._change_time(start + length)) <= start:
            length *= 2
        return end

    def _smooth(self, start: float, length: float, ahead: list[float]) -> bool:
        """Tell whether forces change little on this stretch. Beyond the horizon they need not have values."""
        for force, largest, later in zip(self._forces, self._largest, ahead, strict=True):
            try:
                values = [force(t) for t in (start + length * _LOOKS).tolist()]
            except (ValueError, TypeError, ArithmeticError):
                return False
            most = max(values)
            rise = _RISE * later if values[-1] > values[0] else 0.0
            if most - min(values) > max(_CHANGE * min(values), _LEAST * max(most, largest), rise):
                return False
        return True


def _largest(force: Course, start: float) -> float:
    """The largest value of a force from now to twice the time, or to t = 1, where it has values."""
    values = [0.0]
    for t in (start + max(1.0, start) * _LOOKS).tolist():
        try:
            values.append(force(t))
        except (ValueError, TypeError, ArithmeticError):
            break
    return max(values)


class ChangedRung:
    """A run of a method that is begun anew on each stretch, from where the one before has come to."""

    def __init__(self, method: Method, model: Model | ReducedModel, seed: int, threads: int) -> None:
        if getattr(method, "tolerance", None) is not None:
            raise ValueError(
                "tolerance must be left out where forces change with time, as nothing is at rest, got "
                f"{method!r}"
            )
        self._method, self._model, self._seed, self._threads = method, model, seed, threads
        forces = [force for force in (model.ridge, model.temperature) if isinstance(force, Course)]
        self._stretch = 0
        # Methods are chosen by whether there is noise, which a temperature that changes always is.
        self._part = self._begun(forces_at(model, 0.0))
        if not hasattr(self._part, "take_over"):
            names = " and ".join(force.name for force in forces)
            raise ValueError(
                f"{names} must be a number for {method!r}; mf.SGD, mf.GD, mf.Particles, mf.Nonlinear, "
                "mf.PDE, mf.Atoms and mf.JKO follow functions of t (no network split over processes does)"
            )
        self._stretches = Stretches(forces, self._part.change_time)
        self._part = self._on(0)

    def _begun(self, model: Model | ReducedModel) -> ChangingRung:
        return cast(ChangingRung, self._method.begin(model, self._seed, self._threads))

    def _on(self, stretch: int) -> ChangingRung:
        """A run with the forces of a stretch, at t = 0."""
        model: Any = forces_at(self._model, self._stretches.middle(stretch))
        if self._part.reduced is not None:  # the reduction is known
            model = replace(self._part.reduced, ridge=model.ridge, temperature=model.temperature)
        elif (known := getattr(self._part, "features", None)) is not None:
            known = replace(known, ridge=model.ridge, temperature=model.temperature)
            model._kept["reduction"] = known
        return self._begun(model)

    def _change(self, stretch: int) -> None:
        """Begin the stretch, from where the run is."""
        part = self._on(stretch)
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
            end = self._stretches.end(self._stretch)
            ended = self._part.advance(min(t, end), max(deadline - time.monotonic(), 0.0))
            if not ended.reached or t <= end:
                return ended
            self._change(self._stretch + 1)

    def measure(self) -> Measure:
        """ρ_t."""
        measure: Measure = self._part.measure()
        return measure

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and its error, of the limit."""
        return cast(LimitRung, self._part).risk()

    def observed(self) -> Mapping[str, float]:
        """Return the observables of the limit's rung: free energies are those of the present forces."""
        return cast(LimitRung, self._part).observed()

    def state(self) -> State:
        """The stretch, and the state of the run on it."""
        return {"stretch": np.array(self._stretch), **labelled("part", self._part.state())}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a stretch and a state on it."""
        part, stretch = self._part, int(state["stretch"])
        if stretch != self._stretch:
            part = self._on(stretch)
            self._set_end(part)
        part.restore(part_of(state, "part"))
        self._part, self._stretch = part, stretch

    def meta(self) -> dict[str, Any]:
        """Return the meta of the method, the stretches begun, and the forces of the last that depend on t."""
        forces = forces_at(self._model, self._stretches.middle(self._stretch))
        names = [name for name in ("temperature", "ridge") if isinstance(getattr(self._model, name), Course)]
        there = {name: getattr(forces, name) for name in names}
        return {**self._part.meta(), "stretches": self._stretch + 1, **there}
