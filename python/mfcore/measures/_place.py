"""Bring the arguments of Ψ, ∇Ψ and the risk to common coordinates: those of neurons, or reduced ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
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
    """Length of a row of parameters, or the number of reduced coordinates."""
    if isinstance(model, ReducedModel):
        return len(model.coordinates)
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model or mf.ReducedModel, got {model!r}")
    if model.row is None:
        raise ValueError(f"data must have finite d for neurons, got {model.data!r}; use model.reduce()")
    return model.row


def rows_of(model: AnyModel, theta: Any, name: str) -> FloatArray:
    """Check `theta` and return it as rows of parameters, or as reduced points."""
    if isinstance(theta, Cloud | Density):
        raise TypeError(
            f"{name} must be an array of neurons or points, got a measure, {theta!r}; measures come after "
            "points, as in psi(model, theta, measure)"
        )
    return as_points(theta, name, row_of(model))


def with_inputs(model: AnyModel) -> Model:
    """The model, if it has inputs x and finitely many of their coordinates."""
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model: inputs x are averaged out of {model!r}")
    row_of(model)
    return model


def refuse_swapped(model: Any, measure: Any, X: Any) -> None:
    """Refuse inputs and neurons in each other's place, where their shapes tell them apart."""
    order = "the order is predict(model, measure, X)"
    if isinstance(X, Cloud | Density):
        raise TypeError(f"X must be inputs, an array, got a measure, {X!r}; {order}")
    if not isinstance(model, Model) or model.row is None or isinstance(measure, Cloud | Density):
        return
    neurons, inputs = (np.shape(value) for value in (measure, X))
    if neurons[-1:] == (model.d,) and inputs[-1:] == (model.row,) and model.d != model.row:
        raise ValueError(
            f"measure must have shape (N, {model.row}) and X shape (n, {model.d}), got {neurons} and "
            f"{inputs}; {order}"
        )


def target_of(model: AnyModel, measure: Any, name: str = "measure") -> AnyModel:
    """The model in whose coordinates the measure is: the model itself or its reduction."""
    if isinstance(model, Model) and _are_neurons(measure, model):
        return model
    return reduction_for(model, measure, name) or model


def _are_neurons(points: Any, model: Model) -> bool:
    """Tell whether `points` is plainly an array of neurons, whose entries are still to be checked."""
    return type(points) is np.ndarray and points.ndim == 2 and points.shape[1] == model.row


class SharedCoordinates(NamedTuple):
    """Points at which Ψ is wanted and the measure that creates it, both in the coordinates of one model."""

    model: AnyModel
    rows: FloatArray  # the points as given
    z: FloatArray  # the points in the coordinates of `model`
    points: FloatArray
    weights: FloatArray
    lift: Coordinates | None = None  # maps z back to rows


def in_shared_coordinates(model: AnyModel, theta: Any, measure: MeasureLike) -> SharedCoordinates:
    """Bring points and measure to shared coordinates; if both are one object, arrays are shared too."""
    if measure is theta and isinstance(model, Model) and _are_neurons(measure, model):
        points, weights = as_measure(measure, "measure", row_of(model))
        return SharedCoordinates(model, points, points, points, weights)
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
