"""The stationary law of the noisy dynamics, ρ* ∝ exp(−βΨ_λ(·; ρ*)), eq. (5.12), with a certificate."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.bar import searching
from .._base.check import FloatArray
from ..measures._cells import log_factor, log_volumes
from ..measures._measure import Cloud, Density, as_points
from ..measures._place import AnyModel
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._reduced import featured
from ._boxes import Box, as_box, moving
from ._compact import Compact
from ._errors import Integrated, around, integrated
from ._extent import UnconfinedError, centers, find_box, grid
from ._newton import newton, support
from ._stationary import Stationary

# cells per coordinate, by the number of coordinates; with more coordinates there are Gauss nodes instead
CELLS = {1: 2000, 2: 160}
FEWEST = 14
FINER = 1e-6  # gap of the integrals relative to that of the cells: its square root is an error of R
MOST_FEATURES = 1 << 25  # cells times nodes, beyond which the measure on cells uses the smaller model
_CELL_BYTES = 150  # bytes per cell, with few features


def gibbs(
    model: AnyModel,
    *,
    cells: int | Sequence[int] | None = None,
    extent: Any = None,
    points: npt.ArrayLike | None = None,
    volumes: npt.ArrayLike | None = None,
    tolerance: float = 1e-20,
    start: Stationary | None = None,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Stationary:
    """The stationary law ρ* ∝ v exp(−βΨ_λ(·; ρ*)) in reduced coordinates, by Newton on the concave dual.

    In one and two coordinates ρ* is an `mf.Density` on a grid of equal cells: the fixed point of the density
    solvers on it. In more it is an `mf.Cloud` on tensor Gauss–Legendre nodes, and so it is on points given.
    F, R and the dual are integrals over the coordinates, with errors: see `Stationary`. In one coordinate
    these are below 1e-10 as a rule, with kinks too; in three, with many nodes of data, they are 1e-4 to 1e-7.

    Args:
        model: With temperature > 0, confined by ridge > 0, by its features or by `extent`.
        cells: Cells, or nodes, per coordinate.
        extent: Ends (low, high) of each coordinate, for one coordinate simply a pair: the law is that on this
            box. None: a box is found that holds all mass but some 1e-12.
        points: Points, shape (n, k), in place of cells.
        volumes: Their volumes dz, shape (n,), without the factor Π z_c^{e_c}; by default equal, sum 1.
        tolerance: Stop at this gap on the cells. Errors of ρ* are like its square root; rounding ends the
            search earlier.
        start: A result at another temperature or of a similar model, to begin from.
        max_seconds: Raise a TimeoutError after this much wall-clock time; None: no limit.
        progress: Show what is searched, round by round (needs tqdm).

    Examples:
        Particles in a quadratic well, a Gaussian law of variance 1/(βλ):

        >>> import numpy as np, mfcore as mf
        >>> well = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[0.0], features=np.zeros_like,
        ...     ridge=2.0, temperature=0.5,
        ... )
        >>> law = mf.gibbs(well)
        >>> round(float(law.measure.mass @ law.measure.centers[0] ** 2), 5)
        0.25
        >>> exact = -0.25 * np.log(2 * np.pi * 0.25)
        >>> bool(abs(law.free_energy - exact) <= law.error), law.error < 1e-10
        (True, True)
    """
    if not isinstance(model, ReducedModel):
        check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    if model.temperature == 0:
        raise ValueError(
            "temperature must be > 0 for a stationary law with a density, got 0; without noise see mf.optimum"
        )
    accuracy = check.number(tolerance, "tolerance", above=0)
    with searching("mf.gibbs", max_seconds, progress):
        reduced = moving(featured(model))
        return _found(reduced, cells, extent, points, volumes, accuracy, start)


def _found(
    reduced: ReducedModel,
    cells: Any,
    extent: Any,
    points: Any,
    volumes: Any,
    accuracy: float,
    start: Stationary | None,
) -> Stationary:
    f = None
    if start is not None:
        check.instance(start, "start", Stationary, "a result of mf.gibbs")
        f = start.f if len(start.f) == len(reduced.weights) else None
    if points is not None:
        if cells is not None or extent is not None:
            raise ValueError("points must be given without cells and extent, got both")
        where = as_points(points, "points", len(reduced.coordinates))
        return _on_points(reduced, where, _volumes(volumes, len(where)), accuracy, f)
    if volumes is not None:
        raise ValueError("volumes must be given with points, got volumes alone")
    counts = _counts(cells, len(reduced.coordinates))
    if extent is None:
        box, f = find_box(reduced, f)
    else:
        box = as_box(extent, reduced)
    small = around(reduced, box, extent is not None)
    ask = functools.partial(integrated, reduced, box, ends=extent is not None, small=small)
    if len(counts) <= 2:
        few = small if math.prod(counts) * len(reduced.weights) > MOST_FEATURES else Compact(reduced, reduced)
        law = _on_cells(few.model, grid(box, counts), accuracy, None if f is None else few.restricted(f))
        return _with_errors(law.measure, law.steps, ask(few.function(law.f), FINER * accuracy), reduced)
    f = np.zeros(len(reduced.weights)) if f is None else f
    if cells is None:
        found = ask(f, FINER * accuracy)
        return _with_errors(Cloud(found.points, found.mass), found.steps, found, reduced)
    check.memory(16.0 * math.prod(counts) * len(small.model.weights), "cells", cells)
    law = _on_points(small.model, *_legendre(box, counts), accuracy, small.restricted(f))
    return _with_errors(law.measure, law.steps, ask(small.function(law.f), FINER * accuracy), reduced)


def gibbs_path(model: AnyModel, temperatures: npt.ArrayLike, **options: Any) -> tuple[Stationary, ...]:
    """Stationary laws at several temperatures, each search starting from the result before it.

    Args:
        model: As for `gibbs`; its own temperature does not matter.
        temperatures: 1/β > 0, best in decreasing order.
        options: Those of `gibbs`; `max_seconds` is for each temperature.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.8),
        ...     network=mf.Network(mf.activations.relu),
        ...     ridge=0.01,
        ... )
        >>> warm, cold = mf.gibbs_path(model, [1e-2, 1e-4], cells=400)
        >>> warm.risk > cold.risk
        True
    """
    values = check.array(temperatures, "temperatures", shape=(None,))
    start: Stationary | None = options.pop("start", None)
    out = []
    for temperature in values:
        value = check.number(temperature, "temperatures", above=0)
        if isinstance(model, ReducedModel):
            start = gibbs(dataclasses.replace(model, temperature=value), start=start, **options)
        else:
            check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
            start = gibbs(model.replace(temperature=value), start=start, **options)
        out.append(start)
    return tuple(out)


def dual_bound(reduced: ReducedModel, f: FloatArray, grid: Box | None = None) -> tuple[float, float]:
    """A lower bound D(f) − error ≤ inf F, and the error, by integrals of e^{−βΨ_λ} v in the potential of f.

    If that is not confined, over the box `grid`, where there is one.
    """
    try:
        box, _ = find_box(reduced, f, fixed=True)
    except UnconfinedError:
        if grid is None:
            raise
        found = integrated(reduced, grid, f, 1.0, fixed=True, ends=True)
    else:
        found = integrated(reduced, box, f, 1.0, fixed=True)
    return found.dual - found.error, found.error


def _with_errors(
    measure: Density | Cloud, steps: int, found: Integrated, reduced: ReducedModel
) -> Stationary:
    return Stationary(
        measure,
        risk=found.risk,
        free_energy=found.dual + found.gap,
        dual=found.dual - found.error,
        gap=found.gap,
        f=found.f,
        temperature=reduced.temperature,
        steps=steps,
        error=found.error,
        risk_error=found.risk_error,
        node_error=found.node_error,
    )


def _on_cells(
    reduced: ReducedModel, edges: list[FloatArray], tolerance: float, f: FloatArray | None
) -> Stationary:
    logs = log_volumes(edges, reduced.volume)
    return _result(
        reduced,
        centers(edges),
        logs.ravel(),
        tolerance,
        f,
        lambda mass: Density(tuple(edges), mass.reshape(logs.shape)),
    )


def _on_points(
    reduced: ReducedModel, points: FloatArray, dz: FloatArray, tolerance: float, f: FloatArray | None
) -> Stationary:
    logs = np.log(dz) + log_factor(points, reduced.volume)
    return _result(reduced, points, logs, tolerance, f, lambda mass: Cloud(points, mass))


def _result(
    reduced: ReducedModel,
    points: FloatArray,
    log_volume: FloatArray,
    tolerance: float,
    f: FloatArray | None,
    measure: Any,
) -> Stationary:
    where = support(reduced, points, log_volume)
    features = where.features
    found = newton(where, None if f is None else features.moments(f), tolerance)
    return Stationary(
        measure(found.mass),
        risk=float(np.square(found.mean - features.target).sum()) + features.unreached,
        free_energy=found.dual + found.gap,
        dual=found.dual,
        gap=found.gap,
        f=features.function(found.h),
        temperature=reduced.temperature,
        steps=found.steps,
    )


def _counts(cells: Any, k: int) -> list[int]:
    if cells is None:
        return [CELLS.get(k, FEWEST)] * k
    given = list(cells) if check.as_numpy(cells, "cells").ndim else [cells] * k
    if len(given) != k:
        raise ValueError(f"cells must be a number or one per coordinate ({k}), got {cells!r}")
    counts = [check.integer(n, "cells", at_least=2) for n in given]
    check.memory(float(_CELL_BYTES) * math.prod(counts), "cells", cells)
    return counts


def _volumes(volumes: Any, n: int) -> FloatArray:
    if volumes is None:
        return np.full(n, 1.0 / n)
    out = check.array(volumes, "volumes", shape=(n,))
    if out.min() <= 0:
        raise ValueError(f"volumes must be > 0, got {out.min():g}")
    return out


def _legendre(box: Box, counts: list[int]) -> tuple[FloatArray, FloatArray]:
    """Tensor Gauss–Legendre nodes in a box, and their volumes."""
    rules = [_core.gauss_legendre(n) for n in counts]
    sides = [low + (high - low) * (x + 1) / 2 for (low, high), (x, _) in zip(box, rules, strict=True)]
    mesh = np.meshgrid(*sides, indexing="ij")
    weights = np.ones(1)
    for (low, high), (_, w) in zip(box, rules, strict=True):
        weights = np.multiply.outer(weights, (high - low) * w / w.sum()).ravel()
    assert math.prod(counts) == len(weights)
    return np.stack([m.ravel() for m in mesh], axis=1), weights
