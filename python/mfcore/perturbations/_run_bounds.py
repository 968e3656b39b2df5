"""Theorems about runs, for `bounds`: propagation of chaos, and the lemmas of the tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..init import Points
from ..lazy._bounds import lazy_bounds
from ..model import Model
from ..neurons._methods import Particles
from ..runs._solve import solve
from ..runs._trajectory import Trajectory
from ._theorem import Theorem

_TIMES, _RUNS = 9, 20  # times at which runs are compared; most runs
_KERNEL = (
    ("tangent kernel, risk", "‖f_t − y‖² ≤ e^{−2νt}‖f_0 − y‖²", "risk"),
    ("tangent kernel, displacement", "‖θ_t − θ_0‖ ≤ √μ‖f_0 − y‖(1 − e^{−νt})/ν", "displacement"),
    ("tangent kernel, gradients", "‖Df_t − Df_0‖ ≤ sup‖D²f‖·‖θ_t − θ_0‖", "gradients"),
)


def chaos(
    model: Model,
    points: FloatArray,
    weights: FloatArray,
    known: dict[str, str],
    draws: list[FloatArray],
    horizon: float | None,
    expectation: Expectation | None,
    threads: int | None,
) -> Iterator[Theorem]:
    """sup_t |R_N − R| of N neurons drawn from the measure, and what bounds it up to constants: eq. (10.4)."""
    count, rows = len(draws[0]), points.shape[1]
    left, error, how = math.nan, 0.0, "no run: horizon=None"
    if horizon is not None and np.ptp(weights) > 1e-12 * weights.max():
        how = "no run: the atoms of the measure have different masses"
    elif horizon is not None:
        options: dict[str, Any] = {"horizon": horizon, "threads": threads}
        options["risk"] = True if expectation is None else expectation
        try:
            flows = [_flow(model, start, expectation, **options) for start in (points, *draws[:_RUNS])]
        except ValueError as refused:
            how = f"no run: {refused}"
        else:
            limit, *risks = (np.asarray(run.risk) for run in flows)
            gaps = [np.abs(risk - limit).max() for risk in risks]
            left = float(np.mean(gaps))
            error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
            how = f"the mean of {len(gaps)} flows of N = {count} drawn neurons, ± {error:.2g}"
    sizes = {
        "propagation of chaos": (math.sqrt(rows + 2 * math.log(count)) + 1) / math.sqrt(count),
        "propagation of chaos, dimension-free": (math.sqrt(math.log(count)) + 1) / math.sqrt(count),
    }
    for name, size in sizes.items():
        ratio = "" if math.isnan(left) else f"; here left/err = {left / size:.4g}"
        free = "err_N" if "free" in name else "err_{N,D}"
        told = f"not explicit{ratio}; theory.ladder measures rates"
        asked = {**known, free: f"{size:.4g} with z = 1, N = {count}", "constant": told, "measured": how}
        yield Theorem(name, f"sup_t|R_N − R| ≤ C e^{{CT}} {free}: eq. (10.4)", asked, left, math.nan, error)


def tangent(
    model: Model, drawn: FloatArray, horizon: float, expectation: Expectation | None, threads: int | None
) -> Iterator[Theorem]:
    """The three lemmas of `lazy_bounds` along the flow of a network, each at the time that comes nearest."""
    try:
        run = _flow(model, drawn, expectation, horizon=horizon, keep="all", risk=False, threads=threads)
        found = lazy_bounds(run, expectation=expectation, threads=threads)
    except ValueError as refused:
        for name, statement, _ in _KERNEL:
            yield Theorem(name, statement, {"not known": str(refused)}, math.nan, math.nan)
        return
    asked = {
        "kernel positive": f"ν = {found.smallest.min():.4g}, μ = {found.largest.max():.4g} at the times kept",
        "σ smooth": "yes",
        "flow": f"of N = {len(drawn)} neurons drawn from the measure, to t = {run.t[-1]:g}",
        "not seen": "eigenvalues between the times, D²f off the segments from θ_0",
    }
    for name, statement, what in _KERNEL:
        value, bound = getattr(found, what)[1:], getattr(found, f"{what}_bound")[1:]
        k = int(np.argmax(value / np.maximum(bound, 1e-300)))
        at = {**asked, "time": f"t = {found.t[k + 1]:g}, of those kept the one with the largest left/right"}
        yield Theorem(name, statement, at, float(value[k]), float(bound[k]), 1e-6 * float(bound[k]))


def _flow(
    model: Model, rows: FloatArray, expectation: Expectation | None, *, horizon: float, **options: Any
) -> Trajectory:
    """The flow of neurons that start at these rows. ValueError if it does not reach the horizon."""
    method = Particles(len(rows), expectation=expectation)
    run = solve(model.replace(init=Points(rows)), method, horizon=horizon, save_at=_TIMES, **options)
    if run.status == "interrupted":  # `solve` returns what there is, which is no flow to compare with
        raise KeyboardInterrupt
    if run.status != "completed":
        raise ValueError(f"horizon must be a time that flows reach, got {horizon:g}: {run.message}")
    return run
