"""The clock of fixed steps: the times at which a run can be looked at, up to a shortened last step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from .. import _core
from ._ends import End

LOOKS = 50  # parts of the horizon at whose ends a run of fixed steps is looked at, whether it has diverged
_WHOLE = 1e-9  # of a step and of its number: a rest of less than this is rounding


class Clock(Protocol):
    """Which times the steps of a run reach."""

    end: float  # where the last step is shortened; inf: nowhere

    @property
    def shortened(self) -> float:
        """The length of the shortened last step; 0 if there is none."""
        ...

    def nearest(self, t: float) -> float:
        """The time nearest to t that a step, or the shortened last one, ends at."""
        ...


class FixedClock:
    """t = k·h for the whole steps that fit before the end, and the end itself.

    Examples:
        >>> from mfcore.runs._clock import FixedClock
        >>> clock = FixedClock(0.25)
        >>> clock.end = 0.9
        >>> [clock.nearest(t) for t in (0.3, 0.8, 0.85, 0.9)]
        [0.25, 0.75, 0.9, 0.9]
    """

    def __init__(self, step: float) -> None:
        self.step, self.end = step, math.inf

    @property
    def shortened(self) -> float:
        """The length of the shortened last step; 0 if there is none."""
        return self.end - self._most() * self.step if self.ends(self.end) else 0.0

    def nearest(self, t: float) -> float:
        """The time nearest to t that a step ends at."""
        if self.ends(t):
            return self.end
        return self.whole(t) * self.step

    def whole(self, t: float) -> int:
        """The number of whole steps whose time is nearest to t, none of them beyond the end."""
        return int(min(round(t / self.step), self._most()))

    def ends(self, t: float) -> bool:
        """Tell whether the shortened last step ends nearer to t than any whole one."""
        if math.isinf(self.end):
            return False
        last = self._most() * self.step
        return self.end - last > _WHOLE * max(self.step, self.end) and t > 0.5 * (last + self.end)

    def in_last(self, t: float) -> bool:
        """Tell whether t is inside the shortened last step, or its end."""
        return self.ends(self.end) and t > self._most() * self.step * (1 + _WHOLE)

    def advance(self, flow: _core.Flow, t: float, seconds: float) -> End:
        """Let a flow of fixed steps go to the time nearest to t."""
        end = flow.advance(self.whole(t) * self.step, seconds) if flow.t < self.nearest(t) else End.reached
        if end is End.reached and self.ends(t) and flow.t < self.end:
            end = flow.finish(self.end)
        return end

    def _most(self) -> float:
        """The number of whole steps up to the end."""
        if math.isinf(self.end):
            return math.inf
        steps = self.end / self.step
        return math.floor(steps + _WHOLE * max(1.0, steps))


@dataclass(frozen=True)
class Stop:
    """A save point: a time that the clock reaches, and those asked for that are nearest to it; or, asked for
    by nobody, a time at which the run is looked at."""

    t: float
    asked: tuple[float, ...]


def stops(clock: Clock | None, times: list[float]) -> list[Stop]:
    """The save points for the times asked for, each once."""
    found: list[Stop] = []
    for asked in times:
        t = asked if clock is None else clock.nearest(asked)
        if found and found[-1].t == t:
            found[-1] = Stop(t, (*found[-1].asked, asked))
        else:
            found.append(Stop(t, (asked,)))
    return found


def with_looks(clock: Clock | None, points: list[Stop], after: float, horizon: float) -> list[Stop]:
    """These save points and, of fixed steps, the times after `after` at which a run is looked at between: the
    ends of `LOOKS` even parts of the horizon.

    Examples:
        >>> from mfcore.runs._clock import FixedClock, Stop, with_looks
        >>> [stop.t for stop in with_looks(FixedClock(0.25), [Stop(0.5, (0.5,))], 0.25, 1.0)]
        [0.5, 0.75]
    """
    if clock is None:
        return points
    known = {stop.t for stop in points}
    reached = {clock.nearest(horizon * k / LOOKS) for k in range(1, LOOKS)}
    looks = [Stop(t, ()) for t in reached - known if after < t < horizon]
    return sorted([*points, *looks], key=lambda stop: stop.t)


def off_clock(clock: Clock | None, points: list[Stop]) -> str:
    """The end of a message, in words, where the clock does not fit the horizon or the save points."""
    if clock is None:
        return ""
    words = f" by a last step of {clock.shortened:.3g}" if clock.shortened else ""
    far = max((abs(stop.t - asked) for stop in points for asked in stop.asked), default=0.0)
    if far > _WHOLE * max(clock.end, 1.0):
        many = sum(len(stop.asked) for stop in points)
        words += f"; the {many} save points fall on {len(points)} steps, at most {far:.3g} away"
    return words
