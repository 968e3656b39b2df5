"""The records beside the observers: the own risk of a rung of the limit, and held-out risks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data import Dataset
from ..expectations._rules import Expectation
from ..measures._functions import predict
from ..measures._measure import as_measure
from ..model import Model
from ..reductions._given import convex
from ..reductions._model import ReducedModel
from ._rung import LimitRung
from ._trajectory import Measure


class OwnRisk:
    """The risk that a rung of the limit knows itself: the sum over its nodes, with the rung's own error.

    What the nodes themselves leave out of the average over the data, `ReducedModel.node_error`, is added.
    """

    def __init__(self, rung: LimitRung, rule: bool | Expectation) -> None:
        self.active, self._rung = rule is not False, rung
        self.description = "sum over nodes" if self.active else "not recorded"
        self._reduced = reduced = rung.reduced
        self._convex = convex(reduced)
        self._target = math.sqrt(float(np.abs(reduced.weights) @ reduced.targets**2))

    def __call__(self, measure: Measure) -> tuple[Any, Any]:
        if not self.active:
            return None, None
        risk, error = self._rung.risk()
        size = max(1.0, self._size(risk, measure))
        return risk, error + self._reduced.risk_node_error(size)

    def _size(self, risk: float, measure: Measure) -> float:
        """√Σ |p_q| f_q², or a bound on it: with weights of either sign the risk says nothing of f."""
        if self._convex:
            return self._target + math.sqrt(max(risk, 0.0))
        rho = as_measure(measure, "measure", len(self._reduced.coordinates))
        return math.sqrt(float(np.abs(self._reduced.weights) @ self._reduced._mean(*rho) ** 2))


def risk_on(model: Model | ReducedModel, test: Dataset, measure: Measure) -> Any:
    """The mean of (y − f(x))² over a held-out set, of every replica."""
    f = predict(model, measure, test.X)
    return np.square(test.y - f).mean(axis=-1)


def sound(name: str, value: Any) -> bool:
    """Tell whether a recorded number is meaningful: finite, or F = ∞, as it is for atoms under noise."""
    return bool((np.isfinite(value) | ((name == "free_energy") & np.isposinf(value))).all())


def of_rung(rung: LimitRung, name: str, _: Measure) -> float:
    """Return the rung's own number for the present measure."""
    return rung.observed()[name]
