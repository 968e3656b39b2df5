"""Formulas with kinks: smooth parts between the points at which max, min, abs and conditions change them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from itertools import pairwise
from typing import Any

_MOST_KINKS = 64
_MOST_DEGREE = 8  # of polynomials whose roots are kinks
_MONOTONE = ("exp", "sinh", "tanh", "asinh", "atan", "erf")
_JUMP = 1e-12  # relative: of the two sides of a kink, which is rounded to a float


@dataclass(frozen=True)
class Parts:
    """A function of z: `between[k]` on the k-th of the intervals that `kinks` cut the line into."""

    kinks: tuple[float, ...]
    between: tuple[Any, ...]

    def around(self, z: float) -> Any:
        """The smooth part that holds at a z that is no kink."""
        return self.between[sum(kink < z for kink in self.kinks)]

    def derivative(self, z: Any) -> Parts:
        """The slope, without what kinks add."""
        return Parts(self.kinks, tuple(part.diff(z) for part in self.between))

    def each(self, function: Callable[[Any], Any]) -> Parts:
        """The same with a function of every part."""
        return Parts(self.kinks, tuple(map(function, self.between)))


def joined(function: Callable[..., Any], *operands: Parts) -> Parts:
    """A function of functions, part by part."""
    kinks = _bounded({kink for operand in operands for kink in operand.kinks})
    middles = _middles(kinks)
    return _merged(kinks, [function(*(f.around(z) for f in operands)) for z in middles])


def chosen(test: Parts, yes: Parts, no: Parts, z: Any) -> Parts:
    """`yes` where the test is positive, else `no`.

    Raises:
        ValueError: The points where the test changes its sign are not known.
    """
    kinks = {kink for operand in (test, yes, no) for kink in operand.kinks}
    roots = {root for part in set(test.between) for root in _roots(part, z)}
    cuts = _bounded(kinks | roots)
    parts = []
    for middle in _middles(cuts):
        positive = _number(test.around(middle), z, middle) > 0
        parts.append((yes if positive else no).around(middle))
    return _merged(cuts, parts)


def largest(operands: Iterable[Parts], z: Any) -> Parts:
    """max of functions."""
    return reduce(lambda f, g: chosen(joined(lambda x, y: x - y, f, g), f, g, z), operands)


def smallest(operands: Iterable[Parts], z: Any) -> Parts:
    """min of functions."""
    return reduce(lambda f, g: chosen(joined(lambda x, y: y - x, f, g), f, g, z), operands)


def check_continuous(value: Parts, z: Any) -> None:
    """Refuse what jumps, or has an infinite slope.

    Raises:
        ValueError: The two sides of a kink differ, or one of their slopes is no number.
    """
    slope = value.derivative(z)
    for kink, (left, right), sides in zip(
        value.kinks, pairwise(value.between), pairwise(slope.between), strict=True
    ):
        one, two = (_number(part, z, kink) for part in (left, right))
        if not abs(one - two) <= _JUMP * max(1.0, abs(one), abs(two)):
            raise ValueError(
                f"text must be continuous, but at z = {kink:.6g} it jumps from {one:.6g} to {two:.6g}"
            )
        if not all(math.isfinite(_number(part, z, kink)) for part in sides):
            raise ValueError(f"text must have finite slopes, but at z = {kink:.6g} it has not")


def _bounded(kinks: set[float]) -> tuple[float, ...]:
    if len(kinks) > _MOST_KINKS:
        raise ValueError(f"text must have at most {_MOST_KINKS} kinks, got {len(kinks)}")
    return tuple(sorted(kinks))


def _middles(kinks: tuple[float, ...]) -> list[float]:
    """A point of every interval between kinks."""
    if not kinks:
        return [0.0]
    inside = [one + (two - one) / 2 for one, two in pairwise(kinks)]
    step = [1.0 + abs(kink) for kink in (kinks[0], kinks[-1])]
    return [kinks[0] - step[0], *inside, kinks[-1] + step[1]]


def _merged(kinks: tuple[float, ...], parts: list[Any]) -> Parts:
    """Parts without kinks between two that are the same."""
    kept, between = [], [parts[0]]
    for kink, part in zip(kinks, parts[1:], strict=True):
        if (part - between[-1]).expand() != 0:
            kept.append(kink)
            between.append(part)
    return Parts(tuple(kept), tuple(between))


def _number(part: Any, z: Any, at: float) -> float:
    """A part at a point; NaN where it is no real number."""
    try:
        return float(part.subs(z, at).evalf())
    except TypeError:
        return math.nan


def _roots(part: Any, z: Any) -> list[float]:
    """Find the points where a part may change its sign."""
    sympy: Any = import_module("sympy")
    if not part.has(z):
        return []
    if part.is_polynomial(z):
        return _roots_of_polynomial(sympy.Poly(part, z))
    if part.is_Mul:
        return [root for factor in part.args for root in _roots(factor, z)]
    if part.is_Pow and not part.exp.has(z):
        return _roots(part.base, z)
    alone, rest = part.as_independent(z, as_Add=True)
    factor, function = rest.as_independent(z, as_Add=False)
    if type(function).__name__ in _MONOTONE:  # alone + factor f(inside)
        inside = function.inverse()(-alone / factor)
        real = inside.is_extended_real and inside.is_finite
        return _roots(function.args[0] - inside, z) if real else []
    other = sympy.factor(part)
    if other.is_Mul or other.is_Pow:
        return _roots(other, z)
    raise ValueError(
        "text must have max, min, abs and conditions that change at roots of polynomials of degree at most "
        f"{_MOST_DEGREE}, or of {', '.join(_MONOTONE)} of such, so that its kinks are known; got {part}"
    )


def _roots_of_polynomial(polynomial: Any) -> list[float]:
    sympy: Any = import_module("sympy")
    if polynomial.degree() > _MOST_DEGREE:
        raise ValueError(
            f"text must have kinks at roots of polynomials of degree at most {_MOST_DEGREE}, got "
            f"{polynomial.as_expr()}"
        )
    coefficients = [c if c.is_Rational else sympy.Rational(str(c.evalf(40))) for c in polynomial.all_coeffs()]
    found = {float(root) for root in sympy.Poly(coefficients, polynomial.gen).real_roots()}
    return [root for root in found if math.isfinite(root)]
