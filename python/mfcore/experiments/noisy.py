"""With noise the limit goes to its Gibbs law: free energy, certificates, and the price in risk.

The noisy dynamics of Mei, Montanari, Nguyen (2018), ∂ρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, for which no figure was
published; the settings are ours. Isotropic classes with d = 40, Δ = 0.4, the truncated ReLU, the start
N(0, 0.8²/d · I), and λ = d/(4β): F = R/2 + β⁻¹ KL(ρ ‖ N(0, 4/d · I)) up to a constant. F falls to F(ρ*),
ρ* ∝ exp(−βΨ_λ(·; ρ*)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..density._pde import PDE
from ..measures._distance import kl
from ..measures._energy import free_energy
from ..measures._functions import grad_psi
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots import density
from ..plots._axes import COLORS, GREY, TEXT, stroke
from ..runs._solve import log_times
from ..runs._trajectory import Trajectory
from ..stationary._certificate import certificate
from ..stationary._gibbs import gibbs
from ..stationary._optimum import optimum
from ..stationary._stationary import Stationary
from ._chance import sampling_gap
from ._panels import LIMIT, NETWORK, blank, networks, power, quiet
from ._ramps import TRUNCATED
from ._report import Report
from ._row import Row, averaged
from ._source import Because, computed, exact
from ._work import Work

D, DELTA, NORM = 40, 0.4, 0.8
SIGMA = activations.piecewise_linear(*TRUNCATED)
NOISE = 0.1  # D/β of the runs over time
NOISES = tuple(float(f"{noise:.3g}") for noise in np.geomspace(1e-3, 1.0, 13))  # D/β of the stationary laws
BOX = (0.0, 4.0)  # interval of radii; the Gibbs law has 1e-12 of its mass beyond 3.8
HORIZON = 100.0


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    cells: int = 800
    step: float = 4e-5  # not compared with smaller ones
    until: float = 8.0  # horizon of the networks
    neurons: int = 800
    replicas: int = 6


FULL = Size()
QUICK = Size(cells=400, step=8e-5)


def model(noise: float) -> Model:
    """The model with D/β = `noise`, on the clock of this library: dθ = −∇Ψ_λ dt + √(2/β) dB."""
    return Model(
        data=data.IsotropicGaussians(d=D, delta=DELTA),
        network=Network(SIGMA),
        init=init.Radial(NORM),
        ridge=noise / 4,
        temperature=noise / D,
    )


def run(work: Work, size: Size) -> Report:
    """Run the PDE to its stationary law, compute stationary laws at other temperatures, and run noisy SGD."""
    noisy = model(NOISE)
    times = np.unique([0.0, *log_times(1e-2, HORIZON, 40), size.until])
    method = PDE(size.cells, extent={"r": BOX}, error=False)
    pde = work.solve("pde", noisy, method, horizon=HORIZON, save_at=times, keep="all")
    # The error of the density: half of its cells.
    half = PDE(size.cells // 2, extent={"r": BOX}, error=False)
    work.solve("pde-half", noisy, half, horizon=size.until, save_at=[size.until])
    sgd = work.solve(
        "sgd",
        noisy,
        SGD(size.neurons, step=size.step, replicas=size.replicas),
        steps=round(size.until / size.step),
        horizon=size.until,
        save_at=[size.until],
        keep="all",
    )
    edges = pde.final.edges[0]
    law = gibbs(noisy, extent=(edges[0], edges[-1]), cells=len(edges) - 1)
    energy = _energies(noisy, pde, law)
    best = optimum(noisy.replace(temperature=0.0, ridge=0.0))
    prices = np.array([gibbs(model(noise)).risk for noise in NOISES]) - best.risk
    arrays = {**energy, "noise": np.array(NOISES), "price": prices, "gibbs/mass": law.measure.mass}
    coarse = gibbs(noisy, extent=(edges[0], edges[-1]), cells=(len(edges) - 1) // 2)
    balance = [_virial(noisy, one) for one in (law, coarse)]
    return Report(
        name="noisy",
        title="With noise the limit goes to its Gibbs law",
        caption=(
            f"Two isotropic Gaussian classes, d = {D}, Δ = {DELTA}, truncated ReLU, decay λ = d/(4β). Left, "
            f"at d/β = {NOISE:g}: F(ρ_t) − F*, which is exactly the sum of β⁻¹KL(ρ_t ‖ ρ*) and of half the "
            "squared distance of the predictions, ½E(f_t − f*)². The predictions relax first, by drift, the "
            "shape of the law later, by diffusion: the kinks are where one part takes over from the "
            "other. The "
            "certificate, computed from ρ_t alone, is never less than F(ρ_t) − F*. Middle: "
            f"the density of the PDE at t = {HORIZON:g} over ρ* ∝ r^(d−1)·exp(−βΨ_λ) (broken, by Newton's "
            f"method, duality gap {power(law.gap)}), and before, at t = {size.until:g}, over {networks(sgd)} "
            f"(bars, with Langevin noise, h = {power(size.step)}). Right: the risk of ρ* above the least of "
            f"all measures, {best.risk:.5f}, against d/β, and the slope 1 of the theorem's bound: it "
            "bends slowly, below that slope from d/β ≈ 10⁻² and above it from 0.2 on."
        ),
        figure=_figure(pde, sgd, law, energy, prices, size),
        rows=_rows(work.runs, law, energy, prices, balance, size),
        runs=work.runs,
        arrays=arrays,
        notes=[
            "The published recursion and PDE have different temperatures (mfcore.conventions); here β is "
            "that of the PDE and of the Gibbs law. F* is the least on the PDE's own cells. The "
            "certificate is "
            "β⁻¹KL(ρ_t ‖ ρ̂_t), ρ̂_t ∝ r^(d−1)·exp(−βΨ_λ(·; ρ_t)); where ρ̂_t underflows, at the start, "
            "it is the "
            "same number as F(ρ_t) − D(f_t), with the dual D as an integral.",
            "All settings are ours: nothing is inferred from a publication.",
        ],
    )


def _energies(noisy: Model, pde: Trajectory, law: Stationary) -> dict[str, FloatArray]:
    """F(ρ_t) − F*, its certified bound from above, and β⁻¹KL(ρ_t ‖ ρ*), its bound from below."""
    reduced = noisy.reduce()
    measures: list[Any] = list(pde.kept.values())
    target: Any = law.measure
    free = np.array([free_energy(reduced, rho) for rho in measures])
    bounds = [certificate(reduced, rho) for rho in measures]
    # The dual as an integral says the same if the law that the bound compares with underflows.
    certified = [
        one.gap if np.isfinite(one.gap) else value - one.lower_bound
        for one, value in zip(bounds, free, strict=True)
    ]
    return {
        "t": np.array(list(pde.kept)),
        "excess": free - free_energy(reduced, law.measure),
        "certified": np.array(certified),
        "entropy": np.array([noisy.temperature * kl(rho, target) for rho in measures]),
    }


def _virial(noisy: Model, law: Stationary) -> float:
    """∫r ∂_rΨ_λ(r; ρ*) dρ*(r), which is d/β for the stationary law: by parts, as ρ* ∝ r^(d−1)·exp(−βΨ_λ)."""
    reduced = noisy.reduce()
    cloud = law.measure.as_cloud()
    slopes = grad_psi(reduced, cloud.points, law.measure)[:, 0]
    return float(cloud.weights @ (cloud.points[:, 0] * slopes))


def _rows(
    runs: Mapping[str, Trajectory],
    law: Stationary,
    energy: Mapping[str, FloatArray],
    prices: FloatArray,
    balance: Sequence[float],
    size: Size,
) -> list[Row]:
    pde, half, sgd = (runs[name] for name in ("pde", "pde-half", "sgd"))
    excess, rounding = energy["excess"], 1e-12
    distance = float(np.abs(pde.final.mass - law.measure.mass).sum())
    rate = float(np.log(prices[1] / prices[0]) / np.log(NOISES[1] / NOISES[0]))
    next_rate = float(np.log(prices[2] / prices[1]) / np.log(NOISES[2] / NOISES[1]))
    # Second order in the cells: half as many are wrong by four times as much; 1.25 is the factor of safety of
    # the grid convergence index.
    stated = 1.25 * abs(balance[0] - balance[1]) / 3
    virial = Row("∫r ∂_rΨ_λ dρ*", balance[0], NOISE, 0.0, exact("d/β, by parts"), stated)
    gap = sampling_gap(model(NOISE), pde.kept[size.until])
    draws = (
        f"N = {size.neurons}: independent draws of the density would add {gap:.3g}/N, of which "
        "drift takes back "
    )
    # 4.58 ± 0.05 at N = 100 and t = 8 in runs apart from these; steps add noise of order h·d.
    why = {"risk": Because(draws + "two thirds", 4.3 / size.neurons, 5.5 / size.neurons)}
    names = {"risk": "risk", "norm_mean": "mean |w|", "norm_std": "standard deviation of |w|"}
    return [
        virial,
        Row(
            "times at which F rose",
            float((np.diff(excess) > rounding).sum()),
            0.0,
            0.0,
            exact("gradient flow"),
        ),
        Row(
            "times at which F − F* was above the certificate",
            float((excess > energy["certified"] + rounding).sum()),
            0.0,
            0.0,
            exact("convexity"),
        ),
        Row(
            "times at which F − F* was below β⁻¹KL(ρ ‖ ρ*)",
            float((excess < energy["entropy"] - rounding).sum()),
            0.0,
            0.0,
            exact("convexity"),
        ),
        Row(
            f"∫|ρ_t − ρ*| at t = {HORIZON:g}",
            distance,
            0.0,
            float(np.sqrt(2 * D / NOISE * (max(excess[-1], 0.0) + rounding))),
            exact("0 up to Pinsker's √(2β(F − F*)), F − F* up to rounding"),
        ),
        Row(
            "slope of log(R(ρ*) − inf R) in log d/β at the least noise",
            rate,
            1.0,
            0.0,
            exact("R(ρ*) ≤ inf R + C·D/β, met as d/β → 0"),
            abs(rate - next_rate),
            because=Because(
                "the slope comes from below, and is nearer at the least noise than at the next",
                next_rate - 1.0,
                0.0,
            ),
        ),
        *(_beside(what, name, sgd, pde, half, size.until, why.get(name)) for name, what in names.items()),
    ]


def _beside(
    what: str, name: str, sgd: Trajectory, pde: Trajectory, half: Trajectory, t: float, why: Because | None
) -> Row:
    """A number of the networks beside that of the density, whose error half of the cells tell."""
    series = (run.risk if name == "risk" else run.observed[name] for run in (pde, half))
    at = (int(np.abs(pde.t - t).argmin()), -1)
    there, other = (float(values[k]) for values, k in zip(series, at, strict=True))
    source = computed(PDE, "the density here")
    last = len(sgd.t) - 1
    return averaged(f"{what} of SGD at t = {t:g}", sgd, name, last, there, abs(there - other), source, why)


def _figure(
    pde: Trajectory,
    sgd: Trajectory,
    law: Stationary,
    energy: Mapping[str, FloatArray],
    prices: Sequence[float] | FloatArray,
    size: Size,
) -> Any:
    figure = blank((9.6, 3.5))
    left, middle, right = (quiet(ax) for ax in figure.subplots(1, 3))
    t = energy["t"]
    distance = energy["excess"] - energy["entropy"]
    for values, number, color, label in (
        (energy["certified"], 1, GREY, "certificate"),
        (energy["excess"], 0, LIMIT, "$F(ρ_t) - F_*$, the sum of"),
        (energy["entropy"], 2, COLORS[2], r"  $β^{-1}$KL$(ρ_t\,\|\,ρ_*)$ and"),
        (distance, 3, COLORS[0], r"  $\frac{1}{2}$E$(f_t - f_*)^2$"),
    ):
        shown = (t > 0) & np.isfinite(values) & (values > 1e-11)
        left.plot(t[shown], values[shown], color=color, label=label, **stroke(number))
    left.set(xscale="log", yscale="log", xlabel="time $t$", ylabel="free energy above the least")
    left.legend(frameon=False, fontsize=TEXT - 1, loc="lower left")
    density({"SGD": sgd}, times=size.until, bins=40, coordinate="norm", ax=middle)
    middle.set_title("")
    middle.set_title("", loc="left")
    for text in middle.texts:
        text.remove()
    for rho, style, color, label in (
        (pde.kept[size.until], "-", NETWORK, f"PDE, t = {size.until:g}"),
        (pde.final, "-", LIMIT, f"PDE, t = {HORIZON:g}"),
        (law.measure, (0, (3, 2)), "black", "Gibbs law"),
    ):
        middle.plot(rho.centers[0], rho.density, linestyle=style, color=color, linewidth=1.6, label=label)
    top = 1.6 * float(pde.kept[size.until].density.max())
    middle.set(xlabel="$|w|$", ylabel="density", xlim=(1.0, 2.4), ylim=(0, top))
    bars = f"bars: SGD, t = {size.until:g}"
    middle.legend(frameon=False, fontsize=TEXT, loc="upper left", title=bars, title_fontsize=TEXT)
    right.plot(NOISES, prices, "o-", color=LIMIT, markersize=4, linewidth=1.2)
    guide = np.array(NOISES)
    right.plot(guide, prices[0] * guide / guide[0], color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    right.text(0.1, 5.5e-3, "slope 1", color=GREY, fontsize=TEXT, ha="right")
    right.set(xscale="log", yscale="log", xlabel="$d/β$", ylabel="$R(ρ_*) -$ inf $R$")
    return figure
