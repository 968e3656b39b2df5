"""Factorise large matrices so that Ctrl-C is answered meanwhile.

NumPy's factorisations let the interpreter go on, SciPy's eigenvalues and singular values hold it until they
are done: a matrix of some thousand rows would keep Ctrl-C waiting for seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from .aside import aside
from .check import FloatArray

T = TypeVar("T")

_SMALL = 300  # rows and columns that take milliseconds


def eigh(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix."""
    values, vectors = _answering(matrix, lambda: np.linalg.eigh(matrix))
    return values, vectors


def eigvalsh(matrix: FloatArray) -> FloatArray:
    """Eigenvalues of a symmetric matrix, ascending."""
    return _answering(matrix, lambda: np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64))


def svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """u, s, vᵀ with as many singular values as the shorter side has."""
    u, s, vt = _answering(matrix, lambda: np.linalg.svd(matrix, full_matrices=False))
    return u, s, vt


def pinv(matrix: FloatArray) -> FloatArray:
    """The pseudoinverse; singular values below rounding of the largest count as 0."""
    rounding = max(matrix.shape) * float(np.finfo(np.float64).eps)
    return _answering(matrix, lambda: np.asarray(np.linalg.pinv(matrix, rcond=rounding), dtype=np.float64))


def _answering(matrix: FloatArray, function: Callable[[], T]) -> T:
    if not np.isfinite(matrix).all():
        raise ValueError("a matrix that is factorised must be finite, got infinities or NaN")
    return function() if max(matrix.shape) <= _SMALL else aside(function)
