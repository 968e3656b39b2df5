"""How well N neurons stand for a measure: independent, stratified and greedy ones, with bound and truth.

A picture of the theory; the settings are ours. Of a measure ρ, N independent neurons have E R_N − R = gap/N
exactly, whatever ρ is. Where ρ is no minimiser, R_N fluctuates about its mean by N^{-1/2}; at a minimiser,
here a law that is its own teacher, only 1/N is left. Greedy neurons stay below R + gap/N with certainty.
The best N neurons do far better than any of these promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .. import activations, data, init
from .._base.check import FloatArray
from ..measures._functions import predict, psi, risk
from ..measures._measure import Cloud
from ..model import Model
from ..network import Network
from ..perturbations._approximation import approximation_gap
from ..perturbations._quantise import quantise
from ..plots._axes import COLORS, TEXT, marker
from . import _best_neurons
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample
from ._source import about, exact
from ._work import Work

NETWORK = Network(activations.tanh, output="trained")
LAW = init.Product(a=init.Normal(0.5, 1.0), w=init.Normal(1.0, 2.0))
X = np.linspace(-2.0, 2.0, 24)[:, None]
METHODS = ("iid", "stratified", "greedy")
MEASURES = ("teacher", "other labels")


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    neurons: tuple[int, ...] = tuple(2**k for k in range(13))
    replicas: int = 200
    side: int = 24  # Gauss nodes for each of a and w
    octave: int = 12  # numbers of neurons in each octave, of which the best are sought
    starts: int = 10  # random neurons that the search begins at


FULL = Size()
QUICK = Size(neurons=tuple(4**k for k in range(6)), replicas=60, side=16, octave=4, starts=4)


def run(work: Work, size: Size) -> Report:
    """Quantise a law with its own labels, and with others."""
    models, rho = measures(size.side)
    excess: dict[str, FloatArray] = {}
    for name, model in models.items():
        whole = risk(model, rho)
        for method in METHODS:
            work.tell(f"{name}, {method} …")
            rows = []
            for n in size.neurons:
                draws = 1 if method == "greedy" else size.replicas
                seeds = (np.random.SeedSequence([work.seed, n, k]) for k in range(draws))
                rows.append(
                    [
                        risk(model, quantise(model, rho, n, method, rng=np.random.default_rng(s))) - whole
                        for s in seeds
                    ]
                )
            excess[f"{name}/{method}"] = np.array(rows)
    gaps = {name: approximation_gap(model, rho) for name, model in models.items()}
    work.tell("the best N neurons …")
    last = np.log2(size.neurons[-1])
    counts = np.unique(np.round(2 ** np.arange(0.0, last + 1e-9, 1 / size.octave)))
    least, gap, more = _best_neurons.excesses(counts, size.starts, work.seed)
    work.arrays.update(excess | {"neurons": np.array(size.neurons, dtype=float)})
    work.arrays.update({"best/neurons": counts, "best/excess": least})
    return Report(
        name="approximation",
        title="N neurons for a measure",
        caption=(
            f"The mean of |R_N − R| for N neurons of a law of {len(rho)} atoms, tanh with output weights, 24 "
            "points on a line. Left: labels are those of the law itself: a minimiser. Middle: labels sin 3x. "
            f"Independent and stratified draws: means over {size.replicas}. Dashed: gap/N, the exact mean of "
            "R_N − R of independent neurons and the bound of greedy ones. With other labels greedy neurons "
            "leave the law for a better one: there R_N < R. Right: with labels sin 3x and decay, by how much "
            "the least E = R/2 + (λ/2)∫|θ|²dρ of N neurons (the best of searches from several starts) is "
            f"above that of all measures, λ = {_best_neurons.RIDGE:g}. The best measure has two atoms, and N "
            "neurons can only give them masses k/N: what is lost is the square of that rounding, at most of "
            "order N⁻², and all but nothing where N times a mass is nearly whole. The promise gap/(2N) is "
            "for neurons drawn from that measure."
        ),
        figure=_figure(size, excess, gaps, (counts, least, gap)),
        rows=[*_rows(size, excess, gaps, models, rho), *more],
        runs=work.runs,
        arrays=work.arrays,
    )


def measures(side: int) -> tuple[dict[str, Model], Cloud]:
    """The two models, and the law of neurons: Gauss nodes of both parameters."""
    unlabelled = Model(data.Dataset(X, np.zeros(len(X))), NETWORK, LAW)
    rho = Cloud(*unlabelled.reduce().initial.quadrature(side))
    labels = (predict(unlabelled, rho, X), np.sin(3 * X[:, 0]))
    models = {name: Model(data.Dataset(X, y), NETWORK) for name, y in zip(MEASURES, labels, strict=True)}
    return models, rho


def _rows(
    size: Size, excess: dict[str, FloatArray], gaps: dict[str, float], models: dict[str, Model], rho: Cloud
) -> list[Row]:
    neurons = np.array(size.neurons, dtype=float)
    rows = []
    for name, model in models.items():
        gap = gaps[name]
        phi = np.array([predict(model, [row], X) for row in rho.points])
        f = rho.weights @ phi
        variance = float(rho.weights @ np.square(phi).mean(axis=1) - np.square(f).mean())
        greedy = excess[f"{name}/greedy"][:, 0]
        over = float(np.maximum(greedy - gap / neurons, 0.0).max())
        rows.append(Row(f"gap, {name}", gap, variance, 1e-12, exact("E Var σ*")))
        middle = len(size.neurons) // 2
        n = size.neurons[middle]
        iid = n * excess[f"{name}/iid"][middle]
        rows.append(sample(f"N(E R_N − R), N = {n}, independent, {name}", iid, gap, 0.0, exact("gap")))
        rows.append(Row(f"greedy above R + gap/N, any N, {name}", over, 0.0, 1e-13, exact("never")))
        wanted = -1.0 if name == MEASURES[0] else -0.5
        slope, half = slope_of(neurons[1:], excess[f"{name}/iid"][1:])
        both = _folded(neurons[1:], gap, deviation(model, rho), size.replicas) if wanted == -0.5 else wanted
        because = about(
            f"N(gap/N, 4 Var Ψ/N) is half fluctuations and half bias at small N: its mean |·| has {both:.3f}",
            both - wanted,
        )
        source = exact("−1 at a minimiser" if wanted == -1 else "−1/2 as N → ∞")
        rows.append(
            Row(
                f"slope of E|R_N − R| in N, independent, {name}",
                slope,
                wanted,
                0.0,
                source,
                half,
                half / 1.96,
                because,
            )
        )
    return rows


def deviation(model: Model, rho: Cloud) -> float:
    """The standard deviation of √N(R_N − R) of independent neurons as N → ∞: 2 sd Ψ."""
    values = psi(model, rho.points, rho)
    middle = float(rho.weights @ values)
    return 2 * math.sqrt(float(rho.weights @ (values - middle) ** 2))


def _folded(neurons: FloatArray, gap: float, sd: float, draws: int) -> float:
    """The slope that `slope_of` has for normal R_N − R of mean gap/N and standard deviation sd/√N."""
    law = stats.norm(gap / neurons, sd / np.sqrt(neurons))
    middles = law.ppf(((np.arange(draws) + 0.5) / draws)[:, None])
    return slope_of(neurons, middles.T)[0]


def slope_of(neurons: FloatArray, excess: FloatArray) -> tuple[float, float]:
    """The slope of the logarithm of the mean |excess| in log N, and half of its 95 % interval."""
    sizes = np.abs(excess)
    error = sizes.std(axis=1, ddof=1) / np.sqrt(sizes.shape[1]) / sizes.mean(axis=1)
    weights, u, v = error**-2.0, np.log(neurons), np.log(sizes.mean(axis=1))
    u = u - np.average(u, weights=weights)
    slope = float(weights @ (u * v) / (weights @ u**2))
    return slope, float(stats.norm.ppf(0.975) / np.sqrt(weights @ u**2))


def _figure(
    size: Size,
    excess: dict[str, FloatArray],
    gaps: dict[str, float],
    best: tuple[FloatArray, FloatArray, float],
) -> Any:
    figure = blank((11.5, 3.4))
    *panels, last = figure.subplots(1, 3)
    neurons = np.array(size.neurons, dtype=float)
    for ax, name in zip(panels, MEASURES, strict=True):
        quiet(ax)
        for k, method in enumerate(METHODS):
            mean = np.abs(excess[f"{name}/{method}"]).mean(axis=1)
            name_of = {"iid": "independent"}.get(method, method)
            ax.plot(neurons, mean, color=COLORS[k], linewidth=0.8, label=name_of, **marker(k))
        ax.plot(neurons, gaps[name] / neurons, color="black", linestyle="--", linewidth=0.8, label="gap/$N$")
        ax.set(xscale="log", yscale="log", xlabel="neurons $N$")
        ax.set_title(f"labels: {'the law itself' if name == 'teacher' else 'sin 3x'}", fontsize=TEXT)
    panels[0].set_ylabel("mean of $|R_N - R|$")
    panels[0].legend(frameon=False, fontsize=TEXT - 1)
    counts, least, gap = best
    seen = least > 1e-15
    dots: dict[str, Any] = {"color": COLORS[3], "markersize": 2.5, "label": "best $N$ neurons"}
    quiet(last).plot(counts[seen], least[seen], "o", **dots)
    last.plot(counts, 0.5 * gap / counts, color="black", linestyle="--", linewidth=0.8, label="gap/$2N$")
    top = (least * counts**2)[counts >= 8].max()
    last.plot(counts, top / counts**2, color="black", linestyle=":", linewidth=0.8, label="slope $-2$")
    last.set(xscale="log", yscale="log", xlabel="neurons $N$", ylabel=r"$\min E_N - \inf E$")
    last.set_title("labels: sin 3x, with decay", fontsize=TEXT)
    last.legend(frameon=False, fontsize=TEXT - 1)
    return figure
