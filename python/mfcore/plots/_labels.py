"""Labels beside curves: the names of series at their ends, of densities at their peaks, none over another."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import TEXT, makes_room, root

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GAP = 7.0  # points between the axes and labels
_SAMPLE = 17.0  # points that a sample of the series takes, before a label that is not at its end
_WIDEST = 0.4  # of the figure that labels may take
_SIZES = (TEXT, TEXT - 1, TEXT - 2, TEXT - 3, TEXT - 4)
_WRAPS = (18, 26, 40, 60)  # letters of a line of a label


@dataclass
class Series:
    """One curve with the name of its run, what is drawn of the run, and the text that says so."""

    artist: Any
    name: str
    quantity: str
    interval: str  # what its bars or bands are, if they can be seen
    end: tuple[float, float]  # its last point
    note: Any
    sample: Any


def series_of(ax: Axes) -> list[Series]:
    """All series drawn on these axes until now."""
    known: list[Series] = ax.__dict__.setdefault("_mfcore_series", [])
    return known


def label_end(
    ax: Axes,
    x: float,
    y: float,
    name: str,
    color: str,
    artist: Any = None,
    quantity: str = "",
    interval: str = "",
) -> None:
    """Note the name of a series, to be written right of the axes beside its last point (x, y) by `settle`."""
    from matplotlib.lines import Line2D
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea

    note = ax.annotate(
        name,
        (1.0, 0.5),
        xycoords="axes fraction",
        xytext=(_GAP, 0.0),
        textcoords="offset points",
        va="center",
        color=color,
        fontsize=TEXT,
        annotation_clip=False,
    )
    line = Line2D([0, _SAMPLE / 2 - 2, _SAMPLE - 4], [0, 0, 0], color=color)
    if artist is not None:
        line.update_from(artist)
    area = DrawingArea(_SAMPLE, 0)
    area.add_artist(line)
    line.set(markevery=[1], label="", transform=area.get_transform(), clip_on=False)
    sample = AnnotationBbox(
        area,
        (1.0, 0.5),
        (_GAP, 0.0),
        xycoords="axes fraction",
        boxcoords="offset points",
        box_alignment=(0, 0.5),
        frameon=False,
        pad=0,
        annotation_clip=False,
    )
    sample.set(in_layout=False, visible=False)
    ax.add_artist(sample)
    series_of(ax).append(Series(artist, name, quantity, interval, (x, y), note, sample))
    if not makes_room(ax):
        note.set(visible=False, in_layout=False)


def settle(ax: Axes) -> None:
    """Write all labels of these axes: none over another or beyond the axes' height, each as near as possible
    to the end of its series. Where some are not beside their ends, all have a sample of their series.

    Where no layout engine makes room right of the axes, a legend inside of them has the names.
    """
    all_series = series_of(ax)
    if not all_series:
        return
    several = len({one.quantity for one in all_series}) > 1
    runs = len({one.name for one in all_series})
    names = [
        one.name if not several else one.quantity if runs == 1 else f"{one.name}: {one.quantity}"
        for one in all_series
    ]
    if not makes_room(ax):
        _legend(ax, all_series, names)
        return
    figure: Any = root(ax)
    figure.draw_without_rendering()  # the layout: how high the axes are, and how wide a text is
    heights = _fit(ax, all_series, names) / ax.bbox.height
    to_axes = ax.transData + ax.transAxes.inverted()
    with np.errstate(invalid="ignore"):
        wanted = np.array([to_axes.transform(one.end)[1] for one in all_series])
    wanted = np.clip(np.nan_to_num(wanted, nan=0.5), 0.0, 1.0)
    order = np.argsort(wanted, kind="stable")
    placed = spread(wanted[order], heights[order], (0.0, 1.0))
    moved = bool((np.abs(placed - wanted[order]) > 0.6 * heights[order]).any())
    for k, y in zip(order, placed, strict=True):
        one = all_series[k]
        one.note.set(position=(_GAP + _SAMPLE * moved, 0.0))
        one.note.xy = (1.0, y)
        one.sample.xy = (1.0, y)
        one.sample.set_visible(moved)
    figure.draw_without_rendering()


def _fit(ax: Axes, all_series: list[Series], names: list[str]) -> Any:
    """Wrap and shrink the labels until they fit beside the axes; returns their heights in pixels."""
    figure: Any = root(ax)
    heights = np.zeros(len(names))
    for size in _SIZES:
        for wrap in _WRAPS:
            widths = []
            for k, (one, name) in enumerate(zip(all_series, names, strict=True)):
                lines = textwrap.fill(name.replace(" = ", "\xa0=\xa0"), wrap)  # a value stays with its name
                one.note.set(text=lines.replace("\xa0", " "), fontsize=size)
                box = one.note.get_window_extent()
                heights[k] = box.height + 0.15 * size / 72 * figure.dpi
                widths.append(box.width)
            if heights.sum() <= ax.bbox.height and max(widths) <= _WIDEST * figure.bbox.width:
                return heights
    return heights


def spread(wanted: Any, heights: Any, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Any:
    """Move intervals apart: centres nearest to those wanted, in increasing order, such that no two overlap
    and, if there is room for all, none leaves the bounds.

    After subtracting their places in a stack without gaps, the centres are a monotone regression of those
    wanted: neighbours that would overlap are pooled, and stand around their mean. Bounds cut that regression.
    """
    place = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    pools: list[tuple[float, int]] = []
    for value in wanted - place:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left, n), (right, m) = pools[-2:]
            pools[-2:] = [((n * left + m * right) / (n + m), n + m)]
    moved = np.concatenate([np.full(n, value) for value, n in pools])
    low, high = bounds[0] + heights[0] / 2, bounds[1] - heights[-1] / 2 - place[-1]
    return place + np.clip(moved, min(low, high), max(low, high))


def _legend(ax: Axes, all_series: list[Series], names: list[str]) -> None:
    """A legend with names in the colours of their series, for figures without room beside the axes."""
    from matplotlib.lines import Line2D

    handles: list[Any] = [
        one.artist or Line2D([], [], color=one.note.get_color(), linewidth=1.6) for one in all_series
    ]
    columns = 1 + (len(names) - 1) // 6
    for size in (*_SIZES[1:], 4.0, 3.0):
        box = ax.legend(
            handles,
            names,
            labelcolor=[one.note.get_color() for one in all_series],
            fontsize=size,
            ncols=columns,
            handlelength=1.4,
            handletextpad=0.4,
            columnspacing=0.8,
            labelspacing=0.2,
            edgecolor="none",
        )
        extent = box.get_window_extent()
        if extent.width <= ax.bbox.width and extent.height <= ax.bbox.height:
            return


def label_peaks(ax: Axes, peaks: list[tuple[float, float, str, str]]) -> None:
    """Write names of curves above points of them (x, y, text, colour), and make room for the text."""
    if not peaks:
        return
    figure: Any = root(ax)
    figure.draw_without_rendering()
    notes = []
    for x, y, text, color in peaks:
        note = ax.text(x, y, text, color=color, fontsize=TEXT, ha="center", va="bottom", zorder=5)
        note.set_bbox({"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5})
        notes.append(note)
    ax.__dict__["_mfcore_peaks"] = peaks, notes
    low, high = ax.get_ylim()
    for _ in range(20):  # more room moves the peaks, so that it takes some rounds
        top = _stack(ax, peaks, notes)
        if top <= 1.0:
            return
        high = low + (high - low) * (top + 0.02)
        ax.set_ylim(low, high)


def place_peaks(ax: Axes) -> None:
    """Place the names of curves again, after the limits of the axes have changed."""
    if "_mfcore_peaks" in ax.__dict__:
        _stack(ax, *ax.__dict__["_mfcore_peaks"])


def _stack(ax: Axes, peaks: list[tuple[float, float, str, str]], notes: list[Any]) -> float:
    """Place each text above its peak and above all texts below it; returns the highest end, 1 the axes'."""
    to_axes = ax.transData + ax.transAxes.inverted()
    taken: list[tuple[float, float, float, float]] = []  # left, right, bottom, top
    for k in sorted(range(len(peaks)), key=lambda k: peaks[k][1]):
        box = notes[k].get_window_extent()
        half, height = 0.5 * box.width / ax.bbox.width + 0.005, 1.15 * box.height / ax.bbox.height
        x, bottom = to_axes.transform(peaks[k][:2])
        x, bottom = min(max(x, half), 1 - half), bottom + 0.25 * height
        for left, right, below, above in sorted(taken, key=lambda one: one[2]):
            if x - half < right and x + half > left and bottom < above and bottom + height > below:
                bottom = above
        taken.append((x - half, x + half, bottom, bottom + height))
        notes[k].set(transform=ax.transAxes, position=(x, bottom))
    return max(one[3] for one in taken)
