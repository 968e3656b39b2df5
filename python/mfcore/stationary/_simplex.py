"""Minimise |A c − t|²/2 + cost·c over the simplex c ≥ 0, Σ c = 1 (eq. (9.6)) by active sets: the weights
of fixed atoms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray

CUT = 1e-13  # singular values below this fraction of the largest count as 0
_NONE = 1e-11  # differences of the cost below this fraction are rounding


def simplex_least_squares(
    columns: FloatArray, target: FloatArray, cost: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """argmin |A c − t|²/2 + cost·c over c ≥ 0, Σ c = 1.

    Args:
        columns: A, shape (Q, m).
        target: t.
        cost: Shape (m,).
        start: A c of that kind to begin from.

    Examples:
        >>> import numpy as np
        >>> from mfcore.stationary._simplex import simplex_least_squares
        >>> columns = np.array([[0.0, 4.0]])
        >>> simplex_least_squares(columns, np.array([2.0]), np.zeros(2)).round(12).tolist()
        [0.5, 0.5]
    """
    m = len(cost)
    if start is None:
        alone = 0.5 * np.square(columns - target[:, None]).sum(axis=0) + cost
        start = np.arange(m) == alone.argmin()
    c = _descend(columns, target, cost, start / start.sum(), start > 0)
    value = _value(columns, target, cost, c)
    for _ in range(20 * m + 20):
        slope = columns.T @ (columns @ c - target) + cost
        enters = int(slope.argmin())
        if c[enters] > 0 or slope[enters] >= c @ slope:
            break
        trial = _descend(columns, target, cost, c, (c > 0) | (np.arange(m) == enters))
        new = _value(columns, target, cost, trial)
        if new >= value:
            break  # the gain is below rounding
        c, value = trial, new
    return c


def _value(columns: FloatArray, target: FloatArray, cost: FloatArray, c: FloatArray) -> float:
    return float(0.5 * np.square(columns @ c - target).sum() + cost @ c)


def _descend(
    columns: FloatArray, target: FloatArray, cost: FloatArray, c: FloatArray, active: npt.NDArray[np.bool_]
) -> FloatArray:
    """Go from c towards the minimum over the active entries; stop where one of them reaches 0."""
    while True:
        at = np.flatnonzero(active)
        move = np.zeros_like(c)
        move[at], ends = _direction(columns[:, at], target, cost[at], c[at])
        down = active & ((c + move <= 0) if ends else (move < 0))
        if not down.any():
            return c + move
        reach = np.where(down, c / np.where(move < 0, -move, 1.0), np.inf)
        c = np.maximum(c + reach.min() * move, 0.0)
        leaves = reach <= reach.min()
        c[leaves] = 0.0
        active = active & ~leaves


def _direction(
    columns: FloatArray, target: FloatArray, cost: FloatArray, c: FloatArray
) -> tuple[FloatArray, bool]:
    """The step from c to the minimiser with Σ c = 1, and True; a direction of descent and False if there is
    none.

    In the differences to one column. Where they depend on each other, c may change without the fit, and the
    cost falls for ever, if it is not the same for all such c.
    """
    if len(cost) == 1:
        return 1 - c, True
    reference = int(c.argmax())
    others = np.arange(len(cost)) != reference
    difference = columns[:, others] - columns[:, [reference]]
    dearer = cost[others] - cost[reference]
    u, s, vt = np.linalg.svd(difference, full_matrices=False)
    kept = s > CUT * s.max()
    u, s, vt = u[:, kept], s[kept], vt[kept]
    free = dearer - vt.T @ (vt @ dearer)
    ends = bool(np.abs(free).max() <= _NONE * np.abs(dearer).max())
    if ends:
        along = u.T @ (target - columns[:, reference]) / s - vt @ dearer / s**2
        best = vt.T @ along
        move = best - c[others]
    else:
        move = -free
    out = np.empty(len(cost))
    out[others], out[reference] = move, -move.sum()
    return out, ends
