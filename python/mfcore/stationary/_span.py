"""Compress features at many points (eq. (2.6)): √p_q Φ_q(z) ≈ Σ_k F_k(z) W_kq with orthonormal rows of W.

With h = W√p f the potential is Ψ(z) = F(z)·(h − t), t = W√p y, and R = |h − t|² + what W does not reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base import factors
from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ..reductions._tables import Table

TOLERANCE = 1e-12  # error of √p_q Φ_q, relative to the largest
SAMPLE = 1024  # points whose features determine W
MANY = 128  # beyond so many nodes `Table.compress`, which finds the least rank, takes too long
CHUNK = 1 << 21  # numbers held at a time


@dataclass(frozen=True, eq=False)
class Span:
    """Compressed features F at given points, and the rows W."""

    values: FloatArray  # F, (n, K)
    rows: FloatArray | None  # W, (K, Q); None for the identity
    target: FloatArray  # t = W√p y
    scale: FloatArray  # √p
    unreached: float  # |√p y|² − |t|² + τ²: the part of R that no measure reaches

    def moments(self, f: FloatArray) -> FloatArray:
        """h = W√p f of values f at the nodes."""
        scaled = self.scale * f
        return scaled if self.rows is None else self.rows @ scaled

    def function(self, h: FloatArray) -> FloatArray:
        """Values f at the nodes with moments h: the inverse of `moments` on the span."""
        scaled = h if self.rows is None else h @ self.rows
        return np.asarray(scaled / self.scale)


def span(reduced: ReducedModel, points: FloatArray) -> Span:
    """Compress the features of `reduced` at `points`, as far as nothing is lost but rounding."""
    scale = np.sqrt(reduced.weights)
    rows = _rows(reduced, points, scale)
    values, lost, largest = _project(reduced, points, scale, rows)
    if lost > TOLERANCE * largest:  # kinks between the points sampled
        rows = None
        values, _, _ = _project(reduced, points, scale, None)
    y = scale * reduced.targets
    target = y if rows is None else rows @ y
    beyond = 0.0 if rows is None else float(np.square(y - target @ rows).sum())
    return Span(values, rows, target, scale, beyond + reduced.noise)


def _rows(reduced: ReducedModel, points: FloatArray, scale: FloatArray) -> FloatArray | None:
    """Orthonormal rows that span the features at a sample of the points; None if that takes as many rows
    as nodes.
    """
    sample = points[:: max(1, len(points) // SAMPLE)]
    if len(scale) > MANY:
        _, size, right = factors.svd(reduced.features(sample) * scale)
        rank = max(1, int((size > 0.1 * TOLERANCE * size[0]).sum()))
        return None if rank == len(scale) else np.ascontiguousarray(right[:rank])
    table = Table((sample[:, 0],), reduced.features(sample), reduced.weights)
    coefficients = table.compress(0.1 * TOLERANCE).coefficients * scale
    if len(coefficients) == len(scale):
        return None
    return np.ascontiguousarray(np.linalg.qr(coefficients.T)[0].T)


def _project(
    reduced: ReducedModel, points: FloatArray, scale: FloatArray, rows: FloatArray | None
) -> tuple[FloatArray, float, float]:
    """F, the largest error of F W, and the largest feature."""
    values = np.empty((len(points), len(scale) if rows is None else len(rows)))
    step = max(1, CHUNK // len(scale))
    lost = largest = 0.0
    for at in range(0, len(points), step):
        part = reduced.features(points[at : at + step]) * scale
        largest = max(largest, float(np.abs(part).max()))
        if rows is None:
            values[at : at + step] = part
            continue
        values[at : at + step] = part @ rows.T
        lost = max(lost, float(np.abs(part - values[at : at + step] @ rows).max()))
    return values, lost, largest
