"""What rungs start from: networks from a model, the limit from its reduction or from one made by hand."""

from __future__ import annotations

from .._base import check
from ..model import Model
from ..reductions._model import ReducedModel


def model_of(model: Model | ReducedModel) -> Model:
    """The model that finitely many neurons are trained on."""
    if isinstance(model, ReducedModel):
        raise TypeError(
            f"model must be an mf.Model for networks of finitely many neurons, got {model!r}; the rungs of "
            "the limit, such as mf.Atoms, move measures in reduced coordinates"
        )
    return model


def reduced_of(model: Model | ReducedModel) -> ReducedModel:
    """The features in reduced coordinates that a rung of the limit moves a measure by."""
    if isinstance(model, ReducedModel):
        return model
    check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    return model.reduce()
