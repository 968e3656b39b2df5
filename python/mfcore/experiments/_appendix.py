"""Targets of `merged_staircase`'s appendix; coordinates that are equal by symmetry become one.

Then rounding cannot part them, and the limit stays on a saddle that symmetry makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..atoms._atoms import Atoms
from ..measures._measure import Cloud
from ..model import Model
from ..reductions._model import ReducedModel
from ..theory._coefficients import fourier
from ._row import Row
from ._source import published
from ._work import Work

Sets = Sequence[tuple[int, ...]]
SLOWER = 3  # the clock of the panel of h₃, about: its coefficients at t = 300 are ours at 100
# Figure 2: sets, coefficients read at some times, and coordinates that are equal by symmetry.
APPENDIX: dict[str, tuple[Sets, dict[int, tuple[float, ...]], tuple[tuple[str, ...], ...]]] = {
    "h1": (
        ((0,), (2,), (0, 1), (0, 1, 2, 3)),
        {
            100: (1.123, 0.877, 0.270, 0.073),
            400: (1.085, 1.031, 0.619, 0.458),
            1200: (1.006, 1.000, 0.964, 0.957),
        },
        (),
    ),
    "h2": (
        ((0,), (0, 1), (1, 2), (2, 3), (0, 1, 2, 3)),
        {1200: (1.004, 0.974, 0.971, 0.960, 0.948)},
        (),
    ),
    # read at t = 1200
    "h3": (((0,), (2,), (0, 1), (2, 3)), {400: (1.052, 1.052, 0.205, 0.205)}, (("s1", "s3"), ("s2", "s4"))),
}


def tied(reduced: ReducedModel, groups: Sequence[tuple[str, ...]]) -> ReducedModel:
    """The model on the subspace where the coordinates of each group are equal, named after the first.

    A derivative there is the sum over the group, so that its coordinate moves at the rate over its size.

    Args:
        reduced: With gradients; its force must keep the subspace.
        groups: Names of coordinates that are equal.
    """
    names = reduced.coordinates
    first = {name: group[0] for group in groups for name in group}
    kept = tuple(name for name in names if first.get(name, name) == name)
    at = [kept.index(first.get(name, name)) for name in names]
    spread = np.eye(len(kept))[at]  # (k, kept): which one each coordinate is
    sizes = spread.sum(axis=0)
    gradients = reduced.gradients
    assert gradients is not None

    def pick(values: tuple[bool, ...]) -> tuple[bool, ...]:
        return tuple(value for name, value in zip(names, values, strict=True) if name in kept)

    speeds = dict(zip(names, reduced.rates, strict=True))
    return ReducedModel(
        coordinates=kept,
        weights=reduced.weights,
        targets=reduced.targets,
        features=lambda z: reduced.features(z[:, at]),
        gradients=lambda z: gradients(z[:, at]) @ spread,
        noise=reduced.noise,
        nonnegative=pick(reduced.nonnegative),
        rates=tuple(speeds[name] / size for name, size in zip(kept, sizes, strict=True)),
        d=reduced.d,
    )


def on_subspace(start: tuple[FloatArray, FloatArray], names: tuple[str, ...], kept: tuple[str, ...]) -> Cloud:
    """Points and weights in all coordinates as a measure in those kept."""
    points, weights = start
    return Cloud(points[:, [names.index(name) for name in kept]], weights)


def lifted(measure: Cloud, names: tuple[str, ...], kept: tuple[str, ...], first: dict[str, str]) -> Cloud:
    """The inverse: a measure in those kept, in all coordinates."""
    at = [kept.index(first.get(name, name)) for name in names]
    return Cloud(measure.points[:, at], measure.weights)


def held(
    work: Work, name: str, chosen: Model, times: Any, atoms: int, groups: tuple[tuple[str, ...], ...]
) -> None:
    """Solve for the limit with coordinates that are equal by symmetry as one."""
    law: Any = chosen.data
    sets, reduced = list(law.monomials), chosen.reduce()
    small, names = tied(reduced, groups), reduced.coordinates
    first = {c: group[0] for group in groups for c in group}
    start = on_subspace(reduced.initial.quadrature(atoms), names, small.coordinates)
    work.solve(
        name,
        small,
        Atoms(start=start, rtol=1e-6, atol=1e-9),
        horizon=float(times[-1]),
        save_at=[0.0, *times],
        observe={"f": lambda rho: fourier(chosen, lifted(rho, names, small.coordinates, first), sets)},
    )


def appendix_rows(runs: Any, reading: float) -> list[Row]:
    """Coefficients beside those read off figure 2, as far as they were run."""
    rows = []
    paper = "Abbe, Boix-Adsera, Misiakiewicz (2022), figure 2, digitised"
    for name, (sets, read, _) in APPENDIX.items():
        slower = name == "h3"  # the time was chosen by the coefficients
        for t, values in read.items():
            if name not in runs or t > runs[name].t[-1]:
                continue
            found = runs[name].observed["f"][int(np.abs(runs[name].t - t).argmin())]
            for key, here, value in zip(sets, found, values, strict=True):
                what = f"{name}, t = {t}{f' (figure: {SLOWER * t})' if slower else ''}: "
                what += "".join("z" + "₁₂₃₄"[j] for j in key)
                rows.append(Row(what, here, value, reading, published(paper, fitted=slower)))
    return rows
