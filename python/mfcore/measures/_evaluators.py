"""Choose the averages over the data for functions of a model by their arguments; keep them between calls."""

from __future__ import annotations

from .._base import check
from ..expectations._evaluator import Evaluator
from ..expectations._rules import Exact, Expectation
from ..model import Model
from ..reductions._model import ReducedModel
from ._place import AnyModel


def evaluator_of(model: AnyModel, expectation: Expectation | None, threads: int | None) -> Evaluator:
    """Check the arguments, and return what averages over the data: made once for each use of a model."""
    count = check.threads(threads)
    if isinstance(model, ReducedModel):
        if expectation is not None:
            raise ValueError(f"expectation must be left out for a reduced model, got {expectation!r}")
        return model
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model or mf.ReducedModel, got {model!r}")
    kept = model._kept.get("evaluator")
    if kept is not None and kept[0] is expectation and kept[1] == count:
        evaluator: Evaluator = kept[2]
        return evaluator
    rule = expectation
    if expectation is None:
        expectation = Exact()
    if not isinstance(expectation, Expectation):
        raise TypeError(f"expectation must be mf.Exact() or mf.MonteCarlo(samples, rng), got {expectation!r}")
    evaluator = expectation.evaluator(model, count)
    model._kept["evaluator"] = (rule, count, evaluator)
    return evaluator
