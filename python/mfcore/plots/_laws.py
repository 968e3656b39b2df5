"""Draw the law of one coordinate: bars of neurons, steps of atoms, lines of densities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base.check import FloatArray
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Measure
from ._coordinates import marginal, values
from ._runs import mean

if TYPE_CHECKING:
    from ._axes import PlotAxes

_TAIL = 1e-3  # heights below this fraction of the peak are not shown, nor outer masses of atoms
_SPIKE = 0.1  # of the range: mass on an interval of this length tells a hump from a spike
_NAME = 0.06  # of the range: about the width of a name


@dataclass(frozen=True)
class Bars:
    """Heights on the cells or bars between edges, as they are drawn."""

    edges: FloatArray
    heights: FloatArray
    tops: FloatArray  # of the intervals around the heights

    def ends(self) -> tuple[float, float]:
        """The interval in which heights can be seen."""
        shown = np.flatnonzero(self.heights > _TAIL * self.heights.max())
        return float(self.edges[shown[0]]), float(self.edges[shown[-1] + 1])

    def hump(self) -> float:
        """Where most mass is on an interval of some length: no spike that holds little mass."""
        low, high = self.ends()
        half = 0.5 * _SPIKE * (high - low)
        x = np.linspace(low, high, 401)
        total = np.concatenate([[0.0], np.cumsum(self.heights * np.diff(self.edges))])
        mass = np.interp(x + half, self.edges, total) - np.interp(x - half, self.edges, total)
        return float(x[mass >= 0.999 * mass.max()].mean())

    def near(self, x: float) -> float:
        """The largest height below a name at x."""
        low, high = self.ends()
        half = 0.5 * _NAME * (high - low)
        inside = (self.edges[1:] > x - half) & (self.edges[:-1] < x + half)
        return float(self.tops[inside].max()) if inside.any() else 0.0


def draw_law(
    ax: PlotAxes,
    model: Model | ReducedModel | None,
    law: Measure,
    name: str,
    bins: int | None,
    color: str,
    band: bool,
) -> Bars:
    """Draw one law of one coordinate: a line for a density, bars for neurons, steps for atoms."""
    from matplotlib.colors import to_rgba

    if isinstance(law, Density):
        grid = marginal(model, law, name)
        if grid is not None:
            edges, mass = grid
            height = mass / np.diff(edges)
            ax.plot(0.5 * (edges[1:] + edges[:-1]), height, color=color, linewidth=1.6, zorder=3)
            return Bars(edges, height, height)
    points, weights = values(model, law, name)
    if isinstance(law, Cloud) and law.points.shape[1] == 1 and np.ptp(weights) > 0:
        mass, edges = _of_nodes(points, weights, bins)
    else:
        # As many as atoms of equal masses would be as uneven, and as the neurons of one network.
        count = law.shape[-2] if isinstance(law, np.ndarray) else 1 / float((weights**2).sum())
        mass, edges = np.histogram(points, bins=_edges(points, bins, count), weights=weights)
    height = tops = mass / np.diff(edges)
    if isinstance(law, np.ndarray):
        filled = to_rgba(color, 0.3)
        ax.stairs(height, edges, fill=True, facecolor=filled, edgecolor=color, linewidth=0.7, zorder=2)
        if band:
            each = points.reshape(len(law), -1)
            heights = [np.histogram(x, bins=edges)[0] / x.size / np.diff(edges) for x in each]
            middle, half = mean(np.stack(heights, axis=1), np.zeros((len(height), len(law))))
            tops = middle + half
            sides = [np.minimum(half, middle), half]  # no density is below 0
            ax.errorbar(
                0.5 * (edges[1:] + edges[:-1]), middle, sides, fmt="none", ecolor=color, elinewidth=0.9
            )
    else:
        ax.stairs(height, edges, color=color, linewidth=1.3, zorder=3)
    return Bars(edges, height, tops)


def form(law: Measure) -> str:
    """How a law is drawn: as histogram, curve or bars of atoms."""
    return "bars" if isinstance(law, np.ndarray) else "lines" if isinstance(law, Density) else "steps"


def _of_nodes(z: FloatArray, weights: FloatArray, bins: int | None) -> tuple[FloatArray, FloatArray]:
    """Masses and edges of bars for atoms that are quadrature nodes, about two of them per bar.

    The mass of a node belongs to the interval up to the midpoints between it and its neighbours. Outer bars
    take the tails, where there may be many nodes of next to no mass.
    """
    order = np.argsort(z)
    z, total = z[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    middles = 0.5 * (z[1:] + z[:-1])
    cells = np.concatenate([2 * z[:1] - middles[:1], middles, 2 * z[-1:] - middles[-1:]])
    ends = np.interp([_TAIL, 1 - _TAIL], total, cells)
    inside = int(((z > ends[0]) & (z < ends[1])).sum())
    edges = _edges(ends, bins or min(max(inside // 2, 1), 40), 1)
    below = np.interp(edges, cells, total)
    below[[0, -1]] = 0.0, 1.0
    return np.diff(below), edges


def _edges(points: FloatArray, bins: int | None, count: float) -> FloatArray:
    """Edges of the bars of a histogram over the range of the points; narrow ones if all points are equal
    to rounding.
    """
    low, high = float(points.min()), float(points.max())
    least = 1e-3 * max(abs(low), abs(high), 1e-3)
    if high - low < least:
        middle = 0.5 * (low + high)
        return np.array([middle - least, middle + least])
    return np.linspace(low, high, (bins or max(1, round(2 * count ** (1 / 3)))) + 1)
