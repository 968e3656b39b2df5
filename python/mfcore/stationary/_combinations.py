"""Features that are combinations of those at a few of the nodes: √p_q Φ_q(z) ≈ Σ_k F_k(z) W_kq.

`_compact` finds W; here F is evaluated, at K nodes chosen by pivots where features can be evaluated at some
of the nodes alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy

from .._base import factors
from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ..reductions._of_laws import Features

CANDIDATES = 4096  # nodes from which those to keep are chosen
WORSE = 4.0  # groups of nodes replace single nodes if their error is at most so much larger
CHUNK = 1 << 20  # numbers computed between two questions whether to stop


def divisible(owner: Any) -> TypeGuard[Features]:
    """Whether such features can be evaluated at some of the nodes, in groups of `together`."""
    return isinstance(owner, Features) and len(owner.rows) > owner.together


def nodes_of(groups: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """Nodes of groups of equal size."""
    return np.asarray((groups[:, None] * size + np.arange(size)).ravel())


def at_nodes(owner: Features, nodes: npt.NDArray[np.intp], alone: bool = False) -> Features:
    """The same features at some of the nodes: in whole groups, or `alone` without averages over panels."""
    activation, has_a, has_b, dims, given, panels, along, scale = owner._arguments
    if alone:
        panels = along = None
    return Features(activation, has_a, has_b, dims, given[nodes], panels, along, scale)


def combined(reduced: ReducedModel, rows: FloatArray, alone: bool) -> ReducedModel:
    """The reduced model whose nodes are given orthonormal combinations of the nodes of another."""
    values, slopes = _picked(reduced, rows, alone)
    k, root = len(rows), np.sqrt(reduced.weights)
    target = rows @ (root * reduced.targets)
    missed = root * reduced.targets - target @ rows
    return dataclasses.replace(
        reduced,
        weights=np.full(k, 1 / k),
        targets=np.sqrt(k) * target,
        features=values,
        gradients=slopes,
        noise=reduced.noise + float(missed @ missed),
    )


def _times(
    features: Callable[[FloatArray], FloatArray], matrix: FloatArray, owner: Any
) -> Callable[[FloatArray], FloatArray]:
    """The function z ↦ Φ(z) · matrix; points that differ in the output weight a only are evaluated once.

    So points of a grid that differ in a only are one.
    """
    if not isinstance(owner, Features) or not owner._arguments[1]:
        return lambda z: features(z) @ matrix

    def scaled(z: FloatArray) -> FloatArray:
        others, which = np.unique(z[:, 1:], axis=0, return_inverse=True)
        points = np.column_stack([np.ones(len(others)), others])
        step = max(1, CHUNK // len(matrix))
        parts = [features(points[at : at + step]) @ matrix for at in range(0, max(len(points), 1), step)]
        once = np.concatenate(parts)
        return np.asarray(z[:, :1] * once[which.ravel()])

    return scaled


def _slopes(
    gradients: Callable[[FloatArray], FloatArray], matrix: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """The function z ↦ ∇Φ(z) · matrix, (n, K, k) from gradients (n, Q, k)."""
    return lambda z: np.swapaxes(np.swapaxes(gradients(z), 1, 2) @ matrix, 1, 2)


def _picked(
    reduced: ReducedModel, rows: FloatArray, alone: bool
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray] | None]:
    """√K F and its gradient as combinations of Φ at K nodes chosen by pivots, where nodes can be left out.

    Averages over panels need whole groups of nodes, or are replaced, `alone`, by values at nodes.
    """
    k, root = len(rows), np.sqrt(reduced.weights)
    plain: Any = reduced.features
    owner = getattr(plain.function, "__self__", None)
    slope: Any = reduced.gradients
    if not divisible(owner):
        matrix = np.sqrt(k) * root[:, None] * rows.T
        gradients = None if slope.function is None else _slopes(slope, matrix)
        return _times(plain, matrix, owner), gradients
    leverage = np.square(rows).sum(axis=0)
    among = np.arange(len(root))
    if len(among) > CANDIDATES:
        rng = np.random.default_rng(0)
        among = np.sort(rng.choice(among, CANDIDATES, replace=False, p=leverage / leverage.sum()))
    _, order = scipy.linalg.qr(rows[:, among], mode="r", pivoting=True)
    kept = 2 * k if alone else k + k // 4
    nodes = np.sort(among[order[: min(len(among), kept)]])
    inverse = factors.pinv(rows[:, nodes])
    if owner.together > 1 and not alone:
        most = WORSE * float(np.linalg.norm(inverse, 2))
        nodes, inverse = _grouped(rows, among[order], owner.together, most)
    matrix = np.sqrt(k) * root[nodes, None] * inverse
    fewer = at_nodes(owner, nodes, alone)
    return (
        _times(fewer.features, matrix, owner),
        _slopes(fewer.gradients, matrix),
    )


def _grouped(
    rows: FloatArray, order: npt.NDArray[np.intp], size: int, most: float
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Groups of the first nodes of `order`, so many that the inverse of W there has a norm of at most `most`.

    By so much errors of features at these nodes can grow.
    """
    first = np.unique(order // size, return_index=True)
    groups = first[0][np.argsort(first[1])]
    count = 1 + len(rows) // size
    while True:
        nodes = nodes_of(np.sort(groups[:count]), size)
        inverse = factors.pinv(rows[:, nodes])
        if count >= len(groups) or np.linalg.norm(inverse, 2) <= most:
            return nodes, inverse
        count *= 2
