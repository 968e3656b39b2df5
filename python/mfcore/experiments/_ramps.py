"""Averages of the truncated ReLUs of Mei, Montanari, Nguyen (2018) over a normal law, in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

TRUNCATED = (0.5, 1.5), (-2.5, 7.5)  # knots and values of σ: constant outside, linear between


def average(s: float, knots: Sequence[float], values: Sequence[float]) -> float:
    """Eσ(sG) of a piecewise linear σ: each change of slope δ at a knot c adds δ(sφ(c/s) − cΦ(−c/s))."""
    slopes = np.diff(values) / np.diff(knots)
    total = values[0]
    for knot, change in zip(knots, np.diff(slopes, prepend=0.0, append=0.0), strict=True):
        t = knot / s
        density = math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
        total += float(change) * (s * density - knot * float(special.ndtr(-t)))
    return float(total)


def single(r: float, delta: float, knots: Sequence[float], values: Sequence[float]) -> float:
    """R of all |w| = r at d = ∞ on isotropic classes: ½ Σ_± (±1 − Eσ((1 ± Δ)rG))²."""
    return sum(0.5 * (y - average((1 + y * delta) * r, knots, values)) ** 2 for y in (1, -1))
