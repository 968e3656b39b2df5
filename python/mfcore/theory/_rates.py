"""Slopes of gaps on log-log axes, with intervals from the spread over replicas (eq. (10.5))."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from .._base.check import FloatArray, shown

if TYPE_CHECKING:
    from ._budget import Ladder

CONFIDENCE = 0.95
_BENT = 0.02  # relative error of a power law: bounds the weight of a point in the regression of eq. (10.5)

# The slopes that theory predicts, by quantity, gap and variable. R_N − R is N^(−1/2) times 2 sd(Ψ), plus
# (∫U(θ, θ)dρ − ∫∫U)/N; where Ψ is nearly constant on ρ, as at a minimiser, only the second is seen: eqs.
# (10.1), (10.2).
_WIDTH, _NOISE = "-1/2; -1 where Ψ is constant", "1/2; 1 where the bias rules"
THEORY = {
    ("risk", "PDE-ND", "N"): _WIDTH,
    ("risk", "ND-PD", "N"): _WIDTH,
    ("risk", "PD-GD", "h"): "1",
    ("risk", "GD-SGD", "h"): _NOISE,
    ("distance", "ND-PD", "N"): "-1/2, up to log N",
    ("distance", "PD-GD", "h"): "1",
    ("distance", "GD-SGD", "h"): "1/2",
    ("risk", "PDE-ND", "D"): "0",
    ("risk", "ND-PD", "D"): "0",
    ("risk", "GD-SGD", "D"): "at most 1/2",
    ("distance", "GD-SGD", "D"): "1/2",
}


@dataclass(frozen=True)
class Rate:
    """How fast a gap closes, measured: its largest value over time is proportional to variable^slope.

    Attributes:
        gap: Such as ``"ND-PD"``.
        variable: ``"N"``, ``"h"`` or ``"D"``.
        slope: Of the weighted regression.
        low: Lower end of the 95 % interval; NaN if there is but one replica.
        high: Upper end.
        theory: What theory says, of risks; empty where it says nothing.

    Examples:
        >>> from mfcore import theory
        >>> rate = theory.Rate("ND-PD", "N", -0.49, -0.55, -0.43, "-1/2")
        >>> -0.5 in rate
        True
    """

    gap: str
    variable: str
    slope: float
    low: float
    high: float
    theory: str = ""

    def __contains__(self, slope: float) -> bool:
        return self.low <= slope <= self.high


@dataclass(frozen=True)
class Rates:
    """Slopes by gap and variable: ``rates["ND-PD", "N"]``; iterating goes over all of them.

    Examples:
        >>> from mfcore import theory
        >>> rates = theory.Rates("risk", (theory.Rate("ND-PD", "N", -0.49, -0.55, -0.43, "-1/2"),))
        >>> rates["ND-PD", "N"].slope
        -0.49
        >>> print(rates.table())
        | gap (risk) | in | slope | 95 % interval | theory |
        |---|---|---:|---:|---|
        | ND-PD | N | -0.490 | -0.550 … -0.430 | -1/2 |
    """

    quantity: str
    rates: tuple[Rate, ...]

    def __iter__(self) -> Iterator[Rate]:
        return iter(self.rates)

    def __len__(self) -> int:
        return len(self.rates)

    def __getitem__(self, key: tuple[str, str]) -> Rate:
        for rate in self.rates:
            if (rate.gap, rate.variable) == key:
                return rate
        known = ", ".join(repr((rate.gap, rate.variable)) for rate in self.rates)
        raise KeyError(f"{key!r} is none of {known or 'the rates: a slope needs two values of its variable'}")

    def table(self) -> str:
        """All slopes as a Markdown table."""
        lines = [
            f"| gap ({self.quantity}) | in | slope | 95 % interval | theory |",
            "|---|---|---:|---:|---|",
        ]
        for r in self.rates:
            interval = f"{r.low:.3f} … {r.high:.3f}" if math.isfinite(r.low) else "one replica"
            lines.append(f"| {r.gap} | {r.variable} | {r.slope:.3f} | {interval} | {r.theory} |")
        return "\n".join(lines)

    __str__ = table


def rates_of(ladder: Ladder, quantity: str, gaps: Sequence[str]) -> Rates:
    """Slopes of all gaps in N, with a constant for each step, and in h, with a constant for each width."""
    variables = {"N": np.array(ladder.neurons, dtype=float), "h": np.array(ladder.step)}
    found = []
    for gap in gaps:
        # Replicas are the rows: a gap that does not depend on h is the same in all columns.
        samples = np.moveaxis(ladder.suprema(gap, quantity), 2, 0)
        for axis, (variable, values) in enumerate(variables.items()):
            if len(values) < 2 or not (np.isfinite(samples).all() and (samples.mean(axis=0) > 0).all()):
                continue
            if gap in ("PDE-ND", "ND-PD") and variable == "h" and ladder.meta["model"].temperature == 0:
                continue  # they know no step
            if (gap, variable) == ("PD-GD", "h") and min(values) < (1 - 1e-9) * ladder.meta.get("gd_step", 0):
                continue  # interpolated: its slope is 1 by construction
            points = samples if axis == 0 else samples.swapaxes(1, 2)
            slope, half = jackknife(points, lambda part, x=values: _pooled(x, part))  # type: ignore[misc]
            says = THEORY.get((quantity, gap, variable), "")
            found.append(Rate(gap, variable, slope, slope - half, slope + half, says))
    return Rates(quantity, tuple(found))


def rates_in_dimension(ladders: Sequence[Ladder], quantity: str = "risk") -> Rates:
    """Slopes of the gaps in the length D of a neuron's row, from ladders that differ in nothing else.

    All must have the same neurons, steps and replicas. The slope in D is common to all widths and steps.

    Args:
        ladders: Of models with different D.
        quantity: What `Ladder.gap` knows: ``"risk"``, ``"norm"``, ``"distance"``, ``"w1"``.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> def budget(d: int) -> theory.Ladder:
        ...     network, init = mf.Network(mf.activations.relu), mf.init.Radial(1.0)
        ...     model = mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), network, init)
        ...     return theory.ladder(model, [40], [0.02], horizon=0.2, replicas=3, save_at=3, rng=0)
        >>> [rate.gap for rate in theory.rates_in_dimension([budget(30), budget(60)])]
        ['PDE-ND', 'ND-PD', 'PD-GD', 'GD-SGD', 'total']
    """
    if not isinstance(ladders, Sequence) or not all(hasattr(ladder, "gap") for ladder in ladders):
        raise TypeError(f"ladders must be a list of what mf.theory.ladder returns, got {shown(ladders)}")
    if len(ladders) < 2:
        raise ValueError(f"ladders must be at least 2, got {len(ladders)}")
    rows = np.array([float(ladder.meta["model"].row) for ladder in ladders])
    first = ladders[0]
    for ladder in ladders:
        same = (ladder.neurons, ladder.step, ladder.replicas) == (first.neurons, first.step, first.replicas)
        if not same:
            raise ValueError(f"ladders must have the same neurons, step and replicas, got {ladder!r}")
    if len(set(rows)) < 2:
        raise ValueError(f"ladders must have different D, got {rows}")
    found = []
    for gap in first.names(quantity):
        samples = np.stack([np.moveaxis(one.suprema(gap, quantity), 2, 0) for one in ladders], axis=1)
        flat = samples.reshape(*samples.shape[:2], -1)
        slope, half = jackknife(flat, lambda part: _pooled(rows, part))
        says = THEORY.get((quantity, gap, "D"), "")
        found.append(Rate(gap, "D", slope, slope - half, slope + half, says))
    return Rates(quantity, tuple(found))


def interval(samples: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the replicas, the last axis, and half of its 95 % interval (Student's t)."""
    n = samples.shape[-1]
    mean = samples.mean(axis=-1)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    factor = special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2) / math.sqrt(n)
    return mean, np.asarray(factor * samples.std(axis=-1, ddof=1))


def jackknife(samples: FloatArray, estimate: Callable[[FloatArray], float]) -> tuple[float, float]:
    """The estimate from all replicas, the first axis, and half of its 95 % interval.

    Leaving out one replica at a time keeps whatever gaps of one replica have in common: neurons of all steps.
    """
    n = len(samples)
    value = estimate(samples)
    if n < 2:
        return value, math.nan
    less = np.array([estimate(np.delete(samples, k, axis=0)) for k in range(n)])
    error = math.sqrt((n - 1) / n * np.square(less - less.mean()).sum())
    return value, float(special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * error)


def _pooled(x: FloatArray, samples: FloatArray) -> float:
    """The common slope in log x of the columns of log(mean over replicas), for samples (replica, x, column).

    Weighted by the inverse variances of the logarithms, each column with a constant of its own.
    """
    mean = samples.mean(axis=0)
    relative = np.zeros_like(mean)
    if len(samples) > 1:
        relative = samples.std(axis=0, ddof=1) / (mean * math.sqrt(len(samples)))
    weight = 1 / (relative**2 + _BENT**2)
    total = weight.sum(axis=0)
    u, v = np.log(x)[:, None], np.log(mean)
    du = u - (weight * u).sum(axis=0) / total
    dv = v - (weight * v).sum(axis=0) / total
    return float((weight * du * dv).sum() / (weight * du * du).sum())
