"""Maximise the concave dual D (eqs. (9.1), (9.2)) on given points by Newton's method: the stationary law
there.

In the coordinates of `span`, with ρ_h ∝ v e^{−βΨ_λ}, Ψ = F·(h − t):
D(h) = (|√p y|² + τ² − |h|²)/2 − β⁻¹ log Z(h),  ∇D = ∫F dρ_h − h,  −∇²D = I + β Cov F:
eqs. (9.1) to (9.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from .._base.check import FloatArray
from .._base.limits import next_round
from ..reductions._model import ReducedModel
from ._span import Span, span

MOST_STEPS = 200
NEGLIGIBLE = 1e-22  # masses below this fraction of the largest do not enter second derivatives


@dataclass(frozen=True, eq=False)
class Support:
    """The points where mass may be, with their log volumes, decay and features."""

    points: FloatArray  # (n, k)
    log_volume: FloatArray  # (n,): log of v at each point or over each cell, up to `constant`
    decay: FloatArray  # λ|z|²/2 at each point
    features: Span
    beta: float
    constant: float  # log of the constant factor of v

    def potential(self, h: FloatArray) -> FloatArray:
        """Ψ_λ at the points."""
        return np.asarray(self.features.values @ (h - self.features.target) + self.decay)

    def law(self, h: FloatArray) -> tuple[FloatArray, float]:
        """The masses of ρ_h and log Z(h), eq. (9.1)."""
        exponent = self.log_volume - self.beta * self.potential(h)
        top = exponent.max()
        mass = np.exp(exponent - top)
        total = mass.sum()
        return mass / total, float(top + np.log(total))

    def dual(self, h: FloatArray, log_z: float) -> float:
        """D(h), eq. (9.1)."""
        t = self.features.target
        square = t @ t + self.features.unreached - h @ h
        return float(0.5 * square - (log_z + self.constant) / self.beta)


def support(reduced: ReducedModel, points: FloatArray, log_volume: FloatArray) -> Support:
    """Collect points, their volumes and features for `newton`."""
    kept = points[:, np.asarray(reduced.decays, dtype=bool)]
    decay = 0.5 * reduced.ridge * np.square(kept).sum(axis=1)
    return Support(
        points, log_volume, decay, span(reduced, points), 1 / reduced.temperature, reduced.log_volume
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """The maximiser found: masses of ρ_h, the dual point h, the moments ∫F dρ_h and D(h)."""

    mass: FloatArray
    h: FloatArray
    mean: FloatArray
    dual: float
    steps: int

    @property
    def gap(self) -> float:
        """F(ρ_h) − D(h) = |∫F dρ_h − h|²/2 (eq. (9.3))."""
        return 0.5 * float(np.square(self.mean - self.h).sum())


def newton(where: Support, h: FloatArray | None, tolerance: float) -> Solution:
    """Maximise D until the gap is at most `tolerance`, or rounding or the number of steps ends the search."""
    h = np.zeros(len(where.features.target)) if h is None else h
    mass, log_z = where.law(h)
    value, steps, stalled, smallest = where.dual(h, log_z), 0, 0, np.inf
    while True:
        next_round("the law")
        mean = mass @ where.features.values
        slope = mean - h
        gap = 0.5 * float(slope @ slope)
        stalled = 0 if gap < 0.5 * smallest else stalled + 1
        smallest = min(gap, smallest)
        at_rounding = gap < 1e-15 * (1 + abs(value)) and stalled > 2
        if gap <= tolerance or at_rounding or steps == MOST_STEPS:
            break
        step = _newton_step(where, mass, mean, slope)
        rounding = 1e-15 * (1 + abs(value) + abs(log_z) / where.beta)
        size = 1.0
        for _ in range(60):
            trial = h + size * step
            mass, log_z = where.law(trial)
            new = where.dual(trial, log_z)
            if new >= value + 1e-4 * size * (slope @ step) - rounding:
                break
            size /= 2
        h, value, steps = trial, new, steps + 1
    return Solution(mass, h, mean, value, steps)


def _newton_step(where: Support, mass: FloatArray, mean: FloatArray, slope: FloatArray) -> FloatArray:
    heavy = mass > NEGLIGIBLE * mass.max()
    deviation = (where.features.values[heavy] - mean) * np.sqrt(where.beta * mass[heavy])[:, None]
    curvature = deviation.T @ deviation
    curvature[np.diag_indices_from(curvature)] += 1
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(curvature), slope))
    except scipy.linalg.LinAlgError:  # entries beyond 1e16, next to which the identity is lost
        values, vectors = scipy.linalg.eigh(curvature)
        return np.asarray(vectors @ (vectors.T @ slope / np.maximum(values, 1.0)))
