"""Directions that labels depend on, from the covariance of inputs with large labels: filtered PCA."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .._base import check, factors
from .._base.check import FloatArray

_SHARES = 0.5 ** (np.arange(16, 0, -1) / 2)  # of the samples, kept by the thresholds that are tried
_FEWEST = 20  # samples kept


def filtered_pca(
    X: npt.ArrayLike, y: npt.ArrayLike, rank: int, *, threshold: float | None = None
) -> FloatArray:
    """Estimate the directions on which y depends, for inputs x ~ N(0, I_d), from about d samples.

    Inputs whose label is large have a covariance that differs from I along these directions alone. The first
    row is the leading eigenvector of Σ_i 1(|y_i| > τ)(x_i x_iᵀ − I), eq. (12.5). Each further one is the
    leading eigenvector across the rows found, of samples that also have |⟨v, x_i⟩| ≤ 1 for these rows v
    (trimmed PCA, eq. (12.6)). This needs no correlation of y with polynomials of low degree: it finds the
    direction of targets such as z² − 3, on which the covariance weighted by y² is I.

    Args:
        X: Inputs, shape (n, d), of mean 0 and covariance I. Not modified.
        y: Labels, shape (n,).
        rank: Number of directions wanted, at most d. Rows beyond those that y depends on are noise.
        threshold: τ ≥ 0. None: in each step the one whose eigenvalue promises the largest cosine with a
            direction of the target, eq. (12.7), of 16 that keep 70 % of the samples to 0.4 %.

    Returns:
        Orthonormal rows, shape (rank, d), each with the sign that makes its largest entry positive.

    Raises:
        ValueError: Fewer than two samples are left by the threshold and the rows found.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> law = mf.data.MultiIndex(40, lambda z: z**2 - 3, directions=1)
        >>> X, y = law.draw(4000, rng=0)
        >>> v = mf.theory.filtered_pca(X, y, rank=1)
        >>> v.shape, bool(abs(v[0, 0]) > 0.95)
        ((1, 40), True)
    """
    inputs = check.array(X, "X", shape=(None, None))
    n, d = inputs.shape
    size = np.abs(check.array(y, "y", shape=(n,)))
    rank = check.integer(rank, "rank", at_least=1, at_most=d)
    if threshold is not None:
        threshold = check.number(threshold, "threshold", at_least=0)
    check.squares(inputs, "X")
    check.memory(16.0 * inputs.size + 24.0 * d * d, "X", inputs)
    found = np.zeros((0, d))
    near = np.ones(n, dtype=bool)
    while len(found) < rank:
        # Coordinates across the rows found: there the next direction is.
        across = np.linalg.qr(found.T, mode="complete")[0][:, len(found) :]
        rows = factors.product(inputs[near], across) if len(found) else inputs
        sizes = size[near]
        vector = _best(rows, sizes) if threshold is None else _above(rows, sizes, threshold)
        row = across @ vector
        row *= np.sign(row[np.argmax(np.abs(row))])
        found = np.vstack([found, row])
        near &= np.abs(inputs @ row) <= 1
    return found


def _above(rows: FloatArray, sizes: FloatArray, threshold: float) -> FloatArray:
    """The leading eigenvector of rows whose labels are above the threshold."""
    kept = rows[sizes > threshold]
    if len(kept) < 2:
        raise ValueError(
            f"threshold must leave at least 2 samples near 0 along the rows found, got {threshold:g} that "
            f"leaves {len(kept)} of {len(rows)}"
        )
    return factors.leading(factors.product(kept.T, kept))[1]


def _best(rows: FloatArray, sizes: FloatArray) -> FloatArray:
    """The leading eigenvector at the threshold that promises the largest cosine."""
    order = np.argsort(-sizes, kind="stable")
    rows, falling = rows[order], sizes[order]
    best, chosen = (-math.inf, -math.inf), None
    second, m = np.zeros((rows.shape[1], rows.shape[1])), 0
    for share in _SHARES:
        at = int(share * len(rows))
        kept = int(np.searchsorted(-falling, -falling[at], side="left")) if at < len(rows) else 0
        if kept <= m or kept < min(_FEWEST, len(rows) - 1):  # equal sizes pass a threshold together
            continue
        second += factors.product(rows[m:kept].T, rows[m:kept])
        m = kept
        value, vector = factors.leading(second)
        score = _promise(value / m, rows.shape[1] / m)
        if score > best:
            best, chosen = score, vector
    if chosen is None:
        raise ValueError(
            f"y must have absolute values that differ on at least 3 samples near 0 along the rows found, got "
            f"{len(np.unique(sizes))} values on {len(rows)}"
        )
    return chosen


def _promise(value: float, aspect: float) -> tuple[float, float]:
    """The squared cosine of eq. (12.7), and the eigenvalue over the edge of noise to compare zeros by."""
    edge = (1 + math.sqrt(aspect)) ** 2
    if value <= edge:
        return 0.0, value / edge
    half = (value - 1 - aspect) / 2  # value = (1 + s)(1 + aspect/s) has the larger root s
    s = half + math.sqrt(half * half - aspect)
    return (1 - aspect / s**2) / (1 + aspect / s), value / edge
