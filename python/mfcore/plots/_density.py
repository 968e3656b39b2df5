"""Plot measures at several times: histograms of networks over densities of the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._base import check
from ..measures._measure import Density
from ..measures._place import MeasureLike
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Measure, Trajectory
from ..stationary import Stationary
from ._axes import axes, color, title, ylabel
from ._coordinates import names_of, symbol
from ._images import images
from ._labels import label_peaks
from ._laws import draw_law, form
from ._measures import drawn_model, timeless, with_measures
from ._runs import Runs, is_network, named
from ._shades import line_color, shades

if TYPE_CHECKING:
    from ._axes import PlotAxes


def density(
    trajectories: Runs | Stationary | MeasureLike | Sequence[Stationary | MeasureLike] | Mapping[str, Any],
    model: Model | ReducedModel | None = None,
    *,
    times: float | npt.ArrayLike | None = None,
    coordinate: str | None = None,
    bins: int | None = None,
    ax: Any = None,
) -> PlotAxes:
    """Draw the laws of one coordinate, at several times in shades from light (early) to dark; or laws of two
    coordinates as images.

    Neurons (of all replicas together) are filled histograms, atoms outlined ones, and densities lines, so
    that a network and its limit can be drawn over each other. A measure beside runs, such as the Gibbs law
    that they approach, is drawn once. A single density in two coordinates, or a run of the PDE in two, is
    drawn as images, one for each time, unless `coordinate` asks for a marginal; all have the same ranges and
    one scale of colours, and coordinates of w equal scales.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups: with the
            measures in `kept`. Histograms of a group are the means over its networks, with 95 % intervals.
            In the place of a run also a measure: a `Density`, a `Cloud`, what `mf.gibbs` returns, neurons.
        model: The model of measures given as such, whose coordinates they have; those of trajectories are
            known. Densities and atoms can do without it: their coordinates are then z, or z1, z2 and so on.
        times: Save points that were kept, or the end. Default: those of the first run that kept any, at
            most three of them, the first, the middle and the last; else the end.
        coordinate: ``"norm"`` (|w|), ``"a"``, ``"b"``, or one of the reduction, such as ``"r1"``. Default:
            |w|, or the only coordinate there is.
        bins: Bars of a histogram, over the range of its values; default 2·N^(1/3) of N neurons of a network
            or as many atoms of equal masses, and half as many as nodes for atoms of one coordinate with
            different masses, which are nodes of a quadrature.
        ax: Axes to draw on; for images as many as times. Default new ones, for images with a colour bar.

    Returns:
        The axes; of the first image, if there are several (the others, and last the colour bar's, are in
        ``.figure.axes``).

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
        >>> noisy = model.replace(temperature=0.05, ridge=0.5)
        >>> ends = {"at the end": run.final, "Gibbs law": mf.gibbs(noisy)}
        >>> [text.get_text() for text in plots.density(ends, model).texts]
        ['at the end', 'Gibbs law']
    """
    groups = named(with_measures(trajectories, model))
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
        found = [law for law in laws[only] if isinstance(law, Density)]
        titles = [f"peak {law.density.max():.3g}" for law in found]
        if not timeless(runs[only]):
            titles = [f"t = {t:.3g}   {text}" for t, text in zip(asked, titles, strict=True)]
        return images(names_of(drawn_model(runs[only]), first), titles, found, ax)[0]
    name = _coordinate(runs, laws) if coordinate is None else coordinate
    target = axes(ax)
    moving = [label for label, run in runs.items() if not timeless(run)]
    still = [label for label in runs if label not in moving]
    entries = [(f"t = {t:.3g}", shade, moving) for t, shade in zip(asked, shades(len(asked)), strict=True)]
    hues = [line_color(k) if moving else color(k) for k in range(len(still))]
    entries = entries if moving else []
    entries += [(label if others else "", hue, [label]) for label, hue in zip(still, hues, strict=True)]
    peaks: list[tuple[float, float, str, str]] = []
    ends: list[float] = []
    for k, (text, shade, members) in enumerate(entries):
        drawn = {}
        for label in members:
            law = laws[label][k if label in moving else 0]
            bars = draw_law(target, drawn_model(runs[label]), law, name, bins, shade, len(groups[label]) > 1)
            drawn[label] = bars
            ends += bars.ends() if isinstance(law, Density) else (bars.edges[0], bars.edges[-1])
        # The name goes above the lines of the limit, where there are any: histograms are ragged.
        limits = [bars for label, bars in drawn.items() if not is_network(runs[label])]
        x = max(limits or drawn.values(), key=lambda bars: bars.near(bars.hump())).hump()
        peaks.append((x, max(bars.near(x) for bars in drawn.values()), text, shade))
    margin = 0.04 * (max(ends) - min(ends))
    target.set_xlim(min(ends) - margin, max(ends) + margin)  # grids go on where nothing is
    target.set_ylim(bottom=0.0)
    label_peaks(target, [peak for peak in peaks if peak[2]])
    averaged = any(len(group) > 1 and is_network(group[0]) for group in groups.values())
    target.set_xlabel(symbol(name))
    ylabel(target, "density, mean and 95 % interval" if averaged else "density")
    if len(moving) > 1 or any(is_network(runs[label]) for label in moving):
        legend = [f"{form(laws[label][0])}: {label}" for label in moving]
        title(target, "     ".join(legend))
    return target


def _times(runs: dict[str, Trajectory], times: Any) -> list[float]:
    if times is not None:
        return given_times(times)
    for run in runs.values():
        if run.kept and not timeless(run):
            kept = sorted(run.kept)
            return sorted({kept[0], kept[len(kept) // 2], kept[-1]})
    return [_end(next((run for run in runs.values() if not timeless(run)), next(iter(runs.values()))))]


def _end(run: Trajectory) -> float:
    if timeless(run):
        return 0.0
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
    if timeless(run):
        measure: Measure = run.final
        return measure
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
            model = drawn_model(run)
            coordinates = names_of(model, laws[name][0])
            if len(coordinates) == 1:
                return "norm" if coordinates == ("r",) and len(runs) > 1 else coordinates[0]
            if not isinstance(model, Model):
                raise ValueError(f"coordinate must be given for {name!r}: one of {', '.join(coordinates)}")
    return "norm"
