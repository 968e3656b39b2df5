"""Colours of series that have an order, such as widths N or times t."""

from __future__ import annotations

from ._axes import COLORS, color

_ENDS = (0.68, 0.1)  # of viridis: light enough to differ, dark enough to read a name in
LINE = "#000000"  # of a limit beside shades


def shades(count: int) -> list[str]:
    """Return `count` colours from light to dark, whose order shows in grey and to the colour-blind too.

    A single one is the first of `COLORS`.
    """
    if count == 1:
        return [COLORS[0]]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    light, dark = _ENDS
    steps = [light + (dark - light) * k / (count - 1) for k in range(count)]
    return [to_hex(colormaps["viridis"](x)) for x in steps]


def line_color(k: int) -> str:
    """Return the colour of limit number k beside networks in shades: black, then some that viridis lacks."""
    return LINE if k == 0 else color((1, 3, 4)[k - 1] if k < 4 else k + 8)
