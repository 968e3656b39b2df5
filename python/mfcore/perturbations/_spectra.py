"""Eigenvalues of the linearised flow: of every atom alone (eq. (13.2)), and of all together (eq. (13.3))."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._base import factors
from .._base.check import FloatArray
from ._linear import Linearisation

DENSE = 1200  # numbers of unknowns up to which matrices are stored
FEW = 6  # eigenvalues found of larger ones


def of_atoms(linear: Linearisation, lowest: int | None) -> tuple[FloatArray, int, FloatArray]:
    """Eigenvalues √r H_i √r of every atom, (m, k or lowest), the atom of the lowest one, and its direction.

    Coordinates that are held have the eigenvalue inf.
    """
    m, k = linear.free.shape
    count = k if lowest is None else min(lowest, k)
    root = np.sqrt(linear.frames.rates)
    values = np.full((m, count), np.inf)
    best = (np.inf, 0, np.zeros(k))
    matrices = _matrices(linear, root) if k <= DENSE else None
    for i in range(m):
        at = np.flatnonzero(linear.free[i])
        if not len(at):
            continue
        if matrices is not None:
            found, vectors = factors.eigh(matrices[i][np.ix_(at, at)])
        else:
            found, vectors = _lanczos(partial(_one, linear, root, i), k, count)
        number = min(count, len(found))
        values[i, :number] = found[:number]
        if linear.weights[i] > 0 and found[0] < best[0]:
            direction = np.zeros(k)
            direction[at] = root[at] * vectors[:, 0]
            best = (float(found[0]), i, direction)
    return values, best[1], best[2]


def of_cloud(linear: Linearisation, lowest: int | None) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of the flow of all atoms that have mass, and the direction of the lowest one, (m, k)."""
    free = linear.free & (linear.weights > 0)[:, None]
    root = np.broadcast_to(np.sqrt(linear.frames.rates), free.shape)[free]
    mass = np.sqrt(np.repeat(linear.weights, free.sum(axis=1)))
    into, back = root / mass, root * mass

    def apply(x: FloatArray) -> FloatArray:
        c = np.zeros(free.shape)
        c[free] = into * x
        return np.asarray(back * linear.coupled(c)[free])

    size = int(free.sum())
    direction = np.zeros(free.shape)
    if not size:
        return np.empty(0), direction
    if size <= DENSE:
        matrix = np.array([apply(unit) for unit in np.eye(size)])
        values, vectors = factors.eigh(0.5 * (matrix + matrix.T))
    else:
        values, vectors = _lanczos(apply, size, FEW if lowest is None else lowest)
    direction[free] = into * vectors[:, 0]
    return values[:lowest], direction


def _matrices(linear: Linearisation, root: FloatArray) -> FloatArray:
    """√r H_i √r of all atoms, (m, k, k)."""
    m, k = linear.free.shape
    out = np.empty((m, k, k))
    for c in range(k):
        unit = np.zeros((m, k))
        unit[:, c] = root[c]
        out[:, :, c] = root * linear.own(unit)
    return 0.5 * (out + out.transpose(0, 2, 1))


def _one(linear: Linearisation, root: FloatArray, i: int, x: FloatArray) -> FloatArray:
    c = np.zeros(linear.free.shape)
    c[i] = root * x
    return np.asarray(root * linear.own(c)[i])


def _lanczos(
    apply: Callable[[FloatArray], FloatArray], size: int, count: int
) -> tuple[FloatArray, FloatArray]:
    """The lowest eigenvalues of a symmetric map, ascending, and their vectors."""
    from scipy.sparse import linalg  # takes long to import

    start = np.random.default_rng(0).normal(size=size)  # the same every time
    operator = linalg.LinearOperator((size, size), matvec=apply, dtype=np.float64)
    values, vectors = linalg.eigsh(operator, k=min(count, size - 1), which="SA", v0=start, tol=1e-12)
    order = np.argsort(values)
    return values[order], vectors[:, order]
