"""Axes, colours and labels that all plots share; matplotlib is imported when the first axes are made."""

from __future__ import annotations

import io
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._base import check

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    class PlotAxes(Axes):
        """Axes with ``savefig``, which is that of their figure."""

        def savefig(self, fname: Any, **options: Any) -> None:
            """Save the whole figure."""


# Okabe and Ito's palette for colour-blind readers, without its yellow, in which no text can be read.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "0.45"
TEXT = 9.0  # font size in points
INCHES = (6.0, 3.7)

_LABEL = "mfcore label"  # the gid of text labels, by which a later call finds those of an earlier one


def axes(ax: Axes | None, inches: tuple[float, float] = INCHES) -> PlotAxes:
    """Return `ax`, or new axes, in the common style and with a method ``savefig``."""
    return panels(1, ax, inches)[0]


def panels(count: int, ax: Any, inches: tuple[float, float] = INCHES) -> list[PlotAxes]:
    """Return the given axes, or new ones side by side on a figure of their own, as many as needed."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("mf.plots needs matplotlib: pip install 'mfcore[plot]'") from None
    if ax is None:
        # Not by pyplot: nothing to close, and no window system.
        figure = Figure(figsize=inches, dpi=150, layout="constrained")
        given: list[Any] = list(figure.subplots(1, count, squeeze=False)[0])
        given[0]._repr_png_ = partial(_png, figure)  # a notebook shows what a call returns
    else:
        given = [ax] if isinstance(ax, Axes) else list(np.ravel(ax))
        for one in given:
            check.instance(one, "ax", Axes, "matplotlib axes")
        if len(given) != count:
            raise ValueError(f"ax must be {count} axes here, got {len(given)}")
    for one in given:
        _style(one)
    return [cast("PlotAxes", one) for one in given]


def next_color(ax: Axes) -> str:
    """The first colour that no labelled series has yet."""
    return COLORS[len(_labels(ax)) % len(COLORS)]


def label_end(ax: Axes, x: float, y: float, text: str, color: str) -> None:
    """Write the name of a series beside its last point, right of the axes; `settle` moves it.

    Where no layout engine makes room for that, a legend inside of the axes has the names.
    """
    note = ax.annotate(
        textwrap.fill(text, 18),
        (x, y),
        xytext=(1.02, 0.5),
        textcoords="axes fraction",
        va="center",
        color=color,
        fontsize=TEXT,
        annotation_clip=False,
        gid=_LABEL,
    )
    if not _makes_room(ax):
        note.set(visible=False, in_layout=False)


def settle(ax: Axes) -> None:
    """Move the labels of all series so that they do not overlap, as near to the ends of the series as
    possible.
    """
    notes = _labels(ax)
    if not notes:
        return
    if not _makes_room(ax):
        _legend(ax, notes)
        return
    ax.get_xlim(), ax.get_ylim()  # what is drawn moves limits only when they are asked for
    to_axes = ax.transData + ax.transAxes.inverted()
    wanted = np.array([to_axes.transform(note.xy)[1] for note in notes])
    wanted = np.clip(np.nan_to_num(wanted, nan=0.5), 0.0, 1.0)
    line = 1.3 * TEXT / 72 * ax.figure.dpi / ax.bbox.height
    heights = np.array([line * (1 + note.get_text().count("\n")) for note in notes])
    order = np.argsort(wanted, kind="stable")
    for k, y in zip(order, spread(wanted[order], heights[order]), strict=True):
        notes[k].xyann = (1.02, y)


def _legend(ax: Axes, notes: list[Any]) -> None:
    """A legend with names in the colours of their series, for figures without room beside the axes."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=note.get_color(), linewidth=1.6) for note in notes]
    names = [note.get_text() for note in notes]
    small: dict[str, Any] = {"fontsize": TEXT - 1, "handlelength": 0.8, "handletextpad": 0.4}
    ax.legend(handles, names, labelcolor="linecolor", labelspacing=0.2, edgecolor="none", **small)


def title(ax: Axes, text: str) -> None:
    """Write a title above the left end of the axes, wrapped to their width."""
    letter = 0.6 * TEXT / 72 * ax.figure.dpi
    lines = textwrap.fill(text.replace(" = ", "\xa0=\xa0"), max(8, int(ax.bbox.width / letter)))
    ax.set_title(lines.replace("\xa0", " "), loc="left", fontsize=TEXT, color=GREY)


def spread(wanted: Any, heights: Any) -> Any:
    """Move intervals apart: centres nearest to those wanted, in increasing order, such that no two overlap.

    After subtracting their places in a stack without gaps, the centres are a monotone regression of those
    wanted: neighbours that would overlap are pooled, and stand around their mean.
    """
    place = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    pools: list[tuple[float, int]] = []
    for value in wanted - place:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left, n), (right, m) = pools[-2:]
            pools[-2:] = [((n * left + m * right) / (n + m), n + m)]
    return place + np.concatenate([np.full(n, value) for value, n in pools])


def label_peaks(ax: Axes, peaks: list[tuple[float, float, str, str]]) -> None:
    """Write names of curves above their highest points (x, y, text, colour), and make room for the text."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.08 * (high - low))
    to_axes = ax.transData + ax.transAxes.inverted()
    size = TEXT / 72 * ax.figure.dpi
    line, letter = 1.4 * size / ax.bbox.height, 0.65 * size / ax.bbox.width
    taken: dict[int, tuple[float, float, float]] = {}  # left, right and height of the text
    for k in sorted(range(len(peaks)), key=lambda k: peaks[k][1]):
        x, y, text, _ = peaks[k]
        at, height = to_axes.transform((x, y))
        half = letter * len(text) / 2
        at = min(max(at, half), 1 - half)
        height += 0.6 * line
        for left, right, there in sorted(taken.values(), key=lambda box: box[2]):
            if at - half < right and at + half > left and abs(height - there) < line:
                height = there + line
        taken[k] = at - half, at + half, height
    for k, (_, _, text, color) in enumerate(peaks):
        left, right, height = taken[k]
        place: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
        note = ax.text((left + right) / 2, height, text, color=color, fontsize=TEXT, **place)
        note.set_bbox({"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5})


def plain_ticks(ax: Axes) -> None:
    """Label a logarithmic y axis without powers of ten if it spans little more than one decade."""
    low, high = ax.get_ylim()
    if high < 20 * low:
        ax.yaxis.set_major_formatter("{x:g}")
    if high < 5 * low:
        ax.yaxis.set_minor_formatter("{x:g}")


def _labels(ax: Axes) -> list[Any]:
    return [text for text in ax.texts if text.get_gid() == _LABEL]


def _style(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(linewidth=0.7, color=GREY)
    ax.tick_params(which="both", width=0.7, color=GREY, labelsize=TEXT)
    ax.xaxis.label.set_fontsize(TEXT + 1)
    ax.yaxis.label.set_fontsize(TEXT + 1)
    # Bound to the figure, as the axes themselves have no such method.
    cast(Any, ax).savefig = _root(ax).savefig


def _makes_room(ax: Axes) -> bool:
    """Whether a layout engine moves other axes to make room for text beside these."""
    return _root(ax).get_layout_engine() is not None


def _root(ax: Axes) -> Figure:
    """The figure of axes, also of axes in a subfigure."""
    figure: Any = ax.figure
    while figure.figure is not figure and figure.figure is not None:
        figure = figure.figure
    return cast("Figure", figure)


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()
