"""The picture of `mfcore bench --scaling`: how time and memory grow, a panel for each sweep."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mfcore.plots import _axes

from .harness import shown
from .scaling import Growth, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4


def draw(rows: list[Growth], file: Path) -> None:
    """Draw time and memory as shares of the most, beside the stated powers through the last size."""
    from matplotlib.figure import Figure

    drawn = [row for row in rows if len(row.sizes) > 2]
    lines = math.ceil(len(drawn) / COLUMNS)
    figure = Figure(figsize=(2.6 * COLUMNS, 2.3 * lines + 0.4), dpi=150, layout="constrained")
    grid = figure.subplots(lines, COLUMNS, squeeze=False, sharey=True)
    for ax in grid.flat[len(drawn) :]:
        ax.set_visible(False)
    for ax, row in zip(_axes.panels(len(drawn), list(grid.flat[: len(drawn)])), drawn, strict=True):
        _panel(ax, row)
    for ax in grid[:, 0]:
        ax.set_ylabel("share of the most")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=_axes.TEXT)
    figure.savefig(file)


def _panel(ax: Axes, row: Growth) -> None:
    """One sweep: its points, the stated powers through the last of them, and the fitted powers in words."""
    series = [("time", row.seconds, row.stated, row.power, row.power_error, shown(max(row.seconds)))]
    if row.memory_stated:
        most = f"{max(row.bytes) / 1e6:.3g} MB"
        series.append(("memory", row.bytes, row.memory_stated, row.memory_power, row.memory_error, most))
    sizes, words = np.asarray(row.sizes, float), []
    for number, (name, values, stated, power, error, most) in enumerate(series):
        points = np.asarray(values) / max(values)
        style: dict[str, Any] = {"color": _axes.color(number), **_axes.marker(number)}
        guide = (sizes / sizes[-1]) ** float(stated)
        label = "stated powers" if number == 0 else None
        ax.plot(sizes, guide, color=_axes.GREY, linewidth=0.8, linestyle=":", label=label)
        ax.plot(sizes, points, linewidth=1.2, label=name, **style)
        fit = "" if math.isnan(power) else f", power {in_words(power, error)}"
        words.append((f"{name} {most}{fit}", style["color"]))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(3e-7, 10.0)
    ax.set_xlabel(row.variable)
    _axes.title(ax, row.name)
    for line, (text, color) in enumerate(words):
        ax.text(
            0.98,
            0.14 - 0.1 * line,
            text,
            color=color,
            transform=ax.transAxes,
            ha="right",
            fontsize=_axes.TEXT - 1.5,
        )
