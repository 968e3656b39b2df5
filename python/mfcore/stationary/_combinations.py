"""Features that are combinations of those at a few of the nodes: √p_q Φ_q(z) ≈ Σ_k F_k(z) W_kq.

`_compact` finds W; here F is evaluated, at K nodes chosen by pivots where features can be evaluated at some
of the nodes alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
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
    """Tell whether such features can be evaluated at some of the nodes, in groups of `together`."""
    return isinstance(owner, Features) and len(owner.rows) > owner.together


def nodes_of(groups: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """Nodes of groups of equal size."""
    return np.asarray((groups[:, None] * size + np.arange(size)).ravel())


def at_nodes(owner: Features, nodes: npt.NDArray[np.intp], alone: bool = False) -> Features:
    """The same features at some of the nodes: in whole groups, or `alone` without averages over panels."""
    activation, has_a, has_b, dims, given, panels, along, scale, centres = owner._arguments
    if alone:
        panels, along, centres = None, None, ()
    if centres:
        groups = nodes[:: owner.together] // owner.together
        centres = tuple(centres[group] for group in groups)
    return Features(activation, has_a, has_b, dims, given[nodes], panels, along, scale, centres)


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


@dataclass(frozen=True, eq=False)
class _Times:
    """The function z ↦ Φ(z) · matrix; points that differ in the output weight a only are evaluated once.

    So points of a grid that differ in a only are one.
    """

    features: Callable[[FloatArray], FloatArray]
    matrix: FloatArray
    owner: Any

    def __call__(self, z: FloatArray) -> FloatArray:
        """Φ(z) · matrix, (n, K)."""
        if not isinstance(self.owner, Features) or not self.owner._arguments[1]:
            return self.features(z) @ self.matrix
        others, which = np.unique(z[:, 1:], axis=0, return_inverse=True)
        points = np.column_stack([np.ones(len(others)), others])
        step = max(1, CHUNK // len(self.matrix))
        starts = range(0, max(len(points), 1), step)
        once = np.concatenate([self.features(points[at : at + step]) @ self.matrix for at in starts])
        return np.asarray(z[:, :1] * once[which.ravel()])


@dataclass(frozen=True, eq=False)
class _Slopes:
    """The function z ↦ ∇Φ(z) · matrix, (n, K, k) from gradients (n, Q, k)."""

    gradients: Callable[[FloatArray], FloatArray]
    matrix: FloatArray

    def __call__(self, z: FloatArray) -> FloatArray:
        """∇Φ(z) · matrix, (n, K, k)."""
        return np.swapaxes(np.swapaxes(self.gradients(z), 1, 2) @ self.matrix, 1, 2)


def folded(reduced: ReducedModel, vector: FloatArray) -> ReducedModel:
    """A model with one node, of which the feature is Φ(z) · vector.

    For single points it takes a product of the matrix of a combination with the vector once, in place of
    one with the features at every point, which costs ten times as much as the features.
    """
    plain: Any = reduced.features
    slope: Any = reduced.gradients
    values, slopes = plain.function, slope.function
    column = vector[:, None]
    if isinstance(values, _Times) and (slopes is None or isinstance(slopes, _Slopes)):
        values = _Times(values.features, values.matrix @ column, None)
        slopes = None if slopes is None else _Slopes(slopes.gradients, slopes.matrix @ column)
    else:
        values = _Times(plain, column, None)
        slopes = None if slopes is None else _Slopes(slope, column)
    return dataclasses.replace(
        reduced, weights=np.ones(1), targets=np.zeros(1), features=values, gradients=slopes
    )


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
        gradients = None if slope.function is None else _Slopes(slope, matrix)
        return _Times(plain, matrix, owner), gradients
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
        _Times(fewer.features, matrix, owner),
        _Slopes(fewer.gradients, matrix),
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
