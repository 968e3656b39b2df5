"""The records beside the observers: the own risk of a rung of the limit, and held-out risks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..data import Dataset
from ..expectations._rules import Expectation
from ..measures._classification import are_signs, wrong_share
from ..measures._measure import as_measure
from ..reductions._given import convex
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


class HeldOut:
    """What is recorded on a held-out set, from predictions that are made once for each save point.

    Args:
        test: The set.
        predict: From a measure to f at its inputs, of every replica.
    """

    def __init__(self, test: Dataset, predict: Callable[[Measure], FloatArray]) -> None:
        self._test, self._predict = test, predict
        self._f: FloatArray | None = None

    def observables(self) -> dict[str, Callable[[Measure], Any]]:
        """The risk, and where all labels are ±1 the share of wrong signs, to be recorded in this order."""
        if are_signs(self._test.y):
            return {"test_risk": self._risk, "test_error": self._error}
        return {"test_risk": self._risk}

    def _risk(self, measure: Measure) -> Any:
        self._f = self._predict(measure)
        return np.square(self._test.y - self._f).mean(axis=-1)

    def _error(self, _: Measure) -> Any:
        assert self._f is not None  # of the measure that the risk has just been recorded of
        return wrong_share(self._f, self._test.y)


def sound(name: str, value: Any) -> bool:
    """Tell whether a recorded number is meaningful: finite, or F = ∞, as it is for atoms under noise."""
    return bool((np.isfinite(value) | ((name == "free_energy") & np.isposinf(value))).all())


def of_rung(rung: LimitRung, name: str, _: Measure) -> float:
    """Return the rung's own number for the present measure."""
    return rung.observed()[name]
