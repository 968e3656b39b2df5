"""Panels of figures that several experiments share: networks drawn over their limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.check import FloatArray
from ..plots import density
from ..plots._axes import COLORS, GREY, TEXT, axes, marker, numbers
from ..plots._runs import center
from ..runs._trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NETWORK, LIMIT = COLORS[0], COLORS[1]
INCHES = (8.0, 3.7)
_VISIBLE = 1e-3  # heights below this fraction of the highest, right of `low`, are not shown at the ends


def blank(inches: tuple[float, float] = INCHES) -> Figure:
    """A matplotlib figure that needs no display."""
    from matplotlib.figure import Figure

    return Figure(figsize=inches, dpi=150, layout="constrained")


def wide(rows: int) -> tuple[Figure, list[Axes], Axes]:
    """A figure with rows of laws on the left and one panel on the right."""
    figure = blank()
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.15))
    left, right = halves
    panels = left.subplots(rows, 1, sharex=True)
    return figure, list(np.ravel(panels)), right.subplots()


def laws_over_limit(
    rows: Sequence[Axes],
    network: Trajectory,
    limit: Trajectory,
    at: Sequence[float],
    step: float,
    low: float = 0.0,
) -> None:
    """Draw |w| of networks as bars over the density of the limit, one row for each time.

    Heights are those right of `low`; what gathers left of it is told in words.
    """
    ends = []
    for ax, t in zip(rows, at, strict=True):
        density({"SGD": network, "PDE": limit}, times=t, bins=60, coordinate="norm", ax=ax)
        for text in ax.texts:
            text.remove()
        inner = _highest(limit.kept[t], low)
        for line in ax.lines:
            height = np.asarray(line.get_ydata())
            seen = np.flatnonzero(height > _VISIBLE * inner)  # the line is whole between its ends
            outside = np.ones(len(height), dtype=bool)
            outside[seen[0] : seen[-1] + 1] = False
            line.set(color=LIMIT, ydata=np.where(outside, np.nan, height))
        ends.append(ax.get_xlim()[1])
        ax.set_ylim(0, 1.25 * inner)
        when = f"$t$ = {t:g}, step {spaced(t / step)}"
        ax.set_title(when, loc="left", fontsize=TEXT, color=GREY)
        ax.set(xlabel="", ylabel="", yticks=[])
        inside = _share(limit.kept[t], low)
        if inside > 0.01:
            _name_the_spike(ax, inside, _share(network.kept[t], low), low)
    rows[0].set_xlim(0.0, max(ends))
    rows[-1].set_xlabel("$|w|$")
    rows[len(rows) // 2].set_ylabel("density")


def over_limit(
    ax: Axes,
    network: Trajectory,
    limit: Trajectory,
    name: str = "risk",
    colors: tuple[str, str] = (NETWORK, LIMIT),
    labels: tuple[str, str] = ("", ""),
    shape: int = 0,
) -> None:
    """Draw a series of networks as points with 95 % intervals, on the line of the limit.

    Networks of different `shape` have different markers, as in `mf.plots.risk`.
    """
    there = limit.risk if name == "risk" else limit.observed[name]
    here = network.risk if name == "risk" else network.observed[name]
    if there is None or here is None:
        raise ValueError(f"name must be a series of both runs, got {name!r}")
    middle, half = center(network, here, network.error if name == "risk" else None)
    ax.plot(limit.t, there, color=colors[1], linewidth=1.6, zorder=2, label=labels[1] or None)
    ax.errorbar(
        network.t,
        middle,
        half,
        linestyle="none",
        color=colors[0],
        elinewidth=1.0,
        zorder=3,
        label=labels[0] or None,
        **marker(shape),
    )


def key(ax: Axes, entries: Sequence[tuple[str, dict[str, Any]]], **place: Any) -> None:
    """Write a legend of what is drawn, as (name, style of a line), so that no line is left unexplained."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **style) for _, style in entries]
    ax.legend(handles, [name for name, _ in entries], frameon=False, **{"fontsize": TEXT - 1, **place})


def networks(run: Trajectory) -> str:
    """A phrase that says how many networks of how many neurons."""
    final: Any = run.final
    count = "" if final.ndim == 2 else f"{len(final)} × "
    return f"SGD, {count}{final.shape[-2]} neurons"


def steps_above(ax: Axes, forward: Any, back: Any) -> None:
    """Add a second axis above, with the steps of SGD as a function of t."""
    above = ax.secondary_xaxis("top", functions=(forward, back))
    above.set_xlabel("steps of SGD", fontsize=TEXT)
    above.tick_params(which="both", labelsize=TEXT - 1, color=GREY, width=0.7)
    above.spines["top"].set(linewidth=0.7, color=GREY)


def times(factor: float, x: Any) -> Any:
    """Times at equal numbers of steps of a clock."""
    return factor * np.asarray(x)


def along(x: FloatArray, y: FloatArray, at: Any) -> Any:
    """Interpolate y as a function of x linearly in logarithms, and extrapolate beyond the ends."""
    few = np.unique(np.geomspace(1, len(x), 200).astype(int)) - 1
    a, b, z = np.log(x[few]), np.log(y[few]), np.log(np.maximum(np.asarray(at, dtype=float), 1e-300))
    slopes = (b[1] - b[0]) / (a[1] - a[0]), (b[-1] - b[-2]) / (a[-1] - a[-2])
    inside = np.interp(z, a, b)
    low, high = np.minimum(z - a[0], 0.0), np.maximum(z - a[-1], 0.0)
    return np.exp(inside + slopes[0] * low + slopes[1] * high)


def quiet(ax: Axes) -> Axes:
    """Apply the common style to axes."""
    return axes(ax)


def spaced(count: float) -> str:
    """Format a large number with thin spaces between thousands."""
    return f"{count:,.0f}".replace(",", "\u2009")


def power(x: float) -> str:
    """Format a number for a caption with two digits: 2·10⁻⁵ for 2e-05."""
    return "0" if x == 0 else numbers([float(f"{x:.2g}")])[0].replace("×", "·").removeprefix("1·")


def _name_the_spike(ax: Axes, there: float, here: float, low: float) -> None:
    text = f"$|w|$ < {low:g}: {100 * there:.1f} % of the density\n{100 * here:.1f} % of the neurons"
    ax.text(1.5 * low, 0.95 * ax.get_ylim()[1], text, va="top", fontsize=TEXT - 1, color=GREY)


def _highest(rho: Any, low: float) -> float:
    inside = rho.centers[0] >= low
    return float(rho.density[inside].max())


def _share(measure: Any, low: float) -> float:
    if isinstance(measure, np.ndarray):
        return float((np.linalg.norm(measure, axis=-1) < low).mean())
    cloud = measure.as_cloud()
    return float(cloud.weights[cloud.points[:, 0] < low].sum())
