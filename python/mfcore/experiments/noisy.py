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
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots import density
from ..plots._axes import COLORS, GREY, TEXT
from ..runs._solve import log_times
from ..runs._trajectory import Trajectory
from ..stationary._certificate import certificate
from ..stationary._gibbs import Stationary, gibbs
from ..stationary._optimum import optimum
from ._panels import LIMIT, NETWORK, blank, networks, quiet
from ._report import Report, Row, averaged
from ._work import Work

D, DELTA, NORM = 40, 0.4, 0.8
SIGMA = activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
NOISE = 0.1  # D/β of the runs over time
NOISES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # D/β of the stationary laws
BOX = (0.0, 4.0)  # interval of radii; the Gibbs law has 1e-12 of its mass beyond 3.8
HORIZON = 100.0


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    cells: int = 800
    step: float = 1e-5
    until: float = 8.0  # horizon of the networks
    neurons: int = 800
    replicas: int = 4


FULL = Size()
QUICK = Size(cells=400, step=4e-5, replicas=2)


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
    sgd = work.solve(
        "sgd",
        noisy,
        SGD(size.neurons, step=size.step, replicas=size.replicas),
        steps=round(size.until / size.step),
        horizon=size.until,
        save_at=[size.until],
        keep="all",
    )
    edges = pde.final.edges[0]  # type: ignore[union-attr]
    law = gibbs(noisy, extent=(edges[0], edges[-1]), cells=len(edges) - 1)
    energy = _energies(noisy, pde, law)
    best = optimum(noisy.replace(temperature=0.0, ridge=0.0))
    prices = np.array([gibbs(model(noise)).risk for noise in NOISES]) - best.risk
    arrays = {**energy, "noise": np.array(NOISES), "price": prices, "gibbs/mass": law.measure.mass}  # type: ignore[union-attr]
    return Report(
        name="noisy",
        title="With noise the limit goes to its Gibbs law",
        caption=(
            f"Two isotropic Gaussian classes, d = {D}, Δ = {DELTA}, truncated ReLU, decay λ = d/(4β). Left, "
            f"at d/β = {NOISE:g}: what the free energy has above its least value F*; the certificate, "
            "computed from ρ_t alone and never less; and the relative entropy to ρ*, never more. Middle: "
            f"the density of the PDE at t = {HORIZON:g} over ρ* ∝ r^(d−1)·exp(−βΨ_λ) (broken, by Newton's "
            f"method, duality gap {law.gap:.0e}), and before, at t = {size.until:g}, over {networks(sgd)} "
            f"(bars, with Langevin noise, h = {size.step:g}). Right: the risk of ρ* above the least of all "
            f"measures, {best.risk:.5f}, against d/β."
        ),
        figure=_figure(pde, sgd, law, energy, prices, size),
        rows=_rows(pde, sgd, law, energy, prices, size),
        runs=work.runs,
        arrays=arrays,
        notes=[
            "The published recursion and PDE have different temperatures (mfcore.conventions); here β is "
            "that of the PDE and of the Gibbs law. F* is the least on the PDE's own cells. Certificates are "
            "infinite as long as ρ_t is 0 somewhere, and are drawn where they are finite."
        ],
    )


def _energies(noisy: Model, pde: Trajectory, law: Stationary) -> dict[str, FloatArray]:
    """F(ρ_t) − F*, its certified bound from above, and β⁻¹KL(ρ_t ‖ ρ*), its bound from below."""
    reduced = noisy.reduce()
    measures: list[Any] = list(pde.kept.values())
    target: Any = law.measure
    return {
        "t": np.array(list(pde.kept)),
        "excess": np.array([free_energy(reduced, rho) for rho in measures])
        - free_energy(reduced, law.measure),
        "certified": np.array([certificate(reduced, rho).gap for rho in measures]),
        "entropy": np.array([noisy.temperature * kl(rho, target) for rho in measures]),
    }


def _rows(
    pde: Trajectory,
    sgd: Trajectory,
    law: Stationary,
    energy: Mapping[str, FloatArray],
    prices: FloatArray,
    size: Size,
) -> list[Row]:
    assert pde.risk is not None
    assert sgd.risk is not None
    excess, rounding = energy["excess"], 1e-12
    distance = float(np.abs(pde.final.mass - law.measure.mass).sum())  # type: ignore[union-attr]
    slope = float(np.log(prices[2] / prices[0]) / np.log(NOISES[2] / NOISES[0]))
    at = int(np.abs(pde.t - size.until).argmin())
    # SGD: 800 independent draws of ρ would have a risk 0.018 above it on average, (∫U(θ, θ)dρ − ∫∫U)/N.
    return [
        Row("times at which F rose", float((np.diff(excess) > rounding).sum()), 0.0, 0.5, "gradient flow"),
        Row(
            "times at which F − F* was above the certificate",
            float((excess > energy["certified"] + rounding).sum()),
            0.0,
            0.5,
            "convexity",
        ),
        Row(
            "times at which F − F* was below β⁻¹KL(ρ ‖ ρ*)",
            float((excess < energy["entropy"] - rounding).sum()),
            0.0,
            0.5,
            "convexity",
        ),
        Row("∫|ρ_T − ρ*|", distance, 0.0, 1e-4, "stationary law"),
        Row("F(ρ_T) − F*", float(excess[-1]), 0.0, 1e-8, "stationary law"),
        Row("slope of log(R(ρ*) − inf R) in log d/β, to 0.01", slope, 1.0, 0.15, "R(ρ*) ≤ inf R + C·D/β"),
        *(
            averaged(f"{what} at t = {size.until:g}", here[-1], float(there[at]), 0.02, "the PDE here")
            for what, here, there in (
                ("risk of SGD", sgd.risk, pde.risk),
                ("mean of |w|", sgd.observed["norm_mean"], pde.observed["norm_mean"]),
                ("standard deviation of |w|", sgd.observed["norm_std"], pde.observed["norm_std"]),
            )
        ),
    ]


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
    t, lines = energy["t"], ((GREY, "certified"), (LIMIT, "excess"), (COLORS[2], "entropy"))
    names = {"certified": "certificate", "excess": "$F(ρ_t) - F_*$", "entropy": "$β^{-1}$KL$(ρ_t | ρ_*)$"}
    for color, name in lines:
        shown = (t > 0) & np.isfinite(energy[name]) & (energy[name] > 1e-12)
        style = "-" if name == "excess" else (0, (3, 2))
        left.plot(
            t[shown], energy[name][shown], color=color, linestyle=style, linewidth=1.6, label=names[name]
        )
    left.set(xscale="log", yscale="log", xlabel="time $t$", ylabel="free energy above the least")
    left.legend(frameon=False, fontsize=TEXT, loc="lower left")
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
        middle.plot(rho.centers[0], rho.density, linestyle=style, color=color, linewidth=1.6, label=label)  # type: ignore[union-attr]
    top = 1.6 * float(pde.kept[size.until].density.max())  # type: ignore[union-attr]
    middle.set(xlabel="$|w|$", ylabel="density", xlim=(1.0, 2.4), ylim=(0, top))
    bars = f"bars: SGD, t = {size.until:g}"
    middle.legend(frameon=False, fontsize=TEXT, loc="upper left", title=bars, title_fontsize=TEXT)
    right.plot(NOISES, prices, "o-", color=LIMIT, markersize=4, linewidth=1.2)
    guide = np.array(NOISES)
    right.plot(guide, prices[0] * guide / guide[0], color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    right.text(0.1, 5.5e-3, "slope 1", color=GREY, fontsize=TEXT, ha="right")
    right.set(xscale="log", yscale="log", xlabel="$d/β$", ylabel="$R(ρ_*) -$ inf $R$")
    return figure
