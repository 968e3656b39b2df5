"""When networks of `merged_staircase` leave the plateaus of targets with leaps, at several d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..runs._trajectory import Trajectory
from ._row import Row, sample

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
    """Of the networks on one of these targets in dimension d."""
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
    for name, power in ESCAPES.items():
        d = dims[-1]
        counts = np.array([times(runs[name_of(name, e)]) for e in dims]) * batch / step
        if not np.isfinite(counts).all():
            continue
        what = f"{name}: log n/log d where networks have half of the second set, d = {d}"
        why = "the publication tells an order; where a plateau ends is not defined there"
        out.append(sample(what, np.log(counts[-1]) / math.log(d), power, 0.0, "figure 4, in words", why))
        level = STUCK[name][1]
        what = f"{name}: log n/log d where R = {LEFT * level:g}, a tenth below the plateau, d = {d}"
        early = np.log(times(runs[name_of(name, d)], level) * batch / step) / math.log(d)
        out.append(sample(what, early, power, 0.0, "figure 4, in words", why))
        slopes = np.polyfit(np.log(dims), np.log(counts), 1)[0]
        what = f"{name}: exponent p of n ~ d^p, d = {dims[0]} to {d}, batches of {batch}"
        why = (
            "batch and step are the same at all d, so that n counts the time of the flow; with h of order "
            "1/d, which the theorem asks for, p is larger by 1"
        )
        out.append(sample(what, slopes, power, 0.0, "figure 4, in words", why))
        flow, source = (0.0, "the flow: ½ log d") if name == "leap-2" else (0.5, "the flow: √d")
        why = "networks first learn z₁, which takes the same time at all d"
        if name == "leap-2":
            why = "logarithms count at these d"
        out.append(sample(what, slopes, flow, 0.0, f"{source} as d → ∞", why))
    return out
