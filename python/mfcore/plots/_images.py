"""Draw densities of two coordinates as images, one for each time, with one scale of colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..measures._measure import Density
from ._axes import GREY, INCHES, TEXT, panels, root
from ._coordinates import symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    from ._axes import PlotAxes

_APART = 4.0  # ratio of peaks from which on colours follow the square root of the height
_FLAT = 4.0  # ratio of the sides of a plane from which on they have scales of their own
_TAIL = 1e-3  # heights below this fraction of the peak need not be in the picture


def images(names: tuple[str, ...], titles: list[str], laws: list[Density], ax: Any = None) -> list[PlotAxes]:
    """Draw densities side by side on the same ranges; beside new axes a colour bar for all."""
    targets = panels(len(laws), ax, (5.2 if len(laws) == 1 else 3.0 * len(laws) + 0.8, INCHES[1]))
    norm = color_scale([float(law.density.max()) for law in laws])
    boxes = np.array([_seen(law) for law in laws])
    low, high = boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0)
    for k, (target, text, law) in enumerate(zip(targets, titles, laws, strict=True)):
        mesh = target.pcolormesh(*law.edges, law.density.T, cmap="Blues", norm=norm, rasterized=True)
        target.set(xlabel=symbol(names[0]), ylabel=symbol(names[1]) if k == 0 else "")
        target.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        equal_scales(target, names)
        target.set_title(text, loc="left", fontsize=TEXT, color=GREY)
    if ax is None:
        color_bar(targets, mesh)
    return targets


def color_scale(peaks: Sequence[float]) -> Normalize:
    """One scale of colours for densities with these peaks."""
    from matplotlib.colors import Normalize, PowerNorm

    apart = max(peaks) > _APART * min(peaks)
    return PowerNorm(0.5, 0.0, max(peaks)) if apart else Normalize(0.0, max(peaks))


def color_bar(targets: Sequence[PlotAxes], mesh: ScalarMappable) -> None:
    """Add a colour bar for all of these axes to their figure."""
    figure = root(targets[0])
    bar = figure.colorbar(mesh, ax=list(targets), shrink=0.8, pad=0.02, label="density")
    bar.outline.set_visible(False)
    bar.ax.tick_params(width=0.7, color=GREY, labelsize=TEXT)
    figure.draw_without_rendering()  # a layout of equal scales takes two rounds


def equal_scales(ax: Axes, names: tuple[str, ...]) -> None:
    """Give both axes one scale where both are lengths in the space of w, unless the plane is too flat."""
    across, up = (name.rstrip("0123456789") for name in names)
    sides = np.abs([np.subtract(*ax.get_xlim()), np.subtract(*ax.get_ylim())])
    if across == up and max(sides) <= _FLAT * min(sides):
        ax.set_aspect("equal")


def _seen(law: Density) -> list[tuple[float, float]]:
    """The box outside of which a density is next to nothing."""
    high = law.density > _TAIL * law.density.max()
    inside = (np.flatnonzero(high.any(axis=1 - c)) for c in (0, 1))
    return [(float(e[k[0]]), float(e[k[-1] + 1])) for e, k in zip(law.edges, inside, strict=True)]
