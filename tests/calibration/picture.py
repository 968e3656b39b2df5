"""Plot stated errors over true errors on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .points import RUNGS, Point


def draw(points: Sequence[Point], file: Path) -> None:
    """One panel per rung; points below the line are errors that were stated too small."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(RUNGS), figsize=(9.0, 3.2), sharey=True, layout="constrained")
    for ax, rung in zip(axes, RUNGS, strict=True):
        mine = [p for p in points if p.rung == rung]
        for piecewise, colour, marker in ((False, "#4477aa", "o"), (True, "#cc6677", "^")):
            shown = [p for p in mine if ("piecewise" in p.kind) == piecewise and np.isfinite(p.ratio)]
            label = "piecewise linear" if piecewise else "others"
            ax.loglog([p.true for p in shown], [p.stated for p in shown], marker, c=colour, ms=3, label=label)
        ends = np.array([1e-13, 1.0])
        ax.loglog(ends, ends, "k-", lw=0.8)
        ax.loglog(ends, 10 * ends, "k:", lw=0.8)
        ax.set(title=rung, xlabel="true error of the risk", xlim=ends, ylim=(1e-13, 10))
    axes[0].set_ylabel("stated error")
    axes[0].legend(loc="upper left", frameon=False)
    figure.savefig(file, dpi=80)
    plt.close(figure)
