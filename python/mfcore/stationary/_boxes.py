"""Boxes of reduced coordinates, and which models can be minimised over them."""

from __future__ import annotations

from typing import Any

from .._base import check
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel

Box = list[tuple[float, float]]


def as_box(extent: Any, reduced: ReducedModel) -> Box:
    """Check `extent` and return it as one pair (low, high) per coordinate."""
    k = len(reduced.coordinates)
    pairs = check.array(extent, "extent")
    if pairs.shape == (2,) and k == 1:
        pairs = pairs[None]
    if pairs.shape != (k, 2):
        names = ", ".join(reduced.coordinates)
        raise ValueError(
            f"extent must have a pair (low, high) for each of {names}, got {check.shown(extent)}"
        )
    for name, (low, high), radius in zip(reduced.coordinates, pairs, reduced.nonnegative, strict=True):
        if not low < high or (radius and low < 0):
            rule = "0 <= low < high" if radius else "low < high"
            raise ValueError(f"extent must have {rule} for {name}, got ({low:g}, {high:g})")
    return [(float(low), float(high)) for low, high in pairs]


def moving(reduced: ReducedModel) -> ReducedModel:
    """Refuse a model with coordinates at rest: minimising over all measures would change their law."""
    require_convex(reduced, "a minimum over all measures")
    still = [name for name, rate in zip(reduced.coordinates, reduced.rates, strict=True) if rate == 0]
    if still:
        raise ValueError(
            "model must move all coordinates for a minimum over all measures, "
            f"got rate 0 for {', '.join(still)}"
        )
    return reduced
