"""Convert the model given to `mf.solve` to what a rung needs: a `Model` for networks, a `ReducedModel`
for the limit.
"""

from __future__ import annotations

from .._base import check
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._of_laws import features_of, paired


def model_of(model: Model | ReducedModel) -> Model:
    """Check that finitely many neurons can be trained on `model`."""
    if isinstance(model, ReducedModel):
        raise TypeError(
            f"model must be an mf.Model for networks of finitely many neurons, got {model!r}; the rungs of "
            "the limit, such as mf.Atoms, move measures in reduced coordinates"
        )
    return model


def reduced_of(model: Model | ReducedModel) -> ReducedModel:
    """The reduced model of the limit: the reduction of a `Model`, or a `ReducedModel` as it is."""
    if isinstance(model, ReducedModel):
        return model
    check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    known: ReducedModel | None = model._kept.get("reduction")
    return model.reduce() if known is None else known


def in_motion(model: Model | ReducedModel) -> ReducedModel:
    """`reduced_of` for atoms, which closed pairs serve in the place of nodes where these have kinks."""
    found = paired(model) if isinstance(model, Model) else None
    return reduced_of(model) if found is None else found


def featured(model: Model | ReducedModel) -> ReducedModel:
    """`reduced_of` for what needs features at nodes, also where closed pairs are the reduction of a model."""
    reduced = reduced_of(model)
    return reduced if isinstance(model, ReducedModel) or reduced.pairs is None else features_of(model)
