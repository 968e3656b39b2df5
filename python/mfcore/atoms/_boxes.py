"""Boxes around atoms, on which features that are dear are made separable once for many evaluations."""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from ..grids._separable import NotSeparableError, Separable
from ..reductions._model import ReducedModel

_INNER, _OUTER = 0.5, 0.25  # how far beyond the atoms the box is, in their own spread, and its rim


def enclosing(z: FloatArray, walls: np.ndarray) -> FloatArray:
    """A box around these atoms and more."""
    low, high = z.min(axis=0), z.max(axis=0)
    spread = np.maximum(high - low, 0.5 * np.maximum(np.abs(low), np.abs(high)))
    spread = np.maximum(spread, 0.1)
    low = np.where(walls, 0.0, low - _INNER * spread)
    return np.stack([low, high + _INNER * spread], axis=1)


def separated(
    reduced: ReducedModel, box: FloatArray, walls: np.ndarray
) -> tuple[FloatArray | None, Separable | None]:
    """The box with features on it and on a rim around, if they can be had."""
    low, high = box.T
    rim = _OUTER * (high - low)
    outer = np.stack([np.where(walls, 0.0, low - rim), high + rim], axis=1)
    try:
        return box, Separable.build(reduced, outer)
    except NotSeparableError:
        return None, None


def inside(box: FloatArray, z: FloatArray) -> bool:
    """Whether the box holds all of these atoms."""
    return bool(((z >= box[:, 0]) & (z <= box[:, 1])).all())
