"""Plot the error budget of a ladder over time, and its rates in N and h."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..theory import GAPS, Ladder, Rates
from ._axes import COLORS, numbers, panels, plain_ticks, title
from ._labels import label_end, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes

_TITLES = {
    "risk": "gap in risk",
    "norm": "gap in the mean of $|w|$",
    "distance": r"$\max_i\,|\theta_i - \bar\theta_i|$",
    "w1": "$W_1$ between laws of $|w|$",
}
_INCHES = 4.3  # width of a panel
_COLORS = dict(zip((*GAPS, "total"), (*COLORS[:4], COLORS[6]), strict=True))
_DECADES = 1e-3  # gaps below this fraction of the largest are not shown


def ladder(
    budget: Ladder,
    *,
    quantity: str = "risk",
    neurons: int | None = None,
    step: float | None = None,
    ax: Any = None,
) -> PlotAxes:
    """Draw the gaps between neighbouring rungs of a ladder over time, and their rates in N and h.

    Left, the means of the absolute gaps over the replicas, with bands of 95 % confidence; their total is what
    lies between the limit and SGD. Then, where the ladder has several widths or steps, the largest gaps
    against N and h, with lines of the slopes that `Ladder.rates` fits and the slopes in figures, ± half of
    their 95 % intervals. Dotted lines are no fits: gaps that know no step, and, where GD is brought down to h
    along a line, the slope 1 that this imposes.

    Args:
        budget: What `mf.theory.ladder` returns.
        quantity: ``"risk"``, ``"norm"``, ``"distance"`` or ``"w1"``, as in `Ladder.gap`.
        neurons: Width N of what is drawn over t and h; default the largest.
        step: Step h of what is drawn over t and N; default the smallest.
        ax: Axes to draw on, as many as panels; default new ones. In a figure without a layout engine a legend
            has the names.

    Returns:
        The first axes; the others are in ``.figure.axes``.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots, theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(1.0),
        ... )
        >>> budget = theory.ladder(model, [20, 40], [0.02], horizon=0.2, replicas=2, save_at=3, rng=0)
        >>> [one.get_xlabel() for one in plots.ladder(budget).figure.axes]
        ['time $t$', 'neurons $N$']
    """
    check.instance(budget, "budget", Ladder, "what mf.theory.ladder returns")
    names = budget.names(quantity)
    n = _place(neurons, budget.neurons, max(budget.neurons), "neurons")
    h = _place(step, budget.step, min(budget.step), "step")
    several = [len(budget.neurons) > 1, len(budget.step) > 1]
    count = 1 + sum(several)
    target = panels(count, ax, (_INCHES * count, 3.7))
    _over_time(target[0], budget, quantity, n, h)
    rates = budget.rates(quantity) if any(several) else None
    rest = iter(target[1:])
    for variable, wanted in zip("Nh", several, strict=True):
        if wanted and rates is not None:
            one = next(rest)
            marks = budget.neurons if variable == "N" else budget.step
            for name in names:
                largest = budget.largest(name, quantity)
                middle, half = (part[:, h] if variable == "N" else part[n] for part in largest)
                _points(one, budget, name, variable, middle, half, rates)
            _finish(one, "neurons $N$" if variable == "N" else "step $h$", marks)
            other = f"h = {numbers([budget.step[h]])[0]}" if variable == "N" else f"N = {budget.neurons[n]}"
            title(one, other)
            one.set_ylabel(f"largest {_TITLES[quantity]}")
    return target[0]


def _over_time(ax: Axes, budget: Ladder, quantity: str, n: int, h: int) -> None:
    curves = {name: budget.mean(name, quantity) for name in budget.names(quantity)}
    top = np.nanmax([middle[n, h].max() for middle, _ in curves.values()])
    lowest = top
    for name, (middle, half) in curves.items():
        y, spread, color = middle[n, h], half[n, h], _COLORS[name]
        seen = y > 0
        if not seen.any():
            continue
        if np.isfinite(spread).all():
            ax.fill_between(
                budget.t[seen],
                np.maximum(y - spread, 0.2 * y)[seen],  # a band that reached 0 would fill the axis
                (y + spread)[seen],
                color=color,
                alpha=0.15,
                linewidth=0,
            )
        dashes = "--" if name == "total" else "-"
        ax.plot(budget.t[seen], y[seen], color=color, linewidth=1.6, linestyle=dashes, label=name)
        label_end(ax, budget.t[seen][-1], y[seen][-1], name.replace("-", "–"), color)
        lowest = min(lowest, float(np.median(y[seen])))
    _finish(ax, "time $t$")
    if top > 0:
        ax.set_ylim(bottom=max(0.3 * lowest, _DECADES**2 * top))
        settle(ax)
    ax.set_ylabel(_TITLES[quantity])
    shown = numbers([budget.step[h]])[0]
    what = f"N = {budget.neurons[n]}, h = {shown}, {budget.replicas} replicas"
    title(ax, what)


def _points(
    ax: Axes,
    budget: Ladder,
    name: str,
    variable: str,
    middle: FloatArray,
    half: FloatArray,
    rates: Rates,
) -> None:
    x = np.array(budget.neurons if variable == "N" else budget.step, dtype=float)
    color, text = _COLORS[name], name.replace("-", "–")
    if not (np.isfinite(middle).all() and (middle > 0).all()):
        return
    bars = np.where(np.isfinite(half), half, 0.0)
    lower = np.minimum(bars, 0.8 * middle)
    style: dict[str, Any] = {"markersize": 4, "markerfacecolor": "white", "markeredgewidth": 1.0}
    ax.errorbar(x, middle, [lower, bars], fmt="o", color=color, elinewidth=0.9, zorder=3, label=name, **style)
    end = middle[np.argmax(x)]
    if (name, variable) in [(rate.gap, rate.variable) for rate in rates]:
        rate = rates[name, variable]
        along = np.geomspace(x.min(), x.max(), 2)
        level = np.exp(np.mean(np.log(middle) - rate.slope * np.log(x)))
        line = level * along**rate.slope
        ax.plot(along, line, color=color, linewidth=1.2, linestyle="--" if name == "total" else "-")
        spread = rate.high - rate.slope  # half of the 95 % interval
        sign = "−" if rate.slope < 0 else ""
        text += f" {sign}{abs(rate.slope):.2f}" + (f"±{spread:.2f}" if np.isfinite(spread) else "")
        end = line[-1]
    elif variable == "h":
        # GD with long steps is brought down to h along a line; the rungs before it know no step.
        slope = 1.0 if name == "PD-GD" else 0.0
        level = np.exp(np.mean(np.log(middle) - slope * np.log(x)))
        along = np.array([x.min(), x.max()])
        ax.plot(along, level * along**slope, color=color, linewidth=0.9, linestyle=":")
        text += " 1 (imposed)" if slope else " (no h)"
    label_end(ax, x.max(), end, text, color)


def _finish(ax: Axes, xlabel: str, marks: Sequence[float] = ()) -> None:
    """Make axes logarithmic, with ticks of x where something was measured."""
    if marks:
        ax.set_xscale("log")
        ax.set_xticks(marks, numbers(marks))
        ax.set_xticks([], minor=True)
    ax.set_yscale("log")
    plain_ticks(ax)
    ax.set_xlabel(xlabel)
    settle(ax)


def _place(value: Any, known: tuple[Any, ...], default: Any, name: str) -> int:
    wanted = default if value is None else value
    if wanted not in known:
        raise ValueError(f"{name} must be one of {', '.join(f'{k:g}' for k in known)}, got {wanted!r}")
    return known.index(wanted)
