"""Layer-wise training and long online SGD of targets with leaps: the lower row of `leap`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..expectations._rules import MonteCarlo
from ..measures._functions import risk
from ..model import Model
from ..network import Network
from ..neurons._layer_wise import LayerWise
from ..neurons._methods import SGD
from ..plots._axes import COLORS, GREY, TEXT
from ..runs._trajectory import Trajectory
from ..theory._second_layer import second_layer
from ._row import Row, sample
from ._source import Because, exact, published
from ._work import Work

Sets = tuple[tuple[int, ...], ...]

# Leaps and targets of the layer-wise algorithm: sets of coordinates counted from 0.
TARGETS: dict[int, Sets] = {
    1: ((0,), (0, 1), (0, 1, 2)),
    2: ((0,), (0, 1, 2)),
    3: ((0,), (0, 1, 2, 3)),
}
NAMES = {1: "z₁ + z₁z₂ + z₁z₂z₃", 2: "z₁ + z₁z₂z₃", 3: "z₁ + z₁z₂z₃z₄"}
SIGMA = activations.hermite([0.0, 1.0, 1.0, 1.0, 1.0])
SMALL = 0.01  # |a|: the network stays near 0 while its first layer moves
SLOW = {1: 0.003, 2: 0.003, 3: 0.006}  # h·a = SLOW·d^(−max(leap/2, 1)) a sample
FOUND = 0.5  # of the mean |w_j| over neurons
FITTED = 20_000  # samples of the second layer
# ABAM23, figure 1; the shift of the sigmoid and the start are not printed.
PAPER = "Abbe, Boix-Adsera, Misiakiewicz (2023), figure 1"
STAIRS: Sets = ((0,), tuple(range(5)), tuple(range(9)), tuple(range(14)))
D, NEURONS, SHIFT = 100, 300, 0.5
STEP = 0.4 / D
HELD_OUT = 4000
LATER = (
    2  # times d³, by when the publication has left two more saddles: the weights of the others shrink here
)


def horizon(leap: int, d: int) -> float:
    """About twice the time that was seen to suffice, times a: of order 1, log d and √d."""
    return {1: 3.0, 2: 3.0 + 1.5 * math.log(d), 3: 2.0 * math.sqrt(d)}[leap]


def model(leap: int, d: int, neurons: int, seed: int) -> Model:
    """Neurons that start at w_j = ±d^(−1/2), with output weights ±SMALL."""
    rng = np.random.default_rng([seed, d])
    signs = rng.choice([-1.0, 1.0], size=(neurons, d))
    a = SMALL * (-1.0) ** np.arange(neurons)
    return Model(
        data=data.Staircase(d, list(TARGETS[leap])),
        network=Network(SIGMA, output="fixed"),
        init=init.Points(np.column_stack([a, signs / math.sqrt(d)])),
    )


def run(work: Work, dims: tuple[int, ...], draws: int, neurons: int, fitted: int, steps: int) -> None:
    """Layer-wise training at several d, one with a second layer, and online SGD of so many steps."""
    for leap in TARGETS:
        for d in dims:
            for k in range(draws):
                _layer(work, f"layers-{leap}-{d}-{k}", leap, d, neurons, k)
    d = dims[-1]
    first = _layer(work, "both-layers", 2, d, fitted, draws)
    chosen = model(2, d, fitted, draws)
    both = second_layer(chosen, _final(first), samples=FITTED, ridge=1e-3, rng=work.seed)
    rule = MonteCarlo(FITTED, rng=work.seed + 1)
    found = [risk(chosen, theta, expectation=rule) for theta in (_final(first), both)]
    work.arrays["both-layers"] = np.array(found)
    _online(work, steps)


def _final(run: Trajectory) -> FloatArray:
    return np.asarray(run.final)


def _layer(work: Work, name: str, leap: int, d: int, neurons: int, seed: int) -> Trajectory:
    coordinates = 1 + max(max(key) for key in TARGETS[leap])
    batch = d // 2
    h = SLOW[leap] * d ** -max(leap / 2, 1.0) / SMALL
    return work.solve(
        name,
        model(leap, d, neurons, seed),
        LayerWise(neurons, h * batch, batch=batch),
        horizon=horizon(leap, d) / SMALL,
        save_at=61,
        risk=False,
        rng=seed + 1000 * work.seed,
        observe={"w": lambda theta: np.abs(theta[:, 1 : 1 + coordinates]).mean(axis=0)},
    )


def _online(work: Work, steps: int) -> None:
    """As published: f = Σ a σ(⟨w, x⟩ + b), one sample a step, both layers and biases."""
    h = STEP / NEURONS  # f = scale·N⁻¹Σ moves N times as fast
    work.solve(
        "online",
        Model(
            data=data.Staircase(D, list(STAIRS)),
            network=Network(activations.sigmoid, output="trained", bias="trained", scale=float(NEURONS)),
            init=init.Product(
                a=init.Uniform(-1 / NEURONS, 1 / NEURONS), b=init.Constant(-SHIFT), w=init.Radial(1.0)
            ),
        ),
        SGD(NEURONS, h),
        steps=steps,
        horizon=steps * h,
        save_at=np.append(0.0, np.geomspace(100, steps, 40) * h),
        risk=MonteCarlo(HELD_OUT, rng=work.seed),
    )


def samples_of(leap: int, d: int, t: FloatArray) -> FloatArray:
    """Samples until time t."""
    return np.asarray(t * SMALL / (SLOW[leap] * d ** -max(leap / 2, 1.0)))


def found(work: Work, leap: int, d: int, k: int) -> float:
    """Samples until the last coordinate is found: its mean |w_j| over the neurons is ½; the end if never."""
    run = work.runs[f"layers-{leap}-{d}-{k}"]
    least = run.observed["w"].min(axis=1)
    at = int(np.argmax(least > FOUND))
    if least[at] <= FOUND:
        return float(samples_of(leap, d, run.t[-1]))
    share = (FOUND - least[at - 1]) / (least[at] - least[at - 1])
    return float(samples_of(leap, d, run.t[at - 1] + share * (run.t[at] - run.t[at - 1])))


def rows(work: Work, dims: tuple[int, ...], draws: int) -> list[Row]:
    """Exponents of layer-wise training, its second layer, and plateaus of online SGD."""
    out = []
    source = "d^max(leap−1, 1) up to logarithms: Abbe, Boix-Adsera, Misiakiewicz (2023), Algorithm 1"
    for leap in TARGETS:
        counts = np.array([[found(work, leap, d, k) for d in dims] for k in range(draws)])
        slopes = np.polyfit(np.log(dims), np.log(counts).T, 1)[0]
        what = f"layer-wise, leap {leap}: exponent of samples in d, d = {dims[0]} to {dims[-1]}"
        # The amount that a factor of log d adds to an exponent over these d.
        logs = math.log(math.log(dims[-1]) / math.log(dims[0])) / math.log(dims[-1] / dims[0])
        why = Because("d is not large, and the theorem leaves open a factor of log d", 0.0, logs)
        out.append(sample(what, slopes, max(leap - 1, 1), 0.0, exact(source), why))
    half = 1.96 * 3.0 / math.sqrt(FITTED)  # of squares, whose standard deviation is below 3
    what = f"layer-wise, leap 2, d = {dims[-1]}: R after both layers"
    # Separate fits of the first 50, 100, 200 and 400 neurons at d = 200 had R = 1.51, 1.46, 1.41 and
    # 1.33: slowly less.
    why = Because(
        "small weights have norm 1 in each neuron, and what they add averages out slowly in N", 0.5, 2.0
    )
    at = float(work.arrays["both-layers"][1])
    out.append(Row(what, at, 0.0, 0.0, exact("0 as N → ∞"), half, half / 1.96, why))
    online = work.runs["online"]
    value, n = np.asarray(online.risk), online.t * NEURONS / STEP
    below = np.flatnonzero(value < 3.5)
    if len(below):
        p, what = math.log(n[below[0]]) / math.log(D), f"online SGD, d = {D}: log n/log d at R = 3.5"
        # A learning time of 10 in units of the flow is 10/(0.4/d) = 25d samples: 1.7.
        why = Because(
            "of n = c·d the constant c counts: log c/log d, c of 3 to 50 for steps 0.4/d", 0.24, 0.85
        )
        out.append(
            Row(what, p, 1.0, 0.0, published(f"{PAPER}: leaves the first saddle after about d"), because=why)
        )
    late = np.flatnonzero(n > LATER * D**3)
    if len(late):
        what = f"online SGD, d = {D}: R after {n[late[0]] / D**3:.2g}·d³ samples"
        paper = published(f"{PAPER}: two of four saddles are left after about d³")
        half = 1.96 * float(np.asarray(online.error)[late[0]])
        out.append(Row(what, float(value[late[0]]), 1.0, 0.5, paper, half, half / 1.96))
    return out


def draw(panels: list[Any], work: Work, dims: tuple[int, ...]) -> None:
    """Three panels of |w_j| over samples, and one of the risk of online SGD."""
    for ax, leap in zip(panels, TARGETS, strict=False):
        d = dims[-1]
        run = work.runs[f"layers-{leap}-{d}-0"]
        n = samples_of(leap, d, run.t) / d
        values = run.observed["w"]
        ax.plot(n, values[:, 0], color=COLORS[0], linewidth=1.4)
        together = (
            [[j] for j in range(1, values.shape[1])] if leap == 1 else [list(range(1, values.shape[1]))]
        )
        _label(ax, n, values[:, 0], 0.85, "$w_1$", COLORS[0], (-5, "right") if leap == 1 else (5, "left"))
        for k, group in enumerate(together):
            for j in group:
                ax.plot(n, values[:, j], color=COLORS[j], linewidth=1.4)
            name = f"$w_{group[0] + 1}$" if len(group) == 1 else f"$w_2$ to $w_{group[-1] + 1}$"
            side = (-4, "right") if leap == 1 and k == 0 else (6, "left")
            level = 0.25 if side[1] == "right" else 0.45
            _label(ax, n, values[:, group[0]], level, name, COLORS[group[0]], side)
        ax.set_title(f"leap {leap}, d = {d}", loc="left", fontsize=TEXT)
        ax.set(ylim=(0, 1.05), xlim=(0, n[-1]), xlabel="samples / $d$")
    panels[0].set_ylabel("mean $|w_j|$")
    ax, online = panels[3], work.runs["online"]
    for level in range(5):
        ax.axhline(level, color=GREY, linewidth=0.6, zorder=0)
    ax.plot(online.t[1:] * NEURONS / STEP, np.asarray(online.risk)[1:], color=COLORS[0], linewidth=1.2)
    for power in (1, 3, 4):
        if D**power < online.t[-1] * NEURONS / STEP:
            ax.axvline(D**power, color=GREY, linewidth=0.6, linestyle="--", zorder=0)
            ax.annotate(
                "$d$" if power == 1 else f"$d^{power}$",
                (D**power, 4.6),
                xytext=(2, 0),
                textcoords="offset points",
                fontsize=TEXT,
                color=GREY,
            )
    ax.set_title(f"online SGD, d = {D}", loc="left", fontsize=TEXT)
    ax.set(xscale="log", ylim=(0, 5), xlabel="samples", ylabel="risk $R$")


def _label(
    ax: Any, n: FloatArray, values: FloatArray, level: float, name: str, color: str, side: tuple[int, str]
) -> None:
    """Name a curve where it first passes a level, on one side of it."""
    at = int(np.argmax(values > level))
    ax.annotate(
        name,
        (n[at], level),
        xytext=(side[0], 0),
        textcoords="offset points",
        ha=side[1],
        va="center",
        fontsize=TEXT,
        color=color,
    )
