"""Where SGD and the PDE part: the error budget of propagation of chaos, rung by rung.

Mei, Misiakiewicz, Montanari (2019) couple four dynamics of N neurons, started alike, to the limit:
independent neurons in its field (ND), gradient flow (PD), gradient descent (GD), SGD. Their theorem bounds
the gaps by N^(−1/2), e^(KT) N^(−1/2), h and √(D h); it comes without an experiment. The model here is that
of isotropic-gaussians, with ρ₀ = N(0, 0.8²/d · I_d), d = 40 and Δ = 0.8; the clock is t = h·k. Small
ladders of variants stand in the table only: other dimensions, trained output weights, noise, a coarse step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import plots, theory
from .._base.check import FloatArray
from ..density._pde import PDE
from ..measures._measure import Cloud
from ._chance import sampling_gap
from ._ladder_variants import slope, variants
from ._panels import blank
from ._report import Report
from ._row import Row, sample
from ._source import about, computed, exact
from ._work import Work, spoken
from .isotropic_gaussians import DELTA, MODEL, D


@dataclass(frozen=True)
class Size:
    """Sizes of the run, ours as all settings; the quick run has smaller ones."""

    neurons: tuple[int, ...] = (25, 50, 100, 200)
    step: tuple[float, ...] = (4e-4, 2e-4, 1e-4)
    horizon: float = 1.0
    replicas: int = 12
    gd_steps: int = 25
    save_points: int = 6
    variants: int = 6  # replicas of the small ladders of `_ladder_variants`


FULL = Size()
QUICK = Size(neurons=(25, 50), step=(4e-4, 2e-4), horizon=0.5, replicas=6)


def run(work: Work, size: Size) -> Report:
    """Measure the budget in risk, the distances of neurons, and their rates."""
    work.solve("pde", MODEL, PDE(), horizon=size.horizon)
    budget = _budget(work, size)
    figure = blank((12.9, 7.2))
    rows = figure.subplots(2, 3)
    for axes, quantity in zip(rows, ("risk", "distance"), strict=True):
        plots.ladder(budget, quantity=quantity, ax=axes)
    flows = [_mean_norm(h, budget.t) for h in (0.0, max(size.step))]
    bound = budget.bound()
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
        rows=[
            *_slopes(budget),
            _sampling(budget),
            _bias(budget, flows[1] - flows[0]),
            *variants(work, size.variants),
        ],
        runs=work.runs,
        arrays=work.arrays,
        notes=[
            "The theorem comes without numbers: what can be compared are its exponents, and what is "
            "known exactly. "
            "All settings are ours, after isotropic-gaussians.",
            "In risk the first two gaps fall like 1/N, not N^(−1/2): Ψ depends on |w| alone, which is nearly "
            "the same for all neurons at d = 40, so that the fluctuations, 2 sd(Ψ)/√N, are small beside the "
            "bias of sampling, (∫U(θ, θ)dρ − ∫∫U)/N. The neurons themselves are N^(−1/2) apart.",
            "GD would take as many steps as SGD, on exact gradients. It is run with the step "
            f"{budget.meta['gd_step']:.2g} and brought down to h along the line to PD, which is exact up to "
            "O(h·step).",
            "A finite step adds (h/2r)·E[(y − f)²σ'(⟨w, x⟩)²|x_⊥|²] to dr/dt: the modified flow. In the risk "
            "the fluctuations of f_N, E Var f_N, are of the same order, and of the other sign here.",
            "The bound with one fitted constant, C·[N^(−1/2)(√log N + z) + (√(D + log N) + z)√h] with "
            f"C = {bound.constant:.3g} at z = {bound.z:g}: the total is {bound.ratio.min():.2g} to 1 of it.",
            budget.table(),
            budget.rates().table(),
            budget.rates("distance").table(),
        ],
    )


def _budget(work: Work, size: Size) -> theory.Ladder:
    """Run the ladder; if Ctrl-C interrupts it, keep what is there and make no report."""

    def measured(replicas: int, progress: bool) -> theory.Ladder:
        return theory.ladder(
            MODEL,
            size.neurons,
            size.step,
            horizon=size.horizon,
            replicas=replicas,
            save_at=size.save_points,
            gd_steps=size.gd_steps,
            rng=work.seed,
            threads=work.threads,
            progress=progress,
        )

    count = size.replicas * len(size.neurons) * (2 + 2 * len(size.step))
    alone = measured(1, False).meta["seconds"]
    work.tell(f"{count} coupled runs, about {spoken(size.replicas * alone)} …")
    budget = measured(size.replicas, work.progress)
    names = ("risk", "error", "norm", "distance", "w1", "t", "neurons", "step")
    work.arrays |= {f"ladder/{name}": np.asarray(getattr(budget, name)) for name in names}
    if budget.meta["status"] == "interrupted":
        raise KeyboardInterrupt
    return budget


def _slopes(budget: theory.Ladder) -> Iterator[Row]:
    ends = np.array([min(budget.neurons), max(budget.neurons)], dtype=float)
    farthest = float(
        np.diff(np.log((np.sqrt(np.log(ends)) + 1.0) / np.sqrt(ends)))[0] / np.diff(np.log(ends))[0]
    )
    own = exact("theorem 1: the slope of N^(−1/2)(√log N + 1) over these N")
    yield slope(budget.rates("distance")["ND-PD", "N"], "distance", farthest, None, own)
    yield slope(budget.rates("distance")["GD-SGD", "h"], "distance", 0.5)
    # The noise of a step is y − f_N: √R_N, which is larger for small N.
    sizes = np.log(budget.risk[..., 2, :].mean(axis=(1, 2, 3)))  # of the rung PD
    noise = 0.5 * float(np.polyfit(np.log(budget.neurons), sizes, 1)[0])
    small = about(
        f"the noise of a step is y − f_N, and √R_N has the slope {noise:.2f}; the theorem bounds it",
        noise,
        0.9,
    )
    yield slope(budget.rates("distance")["GD-SGD", "N"], "distance", 0.0, small)
    yield slope(budget.rates()["PDE-ND", "N"], "risk", -1.0, None, exact("bias of sampling, 1/N"))


def _sampling(budget: theory.Ladder) -> Row:
    """Rows for E R_N − R = (∫U(θ, θ)dρ − ∫∫U)/N at t = 0, for all N (eq. (10.1))."""
    found = np.ravel(-budget.gap("PDE-ND")[:, 0, :, 0] * np.array(budget.neurons)[:, None])
    initial = MODEL.reduce().initial
    assert initial is not None
    there = sampling_gap(MODEL, Cloud(*initial.quadrature(32)))
    # Different N of one replica share their first neurons: one number of each replica is independent.
    count = budget.replicas
    alone_each = found.reshape(len(budget.neurons), count).mean(axis=0)
    return sample("N(R_N − R) of ND at t = 0", alone_each, there, 0.0, exact("∫U(θ, θ)dρ − ∫∫U"))


def _bias(budget: theory.Ladder, moved: FloatArray) -> Row:
    """A row for the bias of the mean of |w| at the end, for the widest network and the longest step."""
    widest, longest = int(np.argmax(budget.neurons)), int(np.argmax(budget.step))
    found = (budget.norm[widest, longest, :, 4] - budget.norm[widest, longest, :, 2])[:, -1]
    there = float(moved[-1])
    name = f"mean |w| of SGD − PD at h = {max(budget.step):g}, t = {budget.t[-1]:g}"
    return sample(name, found, there, 0.0, computed(theory.modified_flow))


def _mean_norm(step: float, times: FloatArray) -> FloatArray:
    flow = theory.modified_flow(MODEL, step, horizon=float(times[-1]), save_at=times)
    return flow.observed["norm_mean"]
