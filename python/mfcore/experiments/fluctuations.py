"""Fluctuations of finite networks: N times their square, from theory and from independent networks.

A picture of the theory; the settings are ours. Networks of N neurons learn eight points on a line from
independent starts. To leading order N E‖f_N − f‖² does not depend on N; it starts at the constant of
independent neurons and dies out as the risk does (Rotskoff and Vanden-Eijnden), so that the error of f_N is
of order N^{-1/2} at any finite time and smaller at a minimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..atoms._atoms import Atoms
from ..measures._functions import predict
from ..measures._measure import Cloud
from ..model import Model
from ..network import Network
from ..neurons._methods import Particles
from ..perturbations._approximation import approximation_gap
from ..perturbations._fluctuations import Fluctuations, fluctuations
from ..plots._axes import COLORS, TEXT, marker
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample
from ._source import computed, exact
from ._work import Work

X = np.linspace(-1.75, 1.75, 8)[:, None]
MODEL = Model(
    data=data.Dataset(X, np.sin(X[:, 0])),
    network=Network(activations.tanh, output="trained"),
    init=init.Product(a=init.Normal(0.3, 0.6), w=init.Normal(0.5, 0.7)),
)
TIMES = np.array([0.0, 0.5, 2.0, 8.0])


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    neurons: tuple[int, ...] = (50, 200, 800)
    runs: int = 400
    atoms: int = 144
    points: int = 33


FULL = Size()
QUICK = Size(neurons=(50, 200), runs=60, atoms=64, points=9)


def run(work: Work, size: Size) -> Report:
    """Compute the limits, and train networks of several widths from independent starts."""
    times = np.union1d(np.linspace(0.0, TIMES[-1], size.points), TIMES)
    work.tell("theory …")
    theory = fluctuations(MODEL, float(TIMES[-1]), times, atoms=size.atoms)
    quadrature = MODEL.reduce().initial.quadrature(round(size.atoms**0.5))
    start = Cloud(*quadrature)
    observe: dict[str, Any] = {"f": lambda rho: predict(MODEL, rho, X)}
    limit = work.solve(
        "limit", MODEL, Atoms(start=start, rtol=1e-9), horizon=TIMES[-1], save_at=TIMES, observe=observe
    )
    squares = {}
    for n in size.neurons:
        work.tell(f"{size.runs} networks of {n} neurons …")
        found = []
        for k in range(size.runs):
            rng = np.random.SeedSequence([work.seed, n, k])
            one = Work(seed=0, threads=work.threads).solve(
                "network", MODEL, Particles(n), horizon=TIMES[-1], save_at=TIMES, observe=observe, rng=rng
            )
            found.append(n * np.square(one.observed["f"] - limit.observed["f"]).mean(axis=1))
        squares[n] = np.array(found)
        work.arrays[f"{n}/squares"] = squares[n]
    work.arrays.update({"t": theory.t, "output": theory.output, "offset": theory.offset})
    return Report(
        name="fluctuations",
        title="Fluctuations of finite networks",
        caption=(
            "N E‖f_N − f‖² over time: theory as N → ∞ (line), and means over "
            f"{size.runs} networks of {', '.join(map(str, size.neurons))} neurons (points, 95 % intervals). "
            "Dashed: the risk of the limit on the same axes. Eight points on a line, tanh, trained output "
            f"weights; ρ₀ by {theory.atoms} Gauss nodes."
        ),
        figure=_figure(theory, squares),
        rows=list(_rows(theory, squares, start)),
        runs=work.runs,
        arrays=work.arrays,
    )


def _rows(theory: Fluctuations, squares: dict[int, FloatArray], start: Cloud) -> list[Row]:
    at = [int(np.abs(theory.t - t).argmin()) for t in TIMES]
    gap = approximation_gap(MODEL, start)
    rows = [
        Row("N E‖f_N − f‖² at t = 0, theory", float(theory.output[0]), gap, 1e-9, exact("∫U(θ, θ) − ∫∫U")),
        Row("N(E R_N − R) at t = 0, theory", float(theory.offset[0]), gap, 1e-6, exact("the same")),
    ]
    source = computed(fluctuations, "its leading order in 1/N")
    for n, values in squares.items():
        for k, t in enumerate(TIMES):
            name = f"N E‖f_N − f‖², N = {n}, t = {t:g}"
            rows.append(sample(name, values[:, k], float(theory.output[at[k]]), 0.0, source))
    return rows


def _figure(theory: Fluctuations, squares: dict[int, FloatArray]) -> Any:
    figure = blank((6.0, 3.6))
    ax = quiet(figure.subplots())
    ax.plot(theory.t, theory.output, color="black", label="theory, $N → ∞$")
    ax.plot(theory.t, theory.risk, color="0.6", linestyle="--", label="risk of the limit")
    width = 0.07
    for k, (n, values) in enumerate(squares.items()):
        half = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        places = TIMES + width * (k - (len(squares) - 1) / 2)
        ax.errorbar(
            places,
            values.mean(axis=0),
            half,
            linestyle="none",
            color=COLORS[k],
            label=f"$N$ = {n}",
            **marker(k),
        )
    ax.set(xlabel="time $t$", ylabel=r"$N\,\mathsf{E}\,\|f_N - f\|^2$", yscale="log")
    ax.legend(frameon=False, fontsize=TEXT - 1)
    return figure
