"""Which cases a sweep has: all of a grid, those of a list, or the next ones of a bisection."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import check
from .._base.described import OPAQUE, described

_CASE = 500.0  # bytes that a case of a grid takes at least, with its name

Case = dict[str, Any]
Result = Any  # what the user's function returned, or None if it failed
Rounds = Generator[list[Case], list[Result], None]


@dataclass(frozen=True)
class Bisection:
    """Find the value of one argument at which a condition on the result changes, by halving an interval.

    Args:
        name: The argument.
        low: Its lower end.
        high: Its upper end.
        crossed: Takes what the run returned and answers True at one end, False at the other.
        tolerance: The length at which to stop.
        each: A grid of other arguments: one bisection for each of its cases.

    Examples:
        >>> import mfcore as mf
        >>> search = mf.Bisection("x", 0.0, 2.0, crossed=lambda square: square > 2.0, tolerance=1e-3)
        >>> result = mf.sweep(lambda x: x**2, search, workers=1)
        >>> low, high = float(result["bracket_low"][0]), float(result["bracket_high"][0])
        >>> low < 2**0.5 < high < low + 1e-3
        True
    """

    name: str
    low: float
    high: float
    crossed: Callable[[Any], bool]
    tolerance: float
    each: Mapping[str, Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be that of an argument, got {check.shown(self.name)}")
        if self.each is not None and not isinstance(self.each, Mapping):
            raise TypeError(f"each must be a mapping from names to values, got {check.shown(self.each)}")
        low = check.number(self.low, "low")
        check.number(self.high, "high", above=low)
        check.number(self.tolerance, "tolerance", above=0)
        if not callable(self.crossed):
            raise TypeError(f"crossed must be a function of a result, got {check.shown(self.crossed)}")


class Plan:
    """The cases of a sweep in rounds; the results of one round may decide the next."""

    shape: dict[str, list[Any]] | None = None  # of a grid: its axes
    listed: list[Case]  # the cases as far as they are known before any result is
    brackets: list[Case]

    def __init__(self, cases: Any) -> None:
        self._cases = cases
        self.listed = []
        self.brackets = []
        if isinstance(cases, Bisection):
            self._others = _grid(cases.each or {}, "each")
        elif isinstance(cases, Mapping):
            self.listed = _grid(cases, "cases")
            self.shape = {name: list(values) for name, values in cases.items()}
        else:
            self.listed = _listed(cases)

    def rounds(self) -> Rounds:
        """Yield lists of cases; what is sent back are their results."""
        if isinstance(self._cases, Bisection):
            yield from self._bisect(self._cases)
        else:
            yield self.listed

    def _bisect(self, search: Bisection) -> Rounds:
        ends = [{**other, search.name: x} for other in self._others for x in (search.low, search.high)]
        answers = [None if r is None else bool(search.crossed(r)) for r in (yield ends)]
        open_: list[tuple[Case, float, float, bool]] = []
        for k, other in enumerate(self._others):
            first, last = answers[2 * k], answers[2 * k + 1]
            if first is None or last is None or first == last:
                why = "an end failed" if None in (first, last) else f"crossed is {first} at both ends"
                self.brackets.append({**other, "low": math.nan, "high": math.nan, "message": why})
            else:
                open_.append((other, search.low, search.high, last))
        while open_:
            middles = [0.5 * (low + high) for _, low, high, _ in open_]
            results = yield [{**other, search.name: x} for (other, *_), x in zip(open_, middles, strict=True)]
            left = []
            for (other, low, high, above), x, result in zip(open_, middles, results, strict=True):
                if result is None:
                    self.brackets.append({**other, "low": low, "high": high, "message": "a case failed"})
                    continue
                low, high = (low, x) if bool(search.crossed(result)) == above else (x, high)
                # An interval without a number inside cannot be halved.
                if high - low > search.tolerance and low < 0.5 * (low + high) < high:
                    left.append((other, low, high, above))
                else:
                    self.brackets.append({**other, "low": low, "high": high, "message": "found"})
            open_ = left


def key_of(case: Case) -> str:
    """A name of the case that depends on its content alone; it seeds its random numbers too."""
    entries = described(case, "case")
    for name, value in entries.items():
        if value == OPAQUE:
            raise TypeError(
                "cases must hold numbers, words, arrays and objects of mfcore, got a Python object for "
                f"{name.partition('.')[2]!r}"
            )
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:24]


def _grid(axes: Mapping[str, Any], name: str) -> list[Case]:
    sizes = [len(v) for v in axes.values() if hasattr(v, "__len__")]
    check.memory(_CASE * float(math.prod(sizes)), name, math.prod(sizes))
    lists = []
    for key, values in axes.items():
        _check_key(key, name)
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | range):
            raise TypeError(f"{name} must have a list of values for {key!r}, got {check.shown(values)}")
        lists.append([v.item() if isinstance(v, np.generic) else v for v in values])
        if len({key_of({key: v}) for v in lists[-1]}) < len(lists[-1]):
            raise ValueError(f"{name} must not repeat a value of {key!r}, got {check.shown(values)}")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


def _listed(cases: Any) -> list[Case]:
    form = "a dict of lists (a grid), a list of dicts, or an mf.Bisection"
    if isinstance(cases, str) or not isinstance(cases, Sequence):
        raise TypeError(f"cases must be {form}, got {check.shown(cases)}")
    for k, case in enumerate(cases):
        if not isinstance(case, Mapping):
            raise TypeError(f"cases must be {form}, got {check.shown(case)} at position {k}")
        for key in case:
            _check_key(key, "cases")
        if set(case) != set(cases[0]):
            raise ValueError(
                f"cases must all have the same names, got {sorted(case)} at position {k} and "
                f"{sorted(cases[0])} at 0"
            )
    return [dict(case) for case in cases]


def _check_key(key: Any, name: str) -> None:
    if not isinstance(key, str) or not key:
        raise ValueError(f"{name} must have names of arguments as keys, got {check.shown(key)}")
