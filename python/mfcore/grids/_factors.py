"""Factors of features on a grid, in the layout that `_core.GridPotential` takes (eqs. (2.7), (2.8))."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _core
from .._base.check import FloatArray

COMPRESSION = 1e-12  # relative to the largest feature
CUT = COMPRESSION / 3  # of the largest singular value, for each of three factors


def in_order(
    parts: Sequence[FloatArray], core: FloatArray, order: Sequence[int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Combine the factors of all coordinates into those of the core's two axes: (n1, a), (n2, b), (a·b,
    rank).
    """
    rank = core.shape[1]
    core = core.reshape(*(part.shape[1] for part in parts), rank).transpose(*order, len(order))
    first, last = parts[order[0]], parts[order[-1]]
    for c in order[1:-1]:
        first = (first[:, None, :, None] * parts[c][None, :, None, :]).reshape(len(first) * len(parts[c]), -1)
    core = core.reshape(first.shape[1], last.shape[1] * rank)
    if len(order) > 2:  # products have more functions than they need
        first, turn = _core.column_span(first, CUT)
        core = turn @ core
    return first, last, np.ascontiguousarray(core.reshape(-1, rank))
