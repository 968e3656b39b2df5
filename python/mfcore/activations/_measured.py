"""Measure a function by its values: whether slopes are right, and how far from the line it is analytic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .._base.check import FloatArray

Function = Callable[[FloatArray], FloatArray]

_STRIPS = 2.0 ** (0.5 * np.arange(4, -9, -1))  # of which the largest is taken that quadrature bears out
_SPREADS = (0.5, 1.0, 2.0, 4.0, 16.0)
_REACHES = (9.5, 15.0, 24.0, 38.0)  # of averages, in standard deviations, as in the core
_ROUNDING = 1e-13  # of an average, relative to that of |σ|


def check_derivative(
    function: Function, derivative: Function, names: tuple[str, str], kinks: Sequence[float]
) -> None:
    """Compare a derivative with differences of fourth order at 97 points of [−6, 6], away from kinks.

    Raises:
        ValueError: They differ by more than 1e-6 of the values, and ten times what two widths differ by.
    """
    z = np.linspace(-6.0, 6.0, 97) + 0.0137
    h = 1e-3 * np.maximum(1.0, np.abs(z))
    for kink in kinks:
        z, h = (x[np.abs(z - kink) > 3 * h] for x in (z, h))
    with np.errstate(all="ignore"):
        wide, narrow = _differences(function, z, h), _differences(function, z, h / 2)
        given = derivative(z)
        size = np.abs(narrow) + np.abs(function(z)) + np.abs(given)
        wrong = np.abs(given - narrow) > 1e-6 * size + 10 * np.abs(wide - narrow)
    if wrong.any():
        at = int(np.argmax(np.where(wrong, np.abs(given - narrow) / size, -1)))
        raise ValueError(
            f"{names[1]} must be the derivative of {names[0]}: at z = {z[at]:.6g} it is {given[at]:.6g}, "
            f"differences of {names[0]} give {narrow[at]:.6g}"
        )


def _differences(function: Function, z: FloatArray, h: FloatArray) -> FloatArray:
    near, far = (function(z + k * h) - function(z - k * h) for k in (1, 2))
    return (8 * near - far) / (12 * h)


def strip(functions: Sequence[Function], kinks: Sequence[float]) -> float:
    """A height a such that σ is analytic for |Im z| < a as far as averages show: 1/16 to 4, or else 0.

    Quadrature that trusts in it errs by 1e-13 of the average of |σ|, with spreads of 1/2 to 16 around nine
    points of [−8, 8]: eq. (3.19), with smaller spreads of functions that grow like eᶻ, and up to twice the
    spreads. With kinks, on panels between them: eq. (3.18).
    """
    error = _panel_error if len(kinks) else _trapezoid_error
    with np.errstate(all="ignore"):
        widest = np.inf if len(kinks) else min(map(_widest, functions))
        for a in _STRIPS:
            if a <= widest and all(error(f, float(a), kinks) <= _ROUNDING for f in functions):
                return float(a)
    return 0.0


def _terms(function: Function, m: float, spread: float, u: FloatArray) -> FloatArray:
    step = u[1] - u[0]
    return np.asarray(2 * step * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi) * function(m + spread * u))


def _reach(function: Function, m: float, spread: float) -> float | None:
    """How far out, in standard deviations, the mass of an average is; None if a function grows beyond all."""
    for reach in _REACHES:
        terms = np.abs(_terms(function, m, spread, np.linspace(-reach, reach, 401)))
        if np.isinf(terms).any():
            return None
        if not terms[[0, -1]].max() > _ROUNDING * terms.sum():
            return reach  # NaN too, which errors show
    return None


def _widest(function: Function) -> float:
    """Twice the spread up to which averages have their mass within reach: wider strips would not be seen."""
    spreads = [s for s in _SPREADS if all(_reach(function, m, s) is not None for m in (-7.9, 8.1))]
    return np.inf if len(spreads) == len(_SPREADS) else 2 * max(spreads, default=0.0)


def _trapezoid_error(function: Function, a: float, kinks: Sequence[float]) -> float:
    """Half of what two shifted trapezoid rules with the steps for a strip a differ by; NaN is infinite."""
    worst = 0.0
    for spread in _SPREADS:
        y = min(a / spread, np.sqrt(72.0))
        step = 2 * np.pi / min(36 / y + y / 2, max(2 * np.pi / 0.38, 36 * spread / a))
        gaps, sizes = [], []
        for m in np.linspace(-7.9, 8.1, 9):
            reach = _reach(function, float(m), spread)
            if reach is None:
                continue
            u = 0.5 * step * np.arange(-2 * int(reach / step), 2 * int(reach / step) + 2)
            terms = _terms(function, float(m), spread, u)
            gaps.append(abs(terms[::2].sum() - terms[1::2].sum()))
            sizes.append(np.abs(terms).sum())
        if not sizes:
            continue
        # Far out σ' may be the rounding of a difference.
        least = max(sizes[len(sizes) // 2], 0.01 * max(sizes))
        worst = max(worst, *(_relative(gap, max(size, least)) for gap, size in zip(gaps, sizes, strict=True)))
    return worst


def _panel_error(function: Function, a: float, kinks: Sequence[float]) -> float:
    """What Gauss rules on panels of the width for a strip a differ by from those on halves of the panels."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    ends = [min(kinks) - 16.0, *kinks, max(kinks) + 16.0]
    worst = 0.0
    for left, right in pairwise(ends):
        count = int(np.ceil((right - left) / (a / 0.65)))
        edges = np.linspace(left, right, count + 1)
        halves = np.linspace(left, right, 2 * count + 1)
        whole, fine = (
            0.5
            * np.diff(x)
            * (function(0.5 * (x[1:] + x[:-1])[:, None] + 0.5 * np.diff(x)[:, None] * nodes) @ weights)
            for x in (edges, halves)
        )
        worst = max(
            worst, _relative(np.abs(whole - fine.reshape(-1, 2).sum(axis=1)).max(), np.abs(fine).max())
        )
    return worst


def _relative(gap: float, size: float) -> float:
    """The gap over the size; infinite where either is not a number, 0 of 0."""
    if not np.isfinite([gap, size]).all():
        return np.inf
    return gap / size if size > 0 else 0.0
