"""The public surface as a list of callables, and generated arguments for each."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import mfcore as mf
from mfcore import activations

from .objects import bound_methods, good_for
from .values import BIG, COUNTS, FLOATS, NETS, ODD, TIMES, all_laws, any_array, models, start

# What is public and not called, with the reason. Everything else is: `test_faults.py` compares.
_RESULT = "made by functions that are called"
LEFT_OUT = {
    **dict.fromkeys(
        ("Certificate", "Estimate", "Explanation", "Optimum", "Stationary", "Trajectory"), _RESULT
    ),
    **dict.fromkeys(("Bound", "Diagnosis", "FixedPoint", "Fluctuations", "Ladder", "Laziness"), _RESULT),
    **dict.fromkeys(("LazyBounds", "Rate", "Rates", "RegressionDraws", "RegressionRisk"), _RESULT),
    **dict.fromkeys(("Relaxation", "RiskPath", "Spectrum", "Stability", "StepProposal"), _RESULT),
    **dict.fromkeys(("Theorem", "Canonical"), _RESULT),
    **dict.fromkeys(("DataLaw", "InitialLaw", "Method", "ScalarLaw", "Activation"), "an interface"),
    **dict.fromkeys(("Custom", "Expression", "Pieces"), "made by custom, expression, piecewise_linear"),
    **dict.fromkeys(("Hermite", "PiecewiseLinear", "Polynomial"), "made by functions of their name"),
    "save_config": "writes files, which `archives` and `disks` damage",
    "experiments": "whole publications, run by tests of their own",
    "typing": "types, for annotations",
}
METHODS_LEFT_OUT = {
    **dict.fromkeys(("begin", "evaluator"), "between a method or an expectation and `solve`"),
    **dict.fromkeys(("check", "parts", "fill"), "between an initial law and `sample`"),
    "save": "writes files, which `archives` and `disks` damage",
}
_SLOW = {"ladder", "modified_flow", "propose_step", "gibbs", "gibbs_path", "optimum", "certificate", "solve"}
_SLOW |= {"density", "observable", "particles", "risk", "run", "bounds", "diagnose", "fluctuations"}


def modules() -> list[ModuleType]:
    """The package and its public modules."""
    inside = [getattr(mf, name) for name in mf.__all__ if name not in LEFT_OUT]
    return [mf, *(value for value in inside if isinstance(value, ModuleType))]


def public() -> dict[str, Callable[..., Any]]:
    """All functions and classes of the public modules by their names."""
    found = {}
    for module in modules():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            ours = getattr(value, "__module__", "").startswith("mfcore")
            if not name.startswith("_") and (inspect.isclass(value) or inspect.isroutine(value)) and ours:
                found[f"{module.__name__}.{name}"] = value
    return found


@cache
def functions() -> list[tuple[str, Callable[..., Any]]]:
    """Every public function and class by its name, and the methods of what these make."""
    found = {name: value for name, value in public().items() if name.rsplit(".", 1)[-1] not in LEFT_OUT}
    for name in ("relu", "erf", "tanh", "sigmoid", "softplus", "gelu", "silu", "sin", "cos", "linear"):
        for method in ("__call__", "derivative", "second_derivative"):
            found[f"activations.{name}.{method}"] = getattr(getattr(activations, name), method)
    for name in ("get", "hermite", "polynomial", "piecewise_linear", "from_config"):
        found[f"activations.{name}"] = found.pop(f"mfcore.activations.{name}")
    for k, law in enumerate(all_laws()):
        found[f"law{k}.draw"], found[f"law{k}.target_power"] = law.draw, law.target_power
    for k, reduced in enumerate(models()[-3:]):
        found |= {f"reduced{k}.features": reduced.features, f"reduced{k}.table": reduced.table}
    for k, net in enumerate(NETS):
        found[f"init{k}.sample"] = start(net).sample
    for name, _, method, function in bound_methods():
        if method not in METHODS_LEFT_OUT:
            found.setdefault(name, function)
    return list(found.items())


@cache
def parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """Of the signature, without those that gather what is left."""
    kept = inspect.signature(function).parameters.values()
    return tuple(p for p in kept if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))


def edge(r: Random, name: str) -> Any:
    """A value at the edge, or of another kind than wanted."""
    value = any_array(r) if r.random() < 0.3 else r.choice([*FLOATS, *ODD])
    long = name in COUNTS | TIMES and isinstance(value, int | float) and (value in BIG or 0 < value < 1e-3)
    return r.choice([0, -1, math.nan, "x", None, 1.5]) if long else value


def arguments(r: Random, function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Arguments by name: mostly good ones."""
    chosen = {}
    risky = r.choice([0.0, 0.1, 0.3])
    for p in parameters(function):
        optional = p.default is not p.empty
        if optional and r.random() < 0.5 and p.name not in ("max_seconds", "save_at"):
            continue
        good = good_for(name, p.name) or (lambda r: r.choice([0.1, 0.5, 1.0, 1, 2]))
        chosen[p.name] = edge(r, p.name) if r.random() < risky else good(r)
    if "horizon" in chosen and "max_seconds" in {p.name for p in parameters(function)}:
        chosen["max_seconds"] = 0.3
    return chosen


@cache
def names() -> frozenset[str]:
    """All names of parameters, which messages may begin with."""
    own = itertools.chain.from_iterable(parameters(f) for _, f in functions())
    return frozenset(p.name for p in own) | {"link", "basis", "method"}


def is_slow(name: str) -> bool:
    """Whether a good call of it takes more than a second."""
    return name.rsplit(".", 1)[-1] in _SLOW
