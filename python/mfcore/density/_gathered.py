"""Find where the mass of a density has gathered in single cells, as an atom."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..grids._grid import Grid

_ATOM = 0.01  # two neighbouring cells with more mass than this may be called an atom …
_CONTRAST = 10.0  # … if they hold so many times the mass of the cells beside them


def atoms_in(mass: FloatArray, grid: Grid) -> list[dict[str, Any]]:
    """Position and mass of every atom: much mass in at most two neighbouring cells along each moving
    coordinate.
    """
    found: list[dict[str, Any]] = []
    moving = set(grid.moving)
    if mass.max() * 2 ** len(moving) <= _ATOM:
        return found
    near, far = mass, mass
    for c in range(mass.ndim):
        if c in moving:
            near, far = _windows(near, c, 0, 2), _windows(far, c, 1, 4)
    where = np.argwhere((near > _ATOM) & (near > _CONTRAST * (far - near)))
    taken: set[tuple[int, ...]] = set()
    for index in sorted((tuple(map(int, i)) for i in where), key=lambda i: -near[i]):
        cells = list(product(*(range(i, i + 1 + (c in moving)) for c, i in enumerate(index))))
        cells = [cell for cell in cells if all(i < n for i, n in zip(cell, mass.shape, strict=True))]
        if taken.isdisjoint(cells):
            taken.update(cells)
            weights = np.array([mass[cell] for cell in cells])
            centers = np.array([[grid.centers[c][i] for c, i in enumerate(cell)] for cell in cells])
            position = (weights @ centers / weights.sum()).tolist()
            found.append({"at": position, "mass": float(weights.sum())})
    return found


def _windows(mass: FloatArray, c: int, before: int, length: int) -> FloatArray:
    """Sums over `length` consecutive cells along axis c, the first one `before` cells before each cell."""
    n, first = mass.shape[c], before + 1
    total = np.zeros((*mass.shape[:c], n + 1 + length, *mass.shape[c + 1 :]))
    inside = (slice(None),) * c
    total[(*inside, slice(first, first + n))] = mass
    total = np.cumsum(total, axis=c)
    upper, lower = slice(length, length + n), slice(0, n)
    return np.asarray(total[(*inside, upper)] - total[(*inside, lower)])
