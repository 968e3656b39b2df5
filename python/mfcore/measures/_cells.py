"""Volumes ∫_C z^e dz of grid cells in reduced coordinates (eq. (7.7)), and checks of measures against a
reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from typing import Any

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._of_laws import features_of
from ._measure import Cloud, Density, as_points


def log_volumes(edges: Sequence[FloatArray], exponents: Sequence[float]) -> FloatArray:
    """log ∫_C Π_c z_c^{e_c} dz of every cell C of a tensor grid, in logarithms because e reaches hundreds.

    Examples:
        >>> import numpy as np
        >>> from mfcore.measures._cells import log_volumes
        >>> np.exp(log_volumes([np.array([0.0, 1.0, 2.0])], [2.0])) * 3
        array([1., 7.])
    """
    axes = [_log_volume(e, p, c) for c, (e, p) in enumerate(zip(edges, exponents, strict=True))]
    return np.asarray(fold(np.add.outer, axes))


def _log_volume(edges: FloatArray, exponent: float, c: int) -> FloatArray:
    low, high = edges[:-1], edges[1:]
    if exponent == 0:
        return np.log(high - low)
    if edges[0] < 0:
        raise ValueError(
            f"edges[{c}] must be >= 0 where the volume element is z^{exponent:g} dz, got {edges[0]:g}"
        )
    power = exponent + 1
    with np.errstate(divide="ignore"):  # a cell from 0 is a full ball
        part = np.log(-np.expm1(power * np.log1p((low - high) / high)))
    return np.asarray(power * np.log(high) + part - np.log(power))


def log_factor(points: FloatArray, exponents: Sequence[float]) -> FloatArray:
    """log Π_c z_c^{e_c} at points: the density of the volume element."""
    out = np.zeros(len(points))
    for c, exponent in enumerate(exponents):
        if exponent:
            with np.errstate(divide="ignore"):
                out += exponent * np.log(points[:, c])
    return out


def reduction_for(model: Model | ReducedModel, measure: Any, name: str = "measure") -> ReducedModel | None:
    """The reduced model in whose coordinates `measure` is; None if it consists of neurons of a `Model`.

    Points as long as a row of parameters are neurons; others, and densities, are in reduced coordinates.
    """
    if isinstance(model, ReducedModel):
        return model
    check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    if isinstance(measure, Density):
        reduced = _reduction_of(model)
        if reduced.pairs is not None:  # too many cells for pairs of them
            reduced = features_of(model)
        check_density(measure, reduced)
        return reduced
    points = measure.points if isinstance(measure, Cloud) else check.array(measure, name)
    if points.shape[-1:] == (model.row,) or (model.row == 1 and points.ndim == 1):
        return None
    reduced = _reduction_of(model)
    k, names = len(reduced.coordinates), f"the reduced coordinates ({', '.join(reduced.coordinates)})"
    wanted = f"points of length {k} in {names}"
    if model.row is not None:
        wanted = f"neurons of length {model.row} or {wanted}"
    if not isinstance(measure, Cloud):
        if points.ndim == 1 and k != 1 and len(points) != k:
            raise ValueError(f"{name} must hold {wanted}, got {len(points)}")
        points = as_points(points, name)
    if points.shape[1] != k:
        raise ValueError(f"{name} must hold {wanted}, got {points.shape[1]}")
    return reduced


def _reduction_of(model: Model) -> ReducedModel:
    """``model.reduce()``, kept: making its nodes costs a hundred times what a risk does."""
    if "reduction" not in model._kept:
        model._kept["reduction"] = model.reduce()
    reduced: ReducedModel = model._kept["reduction"]
    return reduced


def check_density(density: Density, reduced: ReducedModel) -> None:
    """Refuse a grid that is not in the coordinates of `reduced`."""
    k = len(reduced.coordinates)
    if len(density.edges) != k:
        raise ValueError(
            f"measure must be a density of {k} coordinates ({', '.join(reduced.coordinates)}), "
            f"got {len(density.edges)}"
        )
