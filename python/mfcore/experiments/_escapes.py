"""When networks of `merged_staircase` leave the plateaus of targets with leaps, at several d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..runs._trajectory import Trajectory
from ._row import Row, sample
from ._source import Because, about, exact, published

Sets = Sequence[tuple[int, ...]]
FOUND = 0.5  # of the second coefficient
LEFT = 0.9  # of the risk of a plateau
# Figure 4: targets, and the risk at which the limit stays, as no coefficient but the first is learned.
STUCK: dict[str, tuple[Sets, float]] = {
    "leap-2": (((0,), (0, 1, 2), (0, 1, 2, 3)), 2.0),
    "leap-3": (((0,), (0, 1, 2, 3)), 1.0),
}
# The publication says that networks leave these plateaus after about so many samples, powers of d.
ESCAPES = {"leap-2": 2.0, "leap-3": 2.7}


def name_of(name: str, d: int) -> str:
    """Return the name of the run of networks on one of these targets in dimension d."""
    return f"sgd-{name}-{d}"


def times(run: Trajectory, level: float | None = None) -> FloatArray:
    """When the second coefficient of each network is ½, or its risk LEFT of a level; inf if never."""
    sizes, found = np.abs(run.observed["f"][..., 1]) / FOUND, []
    if level is not None:
        sizes = LEFT * level / np.asarray(run.risk)
    for column in sizes.reshape(len(run.t), -1).T:
        above = np.flatnonzero(column > 1)
        if not len(above):
            found.append(math.inf)
            continue
        k = above[0]
        share = (1 - column[k - 1]) / (column[k] - column[k - 1])
        found.append(run.t[k - 1] + share * (run.t[k] - run.t[k - 1]))
    return np.array(found)


def rows(runs: Any, dims: Sequence[int], batch: int, step: float) -> list[Row]:
    """Samples until networks leave, at the largest d beside the published power, and their exponent in d."""
    out = []
    words = published("Abbe, Boix-Adsera, Misiakiewicz (2022), figure 4, in words")
    log = math.log(dims[-1])
    why = Because(
        "of n = c·d^p the constant counts, and where a plateau ends is not defined: log c/log d, c of 1 "
        "to 10",
        0.0,
        math.log(10.0) / log,
    )
    for name, power in ESCAPES.items():
        d = dims[-1]
        counts = np.array([times(runs[name_of(name, e)]) for e in dims]) * batch / step
        if not np.isfinite(counts).all():
            continue
        what = f"{name}: log n/log d where networks have half of the second set, d = {d}"
        out.append(sample(what, np.log(counts[-1]) / log, power, 0.0, words, why))
        level = STUCK[name][1]
        what = f"{name}: log n/log d where R = {LEFT * level:g}, a tenth below the plateau, d = {d}"
        early = np.log(times(runs[name_of(name, d)], level) * batch / step) / log
        out.append(sample(what, early, power, 0.0, words, why))
        slopes = np.polyfit(np.log(dims), np.log(counts), 1)[0]
        what = f"{name}: exponent p of n ~ d^p, d = {dims[0]} to {d}, batches of {batch}"
        flow = 0.0 if name == "leap-2" else 0.5
        clock = about(
            "batch and step are the same at all d, so that n counts the time of the flow, which grows like "
            f"{'log d' if flow == 0 else '√d'}",
            flow - power,
            0.2,
        )
        out.append(sample(what, slopes, power, 0.0, words, clock))
        # log d itself has this slope over these d; what learning z₁ takes does not grow and lowers it.
        log_slope = math.log(log / math.log(dims[0])) / math.log(d / dims[0])
        rest = Because(
            f"½ log d has the slope {log_slope:.2f} at these d, and less beside a time to learn z₁",
            0.0,
            log_slope,
        )
        source = exact("0 as d → ∞: the flow takes ½ log d" if flow == 0 else "½: the flow takes √d as d → ∞")
        out.append(sample(what, slopes, flow, 0.0, source, rest if flow == 0 else None))
    return out
