"""The time that one neuron takes to find a direction grows with d as the information exponent tells.

Ben Arous, Gheissari, Jagannath (2021): online SGD of w on the unit sphere, y = h_s(⟨e, x⟩) and σ = h_s,
orthonormal Hermite polynomials of degree s, takes of the order of d^max(s − 1, 1) samples, up to logarithms,
from |⟨w, e⟩| of order d^(−1/2). Sizes and steps are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import integrate

from .. import activations, data, init
from .._base.check import FloatArray
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import COLORS, TEXT, marker
from ..runs._trajectory import Trajectory
from . import _layers
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample
from ._source import about, computed, exact
from ._work import Work

FOUND = 0.5  # of m = ⟨w, e⟩
SLOW = {1: 0.1, 2: 0.05, 3: 0.02, 4: 0.002}  # h = SLOW·d^(−max(s/2, 1))
LONGER = 2.0  # runs last so many times the time of the flow
_DRAWS = 400  # of the bootstrap


@dataclass(frozen=True)
class Size:
    """Sizes of the run: dimensions of each information exponent, and how many neurons are trained."""

    dims: tuple[tuple[int, ...], ...] = (
        (64, 128, 256, 512, 1024, 2048),
        (64, 128, 256, 512, 1024, 2048),
        (32, 64, 128, 256),
        (16, 32, 64),
    )
    replicas: int = 16
    points: int = 48
    layer_dims: tuple[int, ...] = (30, 60, 100, 200)  # of the layer-wise algorithm
    layer_neurons: int = 20
    draws: int = 3
    fitted: int = 400  # neurons, where the second layer is fitted
    online: int = 30_000_000  # samples of the online SGD of four stairs


FULL = Size()
QUICK = Size(
    dims=((32, 64, 128, 256), (32, 64, 128, 256), (16, 32, 64, 128), (8, 16, 32)),
    replicas=8,
    layer_dims=(20, 40),
    layer_neurons=8,
    draws=4,
    fitted=100,
    online=100_000,
)


def model(s: int, d: int) -> Model:
    """One neuron that starts at m = d^(−1/2), and a target of information exponent s."""
    monomial = [0.0] * s + [1.0]
    start = np.zeros((1, d))
    start[0, :2] = d**-0.5, math.sqrt(1 - 1 / d)
    return Model(
        data=data.MultiIndex(d, monomial, directions=1),
        network=Network(activations.hermite(monomial), sphere=True),
        init=init.Points(start),
    )


def step(s: int, d: int) -> float:
    """h: so small that noise does not carry m away before the drift acts."""
    return float(SLOW[s] * d ** -max(s / 2, 1.0))


def flow_time(s: int, start: float, end: float = FOUND) -> float:
    """The time from m = start to end of ṁ = s m^(s − 1)(1 − m²), as −V = m^s and U(w, w) = 1 on the sphere.

    For s = 1 it is artanh(end) − artanh(start).
    """
    return float(integrate.quad(lambda m: 1 / (s * m ** (s - 1) * (1 - m * m)), start, end)[0])


def run(work: Work, size: Size) -> Report:
    """Train single neurons at several d for each information exponent."""
    for s, dims in enumerate(size.dims, start=1):
        for d in dims:
            h, end = step(s, d), LONGER * flow_time(s, d**-0.5)
            chosen = work.solve(
                _name(s, d),
                model(s, d),
                SGD(1, h, replicas=size.replicas),
                steps=round(end / h),
                horizon=end,
                save_at=np.linspace(0, end, size.points + 1),
                risk=False,
                observe={"m": _overlap},
            )
            work.arrays[f"samples/{s}/{d}"] = escapes(chosen) / h
    _layers.run(work, size.layer_dims, size.draws, size.layer_neurons, size.fitted, size.online)
    return Report(
        name="leap",
        title="How long one neuron searches for a direction",
        caption=(
            "One neuron on the sphere, σ = h_s, learns y = h_s(⟨e, x⟩) by online SGD from m = ⟨w, e⟩ = "
            "d^(−1/2), with steps h of order d^(−max(s/2, 1)). Left: samples until m = ½, median of "
            f"{size.replicas} neurons, against d; lines: the flow ṁ = s m^(s−1)(1 − m²), its time over h; p "
            "is the slope of the points. Right: m of each neuron at the largest d over time in units of the "
            "flow's; black: the flow. Below: the layer-wise algorithm, in which small weights stay on a "
            "sphere and found ones are clipped at 1, on the hypercube with targets "
            f"{', '.join(_layers.NAMES.values())}: mean |w_j| of {size.layer_neurons} neurons; and online "
            "SGD of both layers on z₁ + z₁…z₅ + z₁…z₉ + z₁…z₁₄, "
            f"d = {_layers.D}, N = {_layers.NEURONS}, h = 0.4/d, {size.online:,} samples: the risk, held out."
        ),
        figure=_figure(work, size),
        rows=_rows(work, size),
        runs=work.runs,
        arrays=dict(work.arrays),
        inferred=(
            "starts, step sizes and dimensions: the publications state orders only",
            "shift ½ of the sigmoid, a ~ U[−1/N, 1/N] and |w| = 1 of the online SGD: not printed",
        ),
        notes=[
            "A random direction of d has an overlap m of order d^(−1/2) with the one sought. The gradient "
            "along it is s·m^(s−1): for s = 1 it does not depend on m, for larger s there is next to none, "
            "and the neuron searches on a plateau until m is of order one; then it is done in a moment. s, "
            "the lowest degree of the target's Hermite series, is its information exponent, or leap.",
            "Which clock counts? The flow takes a time of order 1, log d, √d and d for s = 1 to 4. But a "
            "step is a sample, and h must be smaller the longer the search, or noise carries m away: of size "
            "1/d, 1/d, d^(−3/2) and d^(−2). Samples are time over h: d, d log d, d² and d³, the published "
            "d^max(s − 1, 1). The d^s of lectures is an upper bound of that. At these d the slopes are not "
            "yet those powers, as the flow's own are not: d^(−1/2) is not far from ½. Neurons that have not "
            "arrived at the end of a run count as if they did then; less than half of them have not, so that "
            "medians do not depend on it.",
            "The lower row shows saddles one after the other. z₁ is found first: it needs no other. Then its "
            "weight makes the others grow, at once (leap 1), from a saddle that d^(−1/2) leaves in a time of "
            "log d (leap 2), or of √d (leap 3). On a sphere z₁ would take the whole norm; in the layer-wise "
            "algorithm small weights keep theirs. The published online SGD left its saddles after about d, "
            "d³, d³ and d⁴ samples, up to 10⁸ at d = 100. We run what a machine does in some minutes: z₁ is "
            "found, and R falls from 4 to 3. With the start that we chose it stays there for 3·10⁷ samples, "
            "30 times d³, as the weights of the other "
            "coordinates shrink; the published start is not known.",
        ],
    )


def _name(s: int, d: int) -> str:
    return f"s-{s}-d-{d}"


def _overlap(theta: FloatArray) -> float:
    """m, of either sign where σ is even."""
    return float(theta[0, 0])


def escapes(run: Trajectory) -> FloatArray:
    """The first time at which |m| is ½ for each neuron, interpolated; the end of the run if there is none."""
    sizes = np.abs(run.observed["m"])
    found = []
    for column in sizes.reshape(len(run.t), -1).T:
        above = np.flatnonzero(column >= FOUND)
        if not len(above):
            found.append(run.t[-1])
            continue
        k = above[0]
        share = (FOUND - column[k - 1]) / (column[k] - column[k - 1])
        found.append(run.t[k - 1] + share * (run.t[k] - run.t[k - 1]))
    return np.array(found)


def _slope(dims: Sequence[int], samples: Sequence[float] | FloatArray) -> float:
    return float(np.polyfit(np.log(dims), np.log(samples), 1)[0])


def _exponent(dims: Sequence[int], samples: list[FloatArray], seed: int) -> tuple[float, float]:
    """The slope of median samples against d, and its standard error by a bootstrap over neurons."""
    rng = np.random.default_rng(seed)
    medians = [np.median(rng.choice(column, (_DRAWS, len(column))), axis=1) for column in samples]
    slopes = [_slope(dims, row) for row in np.array(medians).T]
    return _slope(dims, [float(np.median(column)) for column in samples]), float(np.std(slopes))


def _flows(s: int, dims: Sequence[int]) -> list[float]:
    """Samples of the flow, its time over h."""
    return [flow_time(s, d**-0.5) / step(s, d) for d in dims]


def _rows(work: Work, size: Size) -> list[Row]:
    rows = []
    d = size.dims[0][-1]
    there = math.atanh(FOUND) - math.atanh(d**-0.5)
    here = work.arrays[f"samples/1/{d}"] * step(1, d)
    pushed = integrate.quad(lambda m: 1 / ((1 - m) * (1 + m - SLOW[1] * m)), d**-0.5, FOUND)[0]
    why = about(
        f"steps of size h push m down by h(d − 1)(1 − m)m, with which the flow takes {pushed:.4f}",
        pushed - there,
    )
    rows.append(sample(f"s = 1, d = {d}: time until m = ½", here, there, 0.0, exact("artanh, as h → 0"), why))
    for s, dims in enumerate(size.dims, start=1):
        p, error = _exponent(dims, [work.arrays[f"samples/{s}/{d}"] for d in dims], work.seed)
        span = f"s = {s}: exponent p of samples ~ d^p, d = {dims[0]} to {dims[-1]}"
        own = _slope(dims, _flows(s, dims))
        rows.append(Row(span, p, own, 0.0, computed(flow_time, "the flow's at these d"), 1.96 * error, error))
        power = max(s - 1, 1)
        why = about(
            f"d^(−1/2) is not far from ½ at these d: the flow's own exponent is {own:.2f}", own - power, 0.5
        )
        source = exact(f"d^max(s−1, 1) as d → ∞: Ben Arous, Gheissari, Jagannath (2021); lectures: d^{s}")
        rows.append(Row(span, p, power, 0.0, source, 1.96 * error, error, why))
    return rows + _layers.rows(work, size.layer_dims, size.draws)


def _figure(work: Work, size: Size) -> Any:
    figure = blank((9.6, 7.0))
    both: Any = figure.subfigures(2, 1, height_ratios=(1.5, 1.0))
    above, below = both
    _layers.draw([quiet(ax) for ax in below.subplots(1, 4)], work, size.layer_dims)
    halves: Any = above.subfigures(1, 2, width_ratios=(1.1, 1.0))
    left = quiet(halves[0].subplots())
    panels = [quiet(ax) for ax in np.ravel(halves[1].subplots(2, 2, sharex=True, sharey=True))]
    for k, dims in enumerate(size.dims):
        s = k + 1
        values = [work.arrays[f"samples/{s}/{d}"] for d in dims]
        middle = np.array([np.median(column) for column in values])
        left.plot(dims, middle, color=COLORS[k], linestyle="none", **marker(k))
        left.plot(dims, _flows(s, dims), color=COLORS[k], linewidth=1.2, zorder=1)
        p, error = _exponent(dims, values, work.seed)
        left.annotate(
            f"s = {s}: p = {p:.2f} ± {1.96 * error:.2f}",
            (dims[-1], middle[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=TEXT,
            color=COLORS[k],
        )
        ax, d = panels[k], dims[-1]
        net, scale = work.runs[_name(s, d)], flow_time(s, d**-0.5)
        ax.plot(net.t / scale, np.abs(net.observed["m"]), color=COLORS[k], linewidth=0.7, alpha=0.8)
        m = np.linspace(d**-0.5, 0.995, 80)
        times = np.array([flow_time(s, d**-0.5, float(end)) for end in m]) / scale
        ax.plot(times[times < LONGER], m[times < LONGER], color="black", linewidth=1.6)
        ax.set_title(f"s = {s}, d = {d}", loc="left", fontsize=TEXT, color=COLORS[k])
    longest = max(dims[-1] for dims in size.dims)
    shortest = min(dims[0] for dims in size.dims)
    left.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel="samples until $m$ = ½")
    left.set_xlim(0.8 * shortest, longest * (longest / shortest) ** 0.65)
    for ax in panels[2:]:
        ax.set_xlabel("time / time of the flow")
    for ax in panels[::2]:
        ax.set(ylabel="$|m|$", ylim=(0, 1.05), xlim=(0, LONGER))
    return figure
