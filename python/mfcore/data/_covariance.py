"""Covariances of inputs: their canonical form, roots, and the directions in which they are not isotropic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray

MOST_DIRECTIONS = 16  # of a subspace that reductions keep the coordinates of
_SAME = 1e-9  # relative difference of eigenvalues that count as equal, and of vectors that count as dependent


def covariance(value: Any, name: str, d: float) -> float | FloatArray:
    """Check a covariance: a number > 0, d numbers > 0 on a diagonal, or a positive definite matrix.

    A diagonal matrix becomes its diagonal, and equal entries of a diagonal become one number.
    """
    if not hasattr(value, "__len__") and check.as_numpy(value, name).ndim == 0:
        return check.number(value, name, above=0)
    given = check.array(value, name)
    if given.shape not in ((d,), (d, d)):
        raise ValueError(
            f"{name} must be a number, have d = {d:g} entries or be a (d, d) matrix, got shape {given.shape}"
        )
    cov = given.copy()
    if cov.ndim == 2:
        check_definite(cov, name)
        if np.count_nonzero(cov - np.diag(cov.diagonal())) == 0:
            cov = cov.diagonal().copy()
    elif not cov.min() > 0:
        raise ValueError(f"{name} must be > 0, got {cov.min():g} at [{cov.argmin()}]")
    if cov.ndim == 1 and np.ptp(cov) == 0:
        return float(cov[0])
    cov.flags.writeable = False
    return cov


def check_definite(cov: FloatArray, name: str) -> None:
    """Refuse a matrix that is not symmetric (to 1e-12 of its largest entry) and positive definite."""
    gap = np.abs(cov - cov.T)
    if gap.max() > 1e-12 * np.abs(cov).max():
        i, j = map(int, np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(
            f"{name} must be symmetric, got {cov[i, j]} at [{i}, {j}] and {cov[j, i]} at [{j}, {i}]"
        )
    smallest = float(np.linalg.eigvalsh(cov)[0])
    if not smallest > 0:
        raise ValueError(f"{name} must be positive definite, got smallest eigenvalue {smallest:.6g}")


def root_of(cov: FloatArray) -> FloatArray:
    """The symmetric root of a matrix, or the root of each number."""
    if cov.ndim < 2:
        return np.sqrt(cov)
    eigenvalues, vectors = np.linalg.eigh(cov)
    root = (vectors * np.sqrt(eigenvalues)) @ vectors.T
    return np.asarray(0.5 * (root + root.T))


def along(axes: FloatArray, cov: FloatArray) -> FloatArray:
    """The covariance of x in directions, the p rows of `axes`: (p, p)."""
    return np.asarray(rooted(cov, axes) @ axes.T)


def rooted(root: FloatArray, w: FloatArray) -> FloatArray:
    """Rows w to rows A w, A symmetric: a matrix, a diagonal or a number."""
    return np.asarray(w @ root if root.ndim == 2 else w * root)


def row_of_root(root: FloatArray) -> FloatArray:
    """The root as the samplers of the core take it: two-dimensional."""
    return np.atleast_2d(root)


@dataclass(frozen=True)
class Subspace:
    """A subspace that covariances leave as it is, and across which each is a multiple of the identity."""

    axes: FloatArray  # orthonormal rows, shape (p, m)
    roots: tuple[FloatArray, ...]  # of the covariances on it: (p, p) each, or a number
    outside: tuple[float, ...]  # standard deviations across it


@dataclass(frozen=True)
class Block:
    """A subspace on which every covariance is a multiple of the identity: of some coordinates, or of rows."""

    d: int
    coordinates: npt.NDArray[np.intp] | None = None
    rows: FloatArray | None = None  # orthonormal

    def __len__(self) -> int:
        found = self.rows if self.coordinates is None else self.coordinates
        return 0 if found is None else len(found)

    def axes_of(self, most: int | None) -> FloatArray:
        """Orthonormal rows in it: the first `most`, or rows that span it."""
        if self.rows is not None:
            return self.rows[:most]
        assert self.coordinates is not None
        return unit_rows(self.coordinates[:most], self.d)

    def projected(self, vectors: FloatArray) -> FloatArray:
        """The parts of rows in it."""
        if self.rows is not None:
            return np.asarray((vectors @ self.rows.T) @ self.rows)
        out = np.zeros_like(vectors)
        out[:, self.coordinates] = vectors[:, self.coordinates]
        return out

    def complement(self) -> FloatArray:
        """Orthonormal rows that span what is across it."""
        if self.rows is not None:
            return np.asarray(np.linalg.svd(self.rows)[2][len(self.rows) :])
        assert self.coordinates is not None
        return unit_rows(np.setdiff1d(np.arange(self.d), self.coordinates), self.d)


def unit_rows(coordinates: npt.NDArray[np.intp], d: int) -> FloatArray:
    """Rows of the identity."""
    check.memory(8.0 * len(coordinates) * d, "d", d)
    rows = np.zeros((len(coordinates), d))
    rows[np.arange(len(coordinates)), coordinates] = 1
    return rows


def isotropic_blocks(covs: Sequence[FloatArray], d: int) -> list[Block]:
    """The largest subspaces on which each covariance is a multiple of the identity, the largest last."""
    if any(cov.ndim == 2 for cov in covs):
        return _eigenspaces(covs, d)
    values = np.array([np.broadcast_to(cov, d) for cov in covs])
    _, which, counts = np.unique(values, axis=1, return_inverse=True, return_counts=True)
    by_size = np.argsort(counts, kind="stable")
    return [Block(d, coordinates=np.flatnonzero(which.ravel() == at)) for at in by_size]


def _eigenspaces(covs: Sequence[FloatArray], d: int) -> list[Block]:
    """Return the eigenspaces of a generic combination, as far as every covariance has them."""
    whole = [np.diag(np.broadcast_to(cov, d)) if cov.ndim < 2 else cov for cov in covs]
    generic = np.random.default_rng(0).uniform(0.5, 1.0, len(covs))
    sizes = [np.abs(cov).max() for cov in whole]
    mixed = sum(g * cov / size for g, cov, size in zip(generic, whole, sizes, strict=True))
    values, vectors = np.linalg.eigh(mixed)
    ends = np.flatnonzero(np.diff(values) > _SAME * values[-1]) + 1
    blocks = [part.T for part in np.split(vectors, ends, axis=1)]

    def isotropic(rows: FloatArray) -> bool:
        for cov, size in zip(whole, sizes, strict=True):
            seen = rows @ cov
            variance = float(rows[0] @ seen[0])
            if np.abs(seen - variance * rows).max() > _SAME * size:
                return False
        return True

    return [Block(d, rows=rows) for rows in sorted(filter(isotropic, blocks), key=len)]


def subspace(vectors: FloatArray, covs: Sequence[FloatArray], d: float) -> Subspace | None:
    """The least subspace with the vectors in it across which every covariance is a multiple of the identity.

    Args:
        vectors: Rows, shape (n, m), m the dimension d or, of isotropic covariances, the coordinates that the
            vectors use.
        covs: A number, diagonal or matrix each, as arrays.
        d: Dimension.

    Returns:
        None if there is none of at most `MOST_DIRECTIONS` dimensions.
    """
    m = vectors.shape[1]
    if all(cov.ndim == 0 for cov in covs):
        axes = _spanned(vectors)
        if len(axes) > MOST_DIRECTIONS:
            return None
        deviations = tuple(float(np.sqrt(cov)) for cov in covs)
        return Subspace(axes, tuple(np.array(s) for s in deviations), deviations)
    blocks = isotropic_blocks(covs, m)
    if not blocks:
        return None
    largest = blocks[-1]
    if m - len(largest) > MOST_DIRECTIONS:
        return None
    within = largest.projected(vectors)
    within[np.linalg.norm(within, axis=1) <= _SAME * np.linalg.norm(vectors, axis=1)] = 0  # rounding
    axes = _spanned(np.concatenate([vectors, within, largest.complement()]))
    if len(axes) > MOST_DIRECTIONS:
        return None
    inside = tuple(root_of(along(axes, cov)) for cov in covs)
    outside = tuple(float(np.sqrt(along(largest.axes_of(1), cov)[0, 0])) for cov in covs)
    return Subspace(axes, inside, outside)


def _spanned(vectors: FloatArray) -> FloatArray:
    """Orthonormal rows that span the rows, the first ones first (Gram and Schmidt, each vector twice)."""
    axes = np.empty((0, vectors.shape[1]))
    for vector in vectors:
        size = np.linalg.norm(vector)
        rest = vector - (vector @ axes.T) @ axes
        if np.linalg.norm(rest) <= _SAME * size:
            continue
        rest /= np.linalg.norm(rest)
        rest -= (rest @ axes.T) @ axes
        axes = np.concatenate([axes, rest[None] / np.linalg.norm(rest)])
    return axes


def first_axes(axes: FloatArray) -> int | FloatArray:
    """Axes as a `Split` takes them: their number if they are the first coordinates."""
    p = len(axes)
    return p if np.count_nonzero(axes) == p and bool((axes.diagonal() == 1).all()) else axes


def shared_form(covs: Sequence[float | FloatArray], d: int) -> FloatArray:
    """Covariances as one array, (K,), (K, d) or (K, d, d): all in the largest form that one of them has."""
    rank = max(np.ndim(cov) for cov in covs)
    if rank == 0:
        out = np.array(covs, dtype=np.float64)
    elif rank == 1:
        out = np.array([np.broadcast_to(cov, d) for cov in covs])
    else:
        check.memory(8.0 * len(covs) * d * d, "covariances", len(covs))
        out = np.array([np.diag(np.broadcast_to(cov, d)) if np.ndim(cov) < 2 else cov for cov in covs])
    out.flags.writeable = False
    return out
