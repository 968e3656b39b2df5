"""A network follows the PDE: two isotropic Gaussian classes, SGD with 800 neurons on the density of |w|.

Mei, Montanari, Nguyen (2018), figure 1; constants from Montanari's Cargèse lecture (2018), figure 6.1.
x | y = ±1 ~ N(0, (1 ± Δ)² I_d) with Δ = 0.8, d = 40; σ* = σ(⟨w, x⟩) with σ = −2.5 up to 0.5, 7.5 from 1.5
on and linear between; ρ₀ = N(0, 0.8²/d · I_d); N = 800 neurons, 10⁷ steps of one sample each,
θ ← θ + 2s(y − f)∇σ* with s = 10⁻⁶; histograms of |w| after 10³, 4·10⁶ and 10⁷ steps over the PDE's density.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats

from .. import activations, conventions, data, init, theory
from ..atoms._atoms import Atoms
from ..density._pde import PDE
from ..expectations._rules import MonteCarlo
from ..measures import _functions as functions
from ..measures._measure import Cloud
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import TEXT
from ..runs._solve import log_times
from ..runs._trajectory import Trajectory
from ._panels import laws_over_limit, networks, over_limit, power, quiet, steps_above, times, wide
from ._ramps import TRUNCATED, single
from ._report import Report
from ._row import Row, averaged, sample
from ._source import about, computed, exact, published
from ._work import Work

# As published.
D, DELTA, NEURONS, NORM = 40, 0.8, 800, 0.8
STEP, STEPS = 1e-6, 10**7
SHOWN = (10**3, 4 * 10**6, 10**7)  # steps after which histograms are drawn
SIGMA = activations.piecewise_linear(*TRUNCATED)

# The rule of the publication moves by 2s per step: t = 2·10⁻⁶·k here, and the run ends at t = 20.
CLOCK = conventions.mmn18(STEP)
HORIZON = STEPS * 2 * STEP
TIMES = tuple(k * 2 * STEP for k in SHOWN)
SHOWN_AGAIN = TIMES[1:]  # of the rows

MODEL = Model(data=data.IsotropicGaussians(d=D, delta=DELTA), network=Network(SIGMA), init=init.Radial(NORM))


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    step: float = 4e-6  # h of SGD; published: 2·10⁻⁶, with which a run takes twice as long and gains nothing
    neurons: int = NEURONS
    replicas: int = 6
    save_points: int = 16
    held_out: int = 100_000  # samples on which the risk of networks is measured
    cells: int = 800
    atoms: int = 1000  # quantiles of |w| at the start, of a second computation of the density


FULL = Size()
QUICK = Size(step=2e-5, replicas=4, held_out=40_000, cells=400, atoms=100)

INFERRED = (
    "ξ ≡ 1, that is a constant step s = 10⁻⁶: not printed; the densities of all three panels are met with it",
    "the clock t = 2·10⁻⁶·k: follows from the printed rule, which moves by 2s per step",
)

SPIKE, READ, BAR = 0.14, 0.01, 0.15  # height and width of the bar at r = 0 in the third panel of figure 6.1
THIRD = published("Montanari, Cargèse lecture (2018), figure 6.1, third panel: bar at 0")


def run(work: Work, size: Size) -> Report:
    """Run the density and the networks, and draw both in one picture."""
    late = np.linspace(6.0, HORIZON, 8)  # where the risk falls
    line = np.unique([*log_times(TIMES[0], 5.0, 60), *np.linspace(5.0, HORIZON, 46), *late])
    points = np.array([*log_times(TIMES[0], 4.0, size.save_points), *late])
    pde = work.solve("pde", MODEL, PDE(cells=size.cells), horizon=HORIZON, save_at=line, keep=TIMES)
    sgd = work.solve(
        "sgd",
        MODEL,
        SGD(size.neurons, step=size.step, replicas=size.replicas),
        steps=round(HORIZON / size.step),
        horizon=HORIZON,
        save_at=points,
        keep=TIMES,
        risk=MonteCarlo(size.held_out, seed=1),
    )
    # The errors of both in what states none: half of the cells, half of the atoms.
    work.solve("pde-half", MODEL, PDE(cells=size.cells // 2), horizon=HORIZON, save_at=SHOWN_AGAIN)
    for name, count in (("atoms", size.atoms), ("atoms-half", size.atoms // 2)):
        work.solve(name, MODEL, Atoms(start=quantiles(count)), horizon=HORIZON, save_at=SHOWN_AGAIN)
    figure, left, right = wide(len(TIMES))
    laws_over_limit(left, sgd, pde, TIMES, size.step, low=0.2)
    over_limit(quiet(right), sgd, pde, labels=(networks(sgd), "PDE"))
    right.set(xscale="log", xlabel="time $t$", ylabel="risk $R$, mean and 95 % interval")
    right.legend(frameon=False, fontsize=TEXT, loc="lower left")
    steps_above(right, partial(times, 1 / size.step), partial(times, size.step))
    return Report(
        name="isotropic-gaussians",
        title="A network follows the PDE",
        caption=(
            f"Two isotropic Gaussian classes, d = {D}, Δ = {DELTA}. Left: |w| of the {size.neurons} neurons "
            f"of {size.replicas} networks (bars, all together) over the density of the PDE (line) at three "
            "times. Right: the risk, points the mean over the networks with 95 % intervals (of that mean, "
            f"and of the {size.held_out:,} held-out samples it is measured on), line the PDE. SGD with one "
            f"fresh sample per step and h = {power(size.step)}: {HORIZON / size.step:,.0f} steps, t = h·k."
            + ("" if size.step == 2 * STEP else f" The publication has h = {power(2 * STEP)} and 10⁷ steps.")
        ),
        figure=figure,
        rows=list(_rows(work.runs)),
        runs=work.runs,
        inferred=INFERRED,
        notes=[
            "The published clock counts s per step with drift 2s: t here is twice that. The mass at small "
            "|w| is real: neurons that start left of a separatrix are driven to r ≈ 0.07, where σ' is as "
            "good as 0."
        ],
    )


def quantiles(count: int) -> Cloud:
    """Equal atoms at quantiles of |w| at the start."""
    middles = (np.arange(count) + 0.5) / count
    return Cloud(NORM / math.sqrt(D) * stats.chi.ppf(middles, D)[:, None])


def _within(run: Trajectory, radius: float) -> float:
    """The share of |w| below a radius at the end."""
    rho = run.final if isinstance(run.final, Cloud) else run.final.as_cloud()
    return float(rho.weights[rho.points[:, 0] < radius].sum())


def _rows(runs: Mapping[str, Trajectory]) -> list[Row]:
    sgd, pde, half, atoms, fewer = (runs[name] for name in ("sgd", "pde", "pde-half", "atoms", "atoms-half"))
    alone = float(
        functions.risk(MODEL.replace(data=data.IsotropicGaussians(math.inf, DELTA)).reduce(), [[NORM]])
    )
    closed = exact("½ Σ(±1 − Eσ)² by the normal cdf")
    rows = [Row(f"R of all |w| = {NORM}, d = ∞", alone, single(NORM, DELTA, *TRUNCATED), 1e-12, closed)]
    step = float(sgd.meta["method"].step)
    still, moved = (
        theory.modified_flow(MODEL, h, horizon=HORIZON, save_at=SHOWN_AGAIN).observed["norm_mean"]
        for h in (0.0, step)
    )
    shifts = dict(zip(SHOWN_AGAIN, moved - still, strict=True))
    again, density = (
        computed(quantiles, f"{len(atoms.final.points)} atoms"),
        computed(PDE, "the density here"),
    )
    for t in SHOWN_AGAIN:
        at = [int(np.abs(run.t - t).argmin()) for run in (pde, half, atoms, fewer)]
        risks = [float(run.risk[k]) for run, k in zip((pde, half, atoms, fewer), at, strict=True)]
        norms = [
            float(run.observed["norm_mean"][k]) for run, k in zip((pde, half, atoms, fewer), at, strict=True)
        ]
        stated = float(pde.error[at[0]])
        k, what = int(np.abs(sgd.t - t).argmin()), f"of the PDE at t = {t:g}"
        rows += [
            Row(f"risk {what}", risks[0], risks[2], abs(risks[2] - risks[3]), again, stated),
            Row(
                f"mean |w| {what}",
                norms[0],
                norms[2],
                abs(norms[2] - norms[3]),
                again,
                abs(norms[0] - norms[1]),
            ),
            averaged(f"risk of SGD at t = {t:g}", sgd, "risk", k, risks[0], stated, density),
            averaged(
                f"mean |w| of SGD at t = {t:g}",
                sgd,
                "norm_mean",
                k,
                norms[0],
                abs(norms[0] - norms[1]),
                density,
                about(f"steps of {step:g} move the law, by the modified flow", shifts[t], 0.6),
            ),
        ]
    norms = np.linalg.norm(np.asarray(sgd.final), axis=-1)
    few, what = 0.1, "share of |w| < {:g} at the end"
    shares = [_within(run, few) for run in (pde, half, atoms, fewer)]
    error = abs(shares[0] - shares[1])
    return [
        *rows,
        sample(f"{what.format(BAR)}, SGD", (norms < BAR).mean(axis=-1), SPIKE, READ, THIRD),
        Row(
            f"{what.format(few)}, PDE",
            shares[0],
            shares[2],
            abs(shares[2] - shares[3]) + 1 / len(atoms.final.points),
            again,
            error,
        ),
        sample(f"{what.format(few)}, SGD", (norms < few).mean(axis=-1), shares[0], error, density),
    ]
