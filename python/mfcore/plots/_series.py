"""Plot risks and observables of several rungs over t."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..runs._trajectory import Trajectory
from ._axes import axes, color, marker, plain_ticks, stroke, title, ylabel
from ._labels import label_end, series_of, settle
from ._runs import Runs, average, is_network, labelled, replicas, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes

_VISIBLE = 2e-3  # intervals smaller than this fraction of the range of all that is drawn are left out
_MANY = 60  # with more points than this, every so many have a marker, and intervals are a band
_MARKED = 12  # markers of such a series
_INTERVALS = ("mean and 95 % interval", "95 % interval", "stated error")


def risk(trajectories: Runs, *, ax: Axes | None = None, log: str = "") -> PlotAxes:
    """Draw the risk R(ρ_t) over t: points for networks, lines for the limit.

    Runs in a list or mapping are series of their own. Runs in a list inside of it are one group, such as
    several seeds: all of its networks are averaged. Intervals are of 95 %: of the mean over replicas and runs
    (Student's t), and of a risk that was measured on samples. They are bars, or bands for groups and series
    of many points. The band around a line is the stated error of the discretisation. Intervals too small to
    be seen are left out; where there are any, the label of the axis says so.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups. Without
            names, runs are called by what they differ in; what they have in common is the title. Also the
            table that `mf.sweep` or `mf.load` returns of a function that returns its `Trajectory`: a series
            for each case, where cases that differ by an argument ``rng`` or ``seed`` alone are one group.
        ax: Axes to draw on, once or several times; default new ones. Names are at the ends of series, or,
            in a figure without a layout engine, in a legend.
        log: Axes that are logarithmic: ``"x"``, ``"y"`` or ``"xy"``. A logarithmic clock has no t = 0.

    Returns:
        The axes. Their ``savefig`` is that of the figure.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> runs = [mf.solve(model, mf.SGD(n, step=1e-3, replicas=4), horizon=1.0, rng=0) for n in (20, 80)]
        >>> ax = plots.risk(runs)
        >>> [text.get_text() for text in ax.texts]
        ['N = 20', 'N = 80']
        >>> seeds = [
        ...     [mf.solve(model, mf.SGD(n, step=1e-2), horizon=1.0, rng=seed) for seed in range(3)]
        ...     for n in (20, 80)
        ... ]
        >>> plots.risk(seeds).get_ylabel()
        'risk $R$, mean and 95 % interval'
    """
    groups, common = labelled(trajectories)
    for name, runs in groups.items():
        if any(run.risk is None for run in runs):
            raise ValueError(f"trajectories must have a risk, got {name!r} that ran with risk=False")
    values = {name: [(run.risk, run.error) for run in runs] for name, runs in groups.items()}
    return _draw(groups, values, "risk $R$", common, ax, log)


def observable(trajectories: Runs, name: str, *, ax: Axes | None = None, log: str = "") -> PlotAxes:
    """Draw an observable of runs over t, as `risk` draws the risk.

    Several observables can be drawn on the same axes, one after the other: their names then stand at the
    ends of the series and, together, at the axis.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups.
        name: What all of them have in `Trajectory.observed`, such as ``"norm_mean"``: one number per save
            point.
        ax: Axes to draw on; default new ones.
        log: Axes that are logarithmic: ``"x"``, ``"y"`` or ``"xy"``.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=20, step=1e-3), horizon=1.0, rng=0)
        >>> plots.observable(run, "norm_mean").get_ylabel()
        'mean of |w|'
    """
    groups, common = labelled(trajectories)
    values: dict[str, list[Any]] = {}
    for label, runs in groups.items():
        for run in runs:
            if not isinstance(name, str) or name not in run.observed:
                known = ", ".join(run.observed) or "none"
                hint = check.did_you_mean(name, run.observed) or f"; it has {known}"
                raise ValueError(f"name must be an observable of {label!r}, got {check.shown(name)}{hint}")
        values[label] = [(run.observed[name], None) for run in runs]
    return _draw(groups, values, _title(name), common, ax, log)


def _draw(
    groups: dict[str, list[Trajectory]],
    values: dict[str, list[tuple[Any, Any]]],
    quantity: str,
    common: str,
    ax: Axes | None,
    log: str,
) -> PlotAxes:
    if not isinstance(log, str) or set(log) - {"x", "y"}:
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', got {check.shown(log)}")
    curves = {}
    for name, runs in groups.items():
        for run, (raw, _) in zip(runs, values[name], strict=True):
            if not len(run.t):
                raise ValueError(f"trajectories must have save points, got none in {name!r}")
            series(run, quantity.replace("$", ""), raw)
        raws, errors = zip(*values[name], strict=True)
        curves[name] = average(runs, list(raws), list(errors))
    target = axes(ax)
    finite = [middle[np.isfinite(middle)] for middle, _ in curves.values()]
    scale = np.ptp(np.concatenate(finite)) if any(map(len, finite)) else 0.0
    fresh = not series_of(target)
    for name, runs in groups.items():
        _curve(target, runs, name, quantity, *curves[name], _VISIBLE * scale)
    if "x" in log:
        target.set_xscale("log", nonpositive="mask")
    if "y" in log:
        target.set_yscale("log", nonpositive="clip")
        plain_ticks(target)
    quantities = dict.fromkeys(one.quantity for one in series_of(target))
    intervals = {one.interval for one in series_of(target)}
    told = [interval for interval in _INTERVALS if interval in intervals]
    target.set_xlabel("time $t$")
    ylabel(target, ", ".join(["; ".join(quantities), *told]))
    if fresh and common and not target.get_title("left"):
        title(target, common)
    settle(target)
    return target


def _curve(
    ax: Axes,
    runs: list[Trajectory],
    name: str,
    quantity: str,
    middle: FloatArray,
    half: FloatArray,
    visible: float,
) -> None:
    drawn = series_of(ax)
    shade, t = color(len(drawn)), runs[0].t
    seen = bool((half > visible).any())
    common: dict[str, Any] = {"color": shade, "label": name}
    network, many = is_network(runs[0]), len(t) > _MANY
    band = seen and (many or len(runs) > 1 or not network)
    if band:
        ax.fill_between(t, middle - half, middle + half, color=shade, alpha=0.2, linewidth=0)
    if network:
        before = sum(one.artist.get_marker() != "None" for one in drawn)
        style = {**marker(before), "zorder": 3 + 0.01 * before}
        if many or band:
            # A thin line joins what belongs together; markers of different series stand at different points.
            every = max(1, len(t) // _MARKED)
            where = (before * every // 3 % every, every)
            (artist,) = ax.plot(t, middle, linewidth=0.8, markevery=where, **common, **style)
        elif seen:
            bars = ax.errorbar(t, middle, half, linestyle="none", elinewidth=0.9, **common, **style)
            artist = bars.lines[0]
        else:
            (artist,) = ax.plot(t, middle, linestyle="none", **common, **style)
    else:
        before = sum(one.artist.get_marker() == "None" for one in drawn)
        (artist,) = ax.plot(t, middle, zorder=2, **common, **stroke(before))
    averaged = len(runs) > 1 or replicas(runs[0]) > 1
    interval = _INTERVALS[0 if averaged else 1 if network else 2] if seen else ""
    label_end(ax, t[-1], middle[-1], name, shade, artist, quantity, interval)


def _title(name: str) -> str:
    """The label of an observable: ``"norm_mean"`` in words."""
    what, _, moment = name.rpartition("_")
    words = {"mean": "mean", "std": "standard deviation"}
    if moment not in words or not what:
        return name.replace("_", " ")
    return f"{words[moment]} of {'|w|' if what == 'norm' else what}"
