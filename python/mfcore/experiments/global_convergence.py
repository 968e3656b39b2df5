"""Global convergence of wide networks: success against width, for a ReLU teacher and for deconvolution.

After Chizat and Bach (2018): the flow of measures of a homogeneous network, started from a law that has
mass in all directions with either sign, can only converge to a global minimum. Networks of few neurons stay
in local minima, wide ones do not. The teacher is ours: four neurons, x ~ N(0, I₂). So is it with measures
that explain a signal by few spikes, their first example: see `_deconvolution`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .. import activations, data, init
from .._base.check import FloatArray
from ..measures._functions import risk
from ..model import Model
from ..network import Network
from ..neurons._methods import Particles
from ..perturbations._diagnose import diagnose
from ..plots._axes import COLORS, TEXT
from ._deconvolution import LAMBDA, Spikes, descend, objective_and_gap, signal, truth
from ._panels import blank, key, quiet
from ._report import Report
from ._row import Row
from ._source import exact
from ._work import Work
from .three_atoms import kernel

NETWORK = Network(activations.relu, output="trained")
ANGLES = np.deg2rad([20.0, 110.0, 200.0, 300.0])
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
TEACHER = np.concatenate([np.array([[2.0], [-2.0], [2.0], [2.0]]), DIRECTIONS], axis=1)
MODEL = Model(data.Teacher(NETWORK, TEACHER), NETWORK)
SUCCESS = 1e-2  # of E y², the risk below which a network counts as one that has found the minimum
START = 0.5  # |a| = |w| of the neurons at the start
INFERRED = (
    "signs of the spikes at random, of mass 1: not stated",
    "forward–backward steps of 0.002, places 1/(14π)² times as fast as weights: not stated; at one speed the "
    "fastest wave allows steps of 10⁻⁶ only",
    "a measure succeeds if its objective is less than 1 % above the best of all widths: not stated",
)


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    neurons: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
    replicas: int = 20
    horizon: float = 100.0
    atoms: tuple[int, ...] = (5, 6, 7, 8, 10, 14, 20, 40, 100)
    steps: int = 10_000


FULL = Size()
QUICK = Size(neurons=(4, 8, 16, 32), replicas=6, horizon=40.0, atoms=(6, 10, 40), steps=4000)


def run(work: Work, size: Size) -> Report:
    """Train networks of several widths from random directions, and diagnose where they end."""
    square = risk(MODEL, np.zeros((1, 3)))
    risks = np.empty((len(size.neurons), size.replicas))
    gaps, depths, last = np.empty_like(risks), np.empty_like(risks), np.zeros((1, 3))
    for i, m in enumerate(size.neurons):
        work.tell(f"{size.replicas} networks of {m} neurons …")
        for k in range(size.replicas):
            rng = np.random.default_rng(np.random.SeedSequence([work.seed, m, k]))
            model = MODEL.replace(init=init.Points(start(m, rng)))
            one = Work(seed=0, threads=work.threads)
            end = one.solve("network", model, Particles(m), horizon=size.horizon, save_at=[], risk=False)
            last = np.asarray(end.final)
            risks[i, k] = risk(MODEL, last)
            found = diagnose(MODEL, last, starts=4)
            gaps[i, k], depths[i, k] = found.gap, found.depth
    won = (risks < SUCCESS * square).sum(axis=1)
    widths = np.array(size.neurons, dtype=float)
    work.tell(f"{size.replicas} signals …")
    truths, excess, gap, seen = _deconvolve(work, size)
    work.arrays.update({"atoms": np.array(size.atoms), "excess": excess, "seen/w": seen[-1].w})
    work.arrays.update({"neurons": widths, "risk": risks, "gap": gaps, "depth": depths, "last": last})
    return Report(
        name="global-convergence",
        title="Wide networks find the global minimum",
        caption=(
            "A teacher of four ReLU neurons in the plane, x ~ N(0, I₂); networks of m neurons start in "
            "random directions, half of them with a < 0, and follow the gradient flow to t = "
            f"{size.horizon:g}. Top left: |a|·w of the {size.neurons[-1]} neurons of one network at the end "
            "(filled: a > 0, open: a < 0), and the directions of the teacher (dashed: a < 0). Top right: the "
            f"share of {size.replicas} networks whose risk is below {SUCCESS:g} of E y², with 95 % intervals "
            "(Clopper and Pearson). Below: five spikes on a circle from their convolution with a "
            f"Dirichlet kernel of order 7, λ = {LAMBDA:g}. Left: the paths of {size.atoms[-1]} atoms in "
            "place and mass, where they end (dots), and places and signs of the truth (crosses). Right: the "
            f"share of {size.replicas} signals for which m atoms come to the minimum over all measures."
        ),
        figure=_figure(widths, won, size, last, truths[0], seen, (excess < SUCCESS).sum(axis=1)),
        rows=[*_rows(square, risks, gaps, depths), *_deconvolution_rows(size, excess, gap)],
        runs=work.runs,
        arrays=work.arrays,
        inferred=INFERRED,
    )


def _deconvolve(work: Work, size: Size) -> tuple[list[Spikes], FloatArray, FloatArray, list[Spikes]]:
    """Signals; how far above the best objective each width comes; relative gaps of the best; paths."""
    rng = np.random.default_rng(np.random.SeedSequence([work.seed, 1]))
    truths = [truth(rng) for _ in range(size.replicas)]
    y = np.concatenate([signal(one) for one in truths])
    objectives, gaps, seen = np.empty((len(size.atoms), len(y))), np.empty((len(size.atoms), len(y))), []
    for i, m in enumerate(size.atoms):
        seen = descend(y, m, size.steps, 200)
        objectives[i], gaps[i] = objective_and_gap(y, seen[-1])
    best = objectives.argmin(axis=0)
    least = objectives.min(axis=0)
    return truths, objectives / least - 1, gaps[best, np.arange(len(y))] / least, seen


def _deconvolution_rows(size: Size, excess: FloatArray, gap: FloatArray) -> list[Row]:
    return [
        Row("deconvolution: largest relative duality gap of the best measures", float(gap.max()), 0.0, 1e-3,
            exact("0 at the minimum")),
        Row(f"deconvolution: share of signals of which {size.atoms[-1]} atoms find the minimum",
            float((excess[-1] < SUCCESS).mean()), 1.0, 0.0, exact("Chizat, Bach (2018): 1 as m → ∞")),
    ]  # fmt: skip


def start(m: int, rng: np.random.Generator) -> FloatArray:
    """Neurons in uniform directions, a = ±|w| by turns."""
    angles = rng.uniform(0, 2 * math.pi, size=m)
    signs = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    return START * np.stack([signs, np.cos(angles), np.sin(angles)], axis=1)


def _rows(square: float, risks: FloatArray, gaps: FloatArray, depths: FloatArray) -> list[Row]:
    weighted = kernel_of(TEACHER)
    stuck = risks > SUCCESS * square
    # R is above the least risk, 0, by R: the bound (13.17) must not be below that.
    short = float(np.maximum(risks - gaps, 0.0).max())
    blind = float((stuck & (depths < 1e-6)).sum())
    wide = float((risks[-1] < SUCCESS * square).mean())
    return [
        Row("E y²", square, weighted, 1e-12, exact("arc-cosine kernel")),
        Row("largest R − gap of eq. (13.17)", short, 0.0, 1e-9, exact("least risk 0, a bound")),
        Row("networks that are stuck where Ψ has no lower place", blind, 0.0, 0.0,
            exact("none, R is convex")),
        Row("share of the widest networks that "
        "succeed", wide, 1.0, 0.0, exact("Chizat, Bach (2018): 1 as m → ∞")),
    ]  # fmt: skip


def kernel_of(theta: FloatArray) -> float:
    """E f² of a network of ReLU neurons (a, w), by the arc-cosine kernel of neurons |a|·w with signs."""
    scaled = np.abs(theta[:, :1]) * theta[:, 1:]
    total, signs = 0.0, np.sign(theta[:, 0])
    for i in range(len(theta)):
        for j in range(len(theta)):
            pair = kernel(scaled[[i, j]]) * 4  # Σ over the four pairs of the two
            alone = kernel(scaled[[i]]) + kernel(scaled[[j]])
            total += signs[i] * signs[j] * (pair - alone) / 2
    return float(total) / len(theta) ** 2


def _figure(
    widths: FloatArray,
    won: Any,
    size: Size,
    last: FloatArray,
    real: Spikes,
    seen: list[Spikes],
    found: Any,
) -> Any:
    figure = blank((8.0, 7.0))
    (left, right), (below, share) = figure.subplots(2, 2)
    quiet(left)
    places = np.abs(last[:, :1]) * last[:, 1:]
    reach = 1.1 * float(np.abs(places).max())
    for row in TEACHER:
        style = "-" if row[0] > 0 else "--"
        left.plot([0, reach * row[1]], [0, reach * row[2]], style, color="0.6", linewidth=0.8)
    for sign, face in ((1.0, COLORS[0]), (-1.0, "white")):
        own = places[np.sign(last[:, 0]) == sign]
        left.plot(*own.T, "o", color=COLORS[0], markerfacecolor=face, markersize=4)
    left.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$|a|w_1$", ylabel="$|a|w_2$")
    teacher: dict[str, Any] = {"color": "0.6", "linewidth": 0.8}
    point: dict[str, Any] = {"color": COLORS[0], "marker": "o", "linestyle": "none", "markersize": 4}
    shown: list[tuple[str, dict[str, Any]]] = [
        ("teacher, $a$ > 0", {**teacher, "linestyle": "-"}),
        ("teacher, $a$ < 0", {**teacher, "linestyle": "--"}),
        ("neuron, $a$ > 0", point),
        ("neuron, $a$ < 0", {**point, "markerfacecolor": "white"}),
    ]
    key(left, shown, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    _shares(right, widths, won, size.replicas, "neurons $m$")
    _paths(quiet(below), real, seen)
    _shares(share, np.array(size.atoms, dtype=float), found, size.replicas, "atoms $m$")
    return figure


def _paths(ax: Any, real: Spikes, seen: list[Spikes]) -> None:
    """Atoms of the first signal from w = 0 to their end, in units of the largest mass."""
    theta, w = (np.array([getattr(one, name)[0] for one in seen]) for name in ("theta", "w"))
    theta = np.where(
        np.abs(np.diff(theta, axis=0, prepend=theta[:1])) > 0.5, np.nan, theta
    )  # round the circle
    largest = np.abs(w[-1]).max()
    ax.plot(theta, w / largest, color="0.7", linewidth=0.6)
    ax.plot([], [], color="0.7", linewidth=0.6, label="path")
    heavy = np.abs(w[-1]) > 1e-6 * largest
    ax.plot(seen[-1].theta[0][heavy], w[-1][heavy] / largest, "o", color=COLORS[0], markersize=3, label="end")
    ax.plot(real.theta[0], np.sign(real.w[0]), "x", color=COLORS[1], markersize=7, label="spike")
    ax.legend(frameon=False, fontsize=TEXT - 1, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    ax.set(xlim=(0, 1), xlabel="place $θ$", ylabel="mass / largest")


def _shares(ax: Any, widths: FloatArray, won: Any, replicas: int, label: str) -> None:
    """Shares that succeed, with intervals of Clopper and Pearson."""
    share = won / replicas
    low = np.where(won > 0, stats.beta.ppf(0.025, won, replicas - won + 1), 0.0)
    high = np.where(won < replicas, stats.beta.ppf(0.975, won + 1, replicas - won), 1.0)
    bars = np.maximum([share - low, high - share], 0.0)
    quiet(ax).errorbar(widths, share, bars, fmt="o-", color=COLORS[1], markersize=4, linewidth=0.8)
    ax.set(xscale="log", xlabel=label, ylabel="share that succeeds", ylim=(-0.03, 1.03))
    ax.set_xticks([m for m in widths if m in (1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 100)], minor=False)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.tick_params(which="minor", bottom=False, labelbottom=False)
