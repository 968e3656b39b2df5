"""Where the mass of a density on a grid gathers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .._base.check import FloatArray
from ..grids._grid import Grid

_ATOM = 0.01  # mass in two cells next to each other that may be called an atom ...
_CONTRAST = 10.0  # ... if it is so many times what is in the cells beside them


def atoms_in(mass: FloatArray, grid: Grid) -> list[dict[str, Any]]:
    """Where much mass is in at most two cells along each moving coordinate."""
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
    """Sums over `length` cells along axis c, from `before` cells before each on."""
    n, first = mass.shape[c], before + 1
    total = np.zeros((*mass.shape[:c], n + 1 + length, *mass.shape[c + 1 :]))
    inside = (slice(None),) * c
    total[(*inside, slice(first, first + n))] = mass
    total = np.cumsum(total, axis=c)
    upper, lower = slice(length, length + n), slice(0, n)
    return np.asarray(total[(*inside, upper)] - total[(*inside, lower)])
