"""One row of the table of an experiment: a number of ours beside a published or exactly known one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.check import FloatArray
from ..plots._runs import center, mean
from ..runs._trajectory import Trajectory

HEAD = [
    "quantity",
    "ours ± 95 %",
    "theirs ± reading error",
    "difference in s.e.",
    "in %",
    "verdict",
    "source",
]


@dataclass(frozen=True)
class Row:
    """One measured number beside the number it should be.

    The two agree if they differ by no more than the error of reading the published number and our interval
    of 95 % together. There is no other tolerance: a larger difference has a reason, which the row states.

    Args:
        quantity: What it is, in words.
        measured: Ours.
        expected: Theirs: published, or exactly known.
        reading: Error of `expected`: of reading it off a figure, or half a unit of its last printed digit;
            for identities, that of rounding.
        source: Where `expected` comes from.
        interval: Half of the 95 % interval of `measured`; for numbers without chance their stated error.
        error: Standard error of `measured`, if it has chance.
        because: Why the two differ, where they do.

    Examples:
        >>> from mfcore.experiments import Row
        >>> Row("R(δ₀)", 7.2501, 7.25, 1e-3, "exact").verdict
        'agrees'
        >>> Row("risk", 0.6, 0.5, 0.01, "figure 1", interval=0.02, error=0.01, because="N is 10").verdict
        'differs, because N is 10'
    """

    quantity: str
    measured: float
    expected: float
    reading: float
    source: str
    interval: float = 0.0
    error: float | None = None
    because: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the two differ by no more than reading error and interval."""
        return bool(abs(self.measured - self.expected) <= self.reading + self.interval)

    @property
    def verdict(self) -> str:
        """*agrees*, or *differs* with the reason."""
        if self.agrees:
            return "agrees"
        return f"differs, because {self.because}" if self.because else "differs, for reasons unknown"

    @property
    def ours(self) -> str:
        """The measured number with its interval, as text."""
        return _with(self.measured, self.interval)

    def cells(self) -> list[str]:
        """The entries of the row, as text."""
        off = self.measured - self.expected
        errors = f"{off / self.error:+.1f}" if self.error else "–"
        percent = _percent(100 * off / abs(self.expected)) if self.expected else "–"
        theirs = _with(self.expected, self.reading)
        return [self.quantity, self.ours, theirs, errors, percent, self.verdict, self.source]


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
    source: str,
    because: str = "",
) -> Row:
    """A row for the risk (``"risk"``) or an observable of networks at a save point, averaged over them."""
    values = run.risk if series == "risk" else run.observed[series]
    assert values is not None
    stated = run.error if series == "risk" else None
    middle, half = center(run, values, stated)
    sampling = np.zeros_like(values) if stated is None else stated
    error = float(sampling[at]) if values.ndim == 1 else _standard_error(values[at], sampling[at])
    return Row(
        quantity, float(middle[at]), expected, reading, source, float(half[at]), error or None, because
    )


def sample(
    quantity: str, values: FloatArray, expected: float, reading: float, source: str, because: str = ""
) -> Row:
    """A row for the mean of independent values, one of each network."""
    values = np.atleast_1d(values)
    middle, half = mean(values[None, :], np.zeros((1, len(values))))
    error = _standard_error(values, np.zeros(len(values)))
    return Row(quantity, float(middle[0]), expected, reading, source, float(half[0]), error or None, because)


def mean_and_error(values: FloatArray) -> tuple[float, float | None]:
    """The mean over networks and its standard error, None for a single network."""
    values = np.atleast_1d(values)
    return float(values.mean()), _standard_error(values, np.zeros(len(values))) or None


def _standard_error(values: FloatArray, sampling: FloatArray) -> float:
    """Of a mean over networks, measured on samples that all of them share."""
    chance = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.hypot(chance, sampling.mean()))
