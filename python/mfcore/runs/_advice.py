"""Say what is provable about a run and easily overlooked: a target out of reach, samples learned by heart."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.check import FloatArray
from .._base.course import changes
from .._base.warn import warn
from ..data import AnisotropicGaussians, IsotropicGaussians, MultiIndex
from ..expectations._rules import MonteCarlo
from ..measures._tangent import LinearMeasure
from ..model import Model

_TIMES, _ERRORS = 2.0, 5.0  # a risk so many times another one, by so many standard errors
_LAST = 3  # save points of SGD that tell whether its risk has risen
_ROUNDING = 1e-9  # of E y² and the largest risk of a run: less is rounding


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


def advise_rise(
    method: Any, model: Any, power: float, t: FloatArray, risk: FloatArray, error: FloatArray
) -> None:
    """Warn if the risk of a run of fixed steps has risen, where only too large a step lets it.

    Without noise and decay R falls along the flow, and along small steps. `mf.GD` and `mf.Particles` with a
    step, on the population risk, are warned of where the last R is more than twice the least before it. SGD
    fluctuates about its limit, and by more than its size where that is 0: it is warned of only where each of
    the last three R is more than twice R(0). Of replicas R is the mean. *More* is by five standard errors
    and more than rounding of `power`, E y².
    """
    sgd = hasattr(method, "schedule")
    fixed = sgd or (hasattr(method, "expectation") and getattr(method, "step", None) is not None)
    if not fixed or not isinstance(model, Model) or changes(model) or model.ridge or model.temperature:
        return
    if len(t) < _LAST + 1 or isinstance(getattr(method, "expectation", None), MonteCarlo):
        return
    if sgd and t[0] > 0:
        return
    mean, errors = (x.mean(axis=1) if x.ndim == 2 else x for x in (risk, error))
    last = mean[-_LAST:] if sgd else mean[-1:]
    low = last - _ERRORS * errors[-len(last) :]
    before = 0 if sgd else int(np.argmin(mean))
    least = float(mean[before] + _ERRORS * errors[before])
    if not (low > _TIMES * least + _ROUNDING * max(power, mean.max())).all():
        return
    since = "at the start" if t[before] == 0 else f"at t = {t[before]:g}"
    how = f"a step of {method.step / 10:.2g}"
    if isinstance(model.data, IsotropicGaussians):
        how += f", or what mf.theory.propose_step(model, horizon={t[-1]:g}) proposes"
    warn(
        f"the risk has risen from {least:.3g} {since} to {last[-1]:.3g} at t = {t[-1]:g}, which small steps "
        f"without noise do not let it: step = {method.step:g} is too large. Try {how}"
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
