"""Activations in configuration files: the kinds they may name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .._base import check
from ._expression import Expression
from ._kinds import NAMES, Activation, Hermite, PiecewiseLinear, Polynomial, get

_MADE = {
    "piecewise_linear": PiecewiseLinear,
    "polynomial": Polynomial,
    "hermite": Hermite,
    "expression": Expression,
}
KINDS = (*NAMES, *_MADE)  # the kinds that configuration files may name


def from_config(config: Mapping[str, Any]) -> Activation:
    """The activation that a plain dict describes: its kind and the arguments of the function of that name.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.from_config({"kind": "hermite", "coefficients": [0.0, 1.0]})
        mf.activations.hermite([0.0, 1.0])
    """
    check.instance(config, "config", Mapping, 'a mapping such as {"kind": "relu"}')
    options = dict(config)
    kind = check.choice(options.pop("kind", None), "kind", KINDS)
    fields = [f for f in dataclasses.fields(_MADE[kind]) if f.init] if kind in _MADE else []
    for option in options:
        if option not in [f.name for f in fields]:
            raise ValueError(f"activation {kind} has no option {option!r}, got {options[option]!r}")
    for f in fields:
        if f.default is dataclasses.MISSING and f.name not in options:
            raise ValueError(f"activation {kind} needs {f.name}, got {list(options)}")
    return _MADE[kind](**options) if kind in _MADE else get(kind)
