"""Draw one series over a clock: points, bars and bands of networks, lines of limits; and choose colours."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._base.check import FloatArray
from ..model import Model
from ..runs._trajectory import Trajectory
from ._axes import color, marker, stroke
from ._labels import Series, label_end, series_of
from ._runs import is_network, replicas, widths
from ._shades import line_color, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 60  # with more points than this, every so many have a marker, and intervals are a band
_MARKED = 12  # markers of such a series
_INTERVALS = ("mean and 95 % interval", "95 % interval", "stated error")


@dataclass(frozen=True)
class Curve:
    """What is drawn of one series: its mean over the clock, and the ends of its interval."""

    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Look:
    """How a series is drawn: its colour, as a line or as points, and whether a thin line joins the points."""

    color: str
    line: bool
    joined: bool


def looks_of(
    groups: dict[str, list[Trajectory]], lines: Collection[str], drawn: list[Series]
) -> dict[str, Look]:
    """Choose a look for each series: shades in the order of N for several widths, else colours."""
    line = {name: name in lines or not is_network(runs[0]) for name, runs in groups.items()}
    sizes = {name: widths(runs)[0] for name, runs in groups.items() if not line[name]}
    if drawn or len(sizes) < 2 or len(set(sizes.values())) < len(sizes):
        hues = {name: color(len(drawn) + k) for k, name in enumerate(groups)}
        return {name: Look(hues[name], line[name], False) for name in groups}
    by_width = dict(zip(sorted(sizes, key=lambda name: sizes[name]), shades(len(sizes)), strict=True))
    limits = [name for name in groups if line[name]]
    return {
        name: Look(line_color(limits.index(name)), True, False)
        if line[name]
        else Look(by_width[name], False, True)
        for name in groups
    }


def lazy_clock(name: str, runs: list[Trajectory]) -> float:
    """The factor α² of the clock α²t, of the scale α of a run's network."""
    model = runs[0].meta.get("model")
    if not isinstance(model, Model):
        raise ValueError(f"clock must be 'time' for runs that do not know their mf.Model, such as {name!r}")
    return model.network.scale**2


def intervals(seen: set[str]) -> list[str]:
    """What an axis says of the intervals that are drawn; those of means cover those of their samples."""
    told = [interval for interval in _INTERVALS if interval in seen]
    return [interval for interval in told if not (interval == _INTERVALS[1] and _INTERVALS[0] in told)]


def draw_curve(
    ax: Axes,
    curve: Curve,
    look: Look,
    runs: list[Trajectory],
    name: str,
    quantity: str,
    visible: float,
) -> None:
    """Draw a series and note its label; intervals whose half is below `visible` everywhere are left out."""
    drawn = [one.artist.get_marker() for one in series_of(ax)]
    x, middle = curve.x, curve.middle
    seen = bool((curve.high - middle > visible).any())
    common: dict[str, Any] = {"color": look.color, "label": name}
    many = len(x) > _MANY
    band = seen and (many or look.joined or len(runs) > 1 or look.line)
    if band:
        ax.fill_between(x, curve.low, curve.high, color=look.color, alpha=0.2, linewidth=0)
    if look.line:
        (artist,) = ax.plot(x, middle, zorder=2, **common, **stroke(drawn.count("None")))
    else:
        before = len(drawn) - drawn.count("None")
        style = {**marker(before), "zorder": 3 + 0.01 * before}
        if many or band or look.joined:
            # A thin line joins what belongs together; markers of different series stand at different points.
            every = max(1, len(x) // _MARKED)
            where = (before * every // 3 % every, every)
            width = 1.2 if look.joined else 0.8
            (artist,) = ax.plot(x, middle, linewidth=width, markevery=where, **common, **style)
        elif seen:
            sides = [middle - curve.low, curve.high - middle]
            bars = ax.errorbar(x, middle, sides, linestyle="none", elinewidth=0.9, **common, **style)
            artist = bars.lines[0]
        else:
            (artist,) = ax.plot(x, middle, linestyle="none", **common, **style)
    network = is_network(runs[0])
    averaged = len(runs) > 1 or replicas(runs[0]) > 1
    interval = _INTERVALS[0 if averaged else 1 if network else 2] if seen else ""
    label_end(ax, x[-1], middle[-1], name, look.color, artist, quantity, interval)
