"""`GaussianMixture`: classes of Gaussian inputs with means and covariances of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ._covariance import (
    Block,
    Subspace,
    along,
    covariance,
    first_axes,
    isotropic_blocks,
    root_of,
    rooted,
    row_of_root,
    shared_form,
    subspace,
)
from ._law import DataLaw, dimension, own_array, set_field
from ._parts import GaussianPart
from ._symmetry import Part, Radius, Split, Symmetry


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(DataLaw):
    """Classes: x | class k ~ N(means[k], covariances[k]) and y = labels[k].

    Its reduction has the coordinates of w along the span of the means, and the norm of the rest, where each
    covariance is a multiple of the identity; or is one across a subspace that contains the means, which then
    takes the place of their span. Its nodes are for up to four such coordinates. With means 0 and two blocks
    in each of which covariances are multiples of the identity, it has the norms of w in both.

    Args:
        means: Shape (K, m), one row a class.
        covariances: A number c for c·I in all classes; or one entry a class: a number, d numbers (the
            diagonal), or a positive definite (d, d) matrix.
        labels: y of each class, shape (K,).
        weights: Probabilities of the classes, > 0 and of sum 1; by default all the same.
        d: Dimension, by default m. If it is larger, or ``math.inf`` for the limit in high dimension, means
            are 0 in the coordinates after the first m.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.GaussianMixture([[2.0, 0.0], [-1.0, 1.0]], [1.0, 0.25], labels=[1.0, -1.0], d=40)
        >>> law
        GaussianMixture(means=<array 2×2>, covariances=<array 2>, labels=<array 2>, d=40)
        >>> mf.Model(law, mf.Network(mf.activations.relu, output="trained")).reduce().coordinates
        ('a', 's1', 's2', 'r')
    """

    means: FloatArray
    covariances: FloatArray
    labels: FloatArray
    weights: FloatArray | None = None
    d: float = 0

    if TYPE_CHECKING:
        # What is taken; the fields are what is kept of it.
        def __init__(
            self,
            means: npt.ArrayLike,
            covariances: float | Sequence[npt.ArrayLike] | npt.ArrayLike,
            labels: npt.ArrayLike,
            weights: npt.ArrayLike | None = None,
            d: float | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        means = own_array(self.means, "means", (None, None))
        check.squares(means, "means")
        set_field(self, "means", means)
        given: Any = self.d  # None or left out: as long as the means
        set_field(self, "d", dimension(given, infinite=True) if given else means.shape[1])
        if self.d < means.shape[1]:
            raise ValueError(f"d must be at least the {means.shape[1]} columns of means, got {self.d}")
        labels = own_array(self.labels, "labels", (len(means),))
        check.squares(labels, "labels")
        set_field(self, "labels", labels)
        set_field(self, "covariances", self._checked_covariances(self.covariances))
        if self.weights is not None:
            set_field(self, "weights", _weights(self.weights, len(means)))

    def target_power(self) -> float:
        """E y² = Σ_k weights[k]·labels[k]².

        Examples:
            >>> import mfcore as mf
            >>> law = mf.data.GaussianMixture([[0.0], [1.0]], 1.0, labels=[0, 2], weights=[0.25, 0.75])
            >>> law.target_power()
            3.0
        """
        return float(self._shares @ self.labels**2)

    def _checked_covariances(self, given: Any) -> FloatArray:
        K = len(self.means)
        if not hasattr(given, "__len__") and check.as_numpy(given, "covariances").ndim == 0:
            given = [given] * K
        if len(given) != K:
            raise ValueError(f"covariances must have one entry for each of {K} classes, got {len(given)}")
        each = [covariance(entry, f"covariances[{k}]", self.d) for k, entry in enumerate(given)]
        return shared_form(each, 0 if math.isinf(self.d) else int(self.d))

    @property
    def _shares(self) -> FloatArray:
        return np.full(len(self.means), 1 / len(self.means)) if self.weights is None else self.weights

    @cached_property
    def _roots(self) -> list[FloatArray]:
        return [root_of(cov) for cov in self.covariances]

    def _padded(self, d: int) -> FloatArray:
        """The means with all their zeros, shape (K, d)."""
        K, m = self.means.shape
        check.memory(8.0 * K * d, "means", K)
        return self.means if d == m else np.hstack([self.means, np.zeros((K, d - m))])

    def _make_sampler(self, d: int) -> _core.Sampler:
        roots = [row_of_root(root) for root in self._roots]
        return _core.gaussian_mixture(self._padded(d), roots, self.labels, self._shares)

    def _parts(self) -> list[GaussianPart] | None:
        if math.isinf(self.d):
            return None
        d = int(self.d)
        found = zip(self._shares, self._padded(d), self._roots, self.labels, strict=True)
        return [_part(float(share), mean, root, float(y), d) for share, mean, root, y in found]

    _reduced_if: ClassVar[str] = (
        "with covariances that are isotropic across a few directions, those of the means among them"
    )

    @cached_property
    def _subspace(self) -> Subspace | None:
        isotropic = self.covariances.ndim == 1
        vectors = self.means if isotropic else self._padded(int(self.d))
        return subspace(vectors, list(self.covariances), self.d)

    @cached_property
    def _two_blocks(self) -> tuple[Block, Block] | None:
        """Two blocks that are all there is: no means, and covariances isotropic in each."""
        if self.means.any() or self.covariances.ndim == 1:
            return None
        blocks = isotropic_blocks(list(self.covariances), int(self.d))
        return (blocks[0], blocks[1]) if len(blocks) == 2 and sum(map(len, blocks)) == self.d else None

    def _symmetry(self) -> Symmetry | None:
        if self._two_blocks is not None:
            return self._of_two_blocks(*self._two_blocks)
        found = self._subspace
        if found is None:
            return None
        p = len(found.axes)
        shifts = self._padded(found.axes.shape[1]) @ found.axes.T
        parts = []
        for share, y, shift, root, s in zip(
            self._shares, self.labels, shifts, found.roots, found.outside, strict=True
        ):
            mixing = None if root.size == 1 else root
            stretch = (float(root.ravel()[0]) if mixing is None else 1.0,) * p + (s,)
            parts.append(Part(float(share), stretch, float(y), mixing, tuple(map(float, shift))))
        return Symmetry(_names(p), (Radius("r", self.d - p),), tuple(parts), degrees=(0,) * p)

    def _of_two_blocks(self, first: Block, second: Block) -> Symmetry:
        axes = np.concatenate([first.axes_of(1), second.axes_of(1)])
        found = zip(self._shares, self.covariances, self.labels, strict=True)
        parts = tuple(
            Part(float(share), tuple(np.sqrt(along(axes, cov).diagonal()).tolist()), float(y))
            for share, cov, y in found
        )
        return Symmetry((), (Radius("r1", len(first)), Radius("r2", len(second))), parts)

    def _split(self) -> Split | None:
        if self._two_blocks is not None:
            return Split(first_axes(self._two_blocks[0].axes_of(None)), True, ("r1",), "r2")
        found = self._subspace
        if found is None:
            return None
        axes = found.axes
        if not math.isinf(self.d) and axes.shape[1] < self.d:
            axes = np.hstack([axes, np.zeros((len(axes), int(self.d) - axes.shape[1]))])
        return Split(first_axes(axes), False, _names(len(axes)), "r")


def _names(p: int) -> tuple[str, ...]:
    return tuple(f"s{j + 1}" for j in range(p))


def _part(share: float, mean: FloatArray, root: FloatArray, y: float, d: int) -> GaussianPart:
    scales = ((d, float(root)),) if root.ndim == 0 else None
    return GaussianPart(share, lambda w: rooted(root, w), y, scales=scales, mean=mean if mean.any() else None)


def _weights(value: Any, K: int) -> FloatArray:
    weights = own_array(value, "weights", (K,))
    if not weights.min() > 0 or abs(weights.sum() - 1) > 1e-12:
        raise ValueError(
            f"weights must be > 0 and sum to 1, got smallest {weights.min():g}, sum {weights.sum():.15g}"
        )
    return weights
