"""Animate measures over time: a density with the histograms of networks, or neurons in a plane."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._base import check
from ..runs._trajectory import Trajectory
from ._axes import GREY, TEXT, axes
from ._density import density, given_times, kept_times, measure_at
from ._images import color_bar, color_scale
from ._labels import place_peaks
from ._plane import particles
from ._runs import Runs, model_of, named

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

    from ._axes import PlotAxes

_KINDS = ("density", "particles")
_SUFFIXES = (".gif", ".mp4", ".html")


def animate(
    trajectories: Runs,
    path: str | os.PathLike[str] | None = None,
    *,
    kind: str = "density",
    times: npt.ArrayLike | None = None,
    fps: int = 12,
    **options: Any,
) -> FuncAnimation:
    """Animate the measures that runs kept, one frame for each time, on axes and colours that stand still.

    Args:
        trajectories: One run, several, groups of several, or a mapping of names to runs or groups, with the
            measures in `kept`. For ``"particles"`` one run.
        path: Where to write: .gif (by Pillow, which comes with matplotlib), .mp4 (needs the program ffmpeg)
            or .html (a page with buttons). Default: nothing is written; a notebook shows what is returned.
        kind: ``"density"`` as `mf.plots.density` draws it, or ``"particles"`` as `mf.plots.particles` does.
        times: Save points that were kept. Default: all of the first run.
        fps: Frames in a second.
        **options: Those of the function that draws a frame, such as ``coordinate``.

    Returns:
        matplotlib's animation; its ``to_jshtml()`` is the page.

    Examples:
        >>> import mfcore as mf, tempfile
        >>> from mfcore import plots
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=200, step=1e-3), horizon=1.0, save_at=3, keep="all", rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     film = plots.animate(run, f"{folder}/run.gif", bins=10)
    """
    check.choice(kind, "kind", _KINDS)
    check.integer(fps, "fps", at_least=1, at_most=1000)
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a file name, got {check.shown(path)}")
    if path is not None and Path(path).suffix not in _SUFFIXES:
        raise ValueError(f"path must end in one of {', '.join(_SUFFIXES)}, got {os.fspath(path)!r}")
    groups = named(trajectories)
    if kind == "particles" and (len(groups) > 1 or len(next(iter(groups.values()))) > 1):
        raise ValueError("trajectories must be one run for particles, got several")
    first = next(iter(groups.values()))[0]
    asked = kept_times(first) if times is None else given_times(times)
    target = axes(None)
    draw = (
        partial(_density, target, trajectories, options)
        if kind == "density"
        else partial(_particles, target, first, options)
    )
    limits, peaks = [], []
    for t in asked:  # once for the limits and colours of all frames together
        draw(t)
        limits.append([*target.get_xlim(), *target.get_ylim()])
        peaks += [one.norm.vmax for one in _meshes(target)]
    low, high = np.min(limits, axis=0), np.max(limits, axis=0)
    scale = color_scale(peaks) if peaks else None
    if scale is not None:
        _meshes(target)[0].set_norm(scale)
        color_bar([target], _meshes(target)[0])

    def frame(t: float) -> list[Any]:
        draw(t)
        target.set(xlim=(low[0], high[1]), ylim=(low[2], high[3]))
        place_peaks(target)
        for mesh in _meshes(target):
            mesh.set_norm(scale)
        return []

    from matplotlib.animation import FuncAnimation

    film = FuncAnimation(target.figure, frame, frames=asked, interval=1000 / fps, repeat=True, blit=False)  # type: ignore[arg-type]
    film._draw_was_started = True  # type: ignore[attr-defined]  # nothing is lost if it is never shown
    if path is not None:
        _write(film, Path(path), fps)
    return film


def _meshes(target: PlotAxes) -> list[Any]:
    """The images on these axes."""
    from matplotlib.collections import QuadMesh

    return [one for one in target.collections if isinstance(one, QuadMesh)]


def _density(target: Any, trajectories: Runs, options: dict[str, Any], t: float) -> None:
    target.clear()
    density(trajectories, times=t, ax=target, **options)


def _particles(target: Any, run: Trajectory, options: dict[str, Any], t: float) -> None:
    target.clear()
    particles(measure_at("trajectory", run, t), model_of(run), ax=target, **options)
    target.set_title(f"t = {t:.3g}", loc="left", fontsize=TEXT, color=GREY)


def _write(film: FuncAnimation, path: Path, fps: int) -> None:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if path.suffix == ".html":
        path.write_text(film.to_jshtml(fps=fps), encoding="utf-8")
    elif path.suffix == ".gif":
        film.save(path, writer=PillowWriter(fps=fps))
    elif FFMpegWriter.isAvailable():
        film.save(path, writer=FFMpegWriter(fps=fps))
    else:
        raise RuntimeError("an .mp4 needs the program ffmpeg, which was not found; .gif and .html do not")
