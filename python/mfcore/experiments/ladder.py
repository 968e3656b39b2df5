"""Where SGD and the PDE part: the error budget of propagation of chaos, rung by rung.

Mei, Misiakiewicz, Montanari (2019) couple four dynamics of N neurons, started alike, to the limit: independent
neurons in its field (ND), gradient flow (PD), gradient descent (GD), SGD. Their theorem bounds the gaps by
N^(−1/2), e^(KT) N^(−1/2), h and √(D h); it comes without an experiment. Here the model is that of the experiment
isotropic-gaussians, with ρ₀ = N(0, 0.8²/d · I_d), d = 40 and Δ = 0.8; the clock is t = h·k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import plots, theory
from .._check import FloatArray
from .._rng import Seed, derive, seed_of
from ..density import PDE
from ..functions import risk
from ._panels import blank
from ._report import Report, Row
from ._work import Work
from .isotropic_gaussians import DELTA, MODEL, D

SINGLE = 400  # neurons that the bias of sampling is averaged over


@dataclass(frozen=True)
class Size:
    """What the quick run has less of."""

    neurons: tuple[int, ...] = (25, 50, 100, 200, 400)
    step: tuple[float, ...] = (8e-5, 4e-5, 2e-5, 1e-5)
    horizon: float = 1.0
    replicas: int = 16
    gd_steps: int = 50
    save_points: int = 11


FULL = Size()
QUICK = Size(neurons=(25, 50, 100), step=(8e-5, 4e-5, 2e-5), replicas=5, gd_steps=25, save_points=6)

THEOREM = "the theorem"


def run(work: Work, size: Size) -> Report:
    """The budget in risk, the distances of neurons, and their rates."""
    pde = work.solve("pde", MODEL, PDE(), horizon=size.horizon)
    count = size.replicas * len(size.neurons) * (2 + 2 * len(size.step))
    work.tell(f"{count} coupled runs …")
    budget = theory.ladder(
        MODEL,
        size.neurons,
        size.step,
        horizon=size.horizon,
        replicas=size.replicas,
        save_at=size.save_points,
        gd_steps=size.gd_steps,
        rng=work.seed,
        threads=work.threads,
        progress=work.progress,
    )
    figure = blank((12.9, 7.2))
    rows = figure.subplots(2, 3)
    for axes, quantity in zip(rows, ("risk", "distance"), strict=True):
        plots.ladder(budget, quantity=quantity, ax=axes)
    flow = theory.modified_flow(MODEL, max(size.step), horizon=float(budget.t[-1]), save_at=budget.t)
    names = ("risk", "error", "norm", "distance", "w1", "t")
    arrays = {f"ladder/{name}": np.asarray(getattr(budget, name)) for name in names}
    arrays |= {"ladder/neurons": np.array(size.neurons), "ladder/step": np.array(size.step)}
    return Report(
        name="ladder",
        title="Where SGD and the PDE part",
        caption=(
            f"Two isotropic Gaussian classes, d = {D}, Δ = {DELTA}. Above, gaps in risk between neighbouring "
            "rungs: over time, and their largest values against N and h with fitted slopes. Below, how far "
            "the farthest neuron is from its twin one rung higher. Means over "
            f"{budget.replicas} draws of neurons, 95 % intervals; risks are exact."
        ),
        figure=figure,
        rows=list(_rows(budget, flow.risk, work.seed)),
        runs=work.runs,
        arrays=arrays,
        notes=[
            "In risk the first two gaps fall like 1/N, not N^(−1/2): Ψ depends on |w| alone, which is nearly "
            "the same for all neurons at d = 40, so that the fluctuations, 2 sd(Ψ)/√N, are small beside the "
            "bias of sampling, (∫U(θ, θ)dρ − ∫∫U)/N. The neurons themselves are N^(−1/2) apart.",
            "GD would take as many steps as SGD, on exact gradients. It is run with the step "
            f"{budget.meta['gd_step']:.2g} and brought down to h along the line to PD, which is exact up to "
            "O(h·step).",
            "The bias of a finite step is that of math: dr/dt gains (h/2r)·E[(y − f)²σ'²|x|²] (modified flow).",
            budget.table(),
            budget.rates().table(),
            budget.rates("distance").table(),
        ],
    )


def _rows(budget: theory.Ladder, modified: FloatArray | None, seed: int) -> list[Row]:
    rows = []
    distance, gaps = budget.rates("distance"), budget.rates()
    for rates, gap, variable, there, tolerance in (
        (distance, "ND-PD", "N", -0.5, 0.15),  # the largest of N has a logarithm beside it
        (distance, "GD-SGD", "N", 0.0, 0.15),
        (distance, "GD-SGD", "h", 0.5, 0.1),
        (gaps, "PDE-ND", "N", -1.0, 0.35),
    ):
        rate = rates[gap, variable]
        what = "max |θ − θ̄|" if rates is distance else "risk"
        source = THEOREM if rates is distance else "bias of sampling"
        error = (rate.high - rate.low) / 4
        rows.append(Row(f"slope of {gap} in {variable}, {what}", rate.slope, there, tolerance, source, error))
    # E R_N − R = (∫U(θ, θ)dρ − ∫∫U)/N = (E R(δ_θ) − R(ρ))/N, at all N.
    start = -budget.gap("PDE-ND")[:, 0, :, 0] * np.array(budget.neurons)[:, None]
    single = _mean_risk_of_one(seed) - float(budget.risk[0, 0, 0, 0, 0])
    error = float(start.std(ddof=1) / np.sqrt(start.size)) if start.size > 1 else None
    rows.append(
        Row("N(R_N − R) at t = 0", float(start.mean()), single, 0.15 * single, "∫U(θ, θ)dρ − ∫∫U", error)
    )
    if modified is not None:
        widest, coarsest = int(np.argmax(budget.neurons)), int(np.argmax(budget.step))
        mean, half = (part[widest, coarsest, -1] for part in budget.bias())
        limit = float(budget.risk[0, 0, 0, 0, -1])
        there = float(modified[-1]) / limit - 1
        name = f"relative bias of SGD at h = {max(budget.step):g}"
        rows.append(Row(name, float(mean), there, 0.05, "modified flow", float(half) / 2))
    return rows


def _mean_risk_of_one(seed: int) -> float:
    """E R(δ_θ), θ ~ ρ₀."""
    assert MODEL.init is not None
    rows = MODEL.init.sample(MODEL.network, D, SINGLE, Seed(derive(seed_of(seed), 1)))
    return float(np.mean([risk(MODEL, row) for row in rows]))
