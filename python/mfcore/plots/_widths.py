"""Plot the risk at the end of runs against the number of neurons, with a line of slope −1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .._base.check import FloatArray
from ..runs._trajectory import Trajectory
from ._axes import COLORS, GREY, axes, marker, numbers, plain_ticks, title, ylabel
from ._labels import label_end, settle
from ._runs import Group, Runs, average, is_network, labelled, replicas, widths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes


def final_risk(
    trajectories: Runs,
    *,
    reference: Trajectory | Iterable[Trajectory] | float | None = None,
    ax: Axes | None = None,
) -> PlotAxes:
    """Draw the risk at the end of runs against N, logarithmic, with a line ∝ 1/N through the points.

    With the limit given, points are R_N − R_∞, the mean over replicas and runs with 95 % intervals, in which
    the stated error of the limit is; the line is c/N, c the geometric mean of N·(R_N − R_∞). Without it,
    points are R_N, and the line is R + c/N fitted to the means by least squares, for three widths or more.

    Args:
        trajectories: Runs of networks, or groups of them such as several seeds, at least two widths.
        reference: The limit: a run of it, a group of wide networks, or the number R_∞. Default: the one run
            of a limit among `trajectories`, if there is one.
        ax: Axes to draw on; default new ones.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> runs = [mf.solve(model, mf.SGD(n, step=1e-3, replicas=4), horizon=1.0, rng=0) for n in (20, 80)]
        >>> ax = plots.final_risk(runs, reference=mf.solve(model, mf.PDE(100), horizon=1.0))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('neurons $N$', 'risk $R_N - R_∞$, mean and 95 % interval')
    """
    groups, common = labelled(trajectories)
    networks = {name: runs for name, runs in groups.items() if is_network(runs[0])}
    limits = [runs for runs in groups.values() if not is_network(runs[0])]
    sizes = {name: widths(runs) for name, runs in networks.items()}
    if any(len(set(found)) > 1 for found in sizes.values()) or len({n for (n, *_) in sizes.values()}) < 2:
        raise ValueError(
            "trajectories must have networks of two widths or more, one width to a group, got "
            + (", ".join(f"N = {found[0]}" for found in sizes.values()) or "none")
        )
    if reference is None and len(limits) == 1:
        reference = limits[0]
    ends = {name: _end(name, runs) for name, runs in networks.items()}
    n = np.array([found[0] for found in sizes.values()], dtype=float)
    order = np.argsort(n)
    n, middle, half = n[order], *np.array(list(ends.values())).T[:, order]
    level, error = (0.0, 0.0) if reference is None else _level(reference)
    target = axes(ax)
    above, half = middle - level, np.hypot(half, error)
    lower = np.minimum(half, above if reference is None else np.maximum(0.9 * above, 0.0))
    target.errorbar(
        n, above, [lower, half], linestyle="none", color=COLORS[0], elinewidth=0.9, zorder=3, **marker(0)
    )
    target.set_xscale("log")
    along = np.geomspace(n[0], n[-1], 50)
    if reference is not None:
        target.set_yscale("log", nonpositive="mask")
        if (above > 0).any():
            factor = float(np.exp(np.log((n * above)[above > 0]).mean()))
            _guide(target, along, factor / along, "∝ 1/N")
    elif len(set(n)) > 2:
        base, factor = np.linalg.lstsq(np.stack([0 * n + 1, 1 / n], axis=1), middle, rcond=None)[0]
        _guide(target, along, base + factor / along, f"{base:.4g} + {factor:.3g}/N")
    target.set_xticks(n, numbers(list(n)))
    target.set_xticks([], minor=True)
    target.set_xlabel("neurons $N$")
    shown = "risk $R_N - R_∞$" if reference is not None else "risk $R_N$"
    averaged = any(len(runs) > 1 or replicas(runs[0]) > 1 for runs in networks.values())
    told = ["mean and 95 % interval" if averaged else "95 % interval"] if half.any() else []
    ylabel(target, ", ".join([shown, *told]))
    if reference is not None:
        plain_ticks(target)
    if common:
        title(target, common)
    settle(target)
    return target


def _end(name: str, runs: list[Trajectory]) -> tuple[float, float]:
    """The mean of the last risks of a group and half of its 95 % interval."""
    if any(run.risk is None or not len(run.t) for run in runs):
        raise ValueError(f"trajectories must have a risk, got {name!r} that has none")
    middle, half = average(runs, [run.risk for run in runs], [run.error for run in runs])
    return float(middle[-1]), float(half[-1])


def _level(reference: Group | float) -> tuple[float, float]:
    """The risk of the limit and its error."""
    if isinstance(reference, int | float | np.number):
        return float(reference), 0.0
    ((name, runs),) = labelled([reference])[0].items()
    return _end(name, runs)


def _guide(ax: Axes, x: FloatArray, y: FloatArray, text: str) -> None:
    (line,) = ax.plot(x, y, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    label_end(ax, float(x[-1]), float(y[-1]), text, GREY, line)
