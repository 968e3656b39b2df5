"""A number of neurons that does not grow with d, and samples of the order of d, suffice.

Mei, Misiakiewicz, Montanari (2019): classes that differ in s₀ = γd of d directions, truncated ReLU, one-pass
SGD with steps of order 1/d. The publication has no experiment; the settings are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from .. import activations, data, init
from .._base.check import FloatArray
from ..atoms._atoms import Atoms
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import COLORS, marker, plain_ticks
from ..plots._runs import center
from ..runs._trajectory import Trajectory
from ._panels import blank, key, quiet
from ._ramps import TRUNCATED, average
from ._report import Report
from ._row import Row, sample
from ._source import Because, about, computed, exact
from ._work import Work

DELTA, GAMMA, START = 0.8, 0.25, 0.8
LEVEL = 0.5  # of the risk, at which the numbers of samples of several d are compared


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has larger steps and fewer networks."""

    dims: tuple[int, ...] = (40, 80, 160, 320, 640)
    neurons: int = 50
    widths: tuple[int, ...] = (25, 50, 100, 200, 400)  # at `width_dim`
    width_dim: int = 320
    slow: float = 0.004  # steps are slow/d
    replicas: int = 16
    horizon: float = 4.0
    points: int = 20


FULL = Size()
QUICK = Size(widths=(25, 50, 100), slow=0.016, replicas=6, points=14)


def model(d: float) -> Model:
    """The classes at dimension d, of which ∞ is one, and neurons of |w| = 0.8."""
    where: dict[str, Any] = {"fraction": GAMMA} if math.isinf(d) else {"s0": round(GAMMA * d)}
    return Model(
        data=data.AnisotropicGaussians(d=d, delta=DELTA, **where),
        network=Network(activations.piecewise_linear(*TRUNCATED)),
        init=init.Radial(START),
    )


def run(work: Work, size: Size) -> Report:
    """Train networks of a fixed width at several d, and of several widths at one d, beside N = ∞."""
    times = np.append(0.0, np.geomspace(0.008, size.horizon, size.points))
    options: dict[str, Any] = {"horizon": size.horizon, "save_at": times}
    limit = work.solve("limit", model(math.inf), Atoms(4), **options)
    for d in size.dims:
        _networks(work, size, f"d-{d}", d, size.neurons, options)
    e = size.width_dim
    work.solve(f"limit-{e}", model(e), Atoms(36), **options)
    for count in size.widths:
        if (e, count) not in [(d, size.neurons) for d in size.dims]:
            _networks(work, size, f"N-{count}", e, count, options)
    return Report(
        name="sample-size",
        title="Neurons of a fixed number and samples of the order of d suffice",
        caption=(
            f"Two Gaussian classes that differ in d/4 of d directions (Δ = {DELTA:g}), truncated ReLU "
            f"(−2.5 up to 0.5, 7.5 from 1.5 on), one pass over n samples with h = {size.slow:g}/d; risk, "
            f"mean and 95 % interval of {size.replicas} networks. Left: N = {size.neurons} neurons at every "
            "d, against n/d; black: the limit, N and d infinite. Right: what the risk has more than at N = ∞ "
            f"and the same d = {e}, against N, at n = {_ratio(size, size.horizon)}d; line: slope −1."
        ),
        figure=_figure(work, size, limit),
        rows=_rows(work, size),
        runs=work.runs,
        notes=[
            "How many samples does a network need in d dimensions? Each sample is used for one step. Steps "
            "must be of order 1/d, as a sample x moves a neuron by h·x, whose length is h√d, and f at x "
            "itself by h·|x|² = hd. The flow needs a time T that does not depend on d. So T/h, a number of "
            "samples proportional to d, is enough: drawn against n/d, risks of all d are nearly one curve.",
            "And how many neurons? Neurons are samples of the limit law, and f_N is their mean: at each x it "
            "is off by an error of order N^(−1/2) whatever d is, and the risk by a constant over N. So N "
            "buys accuracy and does not pay for dimension: fifty neurons do no worse at d = 640 than at 40.",
        ],
    )


def _networks(work: Work, size: Size, name: str, d: int, count: int, options: dict[str, Any]) -> None:
    h = size.slow / d
    method = SGD(count, h, replicas=size.replicas)
    work.solve(name, model(d), method, steps=round(size.horizon / h), **options)


def _ratio(size: Size, t: float) -> str:
    return f"{t / size.slow:,.0f}"


def _of_width(runs: Any, size: Size, count: int) -> Trajectory:
    shared = count == size.neurons and size.width_dim in size.dims
    return runs[f"d-{size.width_dim}" if shared else f"N-{count}"]  # type: ignore[no-any-return]


def start_risk() -> float:
    """R(0) of the limit, where all neurons have the same radii: a closed form in normal laws."""
    return sum(0.5 * (sign - average(s, *TRUNCATED)) ** 2 for sign, s in _spreads())


def start_gap() -> float:
    """∫U(θ, θ)dρ − ∫∫U dρdρ at t = 0 and d = ∞: the mean variance of σ(⟨w, x⟩) given the class."""
    g = np.linspace(-9.0, 9.0, 100_001)
    mass = norm.pdf(g) / norm.pdf(g).sum()
    squares = (np.interp(s * g, *TRUNCATED) ** 2 @ mass for _, s in _spreads())
    return sum(
        0.5 * (float(q) - average(s, *TRUNCATED) ** 2) for q, (_, s) in zip(squares, _spreads(), strict=True)
    )


def _spreads() -> tuple[tuple[int, float], ...]:
    """Label and standard deviation of ⟨w, x⟩ of both classes at t = 0 and d = ∞."""
    return tuple((sign, START * math.sqrt(GAMMA * (1 + sign * DELTA) ** 2 + 1 - GAMMA)) for sign in (1, -1))


def samples_at(run: Trajectory, slow: float, level: float) -> FloatArray:
    """n/d at which the risk of each network falls below a level, interpolated in log n."""
    risk = np.asarray(run.risk).reshape(len(run.t), -1)
    found = []
    for column in risk.T:
        k = int(np.argmax(column < level))
        if k < 2:
            raise ValueError(f"level must be crossed after the first save point, got {level:g}")
        share = (column[k - 1] - level) / (column[k - 1] - column[k])
        found.append(run.t[k - 1] * (run.t[k] / run.t[k - 1]) ** share / slow)
    return np.array(found)


def excess(runs: Any, size: Size, count: int) -> FloatArray:
    """The risk at the end beyond that of N = ∞ at the same d, of each network."""
    there = runs[f"limit-{size.width_dim}"].risk[-1]
    return np.atleast_1d(np.asarray(_of_width(runs, size, count).risk)[-1] - there)


def _rows(work: Work, size: Size) -> list[Row]:
    runs, large = work.runs, size.dims[-1]
    rows = [
        Row(
            "R(0), N = d = ∞",
            float(np.asarray(runs["limit"].risk)[0]),
            start_risk(),
            1e-12,
            exact("½ Σ(±1 − Eσ)² by the normal cdf"),
        )
    ]
    first = runs[f"d-{large}"]
    what = f"R(0), N = {size.neurons}, d = {large}"
    there = start_risk() + start_gap() / size.neurons
    rows.append(sample(what, np.asarray(first.risk)[0], there, 0.0, exact("R + gap/N, as d → ∞")))
    last = runs["limit"]
    what, stated = f"R at t = {size.horizon:g}, N = d = ∞", float(np.asarray(last.error)[-1])
    end, before = float(np.asarray(last.risk)[-1]), float(np.asarray(last.risk)[-2])
    why = Because(f"t is finite: the risk, {before:.2g} at t = {last.t[-2]:.2g}, falls on", 0.0, before)
    rows.append(Row(what, end, 0.0, 0.0, exact("0 as t → ∞: Δ > Δ^h"), stated, None, why))
    crossed = {d: samples_at(runs[f"d-{d}"], size.slow, LEVEL) for d in size.dims}
    there = float(samples_at(last, size.slow, LEVEL)[0])
    what = f"n/d at R = {LEVEL:g}, N = {size.neurons}, d = {large}"
    more = float(np.asarray(first.risk)[-1].mean()) - end + start_gap() / size.neurons
    late = float(samples_at(last, size.slow, max(LEVEL - more, 1.1 * end))[0])
    why = Because(
        f"N and d are finite: with at most {more:.2g} more risk the limit would pass it by n/d = {late:.3g}",
        0.0,
        late - there,
    )
    rows.append(sample(what, crossed[large], there, 0.0, computed(Atoms, "N = d = ∞ here"), why))
    for low in (size.dims[0], size.dims[-2]):
        p, half = _exponent(np.array([low, large]), [d * crossed[d] for d in (low, large)], size.replicas)
        what = f"exponent of n ~ d^p at R = {LEVEL:g}, d = {low} to {large}"
        rows.append(
            Row(
                what,
                p,
                1.0,
                0.0,
                exact("1 as d → ∞: n = O(d)"),
                half,
                half / 1.96,
                _falls(crossed, low, large),
            )
        )
    p, half, _ = _excess_slope(runs, size, size.widths)
    few = size.widths[-max(2, len(size.widths) // 2 + 1) :]
    *_, rest = _excess_slope(runs, size, few)
    why = about(
        f"steps and training add terms of order 1/N²: over N ≥ {few[0]} it is off by {rest:+.2g}",
        2 * rest,
        0.8,
    )
    what = f"exponent of R_N − R_∞ in N, d = {size.width_dim}, n = {_ratio(size, size.horizon)}d"
    rows.append(Row(what, p, -1.0, 0.0, exact("−1 for independent neurons: gap/N"), half, half / 1.96, why))
    return rows


def _falls(crossed: dict[int, FloatArray], low: int, high: int) -> Because:
    """n/d falls to its limit like L(1 + c/d): what two dimensions between tell of the exponent."""
    dims = sorted(crossed)
    a, b = dims[-3:-1] if len(dims) > 2 else dims[-2:]
    u, v = (float(crossed[d].mean()) for d in (a, b))
    limit = max((b * v - a * u) / (b - a), 0.0)
    ratio = (limit + (u - limit) * a / high) / (limit + (u - limit) * a / low)
    size = math.log(ratio) / math.log(high / low)
    return about(
        f"|x| fluctuates less as d grows: n/d falls like L(1 + c/d), which fits d = {a} and {b}", size, 0.7
    )


def _excess_slope(runs: Any, size: Size, widths: tuple[int, ...]) -> tuple[float, float, float]:
    """The exponent of R_N − R_∞ in N, half of its interval, and how far it is from −1."""
    p, half = _exponent(np.array(widths), [excess(runs, size, n) for n in widths], size.replicas)
    return p, half, p + 1.0


def _exponent(x: FloatArray, samples: list[FloatArray], count: int) -> tuple[float, float]:
    """The slope of log means against log x, with half of its 95 % interval from independent samples."""
    logs = np.log(x) - np.log(x).mean()
    weights = logs / (logs**2).sum()
    y = np.array([math.log(values.mean()) for values in samples])
    errors = [values.std(ddof=1) / math.sqrt(count) / values.mean() for values in samples]
    return float(weights @ y), float(
        1.96 * math.sqrt(sum((w * e) ** 2 for w, e in zip(weights, errors, strict=True)))
    )


def _figure(work: Work, size: Size, limit: Trajectory) -> Any:
    from matplotlib.ticker import NullLocator

    figure = blank((8.6, 3.8))
    left, right = (quiet(ax) for ax in figure.subplots(1, 2))
    runs = work.runs
    shown: list[tuple[str, dict[str, Any]]] = []
    for k, d in enumerate(size.dims):
        net = runs[f"d-{d}"]
        style = {"color": COLORS[k], "linestyle": "none", **marker(k)}
        middle, half = center(net, net.risk, net.error)
        left.errorbar(net.t[1:] / size.slow, middle[1:], half[1:], elinewidth=0.8, **style)
        shown.append((f"d = {d}", style))
    assert limit.risk is not None
    line: dict[str, Any] = {"color": "black", "linewidth": 1.6}
    left.plot(limit.t[1:] / size.slow, limit.risk[1:], **line, zorder=1)
    key(left, [*shown, ("N = d = ∞", line)], loc="lower left")
    left.set(xscale="log", yscale="log", xlabel="samples over dimension, $n/d$", ylabel="risk $R$")
    found = np.array([excess(runs, size, n) for n in size.widths])
    middle = found.mean(axis=1)
    half = 1.96 * found.std(axis=1, ddof=1) / math.sqrt(found.shape[1])
    widths = np.array(size.widths)
    right.errorbar(widths, middle, half, color=COLORS[0], linestyle="none", elinewidth=0.8, **marker(0))
    right.plot(widths, middle[0] * widths[0] / widths, **line, zorder=1)
    right.set(xscale="log", yscale="log", xlabel="neurons $N$", ylabel="risk beyond that of $N$ = ∞")
    right.set_xticks(widths, [str(n) for n in widths])
    right.xaxis.set_minor_locator(NullLocator())
    plain_ticks(right)
    return figure
