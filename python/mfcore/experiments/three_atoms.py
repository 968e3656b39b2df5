"""Three neurons in the plane: the field of the data, the interaction, and where the two take each of them.

A picture of the equation; the settings are ours. x ~ N(0, I₂), the teacher is the mean of three ReLU
neurons, y = ⅓ Σ (⟨w*_j, x⟩)₊, and three ReLU neurons learn it. Each moves with velocity −∇Ψ = −∇V −
⅓ Σ_j ∇₁U(·, w_j): V draws it to the teacher, U pushes it from the others and from itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..measures._functions import U, V, grad_psi, risk
from ..model import Model
from ..network import Network
from ..neurons._methods import GD, SGD, Particles
from ..plots._axes import COLORS, TEXT
from ..runs._trajectory import Trajectory
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, averaged
from ._source import computed, exact
from ._work import Work

# Ours: nothing is converted, t = k·h.
ANGLES, LENGTH = np.deg2rad([30.0, 100.0, 200.0]), 1.5
TEACHER = LENGTH * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
START = np.array([[0.35, 0.1], [0.1, -0.25], [-0.1, 0.5]])
NETWORK = Network(activations.relu)
MODEL = Model(data=data.Teacher(NETWORK, TEACHER), network=NETWORK, init=init.Points(START))
# The same model with labels 0: ∇Ψ is the interaction alone, and what it lacks of the full ∇Ψ is ∇V.
INTERACTION = MODEL.replace(data=data.Linear(w=np.zeros(2)))
HORIZON = 60.0
SHOWN = (0.0, 4.0, 60.0)
ARRIVED = 1000.0  # by then R, 2·10⁻⁴ at t = 60, has come down to rounding
BOX = 2.3  # half of the side of the pictures
REPLICAS = 16  # of SGD, for the table
STRIDE = 1.5  # arrows on neurons show the way they would go in this time

ALSO = (".gif",)


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller ones."""

    step: float = 2e-3  # h of SGD
    frames: int = 120


FULL = Size()
QUICK = Size(step=4e-3, frames=60)


def run(work: Work, size: Size) -> Report:
    """Run gradient flow, gradient descent and SGD from the same three neurons."""
    # Frames are denser where more happens.
    late = HORIZON * np.linspace(0.0, 1.0, size.frames) ** 2.5
    times = np.union1d(late, SHOWN)
    flow = work.solve("flow", MODEL, Particles(3, rtol=1e-9), horizon=HORIZON, save_at=times, keep="all")
    work.solve("gd", MODEL, GD(3, step=0.1), horizon=HORIZON, save_at=[0.0, 0.1, HORIZON], keep="all")
    steps = round(HORIZON / size.step)
    dense = np.linspace(0.0, HORIZON, 601)
    sgd = work.solve(
        "sgd", MODEL, SGD(3, step=size.step), steps=steps, horizon=HORIZON, save_at=dense, keep="all"
    )

    work.solve("late", MODEL, Particles(3, rtol=1e-9), horizon=ARRIVED, save_at=[ARRIVED])
    several = SGD(3, step=size.step, replicas=REPLICAS)
    work.solve("sgd-16", MODEL, several, steps=steps, horizon=HORIZON, save_at=[0.0, *SHOWN[1:]])

    def animate(stem: Path) -> Path:
        return _animation(stem.with_suffix(".gif"), flow, sgd)

    return Report(
        name="three-atoms",
        title="Three neurons in the plane",
        caption=(
            "Three ReLU neurons (dots) learn a teacher of three (stars), x ~ N(0, I₂). Rows: t = "
            f"{', '.join(f'{t:g}' for t in SHOWN)}. Columns: the field −∇V, the same at all times; the "
            "interaction −∇∫U dρ; their sum −∇Ψ, which the neurons follow. Arrows on neurons are what "
            f"{STRIDE:g} units of time would do; grey arrows are as long as the square root of the speed. "
            "Axes: the two entries of w. "
            "Lines: the path of the gradient flow (thick), and of SGD from the same neurons (thin, "
            "wriggling), "
            f"h = {size.step:g}, {steps:,} steps. The animation (.gif) shows the same."
        ),
        figure=_figure(flow, sgd),
        rows=list(_rows(flow, work.runs["gd"], work.runs["sgd-16"], work.runs["late"])),
        runs=work.runs,
        animation=animate,
    )


def _rows(flow: Trajectory, gd: Trajectory, sgd: Trajectory, late: Trajectory) -> list[Row]:
    assert flow.risk is not None
    assert late.risk is not None
    assert sgd.risk is not None
    target = float(np.mean(U(INTERACTION, TEACHER)))  # E y², as the teacher is such a network
    whole = target + 2 * float(np.mean(V(MODEL, START))) + float(np.mean(U(INTERACTION, START)))
    speed = grad_psi(MODEL, START, START)
    h = 1e-4
    ahead, behind = (float(risk(MODEL, START - s * h * speed)) for s in (1, -1))
    moved = (np.asarray(gd.kept[0.1]) - np.asarray(gd.kept[0.0])) / 0.1
    risks = [float(flow.risk[int(np.abs(flow.t - t).argmin())]) for t in SHOWN[1:]]
    return [
        Row("E y²", target, kernel(TEACHER), 1e-12, exact("arc-cosine kernel, Cho and Saul (2009)")),
        Row("R at t = 0", float(flow.risk[0]), kernel(TEACHER, START), 1e-12, exact("arc-cosine kernel")),
        Row("E y² + 2∫V dρ + ∫∫U dρdρ at t = 0", whole, float(flow.risk[0]), 1e-12, exact("R itself")),
        Row(
            "dR/dt at t = 0, by differences",
            (ahead - behind) / (2 * h),
            -2 * float((speed**2).sum(axis=1).mean()),
            1e-6,
            exact("−2∫|∇Ψ|²dρ"),
        ),
        Row(
            "largest difference of a step of GD over h and field + interaction",
            float(np.abs(moved - sum(_forces(START, START))).max()),
            0.0,
            1e-12,
            exact("definition"),
        ),
        Row(f"risk of the flow at t = {ARRIVED:g}", float(late.risk[-1]), 0.0, 1e-9, exact("0 as t → ∞")),
        *(
            averaged(
                f"risk of SGD at t = {t:g}", sgd, "risk", k, there, 0.0, computed(Particles, "the flow here")
            )
            for k, (t, there) in enumerate(zip(SHOWN[1:], risks, strict=True), start=1)
        ),
    ]


def kernel(teacher: FloatArray, students: FloatArray | None = None) -> float:
    """E(f_teacher − f_students)² of means of ReLU neurons at Gaussian inputs, by the arc-cosine kernel.

    E(⟨w, x⟩)₊(⟨v, x⟩)₊ = |w||v|(sin θ + (π − θ)cos θ)/(2π), θ the angle between w and v.
    """
    rows = [(w, 1 / len(teacher)) for w in teacher]
    rows += [(w, -1 / len(students)) for w in students] if students is not None else []
    total = 0.0
    for w, p in rows:
        for v, q in rows:
            size = float(np.hypot(*w) * np.hypot(*v))
            angle = math.acos(min(1.0, max(-1.0, float(w @ v) / size)))
            total += p * q * size * (math.sin(angle) + (math.pi - angle) * math.cos(angle)) / (2 * math.pi)
    return total


def _forces(points: FloatArray, neurons: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The two forces −∇V and −∇∫U dρ at points."""
    interaction = -grad_psi(INTERACTION, points, neurons)
    return -grad_psi(MODEL, points, neurons) - interaction, interaction


def _at(run: Trajectory, t: float) -> FloatArray:
    """The neurons at a time between those kept, by linear interpolation."""
    kept = np.array(list(run.kept))
    k = int(np.clip(np.searchsorted(kept, t, side="right"), 1, len(kept) - 1))
    share = (t - kept[k - 1]) / (kept[k] - kept[k - 1])
    before, after = (np.asarray(run.kept[at]) for at in kept[k - 1 : k + 1])
    return np.asarray((1 - share) * before + share * after)


def _path(run: Trajectory, end: float) -> FloatArray:
    return np.stack([np.asarray(neurons) for t, neurons in run.kept.items() if t <= end])


def _figure(flow: Trajectory, sgd: Trajectory) -> Any:
    figure = blank((8.0, 8.3))
    panels = figure.subplots(len(SHOWN), 3, sharex=True, sharey=True)
    for row, t in zip(panels, SHOWN, strict=True):
        neurons = np.asarray(flow.kept[t])
        for which, ax in enumerate(row):
            _panel(quiet(ax), neurons, which)
        row[0].set_ylabel(f"$t$ = {t:g}\n$w_2$")
        _paths(row[2], flow, sgd, t)
    for ax, title in zip(panels[0], ("field $-∇V$", "interaction $-∇∫U\\,dρ$", "both, $-∇Ψ$"), strict=True):
        ax.set_title(title, fontsize=TEXT + 1)
    for ax in panels[-1]:
        ax.set_xlabel("$w_1$")
    _explain(figure)
    return figure


def _explain(figure: Any) -> None:
    """Name all symbols below the panels."""
    from matplotlib.lines import Line2D

    none: dict[str, Any] = {"linestyle": "none", "color": "black"}
    arrow: dict[str, Any] = {"marker": r"$\rightarrow$", "linestyle": "none", "markersize": 11}
    entries = [
        ("teacher", Line2D([], [], marker="*", markersize=9, markerfacecolor="white", **none)),
        ("neuron", Line2D([], [], marker="o", markersize=5, **none)),
        ("path of the flow", Line2D([], [], color=COLORS[0], linewidth=1.6)),
        ("path of SGD", Line2D([], [], color="black", linewidth=0.7)),
        ("field on a neuron", Line2D([], [], color=COLORS[2], **arrow)),
        ("interaction on it", Line2D([], [], color=COLORS[1], **arrow)),
        ("both on it", Line2D([], [], color=COLORS[0], **arrow)),
        ("the same elsewhere", Line2D([], [], color="0.6", **arrow)),
    ]
    handles = [handle for _, handle in entries]
    names = [name for name, _ in entries]
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=TEXT)


def _panel(ax: Any, neurons: FloatArray, which: int) -> None:
    """Draw the force of the data (0), of the interaction (1) or both (2), on a grid and on the neurons."""
    side = np.linspace(-BOX, BOX, 15)[1:-1]
    grid = np.stack([x.ravel() for x in np.meshgrid(side, side)], axis=1)
    forces = _forces(grid, neurons)
    at_grid = (*forces, forces[0] + forces[1])[which]
    speed = np.linalg.norm(at_grid, axis=1, keepdims=True)
    shown = at_grid / np.sqrt(np.maximum(speed, 1e-12))  # long enough to be seen also where it is slow
    options: dict[str, Any] = {"angles": "xy", "scale_units": "xy"}
    ax.quiver(*grid.T, *shown.T, color="0.7", scale=2.6, width=0.0045, pivot="mid", **options)
    mine = _forces(neurons, neurons)
    vectors = (*mine, mine[0] + mine[1])[which]
    color = (COLORS[2], COLORS[1], COLORS[0])[which]
    ax.quiver(
        *neurons.T,
        *vectors.T,
        color=color,
        scale=1 / STRIDE,
        width=0.012,
        headwidth=3.2,
        headlength=3.2,
        headaxislength=3,
        zorder=4,
        **options,
    )
    ax.plot(*TEACHER.T, "*", color="black", markersize=9, markerfacecolor="white", zorder=3)
    ax.plot(*neurons.T, "o", color="black", markersize=5, zorder=5)
    ax.set(xlim=(-BOX, BOX), ylim=(-BOX, BOX), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))


def _paths(ax: Any, flow: Trajectory, sgd: Trajectory, end: float) -> None:
    for run, width in ((sgd, 0.6), (flow, 1.6)):
        path = _path(run, end)
        for i in range(path.shape[1]):
            ax.plot(*path[:, i].T, color=COLORS[0] if run is flow else "black", linewidth=width, zorder=2)


def _animation(path: Path, flow: Trajectory, sgd: Trajectory) -> Path:
    """Animate the three panels over time, written by Pillow, which comes with matplotlib."""
    from matplotlib.animation import PillowWriter

    figure = blank((8.0, 3.1))
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    writer = PillowWriter(fps=12)
    names = ("field $-∇V$", "interaction $-∇∫U\\,dρ$", "both, $-∇Ψ$")
    with writer.saving(figure, str(path), dpi=90):
        for t, neurons in flow.kept.items():
            for which, (ax, name) in enumerate(zip(panels, names, strict=True)):
                ax.clear()
                _panel(quiet(ax), np.asarray(neurons), which)
                ax.set_title(name, fontsize=TEXT + 1)
            panels[0].set_ylabel(f"$t$ = {t:5.2f}")
            _paths(panels[2], flow, sgd, t)
            writer.grab_frame()
    return path
