"""Components of a target are learned one after the other, on time scales that separate as ε falls.

Berthier, Montanari, Zhou (2023), figure 2. Mean-field neurons a_i σ(⟨w_i, x⟩), |w_i| = 1, ReLU, m = 10,
x ~ N(0, I_d) with d = ∞, target φ = h₀ − h₁ + ⅔ h₂ of one direction; output weights move 1/ε times as fast,
ε = 10⁻³ and 10⁻⁶. Risks are R/2, as there. Components l ≥ 1 are learned at t ~ ε^{1/(2l)}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..atoms._atoms import Atoms
from ..measures._measure import Cloud
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD, Particles
from ..plots._axes import COLORS, GREY, TEXT
from ..runs._trajectory import Trajectory
from ..theory._coefficients import hermite
from ._closed_system import PHI, closed_system
from ._panels import blank, power, quiet
from ._report import Report
from ._row import Row, sample
from ._source import Because, about, computed, exact
from ._work import Work

# As published.
NEURONS, EPSILONS = 10, (1e-3, 1e-6)
PLATEAUS = (11 / 9, 13 / 18, 2 / 9)  # of R/2 = ½ Σ_k (φ_k − f_k)², with 0, 1 and 2 components learned
SCALE = exact("ε^{1/(2l)} as ε → 0")
ENDS = {1e-3: 100.0, 1e-6: 1.0}
INFERRED = (
    "a_i ~ N(0, 1) at the start: not stated; the plateaus do not depend on it",
    "Hermite polynomials are orthonormal: with He₂ as it stands the levels would be others than printed",
    "solver and time axis: not stated; here LSODA with a relative error of 10⁻⁸ per step",
)

LEVELS = (0.97, 0.47, 0.11)  # of R/2, whose first times are compared
AGAIN = 1e-4  # of these times: both computations are read at the same save points


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has fewer ε and draws, and no networks."""

    draws: int = 3
    sweep: tuple[float, ...] = tuple(10.0**-k for k in range(2, 9))
    per_decade: int = 24
    d: int = 1000  # of networks trained by SGD; 0: none
    step: float = 1e-5
    replicas: int = 6
    law: int = 16  # Gauss nodes of a ~ N(0, 1) for infinitely many neurons; 0: none


FULL = Size()
QUICK = Size(draws=1, sweep=(1e-6, 1e-7, 1e-8), per_decade=12, d=0, law=0)


def model(epsilon: float, d: float = math.inf) -> Model:
    """The model with output weights that move 1/ε times as fast."""
    return Model(
        data=data.MultiIndex(d, list(PHI), directions=1),
        network=Network(activations.relu, output="trained", sphere=True),
        init=init.Product(a=init.Normal(0, 1), w=init.Sphere(1.0)),
        rates={"a": 1 / epsilon},
    )


def run(work: Work, size: Size) -> Report:
    """Run mean-field neurons at the published and at further ε, their law, and networks."""
    for epsilon in EPSILONS:
        for k in range(size.draws):
            _flow(work, f"flow-{epsilon:g}-{k}", epsilon, size, _start(work.seed, k), ENDS[epsilon])
        if size.law:
            _flow(work, f"law-{epsilon:g}", epsilon, size, None, ENDS[epsilon])
    for epsilon in size.sweep:
        _flow(work, f"sweep-{epsilon:g}", epsilon, size, _start(work.seed, 0), 30 * epsilon**0.25)
    if size.d:
        _network(work, size)
    runs, rows = work.runs, _rows(work.runs, size, work.seed)
    return Report(
        name="time-scales",
        title="Components of a target are learned one after the other",
        caption=(
            "Ten mean-field neurons with |w| = 1 (ReLU, d = ∞) learn φ = h₀ − h₁ + ⅔h₂ of one direction; "
            "output weights move 1/ε times as fast. Columns: ε = 10⁻³ and 10⁻⁶. Rows: R/2 on a linear and "
            "on a logarithmic axis, and its first three parts ½(φ_k − f_k)². Thick: the first draw of a ~ "
            "N(0, 1), thin: others"
            + (", dashed: infinitely many neurons" if size.law else "")
            + ". Grey: the levels 11/9, 13/18 and 2/9 with none, one and two parts learned."
            + (f" Points: SGD, N = 10, d = {size.d}, h = {size.step:g}, mean of R/2." if size.d else "")
        ),
        figure=_figure(runs, size),
        rows=rows,
        runs=runs,
        inferred=INFERRED,
        notes=[
            "The second plateau is not flat at ε = 10⁻⁶: the parts of degree 1 and 2 are learned at times "
            "that differ by a factor of ten only, ε^{1/2} and ε^{1/4}. It becomes flat as ε → 0."
        ],
    )


def _start(seed: int, k: int) -> Cloud:
    """Neurons (a, s) of the draw number k: a ~ N(0, 1), s = 0 as at d = ∞."""
    a = np.random.default_rng([seed, k]).normal(size=NEURONS)
    return Cloud(np.column_stack([a, np.zeros(NEURONS)]))


def _flow(work: Work, name: str, epsilon: float, size: Size, start: Cloud | None, end: float) -> Trajectory:
    chosen = model(epsilon)
    decades = math.log10(end / (0.01 * epsilon))
    times = np.geomspace(0.01 * epsilon, end, 1 + round(decades * size.per_decade))
    method = Atoms(start=start) if start is not None else Atoms(size.law)
    return work.solve(
        name,
        chosen,
        method,
        horizon=end,
        save_at=[0.0, *times],
        observe={"f": lambda rho: hermite(chosen, rho, range(len(PHI)))},
    )


def _network(work: Work, size: Size) -> None:
    """SGD on the sphere at finite d, from directions with ⟨w, e⟩ of order d^(−1/2)."""
    epsilon, end = EPSILONS[0], 0.4
    chosen = model(epsilon, size.d)
    work.solve(
        "sgd",
        chosen,
        SGD(NEURONS, size.step, replicas=size.replicas),
        steps=round(end / size.step),
        horizon=end,
        save_at=[0.0, *np.geomspace(10 * size.step, end, 24)],
        observe={"f": lambda rho: hermite(chosen, rho, range(len(PHI)))},
        keep=[0.0],
    )
    times = [0.0, *np.geomspace(10 * size.step, end, 24)]
    for k, neurons in enumerate(np.asarray(work.runs["sgd"].kept[0.0])):
        same = chosen.replace(init=init.Points(neurons))
        work.solve(f"finite-{k}", same, Particles(NEURONS), horizon=end, save_at=times)


def half_risk(run: Trajectory) -> FloatArray:
    """R/2 at the save points."""
    assert run.risk is not None
    return np.asarray(0.5 * run.risk)


def passed(t: FloatArray, value: FloatArray, level: float) -> float:
    """The first time at which R/2 is below a level, interpolated in log t; nan if never."""
    below = np.flatnonzero(value < level)
    if not len(below) or below[0] < 2:
        return math.nan
    k = below[0]
    share = (value[k - 1] - level) / (value[k - 1] - value[k])
    return float(t[k - 1] * (t[k] / t[k - 1]) ** share)


def flattest(run: Trajectory) -> float:
    """R/2 where it falls most slowly in log t between the levels of the last two plateaus."""
    value, log = half_risk(run)[1:], np.log(run.t[1:])
    slope = -np.gradient(value, log)
    between = (value < 0.5) & (value > 0.12)
    return float(value[between][np.argmin(slope[between])])


def slope(times: FloatArray, epsilons: FloatArray) -> float:
    """The exponent of t ~ ε^p, by regression in logarithms."""
    return float(np.polyfit(np.log(epsilons), np.log(times), 1)[0])


def _rows(runs: Any, size: Size, seed: int) -> list[Row]:
    rows = []
    for epsilon in EPSILONS:
        draws = [runs[f"flow-{epsilon:g}-{k}"] for k in range(size.draws)]
        starts = [_start(seed, k).points[:, 0] for k in range(size.draws)]
        again = [closed_system(epsilon, a, run.t) for a, run in zip(starts, draws, strict=True)]
        for level in LEVELS:
            here = float(np.mean([passed(run.t, half_risk(run), level) for run in draws]))
            there = float(
                np.mean([passed(run.t, value, level) for run, value in zip(draws, again, strict=True)])
            )
            what = f"ε = {epsilon:g}: time of R/2 < {level:g}, mean of {size.draws}"
            rows.append(Row(what, here, there, AGAIN * there, computed(closed_system)))
    time = 100 * EPSILONS[1]
    first = [np.interp(time, run.t, half_risk(run)) for run in draws]
    # a has gained what makes Σ a σ₀ = φ₀, and s grows at the rate a φ₁σ₁: R/2 falls by (φ₁σ₁)²(E a²)t.
    square = float(np.mean([np.var(a) for a in starts])) + 2 * math.pi
    why = about("s has begun to grow, and R/2 to fall by (φ₁σ₁)² E a² t", -0.25 * square * time, 0.3)
    rows.append(
        sample("ε = 1e-06: R/2 at t = 100ε", np.array(first), PLATEAUS[1], 0.0, exact("13/18 as ε → 0"), why)
    )
    least = min(size.sweep)
    rest = flattest(runs[f"sweep-{least:g}"]) - PLATEAUS[2]
    why = Because(
        f"ε^{{1/2}} and ε^{{1/4}} are not far apart, and are farther at ε = {least:g}, where it is off "
        f"by {rest:+.2g}",
        *sorted((0.5 * rest, 8 * rest)),
    )
    second = np.array([flattest(run) for run in draws])
    rows.append(
        sample("ε = 1e-06: R/2 where it is flattest", second, PLATEAUS[2], 0.0, exact("2/9 as ε → 0"), why)
    )
    sweep = np.array(size.sweep)
    for part, level in ((1, (PLATEAUS[1] + PLATEAUS[2]) / 2), (2, PLATEAUS[2] / 2)):
        times = np.array(
            [passed(runs[f"sweep-{e:g}"].t, half_risk(runs[f"sweep-{e:g}"]), level) for e in size.sweep]
        )
        theory, what = 1 / (2 * part), f"time at which part {part} is half learned"
        half = len(sweep) // 2
        early, late = (slope(times[k], sweep[k]) - theory for k in (slice(None, half + 1), slice(half, None)))
        for off, ends, name, (a, b) in (
            (early, sorted((late, 10 * late)), "falls", (0, half)),
            (late, sorted((0.0, 0.9 * early)), "has fallen", (half, -1)),
        ):
            other = late if off is early else early
            why = Because(
                f"parts overlap, which {name} as ε does: in the other half it is off by {other:+.2g}", *ends
            )
            span = f"{what}: exponent over ε = {size.sweep[a]:g} to {size.sweep[b]:g}"
            rows.append(Row(span, off + theory, theory, 0.0, SCALE, because=why))
    if "sgd" in runs:
        last = f"SGD, d = {size.d}: time of R/2 < 0.47, over that of the flow from the same neurons"
        pairs = [(runs["sgd"].t, value / 2) for value in np.asarray(runs["sgd"].risk).T]
        flows = [(run.t, half_risk(run)) for name, run in runs.items() if name.startswith("finite-")]
        ratios = [passed(*a, 0.47) / passed(*b, 0.47) for a, b in zip(pairs, flows, strict=True)]
        rows.append(sample(last, np.array(ratios), 1.0, 0.0, computed(Particles)))
    return rows


def _figure(runs: Any, size: Size) -> Any:
    figure = blank((8.0, 7.2))
    panels: Any = figure.subplots(3, 2, sharex="col")
    for column, epsilon in zip(panels.T, EPSILONS, strict=True):
        linear, log, parts = (quiet(ax) for ax in column)
        for ax in (linear, log):
            for level in PLATEAUS:
                ax.axhline(level, color=GREY, linewidth=0.6, zorder=0)
            if size.law:
                law = runs[f"law-{epsilon:g}"]
                ax.plot(law.t[1:], half_risk(law)[1:], color=COLORS[1], linewidth=1.2, linestyle="--")
            for k in range(size.draws):
                flow = runs[f"flow-{epsilon:g}-{k}"]
                width = 1.8 if k == 0 else 0.7
                ax.plot(flow.t[1:], half_risk(flow)[1:], color=COLORS[0], linewidth=width)
            if "sgd" in runs and epsilon == EPSILONS[0]:
                net = runs["sgd"]
                value = 0.5 * np.asarray(net.risk).mean(axis=1)
                ax.plot(net.t[1:], value[1:], "o", color=COLORS[2], markersize=3)
        flow = runs[f"flow-{epsilon:g}-0"]
        for k, target in enumerate(PHI):
            part = 0.5 * (target - flow.observed["f"][1:, k]) ** 2
            parts.plot(flow.t[1:], part, color=COLORS[k], linewidth=1.6)
            parts.annotate(
                f"$k$ = {k}",
                (flow.t[1], part[0]),
                xytext=(0, -12 if k == 0 else 4),
                textcoords="offset points",
                fontsize=TEXT,
                color=COLORS[k],
            )
        log.set(yscale="log", ylim=(1e-4, 3))
        linear.set(ylim=(-0.05, 1.6))
        linear.set_title(f"ε = {power(epsilon)}", fontsize=TEXT + 1)
        parts.set(xscale="log", xlabel="time $t$", ylim=(-0.02, 0.62))
    for ax, name in zip(panels[:, 0], ("$R/2$", "$R/2$", "½(φ$_k$ − f$_k$)²"), strict=True):
        ax.set_ylabel(name)
    legend = panels[1, 0]  # its lower left is empty
    legend.plot([], [], color=COLORS[0], linewidth=1.8, label="10 neurons, first draw")
    if size.draws > 1:
        legend.plot([], [], color=COLORS[0], linewidth=0.7, label="other draws")
    if size.law:
        legend.plot([], [], color=COLORS[1], linestyle="--", label="their law, m = ∞")
    if "sgd" in runs:
        legend.plot([], [], "o", color=COLORS[2], markersize=3, label=f"SGD, d = {size.d}")
    legend.plot([], [], color=GREY, linewidth=0.6, label="0, 1, 2 parts learned")
    legend.legend(frameon=False, fontsize=TEXT - 1, loc="lower left")
    return figure
