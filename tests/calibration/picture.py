"""Plot stated errors over true errors on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mfcore import plots
from mfcore.plots._axes import GREY, TEXT, marker

from .points import RUNGS, Point

ENDS = np.array([1e-13, 1.0])


def draw(points: Sequence[Point], file: Path) -> None:
    """One panel per rung; points below the full line are errors that were stated too small."""
    panels = plots.new_axes(len(RUNGS), inches=(8.0, 3.0))
    for ax, rung in zip(panels, RUNGS, strict=True):
        mine = [p for p in points if p.rung == rung and np.isfinite(p.ratio)]
        ax.loglog(ENDS, ENDS, color=GREY, lw=0.8, label="stated = true")
        ax.loglog(ENDS, 10 * ENDS, color=GREY, lw=0.8, ls=":", label="ten times that")
        for k, label in enumerate(("others", "piecewise linear")):
            shown = [p for p in mine if ("piecewise" in p.kind) == bool(k)]
            style = marker(k) | {"color": plots.COLORS[k], "ls": "", "markersize": 4}
            ax.loglog([p.true for p in shown], [p.stated for p in shown], label=label, **style)
        ax.set(xlim=ENDS, ylim=(1e-13, 10), xlabel="true error of the risk")
        ax.set_title(f"mf.{rung}", loc="left", fontsize=TEXT, color=GREY)
        if ax is not panels[0]:
            ax.tick_params(labelleft=False)
    panels[0].set_ylabel("stated error")
    panels[-1].legend(loc="lower right", frameon=False, fontsize=TEXT - 1)
    panels[0].figure.savefig(file)
