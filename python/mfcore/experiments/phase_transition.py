"""The least risk of all measures against Δ, certified, and how near to it SGD comes.

Mei, Montanari, Nguyen (2018), section on isotropic Gaussians: x | y = ±1 ~ N(0, (1 ± Δ)² I_d), σ* = σ(⟨w, x⟩)
with σ = −2.5 up to 0.5, 7.5 from 1.5 on and linear between. All neurons on one sphere are optimal up to a
threshold Δ^h; beyond it the optimum spreads. At d = ∞ the least risk is 0 beyond it. The settings of the
published figure are not known, nor could we read its numbers: all settings here are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from .. import activations, data, init
from .._base.check import FloatArray
from ..density._pde import PDE
from ..expectations._rules import MonteCarlo
from ..measures._functions import risk
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import COLORS, GREY, TEXT, marker
from ..plots._runs import center
from ..runs._trajectory import Trajectory
from ..stationary._certificate import certificate
from ..stationary._optimum import optimum
from ._chance import excess
from ._panels import blank, networks, power, quiet
from ._ramps import TRUNCATED, average
from ._report import Report
from ._row import Row, averaged
from ._source import Because, computed, exact
from ._work import Work

# Ours, but for N and d: nothing is converted, t = k·h.
D, NEURONS, NORM = 40, 800, 0.8
SIGMA = activations.piecewise_linear(*TRUNCATED)

DIMENSIONS = (40, 80, 160, 320, math.inf)
AGAIN = (0.2, 0.4, 0.6, 0.8)  # Δ of the least risks that a quadratic programme finds again
RADII, LARGEST = 3200, 1e5  # its grid
LATER = 4  # the PDE goes on to this multiple of the horizon of the networks
INFERRED = (
    "the step, the length of the runs and their start N(0, 0.8²/d · I): the publication's are not known; "
    "ours",
    "N = 800 and d = 40: those of figure 1 of the publication; those of its figure of risks are not known",
)


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    deltas: tuple[float, ...] = tuple(np.linspace(0.05, 0.9, 35).round(4).tolist())  # Δ of the optima
    # Δ of the PDE: finely where its risk at a finite time is not monotone
    flown: tuple[float, ...] = (*np.arange(5, 60, 2.5) / 100, *np.arange(60, 91) / 100)
    coarse: int = 4  # at d = 80, 160 and 320 an optimum for every so many Δ
    near: int = 13  # further Δ around the thresholds
    trained: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)  # Δ of the networks
    step: float = 1e-4  # not compared with smaller ones
    horizon: float = 40.0
    neurons: int = NEURONS
    replicas: int = 6
    held_out: int = 100_000
    cells: int = 400


FULL = Size()
QUICK = Size(
    deltas=tuple(np.linspace(0.1, 0.9, 17).round(4).tolist()),
    flown=(*np.arange(10, 60, 10) / 100, *np.arange(60, 91, 2) / 100),
    coarse=2,
    near=7,
    trained=(0.2, 0.4, 0.6, 0.8),
    step=2e-4,
    held_out=40_000,
    cells=200,
)


def model(delta: float, d: float) -> Model:
    """The model at Δ = `delta`; its initial law matters to networks only."""
    return Model(
        data=data.IsotropicGaussians(d=d, delta=delta), network=Network(SIGMA), init=init.Radial(NORM)
    )


def run(work: Work, size: Size) -> Report:
    """Compute optima and thresholds, and run the PDE and networks for a finite time."""
    deltas = np.unique([*size.deltas, *size.trained, *AGAIN, *np.linspace(0.42, 0.48, size.near)])
    deltas = np.unique(deltas.round(6))
    some = np.union1d(deltas[:: size.coarse], AGAIN)
    work.tell(f"optima at {len(deltas)} values of Δ, d = {', '.join(map(_name, DIMENSIONS))} …")
    arrays: dict[str, FloatArray] = {}
    thresholds = {d: threshold(d) for d in DIMENSIONS}
    for d in DIMENSIONS:
        at = deltas if d in (D, math.inf) else some
        found = [optimum(model(float(delta), d)) for delta in at]
        arrays[f"optimum/{d}/delta"] = at
        arrays[f"optimum/{d}/risk"] = np.array([one.risk for one in found])
        arrays[f"optimum/{d}/gap"] = np.array([one.gap for one in found])
        arrays[f"threshold/{d}"] = np.array(thresholds[d])
    reached: dict[str, Any] = {"horizon": size.horizon, "save_at": [size.horizon]}
    later = LATER * size.horizon
    for delta in sorted({*size.flown, *size.trained}):
        # A companion run tells the error where networks are compared with it.
        compared = delta in size.trained
        at_both: dict[str, Any] = {"horizon": later, "save_at": [size.horizon, later]}
        at_both |= {"keep": [size.horizon]} if compared else {}
        work.solve(f"pde-{delta:g}", model(delta, D), PDE(size.cells, error=compared), **at_both)
    for delta in size.trained:
        work.solve(
            f"sgd-{delta:g}",
            model(delta, D),
            SGD(size.neurons, step=size.step, replicas=size.replicas),
            steps=round(size.horizon / size.step),
            risk=MonteCarlo(size.held_out, seed=1),
            **reached,
        )
    rows = [_row(d, delta, arrays) for d in (D, 320, math.inf) for delta in AGAIN]
    low, high = thresholds[math.inf]
    vanishing = Because("the least risk vanishes there, and gaps of its rounding count before", -2e-5, 0.0)
    closed = exact("(s₊ − s₋)/(s₊ + s₋) where Eσ(s±G) = ±1, by the normal cdf")
    middle, half = (low + high) / 2, (high - low) / 2
    rows.append(Row("Δ^h, d = ∞", middle, closed_form(), 1e-12, closed, half, because=vanishing))
    rows += _network_rows(work.runs, size)
    some_run = work.runs[f"sgd-{size.trained[0]:g}"]
    largest = max(float(arrays[f"optimum/{d}/gap"].max()) for d in DIMENSIONS)
    return Report(
        name="phase-transition",
        title="The least risk of all measures, and what SGD reaches",
        caption=(
            "Two isotropic Gaussian classes, truncated ReLU. Solid lines: the least risk of all measures, "
            f"d = {', '.join(map(_name, DIMENSIONS))}, certified by convexity to {power(largest)}. Thin "
            "lines: the best "
            "single sphere at d = 40 and ∞, optimal left of the dotted lines (all five thresholds at the "
            "right). "
            f"Points: {networks(some_run)}, at t = {size.horizon:g} (d = {D}, h = {power(size.step)}, "
            f"{size.horizon / size.step:,.0f} steps, one fresh sample each, start N(0, 0.8²/d · I); mean "
            "and 95 % "
            f"interval). Broken lines: the PDE at that time and at t = {later:g}. Its bump at Δ ≈ 0.77 is "
            "a matter of time, and four times lower at the later one: the larger Δ, the farther the "
            "radii have "
            "to go, which raises the risk, but from Δ ≈ 0.77 on more of the mass goes to |w| ≈ 0, as the "
            "optimum wants it, which lowers it; beyond 0.85 the start is hardly left in that time."
        ),
        figure=_figure(work.runs, size, arrays, thresholds),
        rows=rows,
        runs=work.runs,
        arrays=arrays,
        inferred=INFERRED,
        notes=[
            "Δ^h at d = ∞ is where the bound that convexity gives on what is left to gain stops being 0 "
            "for the "
            f"best single sphere: between {low:.5f} and {high:.5f}. At d = {D} radii up to 100 help "
            "from 0.43109 "
            "on, and radii of any size from 0.43101 on. Beyond its threshold the "
            f"optimum at d = {D} has atoms at ever larger radii: values are those of boxes up to r = 10⁵, "
            "and change by less than 1 % of themselves from the box before.",
            "Networks need not come near the optimum in finite time: the PDE at the same time shows that "
            "this is the flow, not their number of neurons. What they have above the PDE is of order 1/N: at "
            "Δ = 0.4, t = 20 and h = 4·10⁻⁵ separate runs with N = 200, 400, 800 and 1600 gave N times the "
            "excess as 3.5, 3.5, 3.6 and 3.8; independent draws of the same law would have 14.5.",
        ],
    )


STYLES: dict[float, tuple[str, Any]] = {  # colour and dashes of d
    40: (COLORS[0], "-"),
    80: (COLORS[5], (0, (6, 1))),
    160: (COLORS[2], (0, (6, 1, 1, 1))),
    320: (COLORS[4], (0, (6, 1, 1, 1, 1, 1))),
    math.inf: (COLORS[6], "-"),
}


def closed_form() -> float:
    """Δ^h = (s₊ − s₋)/(s₊ + s₋) at d = ∞, where Eσ(s₊G) = 1 and Eσ(s₋G) = −1."""

    plus, minus = (
        float(optimize.brentq(lambda s, y=y: average(s, *TRUNCATED) - y, 0.1, 10.0, xtol=1e-14))
        for y in (1.0, -1.0)
    )
    return (plus - minus) / (plus + minus)


def threshold(d: float, width: float = 1e-5) -> tuple[float, float]:
    """The interval of Δ in which the best single sphere stops being optimal."""
    low, high = 0.3, 0.6
    while high - low > width:
        middle = 0.5 * (low + high)
        r, value = single(middle, d)
        # At an optimum nothing is left to gain but rounding; beyond, a part of the risk is.
        if certificate(model(middle, d).reduce(), [[r]]).gap < 0.01 * value + 1e-14:
            low = middle
        else:
            high = middle
    return low, high


def single(delta: float, d: float) -> tuple[float, float]:
    """Radius and risk of the best single sphere near the optimum of small Δ."""
    reduced = model(delta, d).reduce()
    found = optimize.minimize_scalar(
        lambda r: float(risk(reduced, [[r]])), bounds=(1.0, 5.0), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x), float(found.fun)


def _name(d: float) -> str:
    return "∞" if math.isinf(d) else f"{d:g}"


def programme(delta: float, d: float, count: int = RADII) -> float:
    """The least risk of measures on a grid of radii: a quadratic programme, by non-negative least squares."""
    reduced = model(delta, d).reduce()
    radii = np.append(0.0, np.geomspace(0.05, LARGEST, count))[:, None]
    scale = np.sqrt(reduced.weights)
    features, goal = (reduced.features(radii) * scale).T, scale * reduced.targets
    heavy = 1e3  # of the condition that masses sum to 1, which is met by scaling afterwards
    mass, _ = optimize.nnls(np.vstack([features, np.full((1, count + 1), heavy)]), np.append(goal, heavy))
    return float(np.square(features @ (mass / mass.sum()) - goal).sum())


def _row(d: float, delta: float, arrays: Mapping[str, FloatArray]) -> Row:
    at = int(np.abs(arrays[f"optimum/{d}/delta"] - delta).argmin())
    value, gap = (float(arrays[f"optimum/{d}/{key}"][at]) for key in ("risk", "gap"))
    what = f"least risk, d = {_name(d)}, Δ = {delta:g}"
    if math.isinf(d) and delta > closed_form():
        return Row(what, value, 0.0, 1e-12, exact("0 beyond Δ^h"), gap)
    fine, *coarser = (programme(delta, d, RADII // k) for k in (1, 2, 4, 8))
    error = max(abs(coarse - fine) for coarse in coarser)  # one alone may be small by where its radii lie
    return Row(what, value, fine, error, computed(programme), gap)


def _network_rows(runs: Mapping[str, Trajectory], size: Size) -> list[Row]:
    rows = []
    for delta in size.trained:
        sgd, pde = runs[f"sgd-{delta:g}"], runs[f"pde-{delta:g}"]
        assert pde.risk is not None
        assert pde.error is not None
        what = f"risk of SGD at t = {size.horizon:g}, Δ = {delta:g}"
        there, stated = float(pde.risk[0]), float(pde.error[0])
        why = excess(model(delta, D), pde.kept[size.horizon], size.neurons, stated)
        source = computed(PDE, "the density here, its stated error")
        rows.append(averaged(what, sgd, "risk", len(sgd.t) - 1, there, stated, source, why))
    return rows


def _figure(
    runs: Mapping[str, Trajectory],
    size: Size,
    arrays: Mapping[str, FloatArray],
    thresholds: Mapping[float, tuple[float, float]],
) -> Any:
    figure = blank((9.0, 4.2))
    left, right = (quiet(ax) for ax in figure.subplots(1, 2))
    deltas = arrays[f"optimum/{D}/delta"]
    for ax in (left, right):
        for d, (color, style) in STYLES.items():
            x, y = arrays[f"optimum/{d}/delta"], arrays[f"optimum/{d}/risk"]
            width = 1.6 if d in (D, math.inf) else 1.0
            label = f"least, d = {_name(d)}"
            ax.plot(x, y, color=color, linewidth=width, linestyle=style, label=label)
            ax.axvline(sum(thresholds[d]) / 2, color=color, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        for d in (D, math.inf):
            ones = [single(float(delta), d)[1] for delta in deltas]
            ax.plot(deltas, ones, color=STYLES[d][0], linewidth=0.6, zorder=1)
        flown = sorted({*size.flown, *size.trained})
        for k, (t, dashes) in enumerate(((size.horizon, (4, 2)), (LATER * size.horizon, (1, 1.2)))):
            there = [float(runs[f"pde-{delta:g}"].risk[k]) for delta in flown]
            style = (0, dashes)
            ax.plot(flown, there, color=COLORS[0], linewidth=1.2, linestyle=style, label=f"PDE, t = {t:g}")
        ends = [runs[f"sgd-{delta:g}"] for delta in size.trained]
        pairs = [center(run, run.risk, run.error) for run in ends]
        means, halves = ([float(pair[k][-1]) for pair in pairs] for k in (0, 1))
        points = {"color": COLORS[0], "linestyle": "none", "zorder": 4, "elinewidth": 0.9, **marker(0)}
        ax.errorbar(size.trained, means, halves, label=f"SGD, t = {size.horizon:g}", **points)
        ax.set(xlabel="Δ", ylabel="risk $R$", xlim=(0.0, 0.95))
    left.set_ylim(-0.02, 1.0)
    left.legend(frameon=False, fontsize=TEXT - 1, loc="upper right", bbox_to_anchor=(0.9, 1.0))
    right.set(yscale="log", ylim=(1e-4, 2.0), ylabel="risk $R$, logarithmic")
    lines = [f"d = {_name(d)}: {sum(thresholds[d]) / 2:.4f}" for d in DIMENSIONS]
    words = "\n".join(["thin: best single sphere,", "optimal up to Δ =", *lines])
    right.text(0.02, 0.03, words, color=GREY, fontsize=TEXT - 1, va="bottom", transform=right.transAxes)
    return figure
