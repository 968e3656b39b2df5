"""Factorise and multiply large matrices so that Ctrl-C is answered meanwhile.

NumPy's factorisations let the interpreter go on, SciPy's eigenvalues and singular values hold it until they
are done: a matrix of some thousand rows would keep Ctrl-C waiting for seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy

from .aside import aside
from .check import FloatArray

T = TypeVar("T")


class NotFiniteError(ValueError):
    """A matrix has infinities or NaN, which have no factors."""


_SMALL = 300  # rows and columns that take milliseconds
_FOR_SCIPY = 2000  # rows up to which its eigenvectors of one end take less than half a second


def eigh(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix."""
    values, vectors = _answering(matrix, lambda: np.linalg.eigh(matrix))
    return values, vectors


def eigvalsh(matrix: FloatArray) -> FloatArray:
    """Eigenvalues of a symmetric matrix, ascending."""
    return _answering(matrix, lambda: np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64))


def leading(matrix: FloatArray) -> tuple[float, FloatArray]:
    """The largest eigenvalue of a symmetric matrix, and its eigenvector."""
    last = len(matrix) - 1
    if last < _FOR_SCIPY:
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[last, last])
    else:
        values, vectors = eigh(matrix)
    return float(values[-1]), np.asarray(vectors[:, -1])


def svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """u, s, vᵀ with as many singular values as the shorter side has."""
    try:
        u, s, vt = _answering(matrix, lambda: np.linalg.svd(matrix, full_matrices=False))
    except np.linalg.LinAlgError:  # the quick algorithm gives up on a few matrices, the plain one does not
        u, s, vt = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return u, s, vt


def qr(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal columns and an upper triangle, for a matrix with at least as many rows as columns."""
    q, r = _answering(matrix, lambda: np.linalg.qr(matrix))
    return q, r


def pinv(matrix: FloatArray) -> FloatArray:
    """The pseudoinverse; singular values below rounding of the largest count as 0."""
    rounding = max(matrix.shape) * float(np.finfo(np.float64).eps)
    try:
        found = _answering(matrix, lambda: np.linalg.pinv(matrix, rcond=rounding))
        return np.asarray(found, dtype=np.float64)
    except np.linalg.LinAlgError:
        u, s, vt = svd(matrix)
        kept = s > rounding * s[0]
        return np.asarray((vt[kept].T / s[kept]) @ u[:, kept].T)


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """The lower factor of a symmetric matrix; None where rounding leaves it not positive definite."""
    try:
        return _answering(matrix, lambda: np.asarray(np.linalg.cholesky(matrix), dtype=np.float64))
    except np.linalg.LinAlgError:
        return None


def solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """matrix⁻¹ right."""
    return _answering(matrix, lambda: np.asarray(np.linalg.solve(matrix, right), dtype=np.float64))


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """a b."""
    small = a.shape[0] * a.shape[1] * b.shape[1] <= _SMALL**3
    return a @ b if small else aside(lambda: a @ b)


def _answering(matrix: FloatArray, function: Callable[[], T]) -> T:
    if not np.isfinite(matrix).all():
        raise NotFiniteError("a matrix that is factorised must be finite, got infinities or NaN")
    return function() if max(matrix.shape) <= _SMALL else aside(function)
