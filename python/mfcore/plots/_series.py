"""Plot risks and observables of several rungs over t."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import check
from ..runs._trajectory import Trajectory
from ._axes import axes, plain_ticks, title, ylabel
from ._curves import Curve, draw_curve, intervals, lazy_clock, looks_of
from ._labels import series_of, settle
from ._runs import Group, Runs, average, labelled, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes

_VISIBLE = 2e-3  # intervals smaller than this fraction of the range of all that is drawn are left out
_CLOCKS = {"time": "time $t$", "lazy": "clock $α^2 t$"}


def risk(
    trajectories: Runs,
    *,
    reference: Trajectory | Iterable[Trajectory] | Mapping[str, Any] | None = None,
    clock: str = "time",
    ax: Axes | None = None,
    log: str = "",
) -> PlotAxes:
    """Draw the risk R(ρ_t) over t: points for networks, lines for the limit.

    Runs in a list or mapping are series of their own. Runs in a list inside of it are one group, such as
    several seeds: all of its networks are averaged. Networks of several widths are lines with a few markers,
    in shades from light (small N) to dark, and the limit beside them is black. Intervals are of 95 %: of the
    mean over replicas and runs (Student's t), and of a risk that was measured on samples; they end at 0. They
    are bars, or bands for groups, several widths and series of many points. The band around a limit is the
    stated error of the discretisation. Intervals too small to be seen are left out; where there are any, the
    label of the axis says so.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups. Without
            names, runs are called by what they differ in; what they have in common is the title. Also the
            table that `mf.sweep` or `mf.load` returns of a function that returns its `Trajectory`: a series
            for each case, where cases that differ by an argument ``rng`` or ``seed`` alone are one group.
        reference: Networks that stand for the limit, such as a very wide one, drawn as a line: one run, a
            group, or a mapping of names to them.
        clock: ``"time"`` for t, or ``"lazy"`` for α²t, on which networks of different scales α come together
            in the lazy limit.
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
    groups, common, lines = _with_reference(trajectories, reference)
    for name, runs in groups.items():
        if any(run.risk is None for run in runs):
            raise ValueError(f"trajectories must have a risk, got {name!r} that ran with risk=False")
    values = {name: [(run.risk, run.error) for run in runs] for name, runs in groups.items()}
    return _draw(groups, values, "risk $R$", common, ax, log, clock, lines, 0.0)


def observable(
    trajectories: Runs,
    name: str,
    *,
    reference: Trajectory | Iterable[Trajectory] | Mapping[str, Any] | None = None,
    clock: str = "time",
    ax: Axes | None = None,
    log: str = "",
) -> PlotAxes:
    """Draw an observable of runs over t, as `risk` draws the risk.

    Several observables can be drawn on the same axes, one after the other: their names then stand at the
    ends of the series and, together, at the axis.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups.
        name: What all of them have in `Trajectory.observed`, such as ``"norm_mean"``: one number per save
            point.
        reference: Networks that are drawn as a line, as in `risk`.
        clock: ``"time"`` for t, or ``"lazy"`` for α²t.
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
    groups, common, lines = _with_reference(trajectories, reference)
    values: dict[str, list[Any]] = {}
    for label, runs in groups.items():
        for run in runs:
            if not isinstance(name, str) or name not in run.observed:
                known = ", ".join(run.observed) or "none"
                hint = check.did_you_mean(name, run.observed) or f"; it has {known}"
                raise ValueError(f"name must be an observable of {label!r}, got {check.shown(name)}{hint}")
        values[label] = [(run.observed[name], None) for run in runs]
    least = 0.0 if name.startswith("norm") or name.endswith(("_std", "error")) else -np.inf
    return _draw(groups, values, _title(name), common, ax, log, clock, lines, least)


def _draw(
    groups: dict[str, list[Trajectory]],
    values: dict[str, list[tuple[Any, Any]]],
    quantity: str,
    common: str,
    ax: Axes | None,
    log: str,
    clock: str,
    lines: frozenset[str],
    least: float,
) -> PlotAxes:
    if not isinstance(log, str) or set(log) - {"x", "y"}:
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', got {check.shown(log)}")
    check.choice(clock, "clock", _CLOCKS)
    curves = {}
    for name, runs in groups.items():
        for run, (raw, _) in zip(runs, values[name], strict=True):
            if not len(run.t):
                raise ValueError(f"trajectories must have save points, got none in {name!r}")
            series(run, quantity.replace("$", ""), raw)
        raws, errors = zip(*values[name], strict=True)
        middle, half = average(runs, list(raws), list(errors))
        factor = lazy_clock(name, runs) if clock == "lazy" else 1.0
        curves[name] = Curve(factor * runs[0].t, middle, np.maximum(middle - half, least), middle + half)
    target = axes(ax)
    finite = [one.middle[np.isfinite(one.middle)] for one in curves.values()]
    scale = np.ptp(np.concatenate(finite)) if any(map(len, finite)) else 0.0
    fresh = not series_of(target)
    looks = looks_of(groups, lines, series_of(target))
    for name, runs in groups.items():
        draw_curve(target, curves[name], looks[name], runs, name, quantity, _VISIBLE * scale)
    if "x" in log:
        target.set_xscale("log", nonpositive="mask")
    if "y" in log:
        target.set_yscale("log", nonpositive="clip")
        _above_zero(target, list(curves.values()))
        plain_ticks(target)
    target.set_xlabel(_CLOCKS[clock])
    quantities = dict.fromkeys(one.quantity for one in series_of(target))
    ylabel(target, ", ".join(["; ".join(quantities), *intervals({s.interval for s in series_of(target)})]))
    if fresh and common and not target.get_title("left"):
        title(target, common)
    settle(target)
    return target


def _above_zero(ax: Axes, curves: list[Curve]) -> None:
    """Let a logarithmic axis begin at the series, where an interval that reaches 0 would fill it."""
    lowest = [np.maximum(one.low, 0.5 * one.middle)[one.middle > 0] for one in curves]
    low = min((float(part.min()) for part in lowest if len(part)), default=0.0)
    if 0 < ax.get_ylim()[0] < 0.9 * low and len(series_of(ax)) == len(curves):
        ax.set_ylim(bottom=0.9 * low)


def _with_reference(
    trajectories: Runs, reference: Group | Mapping[str, Group] | None
) -> tuple[dict[str, list[Trajectory]], str, frozenset[str]]:
    """The runs by name, what all have in common, and the names of those that are drawn as lines."""
    groups, common = labelled(trajectories)
    if reference is None:
        return groups, common, frozenset()
    given = labelled(reference if isinstance(reference, Mapping | Trajectory) else [reference])[0]
    lines = {f"{name} (reference)" if name in groups else name: runs for name, runs in given.items()}
    return {**groups, **lines}, common, frozenset(lines)


def _title(name: str) -> str:
    """The label of an observable: ``"norm_mean"`` in words."""
    what, _, moment = name.rpartition("_")
    words = {"mean": "mean", "std": "standard deviation"}
    if moment not in words or not what:
        return name.replace("_", " ")
    return f"{words[moment]} of {'|w|' if what == 'norm' else what}"
