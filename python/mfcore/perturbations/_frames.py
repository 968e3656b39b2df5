"""Coordinates of perturbations: those in which an atom moves, tangent ones on the sphere."""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray


class Frames:
    """For every atom an orthonormal basis of the directions in which it can move.

    Entries with rate 0 do not move. On the sphere, weights move across w: their basis is the image of the
    last d − 1 unit vectors under the reflection that takes the first one to w.

    Args:
        rates: Speed of every entry of a row, shape (D,).
        points: The atoms, shape (m, D).
        sphere: Number of the first entry of w where |w| = 1; None elsewhere.
    """

    def __init__(self, rates: FloatArray, points: FloatArray, sphere: int | None = None) -> None:
        self._row, self._sphere = points.shape[1], sphere
        self._outer = np.flatnonzero(rates[:sphere] > 0)
        self._mirror = np.empty((len(points), 0))
        speeds = rates[self._outer]
        if sphere is not None:
            w = points[:, sphere:] / np.linalg.norm(points[:, sphere:], axis=1)[:, None]
            sign = np.where(w[:, 0] < 0, 1.0, -1.0)  # the reflection to −sign·w loses no digits
            mirror = w.copy()
            mirror[:, 0] -= sign
            self._mirror = mirror / np.linalg.norm(mirror, axis=1)[:, None]
            speeds = np.concatenate([speeds, rates[sphere + 1 :]])
        self.rates = speeds  # of the coordinates, shape (k,)

    @property
    def size(self) -> int:
        """Number k of coordinates of an atom."""
        return len(self.rates)

    @property
    def tangent(self) -> int:
        """Number of those coordinates that lie across w."""
        return self._mirror.shape[1] - 1 if self._sphere is not None else 0

    def up(self, c: FloatArray) -> FloatArray:
        """Rows of coordinates to rows of parameters, (m, k) to (m, D)."""
        full = np.zeros((len(c), self._row))
        full[:, self._outer] = c[:, : len(self._outer)]
        if self._sphere is not None:
            full[:, self._sphere + 1 :] = c[:, len(self._outer) :]
            self._reflect(full)
        return full

    def down(self, v: FloatArray) -> FloatArray:
        """The transpose of `up`, (m, D) to (m, k)."""
        if self._sphere is None:
            return v[:, self._outer]
        full = v.copy()
        self._reflect(full)
        return np.concatenate([full[:, self._outer], full[:, self._sphere + 1 :]], axis=1)

    def _reflect(self, full: FloatArray) -> None:
        w = full[:, self._sphere :]
        w -= 2 * np.sum(w * self._mirror, axis=1)[:, None] * self._mirror
