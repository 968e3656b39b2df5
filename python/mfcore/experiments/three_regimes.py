"""Who moves, who learns: f = m^(−p) Σ of m neurons, with p = 1, 3/4 and 1/2.

Chizat, Oyallon and Bach (2019) bound the relative scale of a network f = α(m) Σ σ*(x; θ_i) at its start by
C₁/√m + C₂/(m α(m)): it stays of order one for α(m) = 1/m, the mean field, and falls for every larger α(m).
In the convention of this library the scale is m α(m): 1, m^(1/4) and √m. All settings are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import conventions
from .._base.check import FloatArray
from ..lazy._linearized import Linearized
from ..plots._axes import COLORS, GREY, TEXT
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample, spread
from ._scales import CLOCK, SAMPLES, TARGET, Beside, D, beside, problem, slope_rows, table
from ._source import exact
from ._work import Work
from .lazy_transition import WORSE

POWERS = {"m^(−1)": 1.0, "m^(−3/4)": 0.75, "m^(−1/2)": 0.5}
LABELS = ("$m^{-1}$", "$m^{-3/4}$", "$m^{-1/2}$")


@dataclass(frozen=True)
class Size:
    """Sizes of the runs; the quick run has smaller ones."""

    neurons: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    draws: int = 16


FULL = Size()
QUICK = Size(neurons=(32, 128, 512), draws=6)


def run(work: Work, size: Size) -> Report:
    """Run three scales at every width, each beside its linearisation."""
    widths = np.array(size.neurons, dtype=float)
    found = {name: _regime(work, size, name) for name in POWERS}
    work.arrays |= {"neurons": widths}
    limit = _limit(work)
    return Report(
        name="three-regimes",
        title="Who moves, who learns: three factors of a sum of neurons",
        caption=(
            f"f = α(m)Σσ* of m tanh neurons in pairs, a and w trained, on {SAMPLES} samples of {TARGET}, d "
            f"= {D}, until (mα(m))²t = {CLOCK:g}. Left: how far a neuron moves. Middle: by how much the "
            "tangent kernel changes. Right: risk on fresh inputs, and that of infinitely many linearised "
            f"neurons (line). Means of {size.draws} draws of neurons, bars: 95 %; dotted: the powers "
            "m^(p−1) and m^(2(p−1)) of the theory, through the last point."
        ),
        figure=_figure(widths, found, limit),
        rows=list(_rows(widths, found, limit)),
        runs=work.runs,
        arrays=work.arrays,
        notes=[
            "Neurons in pairs predict 0 at the start, so that κ = C₂/(m α(m)) alone is left of the bound; "
            "first-order changes of the kernel cancel in pairs, so that it changes by the square of the "
            "displacement.",
        ],
    )


def _regime(work: Work, size: Size, name: str) -> dict[str, FloatArray]:
    work.tell(f"α(m) = {name}: {len(size.neurons) * size.draws} pairs of runs …")
    draws = range(work.seed, work.seed + size.draws)
    found: list[list[Beside]] = []
    for m in size.neurons:
        scale = conventions.cob19(1.0, neurons=m, factor=m ** -POWERS[name]).scale
        found.append([beside(work, scale, m, draw) for draw in draws])
    made = table(found)
    work.arrays |= {f"{name}/{key}": values for key, values in made.items()}
    return made


def _limit(work: Work) -> float:
    """The risk on the test inputs of infinitely many linearised neurons."""
    model, test = problem(work.seed, 1.0, 2, work.seed, True)
    run = work.solve("infinite", model, Linearized(math.inf), horizon=CLOCK, save_at=2, test=test)
    return float(run.observed["test_risk"][-1])


def _rows(widths: FloatArray, found: dict[str, dict[str, FloatArray]], limit: float) -> list[Row]:
    rows: list[Row] = []
    for name, power in POWERS.items():
        known = {
            "displacement": ("displacement", power - 1),
            "kernel": ("the kernel's change", 2 * (power - 1)),
            "kappa": ("κ", power - 1),
        }
        where = f"α(m) = {name}"
        rows += slope_rows(widths, found[name], known, where, "m")
    lazy, mean_field = found["m^(−1/2)"], found["m^(−1)"]
    rows.append(
        sample(
            f"test risk at m = {widths[-1]:g}, α(m) = m^(−1/2)",
            lazy["test"][-1],
            limit,
            0.0,
            exact("infinitely many linearised neurons, as m → ∞"),
        )
    )
    better = float(np.mean(mean_field["test"][-1] < lazy["test"][-1]))
    name = f"share of draws in which 1/m generalises better than m^(−1/2), m = {widths[-1]:g}"
    rows.append(Row(name, better, 1.0, 0.0, WORSE))
    return rows


def _figure(widths: FloatArray, found: dict[str, dict[str, FloatArray]], limit: float) -> Any:
    figure = blank((10.0, 3.6))
    panels = [quiet(ax) for ax in figure.subplots(1, 3)]
    shown = (
        ("displacement", r"$\Vert\theta-\theta_0\Vert$: who moves", 1),
        ("kernel", r"$\Vert K-K_0\Vert/\Vert K_0\Vert$: whose kernel moves", 2),
        ("test", "risk on fresh inputs: who learns", 0),
    )
    for ax, (name, title, order) in zip(panels, shown, strict=True):
        for (regime, power), label, color, marker in zip(POWERS.items(), LABELS, COLORS, "os^", strict=False):
            middle, half, _ = spread(found[regime][name])
            ax.errorbar(
                widths, middle, half, color=color, marker=marker, markersize=4, fillstyle="none", label=label
            )
            if order and power < 1:
                line = middle[-1] * (widths / widths[-1]) ** (order * (power - 1))
                ax.plot(widths, line, ":", color=color, linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel="neurons $m$")
        ax.set_xticks(widths, [f"{m:g}" for m in widths])
        ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        ax.set_title(title, fontsize=TEXT)
    panels[2].axhline(limit, color=GREY, linewidth=1)
    place: dict[str, Any] = {"ha": "right", "va": "bottom", "color": GREY, "fontsize": TEXT - 1}
    panels[2].text(widths[-1], 1.05 * limit, "linearised, $m=\\infty$", **place)
    panels[0].legend(frameon=False, fontsize=TEXT - 1, title="$\\alpha(m)$", title_fontsize=TEXT - 1)
    return figure
