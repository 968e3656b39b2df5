"""Plot measures at several times: histograms of networks over densities of the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Measure, Trajectory
from ._axes import GREY, INCHES, TEXT, axes, color, panels, title, ylabel
from ._coordinates import marginal, reduced_of, symbol, values
from ._labels import label_peaks
from ._runs import Runs, is_network, mean, model_of, named

if TYPE_CHECKING:
    from ._axes import PlotAxes

_TAIL = 1e-3  # heights below this fraction of the peak are not shown


def density(
    trajectories: Runs,
    *,
    times: float | npt.ArrayLike | None = None,
    coordinate: str | None = None,
    bins: int | None = None,
    ax: Any = None,
) -> PlotAxes:
    """Draw the laws of one coordinate at several times, a colour for each; or one law of two coordinates as
    images.

    Neurons (of all replicas together) are filled histograms, atoms outlined ones, and the densities of the
    PDE lines, so that a network and its limit can be drawn over each other. A single run of the PDE in two
    coordinates is drawn as images, one for each time, unless `coordinate` asks for a marginal. Each is
    scaled by its own peak.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups: with the
            measures in `kept`. Histograms of a group are the means over its networks, with 95 % intervals.
        times: Save points that were kept, or the end. Default: those of the first run that kept any, at
            most three of them, the first, the middle and the last; else the end.
        coordinate: ``"norm"`` (|w|), ``"a"``, ``"b"``, or one of the reduction, such as ``"r1"``. Default:
            |w|, or the only coordinate there is.
        bins: Bars of a histogram, over the range of its values; default 2·n^(1/3) of n values, and half as
            many as nodes for atoms of different masses, which are nodes of a quadrature.
        ax: Axes to draw on; for images as many as times. Default new ones.

    Returns:
        The axes; of the first image, if there are several (the others are in ``.figure.axes``).

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=200, step=1e-3), horizon=1.0, save_at=3, keep="all", rng=0)
        >>> ax = plots.density(run, times=[0.0, 1.0])
        >>> [text.get_text() for text in ax.texts]
        ['t = 0', 't = 1']
    """
    groups = named(trajectories)
    runs = {name: group[0] for name, group in groups.items()}
    bins = None if bins is None else check.count(bins, "bins")
    asked = _times(runs, times)
    laws = {
        name: [pooled(name, [measure_at(name, run, t) for run in group]) for t in asked]
        for name, group in groups.items()
    }
    (only, *others) = runs
    first = laws[only][0]
    if coordinate is None and not others and isinstance(first, Density) and len(first.edges) == 2:
        return _images(model_of(runs[only]), asked, laws[only], ax)
    name = _coordinate(runs, laws) if coordinate is None else coordinate
    target = axes(ax)
    peaks: list[tuple[float, float, str, str]] = []
    ends: list[float] = []
    for k, t in enumerate(asked):
        shade = color(k)
        tops = [
            _curve(target, model_of(run), laws[label][k], name, bins, shade, band=len(groups[label]) > 1)
            for label, run in runs.items()
        ]
        # The name goes above the lines of the limit, where there are any: histograms are ragged.
        limits = [top for top, run in zip(tops, runs.values(), strict=True) if not is_network(run)]
        x = max(limits or tops, key=lambda top: top[1])[0]
        peaks.append((x, max(top[1] for top in tops), f"t = {t:.3g}", shade))
        ends += [end for top in tops for end in top[2:]]
    margin = 0.04 * (max(ends) - min(ends))
    target.set_xlim(min(ends) - margin, max(ends) + margin)  # grids go on where nothing is
    target.set_ylim(bottom=0.0)
    label_peaks(target, peaks)
    averaged = any(len(group) > 1 and is_network(group[0]) for group in groups.values())
    target.set_xlabel(symbol(name))
    ylabel(target, "density, mean and 95 % interval" if averaged else "density")
    if others or is_network(runs[only]):
        legend = [f"{_form(law[0])}: {label}" for label, law in laws.items()]
        title(target, "     ".join(legend))
    return target


def _times(runs: dict[str, Trajectory], times: Any) -> list[float]:
    if times is not None:
        return given_times(times)
    for run in runs.values():
        if run.kept:
            kept = sorted(run.kept)
            return sorted({kept[0], kept[len(kept) // 2], kept[-1]})
    return [_end(next(iter(runs.values())))]


def _end(run: Trajectory) -> float:
    return float(run.meta["t"]) if "t" in run.meta else float(run.t[-1])


def given_times(times: Any) -> list[float]:
    """One time, or a list of them."""
    one = check.as_numpy(times, "times").ndim == 0
    return [float(t) for t in check.array([times] if one else times, "times", shape=(None,))]


def kept_times(run: Trajectory) -> list[float]:
    """The save points whose measures a run kept, or its end."""
    return sorted(run.kept) or [_end(run)]


def measure_at(name: str, run: Trajectory, t: float) -> Measure:
    """The measure of a run at a time that it kept, or at its end."""
    known: dict[float, Measure] = {_end(run): run.final, **run.kept}
    if run.status == "completed" and "horizon" in run.meta:  # or the step nearest to it
        known.setdefault(run.meta["horizon"], run.final)
    nearest = min(known, key=lambda at: abs(at - t))
    if abs(nearest - t) > 1e-9 * max(known):
        kept = ", ".join(f"{at:g}" for at in sorted(known))
        raise ValueError(
            f"times must be kept by the run, got {t:g}; {name!r} has {kept} (others: solve(keep=…))"
        )
    return known[nearest]


def pooled(name: str, measures: list[Measure]) -> Measure:
    """The law of a group of runs: all networks as replicas, the mean of limits."""
    if len(measures) == 1:
        return measures[0]
    arrays = [one for one in measures if isinstance(one, np.ndarray)]
    if len(arrays) == len(measures):
        networks = [one.reshape(-1, *one.shape[-2:]) for one in arrays]
        if len({one.shape[1:] for one in networks}) == 1:
            return np.concatenate(networks)
    if all(isinstance(one, Density) for one in measures):
        laws = [one for one in measures if isinstance(one, Density)]
        grids = [[list(edges) for edges in law.edges] for law in laws]
        if all(grid == grids[0] for grid in grids):
            return Density(laws[0].edges, np.mean([law.mass for law in laws], axis=0))
    raise ValueError(
        f"trajectories must have networks of one size or densities of one grid in a group, got {name!r}"
    )


def _coordinate(runs: dict[str, Trajectory], laws: dict[str, list[Measure]]) -> str:
    """The coordinate to draw by default: the only coordinate of the limit, or |w|."""
    for name, run in runs.items():
        if not is_network(run):
            model = model_of(run)
            coordinates = reduced_of(model).coordinates
            if len(coordinates) == 1:
                return "norm" if coordinates == ("r",) and len(runs) > 1 else coordinates[0]
            if isinstance(model, ReducedModel):
                raise ValueError(f"coordinate must be given for {name!r}: one of {', '.join(coordinates)}")
    return "norm"


def _curve(
    ax: PlotAxes,
    model: Model | ReducedModel,
    law: Measure,
    name: str,
    bins: int | None,
    color: str,
    band: bool,
) -> tuple[float, float, float, float]:
    """Draw one law of one coordinate; returns its peak, and the range without tails."""
    if isinstance(law, Density):
        grid = marginal(model, law, name)
        if grid is not None:
            edges, mass = grid
            x, height = 0.5 * (edges[1:] + edges[:-1]), mass / np.diff(edges)
            ax.plot(x, height, color=color, linewidth=1.6, zorder=3)
            return _extent(x, height)
    points, weights = values(model, law, name)
    if isinstance(law, Cloud) and law.points.shape[1] == 1 and np.ptp(weights) > 0:
        mass, edges = _of_nodes(points, weights, bins)
    else:
        mass, edges = np.histogram(points, bins=_edges(points, bins, len(points)), weights=weights)
    height = mass / np.diff(edges)
    if isinstance(law, np.ndarray):
        ax.stairs(height, edges, fill=True, color=color, alpha=0.35, linewidth=0, zorder=2)
        if band:
            each = points.reshape(len(law), -1)
            heights = [np.histogram(x, bins=edges)[0] / x.size / np.diff(edges) for x in each]
            middle, half = mean(np.stack(heights, axis=1), np.zeros((len(height), len(law))))
            ax.errorbar(
                0.5 * (edges[1:] + edges[:-1]), middle, half, fmt="none", ecolor=color, elinewidth=0.9
            )
    else:
        ax.stairs(height, edges, color=color, linewidth=1.3, zorder=3)
    place, top, _, _ = _extent(0.5 * (edges[1:] + edges[:-1]), height)
    return place, top, float(edges[0]), float(edges[-1])


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


def _extent(x: FloatArray, height: FloatArray) -> tuple[float, float, float, float]:
    """Position and height of the peak, and the interval in which heights are visible."""
    shown = x[height > _TAIL * height.max()]
    return float(x[height.argmax()]), float(height.max()), float(shown[0]), float(shown[-1])


def _form(law: Measure) -> str:
    """How a law is drawn: as histogram, curve or bars of atoms."""
    return "bars" if isinstance(law, np.ndarray) else "lines" if isinstance(law, Density) else "steps"


def _edges(points: FloatArray, bins: int | None, count: int) -> FloatArray:
    """Edges of the bars of a histogram over the range of the points; narrow ones if all points are equal
    to rounding.
    """
    low, high = float(points.min()), float(points.max())
    least = 1e-3 * max(abs(low), abs(high), 1e-3)
    if high - low < least:
        middle = 0.5 * (low + high)
        return np.array([middle - least, middle + least])
    return np.linspace(low, high, (bins or max(1, round(2 * count ** (1 / 3)))) + 1)


def _images(model: Model | ReducedModel, times: list[float], laws: list[Measure], ax: Any) -> PlotAxes:
    width = 4.6 if len(laws) == 1 else 3.0 * len(laws)
    targets = panels(len(laws), ax, (width, INCHES[1]))
    first, second = reduced_of(model).coordinates
    for k, (target, t, law) in enumerate(zip(targets, times, laws, strict=True)):
        assert isinstance(law, Density)
        heights = law.density
        target.pcolormesh(law.edges[0], law.edges[1], heights.T, cmap="Blues", vmin=0.0, rasterized=True)
        target.set(xlabel=symbol(first), ylabel=symbol(second) if k == 0 else "")
        target.set_title(f"t = {t:.3g}   peak {heights.max():.3g}", loc="left", fontsize=TEXT, color=GREY)
    return targets[0]
