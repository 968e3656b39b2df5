"""The picture of `mfcore bench --scaling`: times and memory against each size, with slopes to compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mfcore.plots import _axes

if TYPE_CHECKING:
    from .scaling import Growth


def draw(rows: list[Growth], file: Path) -> None:
    """Draw times left and memory right, sizes as multiples of the smallest, and save the picture."""
    left, right = _axes.panels(2, None, (9.0, 4.4))
    drawn = [row for row in rows if len(row.sizes) > 2]
    for number, row in enumerate(drawn):
        color = _axes.COLORS[number % len(_axes.COLORS)]
        style: dict[str, Any] = {
            "color": color,
            "linestyle": "-" if number < len(_axes.COLORS) else "--",
            "linewidth": 1.3,
            "marker": "o",
            "markersize": 3,
            "label": f"{row.name}: {row.variable}",
        }
        sizes = np.asarray(row.sizes) / row.sizes[0]
        left.plot(sizes, row.seconds, **style)
        if row.memory_stated:
            right.plot(sizes, np.asarray(row.bytes) / 1e6, **style)
    for ax, text in ((left, "seconds"), (right, "memory, MB")):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("size / smallest size")
        ax.set_ylabel(text)
    low = min(min(row.seconds) for row in drawn)
    for power in (1, 2):
        x = np.array([1.0, 1000.0])
        left.plot(x, low * x**power, color=_axes.GREY, linewidth=0.8, linestyle=":")
        left.annotate(f"size{'²' if power == 2 else ''}", (1000.0, low * 1000.0**power), color=_axes.GREY)
    handles, labels = left.get_legend_handles_labels()
    left.figure.legend(handles, labels, loc="outside right upper", fontsize=7, frameon=False)  # type: ignore[union-attr]
    left.savefig(file)
