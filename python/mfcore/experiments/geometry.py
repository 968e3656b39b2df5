"""Two geometries: the same risk, convex along mixtures and not along the paths of neurons.

A picture of the theory; the settings are ours. Two isotropic classes at d = ∞ leave one coordinate, r = |w|.
From a law with all |w| = r₀ to one with all |w| = r₁ there are two straight ways: neurons of both kinds in
growing shares, or all neurons growing together, the geodesic of W₂. Mirror descent goes the first way,
minimising movements and gradient flows go the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize

from .. import activations, data
from .._base.check import FloatArray
from ..measures._functions import psi, risk
from ..measures._measure import Cloud
from ..model import Model
from ..movements._jko import JKO
from ..network import Network
from ..perturbations._paths import RiskPath, along
from ..plots._axes import COLORS, TEXT, marker, stroke
from ..reductions._init import ReducedInit
from ..runs._trajectory import Trajectory
from ._panels import blank, quiet
from ._ramps import TRUNCATED, average, single
from ._report import Report
from ._row import Row
from ._source import exact
from ._work import Work

DELTA = 0.2
START, END = 0.25, 1.4616  # the second is, to these digits, the best single radius
SIGMA = activations.piecewise_linear(*TRUNCATED)
MODEL = Model(data=data.IsotropicGaussians(d=math.inf, delta=DELTA), network=Network(SIGMA)).reduce()
RATE = 0.1  # step of mirror descent
FIRST = 0.01  # share of the second kind at its start


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    points: int = 401
    tau: float = 0.01
    movements: int = 600
    mirror: int = 200


FULL = Size()
QUICK = Size(points=81, tau=0.05, movements=120)


def run(work: Work, size: Size) -> Report:
    """Follow the risk along both paths, and mirror and proximal steps on them."""
    mixed = along(MODEL, [START], [END], points=size.points)
    moved = along(MODEL, [START], [END], "wasserstein", points=size.points)
    started = replace(MODEL, initial=ReducedInit([START]))
    jko = work.solve(
        "jko",
        started,
        JKO(tau=size.tau),
        horizon=size.tau * size.movements,
        save_at=size.movements + 1,
        keep="all",
    )
    radii = np.array([float(rho.points[0, 0]) for rho in _clouds(jko)])
    shares = _mirror(size.mirror)
    work.arrays.update(
        {"s": mixed.s, "mixture/risk": mixed.risk, "wasserstein/risk": moved.risk}
        | {"wasserstein/second": moved.second, "mirror/share": shares, "jko/r": radii}
    )
    return Report(
        name="geometry",
        title="One risk, two geometries",
        caption=(
            f"Two isotropic classes, d = ∞, Δ = {DELTA:g}. From |w| = {START:g} (s = 0) to "
            f"|w| = {END:g} (s = 1). Left: R along the mixtures (1 − s)ρ₀ + sρ₁, with every second of "
            f"{size.mirror} steps of mirror descent on s, and along the geodesic of W₂, |w| = "
            f"(1 − s)·{START:g} + s·{END:g}, with every tenth of {size.movements} minimising movements, "
            f"τ = {size.tau:g}. Right: d²R/ds², constant and ≥ 0 on mixtures, of both signs on the geodesic."
        ),
        figure=_figure(mixed, moved, shares, radii),
        rows=list(_rows(mixed, moved, shares, radii)),
        runs=work.runs,
        arrays=work.arrays,
    )


def _rows(mixed: RiskPath, moved: RiskPath, shares: FloatArray, radii: FloatArray) -> list[Row]:
    bend = sum((_f(END, sign) - _f(START, sign)) ** 2 for sign in (1, -1))
    h = 1e-3
    lowest = int(moved.second.argmin())
    middle = min(max(float(moved.s[lowest]), 2 * h), 1 - 2 * h)
    at = [closed(START + (middle + k * h) * (END - START)) for k in (-2, -1, 0, 1, 2)]
    curve = (16 * (at[1] + at[3]) - at[0] - at[4] - 30 * at[2]) / (12 * h * h)
    again = along(MODEL, [START], [END], "wasserstein", points=[middle])
    best = _parabola(mixed)
    lowest_radius = optimize.minimize_scalar(closed, bounds=(1.0, 2.0), method="bounded").x
    normal = exact("½ Σ(±1 − Eσ)² by the normal cdf")
    return [
        Row("R at s = 0", float(mixed.risk[0]), closed(START), 1e-12, normal),
        Row("R at s = 1", float(moved.risk[-1]), closed(END), 1e-12, normal),
        Row("d²R/ds² along mixtures", float(mixed.second[0]), bend, 1e-10, exact("2‖f₁ − f₀‖²")),
        Row("d²R/ds² on the geodesic where it is least", float(again.second[0]), curve, 1e-5,
            exact("the closed form, differenced")),
        Row("is it negative (1: yes)", float(moved.second.min() < 0), 1.0, 0.0, exact("R has a plateau")),
        Row("W₂ of the ends", moved.length, END - START, 1e-12, exact("|r₁ − r₀|")),
        Row("|w| after minimising movements", float(radii[-1]), float(lowest_radius), 1e-5,
            exact("where the closed form is least")),
        Row("share s after mirror descent", float(shares[-1]), best, 1e-3, exact("vertex of the parabola")),
    ]  # fmt: skip


def _f(r: float, sign: int) -> float:
    """f on one class for a single radius."""
    return average((1 + sign * DELTA) * r, *TRUNCATED)


def closed(r: float) -> float:
    """R of a single radius."""
    return single(r, DELTA, *TRUNCATED)


def _parabola(mixed: RiskPath) -> float:
    """Return the share at which the risk of the mixtures is least."""
    return min(1.0, max(0.0, -float(mixed.slope[0]) / float(mixed.second[0])))


def _mirror(steps: int) -> FloatArray:
    """Shares s of mirror descent with entropy: s/(1 − s) is multiplied by e^{−η(Ψ(r₁) − Ψ(r₀))}."""
    shares = [FIRST]
    for _ in range(steps):
        s = shares[-1]
        here, there = psi(MODEL, [[START], [END]], Cloud([[START], [END]], [1 - s, s]))
        odds = s / (1 - s) * math.exp(-RATE * float(there - here))
        shares.append(odds / (1 + odds))
    return np.array(shares)


def _clouds(run: Trajectory) -> list[Cloud]:
    return [rho for rho in run.kept.values() if isinstance(rho, Cloud)]


def _figure(mixed: RiskPath, moved: RiskPath, shares: FloatArray, radii: FloatArray) -> Any:
    figure = blank((8.0, 3.4))
    left, right = figure.subplots(1, 2)
    ways = (("mixtures", mixed, COLORS[0]), ("geodesic of $W_2$", moved, COLORS[1]))
    for k, (name, way, color) in enumerate(ways):
        left.plot(way.s, way.risk, color=color, label=name, **stroke(k))
        right.plot(way.s, way.second, color=color, label=name, **stroke(k))
    steps = shares[::2]
    first, second = ({"linestyle": "none", "color": COLORS[k], **marker(k)} for k in range(2))
    left.plot(steps, np.interp(steps, mixed.s, mixed.risk), label="mirror descent", **first)
    places = radii[::10]
    risks = [risk(MODEL, [r]) for r in places]
    left.plot((places - START) / (END - START), risks, label="minimising movements", **second)
    right.axhline(0.0, color="0.7", linewidth=0.7)
    quiet(left).set(xlabel="$s$, from start to end", ylabel="risk $R$")
    quiet(right).set(xlabel="$s$, from start to end", ylabel="$d^2R/ds^2$")
    left.legend(frameon=False, fontsize=TEXT - 1)
    return figure
