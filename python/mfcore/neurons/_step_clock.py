"""The clock of SGD: step sizes by a schedule, and a shortened last step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray, shown

_WHOLE = 1e-9  # of a step and of the time: a rest of less than this is rounding
_CHUNK = 1 << 16  # step sizes summed together when times are turned into steps
_FEW = 64  # step sizes that are looked at first, when a time is turned into a step
_PIECE = 1024  # numbers for which a function of one number is called together, and the results kept


class StepClock:
    """The clock t_k = Σ_{j<k} h_j of step sizes h_k = h ξ(k h): from steps to times and back."""

    def __init__(self, step: float, schedule: Any) -> None:
        self._h, self._end, self._steps = step, math.inf, math.inf
        self._factors = None if schedule is None else Factors(schedule, step)
        self._short: tuple[int, float] | None = None  # number and size of the last step, if it is shortened
        self._times = np.zeros(1)  # t at multiples of _CHUNK steps

    @property
    def end(self) -> float:
        """Where the last step is shortened; inf: nowhere."""
        return self._end

    @end.setter
    def end(self, end: float) -> None:
        self._end, self._short, self._steps = math.inf, None, math.inf
        k = self.step(end)
        k -= self.time(k) > end + _WHOLE * max(end, self._h)
        rest = end - self.time(k)
        self._end = end
        if rest > _WHOLE * max(end, self._h):
            self._short = k, rest
        self._steps = k + (self._short is not None)

    @property
    def shortened(self) -> float:
        """The length of the shortened last step; 0 if there is none."""
        return 0.0 if self._short is None else self._short[1]

    def argument(self) -> Any:
        """What the core takes as step sizes: one, one with a shortened last step, or a function."""
        if self._factors is not None:
            return self.sizes
        return self._h if self._short is None else (self._h, *self._short)

    def nearest(self, t: float) -> float:
        """The time nearest to t that a step ends at."""
        return self.time(self.step(t))

    def sizes(self, first: int, count: int) -> FloatArray:
        """h_k for k = first … first + count − 1, and h for steps after the end, which nobody does."""
        there = int(min(max(self._steps - first, 0), count))
        sizes = np.concatenate([self._unshortened(first, there), np.full(count - there, self._h)])
        if self._short is not None and first <= self._short[0] < first + count:
            sizes[self._short[0] - first] = self._short[1]
        return sizes

    def _unshortened(self, first: int, count: int) -> FloatArray:
        return np.full(count, self._h) if self._factors is None else self._h * self._factors(first, count)

    def time(self, step: int) -> float:
        """The time after `step` steps."""
        if self._short is not None and step > self._short[0]:
            return self._end + (self.after(step) - self.after(self._short[0] + 1))
        return self.after(step)

    def after(self, step: int) -> float:
        """The same of whole steps, none of them shortened."""
        if self._factors is None:
            return step * self._h
        self._extend(lambda: len(self._times) * _CHUNK > step)
        chunk, rest = divmod(step, _CHUNK)
        return float(self._times[chunk] + self._unshortened(chunk * _CHUNK, rest).sum())

    def step(self, t: float) -> int:
        """The number of steps whose time is nearest to t; none that would end beyond the end."""
        step = self.steps_to(t)
        if self._short is None:
            return step
        last = self._short[0]
        return last + 1 if t > 0.5 * (self.after(last) + self._end) else min(step, last)

    def steps_to(self, t: float) -> int:
        """The same of whole steps, of which more than the run has may be meant."""
        if self._factors is None:
            return round(t / self._h)
        chunk = int(np.searchsorted(self._times, t, side="right")) - 1
        while True:
            times = self._times[chunk] + self._since(chunk, t - self._times[chunk])
            if len(times) > _CHUNK:
                self._extend(lambda end=chunk + 1: len(self._times) > end)
                if self._times[chunk + 1] <= t:
                    chunk += 1
                    continue
            return chunk * _CHUNK + int(np.abs(times - t).argmin())

    def _since(self, chunk: int, rest: float) -> FloatArray:
        """Times since the begin of a chunk until the first after `rest`, or all of it. The schedule need not
        have values after the end of the run."""
        assert self._factors is not None
        count = min(_FEW, _CHUNK)
        while True:
            sizes = self._h * self._factors.unchecked(chunk * _CHUNK, count)
            sound = sizes[: int(np.argmin(valid))] if not (valid := _valid(sizes)).all() else sizes
            times = np.concatenate([[0.0], np.cumsum(sound)])
            if times[-1] > rest or count == _CHUNK == len(sound):
                return times
            if len(sound) < len(sizes):
                if rest > times[-1] + _WHOLE * max(times[-1] + self._times[chunk], self._h):
                    self._factors(chunk * _CHUNK, count)  # raises
                return times
            count = min(2 * count, _CHUNK)

    def _extend(self, enough: Any) -> None:
        started = time.monotonic()
        while not enough():
            first = (len(self._times) - 1) * _CHUNK
            self._times = np.append(self._times, self._times[-1] + self._unshortened(first, _CHUNK).sum())
            if time.monotonic() - started > 10:
                raise ValueError(
                    f"schedule must let the clock reach the horizon, got t = {self._times[-1]:g} "
                    f"after {first} steps"
                )


class Factors:
    """The factors ξ(k·h) of a schedule, a function of arrays or of one number.

    Args:
        schedule: The function.
        step: h.
    """

    def __init__(self, schedule: Callable[[Any], Any], step: float) -> None:
        self._schedule, self._h = schedule, step
        self._arrays: bool | None = None  # whether it takes arrays
        self._failed: dict[float, Exception] = {}  # of a function of one number
        self._piece = lru_cache(maxsize=128)(self._each)

    def __call__(self, first: int, count: int) -> FloatArray:
        """ξ(k·h) > 0 for k = first … first + count − 1."""
        values = self.unchecked(first, count)
        valid = _valid(values)
        if not valid.all():
            at = int(np.argmin(valid))
            t = float(first + at) * self._h
            if t in self._failed:
                raise self._failed[t]
            raise ValueError(f"schedule must be finite and > 0, got {values[at]:g} at k·step = {t:g}")
        return values

    def unchecked(self, first: int, count: int) -> FloatArray:
        """The same of any sign, and not a number where the function fails."""
        if self._arrays is None:
            self._arrays = self._takes_arrays()
        if self._arrays:
            return self._at(np.arange(first, first + count, dtype=np.float64) * self._h)
        pieces = [self._piece(k) for k in range(first // _PIECE, (first + count - 1) // _PIECE + 1)]
        start = first % _PIECE
        return np.concatenate(pieces)[start : start + count] if count else np.empty(0)

    def _takes_arrays(self) -> bool:
        try:
            self._schedule(np.array([0.0, self._h]))
        except (TypeError, ValueError):  # such as "the truth value of an array is ambiguous"
            return False
        return True

    def _at(self, times: FloatArray) -> FloatArray:
        values = self._schedule(times)
        try:
            return np.broadcast_to(np.asarray(values, dtype=np.float64), times.shape)
        except (TypeError, ValueError):
            raise ValueError(
                f"schedule must return one number for each of the {len(times)} it is given, got "
                f"{shown(values)}"
            ) from None

    def _each(self, piece: int) -> FloatArray:
        """The factors of one piece, number by number."""
        return np.array([self._one(k * self._h) for k in range(piece * _PIECE, (piece + 1) * _PIECE)])

    def _one(self, t: float) -> float:
        try:
            value = self._schedule(t)
        except Exception as error:  # it matters only if the run comes there
            error.add_note(f"This was schedule({t:g}).")
            self._failed[t] = error
            return math.nan
        try:
            return float(value)
        except (TypeError, ValueError):
            self._failed[t] = ValueError(f"schedule must return one number, got {shown(value)} at {t:g}")
            return math.nan


def _valid(values: FloatArray) -> npt.NDArray[np.bool_]:
    return np.isfinite(values) & (values > 0)
