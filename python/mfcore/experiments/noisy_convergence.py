"""Noise makes convergence global and exponential: free energy against its two bounds and the spectral gap.

A picture of the theory; the settings are ours. One neuron parameter z on a line, two data points, noise and
decay. The free energy of the density is between relative entropies to the stationary law and to the Gibbs law
of the present potential, and falls at twice the smallest rate of the linearised equation. Colder stationary
laws have less risk, at most in proportion to the temperature. So a density that is cooled, slowly enough to
stay near the law of the present temperature, comes to the least value of what it descends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..density._pde import PDE
from ..measures._distance import kl
from ..measures._energy import free_energy
from ..measures._measure import Density
from ..perturbations._relaxation import Relaxation, relaxation
from ..plots._axes import COLORS, TEXT, marker
from ..reductions._model import ReducedModel
from ..runs._trajectory import Trajectory
from ..stationary._certificate import certificate
from ..stationary._gibbs import gibbs
from ..stationary._optimum import optimum
from ._panels import blank, quiet
from ._report import Report
from ._row import Row
from ._source import Because, about, computed, exact
from ._work import Work

RIDGE, TEMPERATURE, REACH = 0.5, 0.4, 5.0
HORIZON = 10.0
MODEL = ReducedModel(
    coordinates=("z",),
    weights=np.array([0.5, 0.5]),
    targets=np.array([0.5, -1.0]),
    ridge=RIDGE,
    temperature=TEMPERATURE,
    features=lambda z: np.concatenate([2 * np.tanh(2 * z), 2 * np.tanh(z - 0.5)], axis=1),
    gradients=lambda z: np.stack([4 / np.cosh(2 * z) ** 2, 2 / np.cosh(z - 0.5) ** 2], axis=1),
)
OBJECTIVE = replace(MODEL, temperature=0.0)  # whose free energy is R/2 + (λ/2)∫z²dρ
COOLING = 40.0  # how long it is cooled
LATE = 0.6  # the slope is measured from this share of the time on


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    cells: int = 800
    step: float = 0.01
    points: int = 41
    temperatures: int = 9


FULL = Size()
QUICK = Size(cells=200, step=0.04, points=17, temperatures=5)


def temperature(t: float) -> float:
    """1/β with β = β₀ log(e + t)."""
    return TEMPERATURE / math.log(math.e + t)


def run(work: Work, size: Size) -> Report:
    """Follow a density from a narrow start on the wrong side, and stationary laws of falling temperature."""
    edges = np.linspace(-REACH, REACH, size.cells + 1)
    z = 0.5 * (edges[1:] + edges[:-1])
    mass = np.exp(-((z + 2) ** 2) / 0.08)
    start = Density(edges, mass / mass.sum())
    times = np.linspace(0.0, HORIZON, size.points)
    pde = work.solve(
        "pde",
        MODEL,
        PDE(start=start, error=False, step=size.step),
        horizon=HORIZON,
        save_at=times,
        keep="all",
    )
    energies = np.array([_energies(rho) for rho in pde.kept.values() if isinstance(rho, Density)])
    assert isinstance(pde.final, Density)
    rest = gibbs(MODEL, cells=size.cells, extent=(-REACH, REACH))
    assert isinstance(rest.measure, Density)
    modes = relaxation(MODEL, rest.measure)
    cold: FloatArray = np.asarray(TEMPERATURE * 0.5 ** np.arange(size.temperatures), dtype=np.float64)
    work.tell("stationary laws …")
    plain = replace(MODEL, ridge=0.0, temperature=0.0)
    least = optimum(plain, extent=(-REACH, REACH)).risk
    laws = [gibbs(replace(MODEL, ridge=0.0, temperature=t), extent=(-REACH, REACH)) for t in cold]
    excess = np.array([law.risk - least for law in laws])
    cooled, warm = _cooled(work, start, size)
    work.arrays |= {"cooling/t": cooled.t, "cooling/objective": cooled.observed["objective"]}
    work.arrays.update({"t": pde.t, "energies": energies, "temperature": cold, "excess": excess})
    return Report(
        name="noisy-convergence",
        title="Noise makes convergence global and exponential",
        caption=(
            f"One parameter, two data points, λ = {RIDGE:g}, 1/β = {TEMPERATURE:g}. Left: F − F* of "
            "the density (line) between β⁻¹KL(ρ‖ρ*) and β⁻¹KL(ρ‖ρ̂) (shaded), ρ̂ the Gibbs law of the present "
            f"potential; dashed: the slope −2·{modes.rate:.4g} of the linearised equation. Middle: the risk "
            "of stationary laws without decay above the least one; dashed: slope 1, of the bound O(D/β). "
            "Right: R/2 + (λ/2)∫z²dρ above its minimum over all laws, of a density cooled by "
            f"β = {1 / TEMPERATURE:g}·log(e + t) (line), at the first temperature (dashed), and of "
            "the stationary laws of the temperatures on the way (points)."
        ),
        figure=_figure(pde.t, energies, modes, cold, excess, (cooled, warm)),
        rows=[*_rows(pde.t, energies, modes), _cold_row(cold, excess), *_cooling_rows(cooled, modes.rate)],
        runs=work.runs,
        arrays=work.arrays,
    )


def _cooled(work: Work, start: Density, size: Size) -> tuple[Trajectory, Trajectory]:
    """A density under falling temperature, and one under the first: R/2 + (λ/2)∫z²dρ above its minimum."""
    least = optimum(OBJECTIVE, extent=(-REACH, REACH)).value
    pde = PDE(start=start, error=False)
    options: dict[str, Any] = {
        "horizon": COOLING,
        "save_at": np.linspace(0.0, COOLING, 2 * size.points - 1),
        "observe": {"objective": lambda rho: free_energy(OBJECTIVE, rho) - least},
    }
    return (
        work.solve("cooled", replace(MODEL, temperature=temperature), pde, **options),
        work.solve("warm", MODEL, pde, **options),
    )


def _still(t: float) -> float:
    """The same of the stationary law of the temperature at time t."""
    law = gibbs(replace(MODEL, temperature=temperature(t)), extent=(-REACH, REACH))
    return float(free_energy(OBJECTIVE, law.measure) - optimum(OBJECTIVE, extent=(-REACH, REACH)).value)


def _cold_row(cold: FloatArray, excess: FloatArray) -> Row:
    """How the excess risk of the coldest two stationary laws goes with temperature."""
    *warmer, slope = (np.diff(np.log(excess)) / np.diff(np.log(cold)))[-3:]
    far = max(abs(one - 1.0) for one in warmer)
    return Row(
        "slope of R(ρ*_β) − inf R in 1/β at 1/β = "
        f"{cold[-1]:.2g}", slope, 1.0, 0.0, exact("1 as β → ∞: O(D/β)"),
        because=Because("slopes at twice and four times the temperature are no nearer to 1", -far, far),
    )  # fmt: skip


def _cooling_rows(cooled: Trajectory, rate: float) -> list[Row]:
    objective = cooled.observed["objective"]
    rows = []
    for t in (COOLING / 4, COOLING):
        here = float(objective[int(np.abs(cooled.t - t).argmin())])
        still, next_one = _still(t), _still(t + 0.1)
        # Relaxation at the rate μ₁ lags behind a law that moves by v a unit of time by v/μ₁; μ₁ is not
        # far from 1.
        speed = (next_one - still) / 0.1
        why = about(
            f"a density lags behind a law that moves by {speed:.2g} a unit of time", -speed / rate, 0.6
        )
        what = f"R/2 + (λ/2)∫z²dρ above its minimum at t = {t:g}, cooled by β = β₀ log(e + t)"
        rows.append(Row(what, here, still, 1e-6, computed(gibbs, "the stationary law there"), because=why))
    return rows


def _energies(rho: Density) -> tuple[float, float, float, float]:
    """β⁻¹KL(ρ‖ρ*), F − F*, β⁻¹KL(ρ‖ρ̂), and the first plus ½E(f − f*)², all on the cells of ρ."""
    box = (float(rho.edges[0][0]), float(rho.edges[0][-1]))
    found = gibbs(MODEL, cells=len(rho.mass), extent=box)
    assert isinstance(found.measure, Density)
    rest = Density(rho.edges, found.measure.mass)
    below = TEMPERATURE * kl(rho, rest)
    between = free_energy(MODEL, rho) - free_energy(MODEL, rest)
    f, g = (law.mass @ MODEL.features(law.centers[0]) for law in (rho, rest))
    identity = below + 0.5 * float(MODEL.weights @ (f - g) ** 2)
    return below, between, certificate(MODEL, rho).gap, identity


def _rows(t: FloatArray, energies: FloatArray, modes: Relaxation) -> list[Row]:
    below, between, above, identity = energies.T
    late = (t >= LATE * t[-1]) & (between > 1e-11)
    slope = float(np.polyfit(t[late], np.log(between[late]), 1)[0])
    under = float(np.maximum(below - between, 0.0).max())
    over = float(np.maximum(between - above, 0.0).max())
    rise = float(np.maximum(np.diff(between), 0.0).max())
    # The error of the fit, and that of steps: backward Euler decays at log(1 + μh)/h, less by μh/2 of it.
    middle = (t >= (LATE - 0.2) * t[-1]) & (t < 0.8 * t[-1]) & (between > 1e-11)
    error = abs(slope - float(np.polyfit(t[middle], np.log(between[middle]), 1)[0]))
    return [
        Row("largest β⁻¹KL(ρ‖ρ*) − (F − F*)", under, 0.0, 1e-9, exact("never above")),
        Row("largest F − F* − β⁻¹KL(ρ‖ρ̂)", over, 0.0, 1e-9, exact("never above")),
        Row("largest difference of F − F* to β⁻¹KL(ρ‖ρ*) + ½E(f − f*)²",
            float(np.abs(between - identity).max()), 0.0, 1e-9, exact("identity")),
        Row("largest rise of F between save points", rise, 0.0, 1e-10, exact("F falls")),
        Row("slope of log(F − F*) at late times", slope, -2 * modes.rate, 1e-3 * modes.rate,
            computed(relaxation, "−2 × the least rate"), error),
    ]  # fmt: skip


def _figure(
    t: FloatArray,
    energies: FloatArray,
    modes: Relaxation,
    cold: FloatArray,
    excess: FloatArray,
    cooling: tuple[Trajectory, Trajectory],
) -> Any:
    figure = blank((11.0, 3.4))
    left, right, last = figure.subplots(1, 3)
    below, between, above, _ = np.maximum(energies, 1e-16).T
    quiet(left).fill_between(t, below, above, color=COLORS[0], alpha=0.25, linewidth=0, label="bounds")
    left.plot(t, between, color=COLORS[0], label="$F - F_*$")
    k = len(t) // 2
    line = between[k] * np.exp(-2 * modes.rate * (t - t[k]))
    left.plot(t, line, color="black", linestyle="--", linewidth=0.8, label="slope $-2μ_1$")
    left.set(xlabel="time $t$", ylabel="$F - F_*$", yscale="log", ylim=(0.3 * between.min(), 3 * above.max()))
    left.legend(frameon=False, fontsize=TEXT - 1)
    quiet(right).plot(cold, excess, color=COLORS[1], linewidth=0.8, label="stationary", **marker(0))
    line = excess[-1] * cold / cold[-1]
    right.plot(cold, line, color="black", linestyle="--", linewidth=0.8, label="slope 1")
    right.legend(frameon=False, fontsize=TEXT - 1)
    right.set(xlabel="temperature $1/β$", ylabel=r"$R(ρ_*) - \inf R$", xscale="log", yscale="log")
    right.tick_params(which="minor", labelbottom=False)
    for run, style, label in zip(cooling, ("-", "--"), ("cooled", "not cooled"), strict=True):
        quiet(last).plot(run.t, run.observed["objective"], style, color=COLORS[2], label=label)
    times = np.linspace(0.0, COOLING, 9)
    last.plot(times, [_still(t) for t in times], "o", color="black", markersize=3.5, label="stationary there")
    last.set(xlabel="time $t$", ylabel=r"$R/2 + (λ/2)∫z^2dρ - \min$", yscale="log")
    last.legend(frameon=False, fontsize=TEXT - 1)
    return figure
