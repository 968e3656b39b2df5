"""One row of the table of an experiment: a number of ours beside what it should be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.check import FloatArray
from ..plots._runs import center, mean
from ..runs._trajectory import Trajectory
from ._source import Because, Source

HEAD = [
    "quantity",
    "ours ± 95 %",
    "published ± reading error",
    "exact",
    "computed again ± error",
    "difference in s.e.",
    "in %",
    "verdict",
    "source",
]
KINDS = ("published", "exact", "computed")  # in the order of the columns
# Student's t of six networks: a difference of more standard errors is none that an interval may hide.
HIDDEN = 2.571
FEWEST = 6  # networks whose spread tells the error of their mean: t of fewer changes too much with each


@dataclass(frozen=True)
class Row:
    """One measured number beside the number it should be.

    The two are within reach of each other if they differ by no more than the error of reading the published
    number and our interval of 95 % together; there is no other tolerance. Those within reach agree, unless

    - settings of ours were fitted to that very curve: *fitted*;
    - reading error or interval are as wide as the effect, or all that hides a difference of more standard
      errors than six networks leave room for: *not resolved*.

    Those out of reach differ, because of a reason that predicts the sign and size of the difference; with no
    such reason the difference is *unexplained*. Means over fewer than six networks are *not resolved* anyway.

    Args:
        quantity: What it is, in words.
        measured: Ours.
        expected: What it stands beside.
        reading: Error of `expected`: of reading it off a figure, half a unit of its last printed digit, the
            error that its method states, or rounding.
        source: Where `expected` comes from: `published`, `exact` or `computed`.
        interval: Half of the 95 % interval of `measured`; for numbers without chance their stated error.
        error: Standard error of `measured`, if it has chance.
        because: Why the two differ, with the differences that this predicts.
        effect: The size that the row has to resolve; default `expected`, and nothing where that is exactly 0.
        networks: How many networks `measured` is the mean of, if it is one.

    Examples:
        >>> from mfcore.experiments import Because, Row, computed, exact
        >>> Row("R(δ₀)", 7.2501, 7.25, 1e-3, exact("½·3.5² + ½·1.5²")).verdict
        'agrees'
        >>> why, paper = Because("N is 10", 0.05, 0.15), exact("N = ∞")
        >>> Row("risk", 0.6, 0.5, 0.01, paper, interval=0.02, error=0.01, because=why).verdict
        'differs, because N is 10 (predicted: +0.05 to +0.15)'
        >>> Row("risk", 0.4, 0.5, 0.01, paper, interval=0.02, error=0.01, because=why).verdict
        'differs, unexplained'
    """

    quantity: str
    measured: float
    expected: float
    reading: float
    source: Source
    interval: float = 0.0
    error: float | None = None
    because: Because | None = None
    effect: float | None = None
    networks: int | None = None

    @property
    def outcome(self) -> str:
        """The verdict without its reason: *agrees*, *fitted*, *not resolved*, *differs* or *unexplained*."""
        if self.networks is not None and self.networks < FEWEST:
            return "not resolved"
        off, reach = self.measured - self.expected, self.reading + self.interval
        if not abs(off) <= reach:
            return "differs" if self.because and self.because.explains(off) else "unexplained"
        if self.source.fitted:
            return "fitted"
        hidden = self.error is not None and abs(off) > HIDDEN * self.error
        return "not resolved" if hidden or reach >= self._effect else "agrees"

    @property
    def _effect(self) -> float:
        if self.effect is not None:
            return self.effect
        if self.expected == 0 and self.source.kind != "published":
            return math.inf
        return abs(self.expected)

    @property
    def agrees(self) -> bool:
        """Tell whether the outcome is *agrees*."""
        return self.outcome == "agrees"

    @property
    def verdict(self) -> str:
        """The outcome, of a difference with its reason."""
        if self.outcome == "unexplained":
            return "differs, unexplained"
        return f"differs, because {self.because}" if self.outcome == "differs" else self.outcome

    @property
    def ours(self) -> str:
        """The measured number with its interval, as text."""
        return _with(self.measured, self.interval)

    def cells(self) -> list[str]:
        """The entries of the row, as text."""
        off = self.measured - self.expected
        errors = f"{off / self.error:+.1f}" if self.error else "–"
        percent = _percent(100 * off / abs(self.expected)) if self.expected else "–"
        there = _with(self.expected, self.reading)
        theirs = [there if kind == self.source.kind else "–" for kind in KINDS]
        return [self.quantity, self.ours, *theirs, errors, percent, self.verdict, self.source.where]


def _percent(share: float) -> str:
    """A relative difference, to two digits; below 10⁻⁶ that is rounding."""
    if abs(share) < 1e-6:
        return "0"
    return f"{share:+.2g}" if abs(share) < 10 else f"{share:+.0f}"


def _with(value: float, half: float) -> str:
    """A number with its interval, to the digits that the interval leaves."""
    if half <= 1e-9 * abs(value) or not math.isfinite(half):  # rounding, or nothing to say
        return f"{value:.6g}"
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{value:.{digits}f} ± {half:.2g}" if digits < 8 else f"{value:.8g} ± {half:.2g}"


def averaged(
    quantity: str,
    run: Trajectory,
    series: str,
    at: int,
    expected: float,
    reading: float,
    source: Source,
    because: Because | None = None,
) -> Row:
    """A row for the risk (``"risk"``) or an observable of networks at a save point, averaged over them."""
    values = run.risk if series == "risk" else run.observed[series]
    assert values is not None
    stated = run.error if series == "risk" else None
    middle, half = center(run, values, stated)
    sampling = np.zeros_like(values) if stated is None else stated
    error = float(sampling[at]) if values.ndim == 1 else _standard_error(values[at], sampling[at])
    here = float(middle[at])
    networks = values.shape[1] if values.ndim == 2 else None
    interval = float(half[at])
    return Row(quantity, here, expected, reading, source, interval, error or None, because, networks=networks)


def sample(
    quantity: str,
    values: FloatArray,
    expected: float,
    reading: float,
    source: Source,
    because: Because | None = None,
) -> Row:
    """A row for the mean of independent values, one of each network."""
    values = np.atleast_1d(values)
    (middle,), (half,), (error,) = spread(values[None])
    return Row(
        quantity,
        float(middle),
        expected,
        reading,
        source,
        float(half),
        float(error) or None,
        because,
        networks=len(values),
    )


def spread(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means over the second axis, halves of their 95 % intervals, and standard errors."""
    middle, half = mean(values, np.zeros_like(values))
    return middle, half, np.array([_standard_error(row, np.zeros(len(row))) for row in values])


def _standard_error(values: FloatArray, sampling: FloatArray) -> float:
    """Return the standard error of a mean over networks, measured on samples that all of them share."""
    chance = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.hypot(chance, sampling.mean()))
