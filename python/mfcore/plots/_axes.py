"""Axes, colours, shapes and titles that all plots share; the first axes import matplotlib."""

from __future__ import annotations

import colorsys
import io
import textwrap
from collections.abc import Sequence
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


# Okabe and Ito's palette for colour-blind readers, without its yellow, in which no text can be read; then
# five dark colours as far as possible from these and from each other, also without red or green cones.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    *("#7F0000", "#8A2BE2", "#332288", "#005F5F", "#1B7837"),
)
# Shapes and strokes tell runs apart where colours do not: in grey, and where runs agree. No marker is filled,
# so that none hides another.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "*", "p")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (4, 3)),
    (0, (1, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (9, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
)
GREY = "0.45"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TEXT = 9.0  # font size in points
INCHES = (6.0, 3.7)


def new_axes(count: int = 1, *, inches: tuple[float, float] | None = None) -> list[PlotAxes]:
    """New axes side by side in the style of all plots here, for curves of your own; colours are in `COLORS`.

    Args:
        count: How many, at most 20.
        inches: Width and height of their figure, each at most 100.

    Examples:
        >>> from mfcore import plots
        >>> left, right = plots.new_axes(2)
        >>> _ = left.plot([0, 1], [1, 0], color=plots.COLORS[0])
    """
    count = check.integer(count, "count", at_least=1, at_most=20)
    size = (INCHES[0] * (1 + 0.65 * (count - 1)), INCHES[1])
    if inches is not None:
        width, height = check.array(inches, "inches", shape=(2,)).tolist()
        if not (0 < width <= 100 and 0 < height <= 100):
            raise ValueError(f"inches must be > 0 and at most 100, got {width:g} and {height:g}")
        size = width, height
    return panels(count, None, size)


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


def color(k: int) -> str:
    """The colour of series number k: one of `COLORS`, and beyond them further hues, none of them twice."""
    if k < len(COLORS):
        return COLORS[k]
    rgb = colorsys.hls_to_rgb((0.618034 * k) % 1.0, 0.3 + 0.08 * (k % 3), 0.75)
    return "#" + "".join(f"{round(255 * part):02X}" for part in rgb)


def stroke(k: int) -> dict[str, Any]:
    """Dashes and width of line number k: after the last dashes they begin again, thinner."""
    return {"linestyle": DASHES[k % len(DASHES)], "linewidth": 1.6 if k < len(DASHES) else 0.9}


def marker(k: int) -> dict[str, Any]:
    """Shape of points number k: open, and smaller the later they are drawn, so that they show each other."""
    size = 5.5 - 0.3 * min(k, 5)
    return {
        "marker": MARKERS[k % len(MARKERS)],
        "markersize": size,
        "markerfacecolor": "none",
        "markeredgewidth": 1.0,
    }


def title(ax: Axes, text: str) -> None:
    """Write a title above the left end of the axes, wrapped to their width."""
    letter = 0.6 * TEXT / 72 * ax.figure.dpi
    lines = textwrap.fill(text.replace(" = ", "\xa0=\xa0"), max(8, int(ax.bbox.width / letter)))
    ax.set_title(lines.replace("\xa0", " "), loc="left", fontsize=TEXT, color=GREY)


def ylabel(ax: Axes, text: str) -> None:
    """Write what the y axis shows, in lines and letters that fit the height of the axes.

    A smaller text in few lines comes before a larger one in many: lines take room from the axes, and in a
    figure without a layout engine from the axes on the left.
    """
    root(ax).draw_without_rendering()  # the layout: how high the axes are
    text = text.replace(" %", "\xa0%")
    small = [(1, 10), (1, 9), (1, 8), (1, 7), (2, 8), (2, 7)]
    for lines, size in ([(1, 10), (2, 10), (2, 9), (2, 8)] if makes_room(ax) else small) + [(3, 7), (4, 6)]:
        width = -(-len(text) // lines)
        while len(wrapped := textwrap.wrap(text, width, break_long_words=False)) > lines:
            width += 1
        label = ax.set_ylabel("\n".join(wrapped).replace("\xa0", " "), fontsize=size)
        if label.get_window_extent().height <= ax.bbox.height:
            return


def numbers(values: Sequence[float]) -> list[str]:
    """Format numbers in one way: with powers of ten if one of them is below 10⁻³ or from 10⁵ on."""
    if all(1e-3 <= abs(value) < 1e5 for value in values):
        return [f"{value:g}" for value in values]
    parts = [f"{value:.3e}".split("e") for value in values]
    return [f"{float(digits):g}×10{str(int(power)).translate(_RAISED)}" for digits, power in parts]


def plain_ticks(ax: Axes) -> None:
    """Label a logarithmic y axis without powers of ten if it spans little more than one decade."""
    low, high = ax.get_ylim()
    if high < 20 * low:
        ax.yaxis.set_major_formatter("{x:g}")
    if high < 5 * low:
        ax.yaxis.set_minor_formatter("{x:g}")


def _style(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(linewidth=0.7, color=GREY)
    ax.tick_params(which="both", width=0.7, color=GREY, labelsize=TEXT)
    ax.xaxis.label.set_fontsize(TEXT + 1)
    ax.yaxis.label.set_fontsize(TEXT + 1)
    # Bound to the figure, as the axes themselves have no such method.
    cast(Any, ax).savefig = root(ax).savefig


def makes_room(ax: Axes) -> bool:
    """Tell whether a layout engine moves other axes to make room for text beside these."""
    return root(ax).get_layout_engine() is not None


def root(ax: Axes) -> Figure:
    """The figure of axes, also of axes in a subfigure."""
    figure: Any = ax.figure
    while figure.figure is not figure and figure.figure is not None:
        figure = figure.figure
    return cast("Figure", figure)


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()
