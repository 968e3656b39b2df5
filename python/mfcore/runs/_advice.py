"""Say what is provable about a run and easily overlooked: a target out of reach, samples learned by heart."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.warn import warn
from ..data import AnisotropicGaussians, IsotropicGaussians, MultiIndex
from ..expectations._rules import MonteCarlo
from ..measures._tangent import LinearMeasure
from ..model import Model

_TIMES, _ERRORS = 2.0, 5.0  # a risk so many times the one on the samples, by so many standard errors


def advise_parity(model: Any) -> None:
    """Warn if σ is odd and the target even, or the other way round, so that no network learns it.

    x and −x are equally likely. Without a bias f has the parity of σ, and the best it can do is 0.
    """
    if not isinstance(model, Model) or model.network.has_b:
        return
    sigma, target = _parity_of_activation(model), _parity_of_target(model.data)
    if sigma is None or target is None or sigma == target:
        return
    words = {0: "even", 1: "odd"}
    warn(
        f"the target is {words[target]} in x, and f is {words[sigma]}, as {model.network.activation!r} "
        "without a bias is: no such network learns it, and the risk stays at E y² or above. "
        "Network(…, bias='trained') or another activation can",
    )


def training_risk(rule: MonteCarlo, model: Model, measure: Any) -> float:
    """The risk on the fixed samples that a run descends."""
    rows = np.asarray(measure)
    return float(rule.evaluator(model, 0).risk(rows, np.full(len(rows), 1 / len(rows))))


def learned_samples(method: Any, model: Any, measure: Any) -> MonteCarlo | None:
    """The fixed samples that a network descends, if it does."""
    rule = getattr(method, "expectation", None)
    if not isinstance(rule, MonteCarlo) or not isinstance(model, Model) or isinstance(measure, LinearMeasure):
        return None
    return rule


def advise_overfitting(rule: MonteCarlo, own: float, risk: Any, error: Any) -> None:
    """Warn if the risk of fresh samples is far above `own`, that on the samples of the rule."""
    if risk > _TIMES * own and risk - own > _ERRORS * error:
        warn(
            f"the risk is {risk:.3g}, but {own:.3g} on the {rule.samples} samples of the method's "
            "expectation: they are learned by heart. Take more samples, mf.Exact(), or an earlier horizon",
        )


def _parity_of_activation(model: Model) -> int | None:
    """0 for even, 1 for odd, None for neither."""
    return {"even": 0, "odd": 1, "none": None}[model.network.activation._core.facts.parity]


def _parity_of_target(law: Any) -> int | None:
    """That of E[y | x], of laws that are symmetric in x and known to have one; None for the others."""
    if isinstance(law, IsotropicGaussians | AnisotropicGaussians):
        return 0
    if not isinstance(law, MultiIndex):
        return None
    terms = law._hermite if law.inputs == "gaussian" else None if callable(law.link) else law.link
    if terms is None:
        return None
    degrees = [len(key) if law.inputs == "hypercube" else sum(key) for key, c in terms.items() if c]
    parities = {degree % 2 for degree in degrees}
    return parities.pop() if len(parities) == 1 else None
