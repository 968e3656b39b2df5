"""Choose a box around the atoms and make costly features separable on it (eq. (2.8)), once for many
evaluations.
"""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from ..grids._separable import NotSeparableError, Separable
from ..reductions._model import ReducedModel

# the box extends beyond the atoms by _INNER times their spread, the rim by _OUTER box lengths
_INNER, _OUTER = 0.5, 0.25


def enclosing(z: FloatArray, walls: np.ndarray) -> FloatArray:
    """A box [low, high] around the atoms, wider than they are spread so that it serves for a while."""
    low, high = z.min(axis=0), z.max(axis=0)
    spread = np.maximum(high - low, 0.5 * np.maximum(np.abs(low), np.abs(high)))
    spread = np.maximum(spread, 0.1)
    low = np.where(walls, 0.0, low - _INNER * spread)
    return np.stack([low, high + _INNER * spread], axis=1)


def separated(
    reduced: ReducedModel, box: FloatArray, walls: np.ndarray
) -> tuple[FloatArray | None, Separable | None]:
    """Separable features on the box and a rim around it; (None, None) if the features are not separable."""
    low, high = box.T
    rim = _OUTER * (high - low)
    outer = np.stack([np.where(walls, 0.0, low - rim), high + rim], axis=1)
    try:
        return box, Separable.build(reduced, outer)
    except NotSeparableError:
        return None, None


def inside(box: FloatArray, z: FloatArray) -> bool:
    """Tell whether the box holds all of these atoms."""
    return bool(((z >= box[:, 0]) & (z <= box[:, 1])).all())
