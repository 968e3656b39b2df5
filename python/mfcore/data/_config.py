"""Make data laws from plain dictionaries, as TOML files hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .. import network
from .._base import check
from ._finite import Dataset
from ._gaussians import AnisotropicGaussians, IsotropicGaussians
from ._law import DataLaw
from ._mixture import GaussianMixture
from ._multi_index import MultiIndex, Staircase
from ._regression import Linear, Teacher

KINDS: dict[str, type[DataLaw]] = {
    law.__name__: law
    for law in (
        IsotropicGaussians,
        AnisotropicGaussians,
        GaussianMixture,
        MultiIndex,
        Staircase,
        Teacher,
        Linear,
        Dataset,
    )
}


def from_config(config: Mapping[str, Any]) -> DataLaw:
    """The law described by a dict of its arguments and its class name under ``"kind"``.

    Raises:
        ValueError: The kind or an argument is unknown, missing or out of range.

    Examples:
        >>> import mfcore as mf
        >>> mf.data.from_config({"kind": "Staircase", "d": 12, "monomials": [[0], [0, 1]]})
        Staircase(d=12, monomials={(0,): 1.0, (0, 1): 1.0})
    """
    check.instance(config, "config", Mapping, 'a mapping such as {"kind": "Linear", "w": [1.0]}')
    given = dict(config)
    kind = check.choice(given.pop("kind", None), "kind of data", KINDS)
    fields = [f for f in dataclasses.fields(KINDS[kind]) if f.init]  # type: ignore[arg-type]
    for name in given:
        check.choice(name, f"argument of {kind}", [f.name for f in fields])
    for f in fields:
        if f.name not in given and f.default is dataclasses.MISSING:
            raise ValueError(f"{kind} must be given {f.name}, got {', '.join(given) or 'nothing'}")
    return KINDS[kind](**{name: _value(name, value) for name, value in given.items()})


def _value(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and name in ("link", "monomials"):
        keys = [tuple(key) for key in value["terms"]]
        return dict(zip(keys, value["coefficients"], strict=True))
    if name == "monomials":
        return [tuple(key) for key in value]
    if name == "network":
        return network.from_config(value)
    return value
