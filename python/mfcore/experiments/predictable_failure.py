"""Whether SGD fails is decided by the PDE: a start on either side of a critical radius.

Mei, Montanari, Nguyen (2018), figure 4; constants from Montanari's Cargèse lecture (2018), figure 6.3.
x | y = ±1 ~ N(0, (1 ± Δ)² I_d) with Δ = 0.5, d = 320; ρ₀ = N(0, κ²/d · I_d), κ = 0.1 and 0.4; N = 800
neurons, 10⁷ steps of one sample each. Not printed, but found by matching the figure: σ = −2.5 up to 0, −4 at
0.5, 7.5 from 1.5 on and linear between, and the step s_k = 10⁻⁵·k^(−1/4) (to 2 %) of θ ← θ + 2s_k(y − f)∇σ*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from .. import activations, conventions, data, init
from .._base.check import FloatArray
from ..density._pde import PDE
from ..expectations._rules import Exact
from ..measures._functions import risk
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import COLORS, GREY, TEXT, marker
from ..reductions._model import ReducedModel
from ..runs._trajectory import Trajectory
from ._chance import excess
from ._panels import along, blank, key, over_limit, quiet, steps_above
from ._ramps import single
from ._report import Report
from ._row import FEWEST, Row, averaged
from ._source import Because, about, computed, exact, published
from ._work import Work

# As published, and as found.
D, DELTA, NEURONS, KAPPAS = 320, 0.5, 800, (0.1, 0.4)
STEP, STEPS = 1e-5, 10**7
KNOTS, VALUES = (0.0, 0.5, 1.5), (-2.5, -4.0, 7.5)
SIGMA = activations.piecewise_linear(KNOTS, VALUES)

# After these steps the risk of the PDE and its mean |w| were read off the published vector figure, to 0.01.
READ_AT = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
READ_RISK = {
    0.1: (7.956, 7.847, 7.266, 7.250, 7.251, 7.257),
    0.4: (6.746, 6.452, 4.973, 1.978, 0.181, 0.008),
}
READ_NORM = {
    0.1: (0.096, 0.082, 0.002, 0.000, 0.000, 0.001),
    0.4: (0.402, 0.426, 0.553, 0.970, 1.687, 2.077),
}

# Errors of reading: 0.01 of risks up to 8 is 1/800 of that axis, and as much of the inset's is 0.003.
READ = {"risk": 0.01, "norm": 0.003}
INFERRED = (
    "σ with values −2.5, −4, 7.5 at the knots 0, 0.5, 1.5: not printed; found by matching the figure to "
    "0.007 "
    "(κ = 0.1) and 0.037 (κ = 0.4)",
    "s_k = 10⁻⁵·k^(−1/4): not printed; fitted to the figure, to 2 %",
    "the radius at the start is κ: as printed, but the figure begins 0.75 % below it, for reasons unknown",
)

BEGINS = 0.9925  # mean |w| over κ at which the figure begins, for reasons unknown
FIGURE = published("Montanari, Cargèse lecture (2018), figure 6.3, PDE, digitised", fitted=True)

CRITICAL = 0.2  # between the two κ: the critical radius is 0.1963

# The rule of the publication moves by 2s_k per step, so that t = Σ 2s_k here.
H = 2 * STEP
assert conventions.mmn18(STEP).step == H


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has the same steps, but stops after a tenth of them.

    Two networks of the published length take most of an hour; the rows about them are not resolved, as six
    would be needed.
    """

    steps: int = STEPS  # of the clock up to which the PDE runs
    trained: int = STEPS  # of the networks
    neurons: int = NEURONS
    replicas: int = 2
    per_decade: int = 3
    cells: int = 800


FULL = Size()
QUICK = Size(steps=10**6, trained=5 * 10**4, replicas=6, per_decade=2, cells=400)


def schedule(time: Any) -> Any:
    """h_k = h·(k + 1)^(−1/4) for k = 0, 1, …, as a function of kh."""
    return (time / H + 1.0) ** -0.25


def model(kappa: float, d: float = D) -> Model:
    """The model, whose neurons start at radius κ."""
    return Model(
        data=data.IsotropicGaussians(d=d, delta=DELTA), network=Network(SIGMA), init=init.Radial(kappa)
    )


def run(work: Work, size: Size) -> Report:
    """Run densities and networks from both sides of the critical radius, and draw the risk of one sphere
    over its radius.
    """
    clock = H * np.cumsum(np.arange(1.0, size.steps + 1) ** -0.25)  # t after 1, 2, … steps
    decades = math.log10(size.trained)
    looks = np.unique(np.geomspace(10, size.trained, round((decades - 1) * size.per_decade) + 1).round())
    many = np.unique([*np.geomspace(1, size.steps, 120).round(), *looks])
    read = [k for k in READ_AT if k <= size.steps]
    many = np.union1d(many, [*read, size.trained]).astype(int)
    points = np.union1d(looks, [k for k in read if k <= size.trained]).astype(int)
    for kappa in KAPPAS:
        work.solve(
            f"pde-{kappa:g}",
            model(kappa),
            PDE(cells=size.cells),
            horizon=clock[-1],
            save_at=clock[many - 1],
            keep=[clock[size.trained - 1]],
        )
    for kappa in KAPPAS:
        work.solve(
            f"sgd-{kappa:g}",
            model(kappa),
            SGD(size.neurons, step=H, schedule=schedule, replicas=size.replicas),
            steps=size.trained,
            horizon=clock[size.trained - 1],
            save_at=clock[points - 1],
            risk=Exact(),
        )
    limit = model(KAPPAS[0], d=math.inf).reduce()
    top, bottom = _extrema(limit)
    runs = work.runs
    rows = [
        *_landscape_rows(top, bottom),
        Row("R of all neurons at 0", risk(limit, [[0.0]]), 7.25, 1e-12, exact("½·3.5² + ½·1.5²")),
    ]
    for kappa in KAPPAS:
        rows += _read_rows(kappa, runs[f"pde-{kappa:g}"], clock)
        last = H * size.trained**-0.25
        rows += _network_rows(kappa, runs[f"sgd-{kappa:g}"], runs[f"pde-{kappa:g}"], last, size.neurons)
    return Report(
        name="predictable-failure",
        title="Whether SGD fails is decided by the PDE",
        caption=(
            f"Two isotropic Gaussian classes, d = {D}, Δ = {DELTA}, a σ that first falls. Left: the risk "
            f"R(δ_r) of neurons that all have |w| = r, at d = ∞: a start inside of r = {top[0]:.4f} is "
            "driven to 0 and stays at the risk 7.25 of a constant, one outside learns. Middle and right: "
            f"risk and mean of |w|, points {size.replicas} networks of {size.neurons} neurons (mean and 95 % "
            "interval, where that can be seen), lines the PDE. SGD with one fresh sample per step, "
            f"h_k = 2·10⁻⁵·k^(−1/4), {size.trained:,} steps (published: 10⁷; the PDE goes on to "
            f"{size.steps:,}), t = Σh_k; the risk is exact."
        ),
        figure=_figure(runs, limit, top, clock),
        rows=rows,
        runs=runs,
        inferred=INFERRED,
        notes=[
            _too_few(size.replicas)
            + "The figure's mean |w| starts at 0.397 for κ = 0.4, 0.75 % less than κ, for reasons unknown; "
            "that alone makes its first risks 0.03 higher. Its PDE ends at the minimum of d = ∞; ours has "
            "the drift of d = 320, where radii spread and the least risk is higher. The step was found by "
            "fitting, to 2 %, which moves the steep part by 0.03."
        ],
    )


def _too_few(networks: int) -> str:
    if networks >= FEWEST:
        return ""
    return f"The rows about the {networks} networks are not resolved, as a mean takes {FEWEST} of them. "


def _extrema(limit: ReducedModel) -> tuple[tuple[float, float], tuple[float, float]]:
    """(r, R(δ_r)) at the maximum of the risk of one sphere in 0 < r < 1, and at the minimum beyond."""

    def single(r: float, sign: float = 1.0) -> float:
        return sign * float(risk(limit, [[r]]))

    options = {"xatol": 1e-8}
    up = scipy.optimize.minimize_scalar(
        single, bounds=(0.0, 1.0), args=(-1.0,), method="bounded", options=options
    )
    down = scipy.optimize.minimize_scalar(single, bounds=(1.0, 4.0), method="bounded", options=options)
    return (float(up.x), -float(up.fun)), (float(down.x), float(down.fun))


def _landscape_rows(top: tuple[float, float], bottom: tuple[float, float]) -> list[Row]:
    """Extrema of the risk of one sphere beside those of its closed form."""
    rows = []
    for (r, value), name, bounds, sign in (
        (top, "critical radius", (0.0, 1.0), -1.0),
        (bottom, "radius of the minimum", (1.0, 4.0), 1.0),
    ):
        found = scipy.optimize.minimize_scalar(
            lambda r, sign=sign: sign * single(r, DELTA, KNOTS, VALUES),
            bounds=bounds,
            method="bounded",
            options={"xatol": 1e-8},
        )
        closed = exact("½ Σ(±1 − Eσ)² by the normal cdf")
        rows.append(Row(f"{name}, d = ∞", r, float(found.x), 1e-6, closed))  # where it is flat: √ of rounding
        rows.append(Row(f"R at the {name}", value, sign * float(found.fun), 1e-12, closed))
    return rows


def _read_rows(kappa: float, pde: Trajectory, clock: FloatArray) -> list[Row]:
    assert pde.risk is not None
    assert pde.error is not None
    rows = []
    late = single(BEGINS * kappa, DELTA, KNOTS, VALUES) - single(kappa, DELTA, KNOTS, VALUES)
    begins = about(
        f"the figure begins at |w| = {BEGINS:g}κ, where the risk is off by {late:+.2g}, and is as far behind",
        -late,
        0.6,
    )
    for k, value, norm in zip(READ_AT, READ_RISK[kappa], READ_NORM[kappa], strict=True):
        if k > len(clock):
            break
        at = int(np.abs(pde.t - clock[k - 1]).argmin())
        what, stated = f"κ = {kappa:g}, k = {k:,}", float(pde.error[at])
        rows.append(
            Row(f"{what}: risk of the PDE", pde.risk[at], value, READ["risk"], FIGURE, stated, None, begins)
        )
        here = pde.observed["norm_mean"][at]
        rows.append(Row(f"{what}: mean |w|", here, norm, READ["norm"], FIGURE))
    return rows


def _network_rows(kappa: float, sgd: Trajectory, pde: Trajectory, step: float, neurons: int) -> list[Row]:
    """Networks at the end beside the PDE and, inside of the critical radius, beside what steps hold off 0."""
    assert pde.risk is not None
    assert pde.error is not None
    last, k = len(sgd.t) - 1, int(np.abs(pde.t - sgd.t[-1]).argmin())
    what, radius, raised = f"κ = {kappa:g}, end of SGD", *resting(step)
    there, norm, stated = float(pde.risk[k]), float(pde.observed["norm_mean"][k]), float(pde.error[k])
    held: Because | None = None
    above = excess(model(kappa), pde.kept[pde.t[k]], neurons, stated)
    inside = kappa < CRITICAL and norm < 0.5 * radius
    if inside:
        why = f"steps of {step:.1e} keep |w| off the cone at 0, on average at h·Q/(2c), next row"
        held, above = about(why, radius - norm, 0.2), about(why, raised - there, 0.2)
    source = computed(PDE, "the density here")
    rows = [
        averaged(f"{what}: mean |w|", sgd, "norm_mean", last, norm, 0.0, source, held),
        averaged(f"{what}: risk", sgd, "risk", last, there, stated, source, above),
    ]
    if inside:
        balance = computed(resting, "leading order in h, modified flow")
        rows.insert(1, averaged(f"{what}: mean |w|", sgd, "norm_mean", last, radius, 0.0, balance))
        rows.append(averaged(f"{what}: risk", sgd, "risk", last, raised, 0.0, balance))
    return rows


def resting(step: float) -> tuple[float, float]:
    """Mean |w| of neurons that collapsed, for SGD with this step, and their risk, to leading order in h.

    Near 0 the potential is a cone of slope c, and a step adds (h/2r)·Q to dr/dt (the modified flow), with
    Q = E[(y − f)²σ'(⟨w, x⟩)²|x|²], where σ' = −3 on half of the samples; the two balance at r = hQ/(2c).
    """
    spread, residual = np.array([1 + DELTA, 1 - DELTA]), np.array([1.0, -1.0]) + 2.5
    slope = 3.0
    noise = float(np.mean(residual**2 * spread**2)) * D * slope**2 / 2
    cone = float(np.mean(residual * spread)) * slope / math.sqrt(2 * math.pi)
    radius = step * noise / (2 * cone)
    return radius, 7.25 + 2 * cone * radius


def _figure(runs: Any, limit: ReducedModel, top: tuple[float, float], clock: FloatArray) -> Any:
    figure = blank((9.6, 3.6))
    landscape, middle, right = (quiet(ax) for ax in figure.subplots(1, 3, width_ratios=(0.9, 1.0, 1.0)))
    radii = np.concatenate([np.linspace(0.0, 0.6, 121), np.linspace(0.61, 2.6, 150)])
    landscape.plot(radii, [float(risk(limit, [[r]])) for r in radii], color=GREY, linewidth=1.6)
    landscape.plot(*top, "o", color="black", markersize=4)
    landscape.annotate(f"$r_c$ = {top[0]:.4f}", top, xytext=(6, 3), textcoords="offset points", fontsize=TEXT)
    landscape.set(xlabel="$|w| = r$ of all neurons", ylabel="risk $R(δ_r)$, d = ∞", ylim=(-0.3, 9.2))
    steps = np.arange(1.0, len(clock) + 1)
    for k, kappa in enumerate(KAPPAS):
        color = (COLORS[k], COLORS[k])
        landscape.plot(kappa, float(risk(limit, [[kappa]])), "D", color=COLORS[k], markersize=5, zorder=3)
        sgd, pde = runs[f"sgd-{kappa:g}"], runs[f"pde-{kappa:g}"]
        over_limit(middle, sgd, pde, colors=color, shape=k)
        over_limit(right, sgd, pde, "norm_mean", color, shape=k)
    inside = (KAPPAS[0], float(risk(limit, [[KAPPAS[0]]])))
    line = {"arrowstyle": "-", "color": COLORS[0], "linewidth": 0.7}
    landscape.annotate("κ = 0.1", inside, (-0.02, 4.4), fontsize=TEXT, color=COLORS[0], arrowprops=line)
    landscape.text(0.5, 6.7, "κ = 0.4", fontsize=TEXT, color=COLORS[1])
    middle.set(ylabel="risk $R$, mean and 95 % interval", ylim=(-0.3, 9.2))
    right.set(ylabel="mean of $|w|$, 95 % interval")
    shown = []
    for k, kappa in enumerate(KAPPAS):
        shown.append((f"SGD, κ = {kappa:g}", {"color": COLORS[k], "linestyle": "none", **marker(k)}))
        shown.append((f"PDE, κ = {kappa:g}", {"color": COLORS[k]}))
    key(right, shown, loc="upper left")
    for ax in (middle, right):
        ax.set(xscale="log", xlabel="time $t$")
        # Beyond the ends logarithmically straight, as t ~ k^(3/4) nearly is.
        steps_above(ax, partial(along, clock, steps), partial(along, steps, clock))
    return figure
