"""Plot risks and observables of several rungs over t."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..runs._trajectory import Trajectory
from ._axes import axes, label_end, next_color, plain_ticks, settle
from ._runs import Runs, center, is_network, named, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes

_VISIBLE = 2e-3  # bands thinner than this fraction of the range of all that is drawn are left out
# line styles, such that earlier lines show through later ones
_DASHES = ("-", (0, (4, 3)), (0, (1, 2)), (0, (6, 2, 1, 2)))
_MANY = 60  # with more points than this, points touch each other


def risk(trajectories: Runs, *, ax: Axes | None = None, log: str = "") -> PlotAxes:
    """Draw the risk R(ρ_t) over t: points for networks, lines for the limit.

    Bars are 95 % confidence intervals: of the mean over replicas, and of a risk that was measured on samples.
    The band around a line is the stated error of the discretisation, where it is large enough to be seen.

    Args:
        trajectories: One run, several, or a mapping of names to runs. Without names, runs are called by their
            methods and by what they differ in.
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
        ['SGD, N = 20', 'SGD, N = 80']
    """
    runs = named(trajectories)
    for name, run in runs.items():
        if run.risk is None:
            raise ValueError(f"trajectories must have a risk, got {name!r} that ran with risk=False")
    values = {name: (run.risk, run.error) for name, run in runs.items()}
    return _draw(runs, values, "risk $R$", ax, log)


def observable(trajectories: Runs, name: str, *, ax: Axes | None = None, log: str = "") -> PlotAxes:
    """Draw an observable of runs over t, as `risk` draws the risk.

    Args:
        trajectories: One run, several, or a mapping of names to runs.
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
    runs = named(trajectories)
    values: dict[str, tuple[FloatArray | None, FloatArray | None]] = {}
    for label, run in runs.items():
        if not isinstance(name, str) or name not in run.observed:
            hint = check.did_you_mean(name, run.observed) or f"; it has {', '.join(run.observed) or 'none'}"
            raise ValueError(f"name must be an observable of {label!r}, got {check.shown(name)}{hint}")
        values[label] = run.observed[name], None
    return _draw(runs, values, _title(name), ax, log)


def _draw(
    runs: dict[str, Trajectory],
    values: dict[str, tuple[FloatArray | None, FloatArray | None]],
    ylabel: str,
    ax: Axes | None,
    log: str,
) -> PlotAxes:
    if not isinstance(log, str) or set(log) - {"x", "y"}:
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', got {check.shown(log)}")
    curves = {}
    for name, run in runs.items():
        raw, error = values[name]
        assert raw is not None
        if not len(run.t):
            raise ValueError(f"trajectories must have save points, got none in {name!r}")
        curves[name] = center(run, series(run, ylabel.replace("$", ""), raw), error)
    target = axes(ax)
    finite = [middle[np.isfinite(middle)] for middle, _ in curves.values()]
    scale = np.ptp(np.concatenate(finite)) if any(map(len, finite)) else 0.0
    for name, run in runs.items():
        _curve(target, run, name, *curves[name], _VISIBLE * scale)
    if "x" in log:
        target.set_xscale("log", nonpositive="mask")
    if "y" in log:
        target.set_yscale("log", nonpositive="clip")
        plain_ticks(target)
    target.set(xlabel="time $t$", ylabel=ylabel)
    settle(target)
    return target


def _curve(
    ax: Axes, run: Trajectory, name: str, middle: FloatArray, half: FloatArray, visible: float
) -> None:
    color = next_color(ax)
    seen = bool((half > visible).any())
    if is_network(run):
        size = 3.6 if len(run.t) <= _MANY else 1.8
        style: dict[str, Any] = {"markersize": size, "markerfacecolor": "white", "markeredgewidth": 0.9}
        if seen:
            ax.errorbar(
                run.t, middle, half, fmt="o", color=color, elinewidth=0.9, zorder=3, label=name, **style
            )
        else:
            ax.plot(run.t, middle, "o", color=color, zorder=3, label=name, **style)
    else:
        if seen:
            ax.fill_between(run.t, middle - half, middle + half, color=color, alpha=0.2, linewidth=0)
        before = sum(line.get_marker() == "None" for line in ax.get_lines())
        dashes: Any = _DASHES[before % len(_DASHES)]
        ax.plot(run.t, middle, color=color, linewidth=1.6, linestyle=dashes, zorder=2, label=name)
    label_end(ax, run.t[-1], middle[-1], name, color)


def _title(name: str) -> str:
    """The label of an observable: ``"norm_mean"`` in words."""
    what, _, moment = name.rpartition("_")
    words = {"mean": "mean", "std": "standard deviation"}
    if moment not in words or not what:
        return name
    return f"{words[moment]} of {'|w|' if what == 'norm' else what}"
