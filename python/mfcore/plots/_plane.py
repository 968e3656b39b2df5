"""Plot neurons on the plane of two coordinates, with the velocity field that moves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..measures._functions import grad_psi
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._trajectory import Measure, Trajectory
from ._axes import COLORS, GREY, TEXT, axes, root
from ._coordinates import reduced_of, symbol, values
from ._density import pooled
from ._images import equal_scales
from ._runs import model_of, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import PlotAxes

_MARGIN = 0.15  # margin on each side, as a fraction of the range of the neurons
_CELLS = 40  # cells along each axis of a density whose field is drawn
_MOST = 5000.0  # area in points² that all neurons cover together at most


def particles(
    trajectory: Trajectory | Sequence[Trajectory] | Measure,
    model: Model | ReducedModel | None = None,
    *,
    coordinates: Sequence[str] | None = None,
    arrows: int = 15,
    ax: Axes | None = None,
) -> PlotAxes:
    """Draw the neurons or atoms of a measure as points, and their velocity −rate·∇Ψ_λ as arrows.

    The field is that of the model's reduction, for the measure averaged over the symmetry. Coordinates that
    are not shown are at their means. Arrows are as long as neurons are fast, on the scale of the sample above
    the axes; the fastest, one in ten, are drawn as long as the next.

    Args:
        trajectory: What `mf.solve` returns, for the measure at its end, or a list of runs of one model, for
            all of their neurons together; or a measure, such as one of `kept`.
        model: The model of the measure; that of a trajectory is known.
        coordinates: Names of the two; default the last two of the reduction.
        arrows: Arrows along each axis; 0 for none.
        ax: Axes to draw on; default new ones.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.AnisotropicGaussians(d=20, delta=0.5, s0=5),
        ...     network=mf.Network(mf.activations.erf, bias="trained"),
        ...     init=mf.init.Gaussian(std=0.2),
        ... )
        >>> run = mf.solve(model, mf.Particles(neurons=50), horizon=1.0, rng=0)
        >>> ax = plots.particles(run)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('$r_{1}$', '$r_{2}$')
    """
    if isinstance(trajectory, Sequence) and trajectory and isinstance(trajectory[0], Trajectory):
        (runs,) = named({"trajectory": trajectory}).values()
        measure: Measure = pooled("trajectory", [run.final for run in runs])
        model = model_of(runs[0]) if model is None else model
    elif isinstance(trajectory, Trajectory):
        measure = trajectory.final
        model = model_of(trajectory) if model is None else model
    else:
        measure = (
            trajectory if isinstance(trajectory, Cloud | Density) else check.array(trajectory, "trajectory")
        )
    if model is None:
        raise TypeError("model must be given with a measure, got None")
    check.instance(model, "model", (Model, ReducedModel), "an mf.Model or mf.ReducedModel")
    reduced = reduced_of(model)
    across, up = _pair(reduced, coordinates)
    parts = [values(model, measure, name) for name in reduced.coordinates]
    cloud = Cloud(np.stack([x for x, _ in parts], axis=1), parts[0][1])
    x, y = cloud.points[:, across], cloud.points[:, up]
    target = axes(ax, (4.8, 4.2))
    color = COLORS[1 if target.collections else 0]  # seen on an image too, which is blue
    if isinstance(measure, Density) and len(reduced.coordinates) == 2:
        heights = measure.density if across == 0 else measure.density.T
        target.pcolormesh(
            measure.edges[across], measure.edges[up], heights.T, cmap="Blues", vmin=0.0, rasterized=True
        )
        box = [(edges[0], edges[-1]) for edges in (measure.edges[across], measure.edges[up])]
    else:
        area = _MOST * cloud.weights / cloud.weights.sum()
        target.scatter(x, y, s=np.clip(area, 3.0, 120.0), color=color, alpha=0.7, linewidths=0, zorder=3)
        box = [_range(x, reduced.nonnegative[across]), _range(y, reduced.nonnegative[up])]
    if check.integer(arrows, "arrows", at_least=0):
        source = _coarse(measure).as_cloud() if isinstance(measure, Density) else cloud
        _field(target, reduced, source, (across, up), box, arrows)
    first, second = (symbol(reduced.coordinates[c]) for c in (across, up))
    target.set(xlabel=first, ylabel=second, xlim=box[0], ylim=box[1])
    equal_scales(target, (reduced.coordinates[across], reduced.coordinates[up]))
    root(target).draw_without_rendering()  # a layout of equal scales takes two rounds
    return target


def _pair(reduced: ReducedModel, coordinates: Sequence[str] | None) -> tuple[int, int]:
    names = reduced.coordinates
    if len(names) < 2:
        raise ValueError(
            f"model must have two coordinates to span a plane, got ({', '.join(names)}); see mf.plots.density"
        )
    chosen = names[-2:] if coordinates is None else tuple(coordinates)
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        raise ValueError(f"coordinates must be two different names, got {check.shown(coordinates)}")
    for name in chosen:
        check.choice(name, "coordinates", names)
    return names.index(chosen[0]), names.index(chosen[1])


def _range(x: FloatArray, nonnegative: bool) -> tuple[float, float]:
    """The interval an axis shows: all points and a margin, but no negative radii."""
    low, high = float(x.min()), float(x.max())
    margin = _MARGIN * (high - low) or 0.1 * max(abs(low), 1.0)
    return (max(low - margin, 0.0) if nonnegative else low - margin), high + margin


def _coarse(law: Density) -> Density:
    """A density with fewer cells, for a field that does not see single ones."""
    edges, mass = list(law.edges), law.mass
    for k, ends in enumerate(edges):
        starts = np.arange(0, len(ends) - 1, -(-(len(ends) - 1) // _CELLS))
        mass = np.add.reduceat(mass, starts, axis=k)
        edges[k] = np.append(ends[starts], ends[-1])
    return Density(tuple(edges), mass)


def _field(
    ax: Axes,
    reduced: ReducedModel,
    cloud: Cloud,
    plane: tuple[int, int],
    box: list[tuple[float, float]],
    arrows: int,
) -> None:
    sides = [np.linspace(low, high, 2 * arrows + 1)[1::2] for low, high in box]
    grid = np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)
    points = np.tile(cloud.weights @ cloud.points, (len(grid), 1))
    points[:, plane] = grid
    velocity = -grad_psi(reduced, points, cloud) * np.array(reduced.rates)
    u, v = velocity[:, plane[0]], velocity[:, plane[1]]
    # Speeds in widths of the axes: an arrow is as long on paper as its velocity is there.
    spans = [high - low for low, high in box]
    speed = np.hypot(u / spans[0], v / spans[1])
    fast = float(np.quantile(speed, 0.9))
    if fast == 0:
        return
    cut = np.minimum(1.0, fast / np.maximum(speed, fast))
    field = ax.quiver(
        *grid.T,
        u * cut,
        v * cut,
        angles="xy",
        scale_units="xy",
        scale=1.1 * arrows * fast,
        color=GREY,
        width=0.003,
        headwidth=4,
        headlength=4.5,
        headaxislength=4,
        zorder=2,
    )
    ax.set_title(" ", fontsize=TEXT)  # keeps the sample's line free
    size = float(f"{fast * spans[0]:.1g}")
    ax.quiverkey(
        field, 0.92, 1.04, size, f"{size:g} per unit of $t$", labelpos="W", fontproperties={"size": TEXT}
    )
