"""Factors of features on a grid, in the layout that `_core.GridPotential` takes (eqs. (2.7), (2.8))."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _core
from .._base.check import FloatArray

COMPRESSION = 1e-12  # largest deviation of a compressed feature, relative to the largest feature


def orthonormal(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factorise coefficients = turn · nodes with orthonormal rows of `nodes`."""
    nodes, turn = _core.qr(coefficients.T)
    return np.ascontiguousarray(turn.T), np.ascontiguousarray(nodes.T)


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
        first, turn = _cut(first)
        core = turn @ core
    return first, last, np.ascontiguousarray(core.reshape(-1, rank))


def on_cells(
    first: FloatArray, second: FloatArray, core: FloatArray, nodes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Reduce the factors of a box to the functions that differ at the centres of the cells."""
    (q1, r1), (q2, r2) = _core.qr(first), _core.qr(second)
    a, b, rank = r1.shape[1], r2.shape[1], core.shape[1]
    half = _core.product(r1, core.reshape(a, b * rank)).reshape(len(r1), b, rank)
    table = _core.product(r2, half.transpose(1, 0, 2).reshape(b, -1)).reshape(len(r2), len(r1), rank)
    own1, own2, core, turn = tucker(table.transpose(1, 0, 2).reshape(-1, rank), len(r2))
    return _core.product(q1, own1), _core.product(q2, own2), core, _core.product(turn, nodes)


def tucker(table: FloatArray, last: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Factorise a full table of features, axis by axis, into factors of two axes, core and nodes."""
    q = table.shape[1]
    first, rest = _cut(table.reshape(-1, last * q))
    a = len(rest)
    second, rest = _cut(rest.reshape(a, last, q).transpose(1, 0, 2).reshape(last, a * q))
    b = len(rest)
    core, rest = _cut(rest.reshape(b, a, q).transpose(1, 0, 2).reshape(a * b, q))
    turn, nodes = orthonormal(rest)
    return first, second, _core.product(core, turn), nodes


def _cut(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal columns and coefficients of a matrix, with an error of a third of the tolerance in
    spectral norm.
    """
    side = table
    if table.shape[1] > len(table):  # the same columns and singular values
        _, triangle = _core.qr(table.T)
        side = triangle.T
    u, sizes, _ = _core.svd(side)
    rank = max(1, int((sizes > COMPRESSION / 3 * sizes[0]).sum()))
    basis = np.ascontiguousarray(u[:, :rank])
    return basis, _core.product(basis.T, table)
