"""Where SGD and the PDE part: the error budget of propagation of chaos, rung by rung.

Mei, Misiakiewicz, Montanari (2019) couple four dynamics of N neurons, started alike, to the limit:
independent neurons in its field (ND), gradient flow (PD), gradient descent (GD), SGD. Their theorem bounds
the gaps by N^(−1/2), e^(KT) N^(−1/2), h and √(D h); it comes without an experiment. The model here is that
of isotropic-gaussians, with ρ₀ = N(0, 0.8²/d · I_d), d = 40 and Δ = 0.8; the clock is t = h·k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
    step: tuple[float, ...] = (4e-4, 2e-4, 1e-4, 5e-5)
    horizon: float = 1.0
    replicas: int = 16
    gd_steps: int = 50
    save_points: int = 11


FULL = Size()
QUICK = Size(neurons=(25, 50, 100), step=(4e-4, 2e-4, 1e-4), replicas=5, gd_steps=25, save_points=6)

THEOREM = "the theorem"


def run(work: Work, size: Size) -> Report:
    """The budget in risk, the distances of neurons, and their rates."""
    work.solve("pde", MODEL, PDE(), horizon=size.horizon)
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
    flows = [_mean_norm(h, budget.t) for h in (0.0, max(size.step))]
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
        rows=[*_slopes(budget), _sampling(budget, work.seed), _bias(budget, flows[1] - flows[0])],
        runs=work.runs,
        arrays=arrays,
        notes=[
            "In risk the first two gaps fall like 1/N, not N^(−1/2): Ψ depends on |w| alone, which is nearly "
            "the same for all neurons at d = 40, so that the fluctuations, 2 sd(Ψ)/√N, are small beside the "
            "bias of sampling, (∫U(θ, θ)dρ − ∫∫U)/N. The neurons themselves are N^(−1/2) apart.",
            "GD would take as many steps as SGD, on exact gradients. It is run with the step "
            f"{budget.meta['gd_step']:.2g} and brought down to h along the line to PD, which is exact up to "
            "O(h·step).",
            "A finite step adds (h/2r)·E[(y − f)²σ'(⟨w, x⟩)²|x_⊥|²] to dr/dt: the modified flow. In the risk "
            "the fluctuations of f_N, E Var f_N, are of the same order, and of the other sign here.",
            budget.table(),
            budget.rates().table(),
            budget.rates("distance").table(),
        ],
    )


def _slopes(budget: theory.Ladder) -> Iterator[Row]:
    for quantity, gap, variable, there, tolerance, source, note in (
        ("distance", "ND-PD", "N", -0.5, 0.15, THEOREM, ""),
        ("distance", "GD-SGD", "h", 0.5, 0.1, THEOREM, ""),
        ("distance", "GD-SGD", "N", 0.0, 0.25, THEOREM, "at most 0; small N have larger residuals"),
        ("risk", "PDE-ND", "N", -1.0, 0.35, "bias of sampling", ""),
    ):
        rate = budget.rates(quantity)[gap, variable]
        error = (rate.high - rate.low) / 4  # of a 95 % interval
        name = f"slope of {gap} in {variable}, {quantity}"
        yield Row(name, round(rate.slope, 3), there, tolerance, source, error, note)


def _sampling(budget: theory.Ladder, seed: int) -> Row:
    """E R_N − R = (∫U(θ, θ)dρ − ∫∫U)/N = (E R(δ_θ) − R(ρ))/N at t = 0, for all N."""
    assert MODEL.init is not None
    found = -budget.gap("PDE-ND")[:, 0, :, 0] * np.array(budget.neurons)[:, None]
    rows = MODEL.init.sample(MODEL.network, D, SINGLE, Seed(derive(seed_of(seed), 1)))
    alone = np.array([risk(MODEL, row) for row in rows])
    there = float(alone.mean() - budget.risk[0, 0, 0, 0, 0])
    error = float(found.std(ddof=1) / math.sqrt(found.size))
    name = "N(R_N − R) of ND at t = 0"
    return Row(name, float(found.mean()), there, 4 * error, "∫U(θ, θ)dρ − ∫∫U", error)


def _bias(budget: theory.Ladder, moved: FloatArray) -> Row:
    """Of the mean of |w| at the end, for the widest network and the longest step."""
    widest, longest = int(np.argmax(budget.neurons)), int(np.argmax(budget.step))
    found = (budget.norm[widest, longest, :, 4] - budget.norm[widest, longest, :, 2])[:, -1]
    error = float(found.std(ddof=1) / math.sqrt(len(found)))
    there = float(moved[-1])
    name = f"mean |w| of SGD − PD at h = {max(budget.step):g}, t = {budget.t[-1]:g}"
    return Row(name, float(found.mean()), there, 0.2 * there + 3 * error, "modified flow", error)


def _mean_norm(step: float, times: FloatArray) -> FloatArray:
    flow = theory.modified_flow(MODEL, step, horizon=float(times[-1]), save_at=times)
    return flow.observed["norm_mean"]
