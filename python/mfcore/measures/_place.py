"""Whose coordinates the arguments of Ψ, ∇Ψ and the risk are in: those of neurons, or reduced ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from .._base.check import FloatArray
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._project import Coordinates
from ._cells import reduction_for
from ._measure import Cloud, Density, as_measure, as_points

AnyModel = Model | ReducedModel
MeasureLike = npt.ArrayLike | Cloud | Density


def row_of(model: AnyModel) -> int:
    """Entries of a row of parameters, or of a reduced point."""
    if isinstance(model, ReducedModel):
        return len(model.coordinates)
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model or mf.ReducedModel, got {model!r}")
    if model.row is None:
        raise ValueError(f"data must have finite d for neurons, got {model.data!r}; use model.reduce()")
    return model.row


def rows_of(model: AnyModel, theta: Any, name: str) -> FloatArray:
    """Rows of parameters, or reduced points."""
    return as_points(theta, name, row_of(model))


def target_of(model: AnyModel, measure: Any, name: str = "measure") -> AnyModel:
    """The model whose coordinates the measure has: itself or its reduction."""
    return reduction_for(model, measure, name) or model


class SharedCoordinates(NamedTuple):
    """Points, in coordinates that they share with a measure."""

    model: AnyModel
    rows: FloatArray  # as given
    z: FloatArray  # in the coordinates of `model`
    points: FloatArray
    weights: FloatArray
    lift: Coordinates | None = None  # the way back from z to rows


def in_shared_coordinates(model: AnyModel, theta: Any, measure: MeasureLike) -> SharedCoordinates:
    """Where Ψ is wanted, and in whose field. Work is shared where both are the very same object."""
    target = target_of(model, measure)
    points, weights = as_measure(measure, "measure", row_of(target))
    if target is model or target_of(model, theta, "theta") is not model:
        rows = rows_of(target, theta, "theta")
        return SharedCoordinates(target, rows, rows, rows if measure is theta else points, weights)
    assert isinstance(model, Model)
    assert isinstance(target, ReducedModel)
    coordinates = Coordinates(model.network, model.data, target.coordinates)
    rows = rows_of(model, theta, "theta")
    return SharedCoordinates(target, rows, coordinates.of(rows), points, weights, coordinates)
