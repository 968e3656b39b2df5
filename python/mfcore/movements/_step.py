"""One minimising movement (eq. (8.4)): argmin of F + W²/2τ by Newton steps that only go down."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._base.check import FloatArray
from ._field import Energy, Evaluated

_MOST_STEPS = 1000
_MOST_HALVINGS = 60
_ENOUGH = 1e-9  # the minimisation ends when a Newton step is this fraction of the whole move
_ROUNDING = 4e-15  # rounding error of a value, relative to the sum of its absolute terms


class Movement(NamedTuple):
    """The result of one minimising movement."""

    place: Evaluated
    iterations: int  # Newton steps
    finished: bool  # whether the gradient vanishes to rounding or _ENOUGH; F has fallen in any case


def movement(energy: Energy, begin: Evaluated, tau: float) -> Movement:
    """The minimiser of F + W²/2τ near `begin`, with F + W²/2τ at most F(begin).

    Where ∂²Ψ_λ > −1/τ the problem is convex. Elsewhere curvatures are taken as positive, and the result is a
    stationary point below the start.
    """
    x = energy.guess(begin, tau)
    place = begin if x is begin.x else energy.at(x)
    values = [place.energy + energy.transport(x - begin.x) / (2 * tau)]
    last, curvature, finished = math.inf, None, False
    while not finished and len(values) <= _MOST_STEPS:
        slopes = energy.slopes(place)
        g = energy.gradient(place, slopes, place.x - begin.x, tau)
        fresh = curvature is None
        if curvature is None:
            curvature = energy.curvature(place, slopes)
        if not (np.isfinite(g).all() and np.isfinite(curvature).all()):
            break
        d = _direction(energy, place, slopes, curvature, g, tau)
        size = _norm(energy, _projected(energy, place.x, d))
        if not fresh and size > 0.1 * last:  # second derivatives of some steps ago are out of date
            curvature = energy.curvature(place, slopes)
            d = _direction(energy, place, slopes, curvature, g, tau)
            size = _norm(energy, _projected(energy, place.x, d))
        slack = _ROUNDING * place.size
        gain = -float((g * _projected(energy, place.x, d)).sum())
        finished = gain <= slack and size >= 0.5 * last  # what is left is rounding
        if finished or _stalled(values):
            break
        found = _search(energy, begin, place, values[-1], g, d, tau, slack)
        move = _norm(energy, place.x - begin.x)
        finished = size <= _ENOUGH * move + _ROUNDING * _norm(energy, place.x)
        if found is None:
            break
        place, last = found[0], size
        values.append(found[1])
    if not values[-1] <= begin.energy + _ROUNDING * begin.size:
        return Movement(begin, len(values) - 1, False)
    return Movement(place, len(values) - 1, finished)


def _stalled(values: list[float]) -> bool:
    """Tell whether the last twenty steps gained next to nothing, as at a kink of the features."""
    return len(values) > 20 and values[-21] - values[-1] <= 1e-6 * (values[0] - values[-1])


def _direction(
    energy: Energy, place: Evaluated, slopes: FloatArray, curvature: FloatArray, g: FloatArray, tau: float
) -> FloatArray:
    """Newton's step; entries that steepest descent would press against the wall x = 0 follow that instead."""
    downhill = energy.diagonal(g, tau)
    fixed = energy.bounded & (place.x + downhill <= 0) & (g >= 0)
    d = energy.newton(place, slopes, curvature, g, fixed, tau)
    return np.where(fixed, downhill, d)


def _projected(energy: Energy, x: FloatArray, d: FloatArray) -> FloatArray:
    return np.where(energy.bounded, np.maximum(d, -x), d)


def _norm(energy: Energy, d: FloatArray) -> float:
    return math.sqrt(energy.transport(d))


def _search(
    energy: Energy,
    begin: Evaluated,
    place: Evaluated,
    total: float,
    g: FloatArray,
    d: FloatArray,
    tau: float,
    slack: float,
) -> tuple[Evaluated, float] | None:
    """The first of the steps d, d/2, d/4, … that lowers F + W²/2τ by enough (Armijo's rule)."""
    part = energy.longest(place.x, d)
    for _ in range(_MOST_HALVINGS):
        x = place.x + _projected(energy, place.x, part * d)
        there = energy.at(x)
        value = there.energy + energy.transport(x - begin.x) / (2 * tau)
        if value <= total + 1e-4 * float((g * (x - place.x)).sum()) + slack:
            return there, value
        part *= 0.5
    return None
