"""From features to kernels: one network at scales α over four decades, beside its linearisation.

Chizat, Oyallon and Bach (2019) train f = α·h(w) and show that it is lazy for large α: neurons move by 1/α and
f follows the tangent kernel of the start. Above, a network of ours at all scales, and its bounds; below,
their two pictures: paths of neurons in the plane, and the test loss of ReLU networks that learn a teacher,
against the size τ of the start, whose square is the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import theory
from .._base.check import FloatArray
from ..neurons._methods import Particles
from ..plots._axes import COLORS, GREY, TEXT, marker
from ..runs._trajectory import Trajectory
from . import _relu_teacher as teacher
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample, spread
from ._scales import CLOCK, SAMPLES, TARGET, Beside, D, beside, problem, slope_rows, table
from ._source import Because, exact, published
from ._work import Work

SHOWN = 10.0  # the scale whose bounds are drawn
LAZY = 30.0  # from this scale on slopes are fitted
PATHS = (0.1, 2.0)  # sizes of the start in the plane
ENDS = 0.1, 10.0  # τ of the rows: not lazy, lazy
_EXACT = 1e-11  # tolerance of runs that differ from linearised ones by 1e-5
SOURCE = exact("as α → ∞")
WORSE = published(
    "Chizat, Oyallon, Bach (2019), test loss against τ: lazy training generalises worse, in words"
)
INFERRED = (
    "the published test loss against τ is a figure without numbers that we could read: the rows hold what "
    "it claims, and what the linearised network does",
    "teacher, inputs and start are drawn by our random numbers, not by theirs",
)


TEACHER = teacher.Sizes(d=100, samples=1000, test=1000, neurons=50, steps=5000)


@dataclass(frozen=True)
class Size:
    """Sizes of the runs; the quick run has smaller ones, the full one nearly those of the publication."""

    scales: tuple[float, ...] = tuple(10.0 ** np.arange(-1, 3.01, 0.5))
    neurons: int = 100
    draws: int = 8
    sizes: tuple[float, ...] = tuple(10.0 ** np.arange(-2.2, 1.01, 0.4)) + ENDS[:1]
    trials: int = 6
    teacher: teacher.Sizes = TEACHER


FULL = Size()
QUICK = Size(
    scales=tuple(10.0 ** np.arange(-1, 3.01, 1.0)),
    neurons=60,
    draws=6,
    sizes=(0.01, 0.1, 1.0, 10.0),
    trials=6,
    teacher=teacher.Sizes(d=30, samples=200, test=400, neurons=50, steps=1000),
)


def run(work: Work, size: Size) -> Report:
    """Sweep the scale, follow the bounds along a run, and train the teacher's networks."""
    sweeps = {name: _sweep(work, size, name == "pairs") for name in ("pairs", "single")}
    bounds = _bounds(work, size)
    paths = [teacher.path(work, each) for each in PATHS]
    losses = _losses(work, size)
    one = size.teacher
    return Report(
        name="lazy-transition",
        title="From features to kernels: the scale of a network",
        caption=(
            f"tanh neurons, a and w trained, N = {size.neurons}, learn {SAMPLES} samples of {TARGET}, d = "
            f"{D}, until α²t = {CLOCK:g}. Above, left: how far neurons, kernel and f leave the linearised "
            f"network (means of {size.draws} draws of neurons in pairs, bars: 95 %). Above, middle: risk, "
            "and that of the linearised network. Above, right: the three bounds (dashed) and what is "
            f"measured (lines) at α = {SHOWN:g}. Below: paths of |a|w of 16 ReLU neurons in the plane on 15 "
            f"samples, from starts of size {PATHS[0]:g} and {PATHS[1]:g}; broken and open: a < 0, arrows: "
            f"the teacher's neurons. Below, right: test loss ½E(y − f)² of {one.neurons} ReLU neurons, d = "
            f"{one.d}, {one.samples} samples, {one.steps:,} steps, means of {size.trials} trials, against "
            "the size τ of the start, and that of the linearised networks."
        ),
        figure=_figure(size, sweeps["pairs"], bounds, paths, losses),
        rows=list(_rows(size, sweeps, bounds, losses)),
        runs=work.runs,
        arrays=work.arrays,
        inferred=INFERRED,
        notes=[
            "In pairs (a, w), (−a, w) first-order changes of the kernel cancel between the two neurons of a "
            "pair: kernel and f part from the linearised network as 1/α², not 1/α. Neurons drawn one by one "
            "have the slope −1 of the theorem; to begin them with the same residuals at every α, f at the "
            "start is added to the labels.",
            "The publication trains with 10⁴ steps, 10 trials and 33 sizes τ.",
        ],
    )


def _sweep(work: Work, size: Size, paired: bool) -> dict[str, FloatArray]:
    kind = "pairs" if paired else "single"
    work.tell(f"{len(size.scales) * size.draws} pairs of runs, neurons {kind} …")
    found: list[list[Beside]] = []
    for scale in size.scales:
        draws = range(work.seed, work.seed + size.draws)
        found.append([beside(work, scale, size.neurons, draw, paired, _EXACT) for draw in draws])
    made = table(found)
    work.arrays |= {f"{kind}/{name}": values for name, values in made.items()}
    work.arrays["scales"] = np.array(size.scales)
    return made


def _bounds(work: Work, size: Size) -> list[theory.LazyBounds]:
    """The bounds along a run at three scales; the middle one is shown."""
    found = []
    for scale in (SHOWN / 10, SHOWN, 10 * SHOWN):
        model, _ = problem(work.seed, scale, size.neurons, work.seed, True)
        times = CLOCK / scale**2 * np.linspace(0.0, 1.0, 13) ** 2
        method = Particles(size.neurons, rtol=1e-9)
        run = work.solve(f"flow-{scale:g}", model, method, horizon=times[-1], save_at=times, keep="all")
        found.append(theory.lazy_bounds(run))
    return found


def _losses(work: Work, size: Size) -> dict[str, FloatArray]:
    """Half the test risk at the end and at best, and that of linearised networks: (sizes, trials)."""
    sizes = np.array(sorted(size.sizes))
    work.tell(f"{len(sizes) * size.trials} networks that learn a teacher …")
    out = {name: np.empty((len(sizes), size.trials)) for name in ("end", "best", "linear")}
    for i, sigma in enumerate(sizes):
        for k in range(size.trials):
            full, lazy = teacher.trial(work, size.teacher, float(sigma), work.seed + k)
            test = full.observed["test_risk"] / 2
            out["end"][i, k], out["best"][i, k] = test[-1], test.min()
            out["linear"][i, k] = lazy.observed["test_risk"][-1] / 2
    work.arrays |= {"sizes": sizes, **{f"teacher/{name}": values for name, values in out.items()}}
    return {"sizes": sizes, **out}


def _rows(
    size: Size,
    sweeps: dict[str, dict[str, FloatArray]],
    bounds: list[theory.LazyBounds],
    losses: dict[str, FloatArray],
) -> list[Row]:
    scales = np.array(size.scales)
    lazy = scales >= LAZY * (1 - 1e-9)
    rows: list[Row] = []
    for name, start, power in (("pairs", "pairs", -2.0), ("single", "drawn one by one", -1.0)):
        known = {
            "displacement": ("displacement", -1.0),
            "kernel": ("the kernel's change", power),
            "gap": ("f − f_lin", power),
            "kappa": ("κ", -1.0),
        }
        inside = {key: values[lazy] for key, values in sweeps[name].items()}
        rows += slope_rows(scales[lazy], inside, known, start, order=2 if name == "pairs" else 1)
    pairs = sweeps["pairs"]
    ratio = pairs["test"][-1] / pairs["linear"][-1]
    name = f"test risk at α = {scales[-1]:g} over that of the linearised network"
    before = pairs["test"][-2] / pairs["linear"][-2] - 1
    rest = float(before.mean()) * (scales[-2] / scales[-1]) ** 2
    ends = sorted((0.3 * rest, 3 * rest))
    why = Because(f"a term of order 1/α² is left: of {before.mean():+.1g} at α = {scales[-2]:.4g}", *ends)
    rows.append(sample(name, ratio, 1.0, 0.0, SOURCE, why))
    count = sum(one.broken() for one in bounds)
    numbers = 3 * sum(len(one.t) for one in bounds)
    rows.append(
        Row(f"numbers above their bound, of {numbers}", float(count), 0.0, 0.0, exact("the three lemmas"))
    )
    rich, last = (int(np.abs(losses["sizes"] - at).argmin()) for at in ENDS)
    ratio = losses["end"][last] / losses["linear"][last]
    name = f"teacher: test loss at τ = {ENDS[1]:g} over that of the linearised network"
    rows.append(sample(name, ratio, 1.0, 0.0, exact("as τ → ∞, small steps")))
    name = f"teacher: share of trials in which τ = {ENDS[0]:g} generalises better than τ = {ENDS[1]:g}"
    better = float(np.mean(losses["best"][rich] < losses["best"][last]))
    rows.append(Row(name, better, 1.0, 0.0, WORSE))
    return rows


def _figure(
    size: Size,
    pairs: dict[str, FloatArray],
    bounds: list[theory.LazyBounds],
    paths: list[tuple[Trajectory, FloatArray, FloatArray]],
    losses: dict[str, FloatArray],
) -> Any:
    figure = blank((11.0, 7.0))
    panels = [quiet(ax) for ax in figure.subplots(2, 3).ravel()]
    _draw_sweep(panels[0], panels[1], np.array(size.scales), pairs)
    _draw_bounds(panels[2], bounds[1])
    for ax, (flow, teachers, signs), start in zip(panels[3:5], paths, PATHS, strict=True):
        _draw_paths(ax, flow, teachers, signs)
        ax.set_title(f"paths of |a|w, start of size {start:g}", fontsize=TEXT)
    _draw_losses(panels[5], losses)
    return figure


def _draw_sweep(left: Any, middle: Any, scales: FloatArray, pairs: dict[str, FloatArray]) -> None:
    shown = (
        ("displacement", r"$\Vert\theta-\theta_0\Vert$", "o"),
        ("kernel", r"$\Vert K-K_0\Vert/\Vert K_0\Vert$", "s"),
        ("gap", r"$\Vert f-f_{\rm lin}\Vert$", "^"),
    )
    for (name, label, shape), color in zip(shown, COLORS, strict=False):
        _with_bars(left, scales, pairs[name], color, label, shape)
    for power, height in ((1, 8.0), (2, 0.1)):
        line = height * scales[scales >= 1] ** -float(power)
        left.plot(scales[scales >= 1], line, ":", color=GREY, linewidth=1)
        place: dict[str, Any] = {1: {"ha": "left", "va": "bottom"}, 2: {"ha": "right", "va": "top"}}[power]
        left.text(10.0, height / 10.0**power, f"slope −{power}", color=GREY, fontsize=TEXT - 1, **place)
    left.set(xscale="log", yscale="log", xlabel=r"scale $\alpha$", title="what leaves the linearisation")
    for (name, label), color, shape in zip(
        (("train", "train"), ("test", "test"), ("linear", "test, linearised")),
        COLORS[3:],
        "osD",
        strict=False,
    ):
        _with_bars(middle, scales, pairs[name], color, label, shape)
    middle.set(
        xscale="log", yscale="log", xlabel=r"scale $\alpha$", title=r"risk at $\alpha^2t$ = " + f"{CLOCK:g}"
    )
    for ax in (left, middle):
        ax.title.set_fontsize(TEXT)
        ax.legend(frameon=False, fontsize=TEXT - 1)


def _with_bars(ax: Any, x: FloatArray, values: FloatArray, color: str, label: str, shape: str) -> None:
    middle, half, _ = spread(values)
    low = np.minimum(half, 0.9 * middle)  # on a logarithmic axis
    style: dict[str, Any] = {"color": color, "marker": shape, "markersize": 4, "fillstyle": "none"}
    ax.errorbar(x, middle, (low, half), label=label, linewidth=1.2, **style)


def _draw_bounds(ax: Any, found: theory.LazyBounds) -> None:
    clock = found.t[1:] * SHOWN**2
    shown = (
        (found.risk / found.risk[0], found.risk_bound / found.risk[0], "risk, of that at 0"),
        (found.displacement, found.displacement_bound, "displacement"),
        (found.gradients / SHOWN, found.gradients_bound / SHOWN, "change of gradients, over α"),
    )
    for k, (value, bound, label) in enumerate(shown):
        color = COLORS[k]
        ax.plot(clock, value[1:], color=color, label=label, **marker(k))
        ax.plot(clock, bound[1:], "--", color=color, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel=r"$\alpha^2 t$")
    ax.set_title(f"bounds (dashed), α = {SHOWN:g}", fontsize=TEXT)
    ax.legend(frameon=False, fontsize=TEXT - 1)


# How paths, and arrows of the teacher, are drawn: a < 0 broken, a > 0 whole.
_SIGNS: dict[bool, dict[str, Any]] = {
    False: {"color": COLORS[0], "linewidth": 1, "linestyle": (0, (3, 1.5))},
    True: {"color": COLORS[1], "linewidth": 1, "linestyle": "-"},
}


def _draw_paths(ax: Any, flow: Trajectory, teachers: FloatArray, signs: FloatArray) -> None:
    kept = np.stack([np.asarray(rows) for rows in flow.kept.values()])
    points = np.abs(kept[..., :1]) * kept[..., 1:]
    for i in range(points.shape[1]):
        style = _SIGNS[bool(kept[-1, i, 0] > 0)]
        ax.plot(*points[:, i].T, **style)
        face = style["color"] if kept[-1, i, 0] > 0 else "white"
        ax.plot(*points[-1, i], "o", color=style["color"], markerfacecolor=face, markersize=3.5)
    for (x, y), sign in zip(teachers, signs, strict=True):
        arrow = {**_SIGNS[bool(sign > 0)], "arrowstyle": "->", "linewidth": 2}
        ax.annotate("", (x, y), (0, 0), arrowprops=arrow)
    side = 1.1 * max(1.0, float(np.abs(points).max()))
    ax.set(xlim=(-side, side), ylim=(-side, side), aspect="equal", xlabel="$|a|w_1$", ylabel="$|a|w_2$")


def _draw_losses(ax: Any, losses: dict[str, FloatArray]) -> None:
    shown = (
        ("end", "end of training", "o"),
        ("best", "best throughout", "^"),
        ("linear", "linearised, end", "D"),
    )
    for (name, label, shape), color in zip(shown, (COLORS[6], COLORS[2], COLORS[1]), strict=True):
        _with_bars(ax, losses["sizes"], losses[name], color, label, shape)
    ax.set(xscale="log", yscale="log", xlabel="size of the start, τ", ylabel="½E(y − f)²")
    ax.set_title("test loss of a ReLU teacher's network", fontsize=TEXT)
    ax.legend(frameon=False, fontsize=TEXT - 1, loc="lower right")
