"""Global convergence of wide networks: success against width, for a ReLU teacher in the plane.

After Chizat and Bach (2018): the flow of measures of a homogeneous network, started from a law that has
mass in all directions with either sign, can only converge to a global minimum. Networks of few neurons stay
in local minima, wide ones do not. The settings are ours: x ~ N(0, I₂), a teacher of four neurons.
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
from ..plots._axes import COLORS
from ._panels import blank, quiet
from ._report import Report
from ._row import Row
from ._work import Work
from .three_atoms import kernel

NETWORK = Network(activations.relu, output="trained")
ANGLES = np.deg2rad([20.0, 110.0, 200.0, 300.0])
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
TEACHER = np.concatenate([np.array([[2.0], [-2.0], [2.0], [2.0]]), DIRECTIONS], axis=1)
MODEL = Model(data.Teacher(NETWORK, TEACHER), NETWORK)
SUCCESS = 1e-2  # of E y², the risk below which a network counts as one that has found the minimum
START = 0.5  # |a| = |w| of the neurons at the start


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    neurons: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
    replicas: int = 20
    horizon: float = 100.0


FULL = Size()
QUICK = Size(neurons=(4, 8, 16, 32), replicas=6, horizon=40.0)


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
    work.arrays.update({"neurons": widths, "risk": risks, "gap": gaps, "depth": depths, "last": last})
    return Report(
        name="global-convergence",
        title="Wide networks find the global minimum",
        caption=(
            "A teacher of four ReLU neurons in the plane, x ~ N(0, I₂); networks of m neurons start in "
            "random directions, half of them with a < 0, and follow the gradient flow to t = "
            f"{size.horizon:g}. Left: |a|·w of the {size.neurons[-1]} neurons of one network at the end "
            "(filled: a > 0, open: a < 0), and the directions of the teacher (dashed: a < 0). Right: the "
            f"share of {size.replicas} networks whose risk is below {SUCCESS:g} of E y², with 95 % intervals "
            "(Clopper and Pearson)."
        ),
        figure=_figure(widths, won, size.replicas, last),
        rows=list(_rows(square, risks, gaps, depths)),
        runs=work.runs,
        arrays=work.arrays,
    )


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
        Row("E y²", square, weighted, 1e-12, "closed form: arc-cosine kernel"),
        Row("largest R − gap of eq. (13.17)", short, 0.0, 1e-9, "theory: least risk 0, a bound"),
        Row("networks that are stuck where Ψ has no lower place", blind, 0.0, 0.0,
            "theory: none, R is convex"),
        Row("share of the widest networks that succeed", wide, 1.0, 0.0, "theory: 1 as m → ∞",
            because="m is finite"),
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


def _figure(widths: FloatArray, won: Any, replicas: int, last: FloatArray) -> Any:
    figure = blank((8.0, 3.6))
    left, right = figure.subplots(1, 2)
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
    share = won / replicas
    low = np.where(won > 0, stats.beta.ppf(0.025, won, replicas - won + 1), 0.0)
    high = np.where(won < replicas, stats.beta.ppf(0.975, won + 1, replicas - won), 1.0)
    bars = np.maximum([share - low, high - share], 0.0)
    quiet(right).errorbar(widths, share, bars, fmt="o-", color=COLORS[1], markersize=4, linewidth=0.8)
    right.set(xscale="log", xlabel="neurons $m$", ylabel="share that succeeds", ylim=(-0.03, 1.03))
    right.tick_params(which="minor", labelbottom=False)
    return figure
