"""Rows drawn from the initial law of a model or of a reduced one."""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from .._base.rng import RNG, number_of
from ..init import Points
from ..measures._place import AnyModel
from ..reductions._model import ReducedModel


def drawn(model: AnyModel, count: int, rng: RNG, instead: str) -> FloatArray:
    """Independent draws, shape (count, D); where there is no law, `instead` must be given."""
    law = model.initial if isinstance(model, ReducedModel) else model.init
    if law is None:
        raise ValueError(f"{instead} must be given for a model without initial law, got None")
    if isinstance(model, ReducedModel):
        return np.asarray(model.initial.sample(count, rng))
    assert model.init is not None
    if isinstance(model.init, Points):
        rows = np.asarray(model.init.theta)
        return np.asarray(rows[generator_of(rng).integers(len(rows), size=count)])
    return model.init.sample(model.network, int(model.d), count, rng=rng)


def generator_of(rng: RNG) -> np.random.Generator:
    """A generator that `rng` starts, or is."""
    if not isinstance(rng, np.random.Generator):
        number_of(rng)  # refuses what is no seed
    return np.random.default_rng(rng)
