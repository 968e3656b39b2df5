"""Lengths of rows of any size, squares of which may leave the range of numbers."""

from __future__ import annotations

import numpy as np

from .check import FloatArray

_ORDINARY = 2.0**400  # rows with a largest entry between this and its inverse are taken as they are


def norms(rows: FloatArray) -> FloatArray:
    """Euclidean norms along the last axis."""
    units = _units(rows)
    if units is None:
        return np.asarray(np.linalg.norm(rows, axis=-1))
    return np.asarray(units * np.linalg.norm(rows / units[..., None], axis=-1))


def norms_and_directions(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Norms along the last axis, then rows and sizes (1 for zeros) of which the ratios are unit vectors."""
    units = _units(rows)
    scaled = rows if units is None else rows / units[..., None]
    norm = np.linalg.norm(scaled, axis=-1)
    return np.asarray(norm if units is None else units * norm), scaled, np.where(norm > 0, norm, 1.0)


def _units(rows: FloatArray) -> FloatArray | None:
    """Powers of two about the size of very small and very large rows, 1 of others; None if all are 1."""
    if rows.shape[-1] == 0:
        return None
    largest = np.maximum(rows.max(axis=-1), -rows.min(axis=-1))
    odd = (largest > _ORDINARY) | (largest < 1 / _ORDINARY)
    odd &= (largest > 0) & np.isfinite(largest)
    if not odd.any():
        return None
    exponents = np.clip(np.frexp(largest)[1], -1000, 1000)
    return np.where(odd, np.ldexp(1.0, exponents), 1.0)
