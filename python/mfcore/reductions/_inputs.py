"""Inputs as a reduction looks at them: where its nodes are, and features at any other input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..activations import Activation
from ..data._symmetry import Split
from ._nodes import Nodes
from ._project import coordinates_of
from ._sphere import completed

if TYPE_CHECKING:
    from ..model import Model

_BLOCK = 1 << 22  # most numbers of features held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Inputs:
    """The coordinates of x that features depend on: Πx, or x itself, then norms of the parts across.

    At d = ∞ norms are divided by √d: there they are known, and may be left out where all nodes have the same.

    Args:
        nodes: The nodes in these coordinates, shape (Q, m).
        activation, has_a, has_b, dims, scale: As in `_core.ReducedFeatures`.
        split: The parts of x; None where the coordinates are x itself, or d is infinite.
        present: Which coordinates of the split there are; parts of dimension 0 have none.
        sphere: Points leave out their radius, because |w| = 1.
    """

    nodes: FloatArray
    activation: Activation
    has_a: bool
    has_b: bool
    dims: tuple[float, ...]
    scale: float
    split: Split | None
    present: tuple[int, ...]
    sphere: bool

    def of(self, X: FloatArray) -> FloatArray:
        """The coordinates of inputs x, shape (n, d) to (n, m)."""
        return X if self.split is None else coordinates_of(self.split, X)[:, list(self.present)]

    def completed(self, z: FloatArray) -> FloatArray:
        """Rows of coordinates, with those that all nodes share if they are left out."""
        m = self.nodes.shape[1]
        shared = [c for c in range(m) if np.ptp(self.nodes[:, c]) == 0]
        rest = [c for c in range(m) if c not in shared]
        if z.shape[1] == m:
            return z
        if not rest or z.shape[1] != len(rest):
            want = f"(n, {m})" + (f" or (n, {len(rest)})" if 0 < len(rest) < m else "")
            raise ValueError(
                f"X must have shape {want}, the coordinates of ReducedModel.nodes, for predictions of a "
                f"reduced model, got {z.shape}"
            )
        full = np.tile(self.nodes[0], (len(z), 1))
        full[:, rest] = z
        return full

    def predict(self, points: FloatArray, weights: FloatArray, z: FloatArray) -> FloatArray:
        """f(z) = ∫Φ_z dρ at rows of coordinates, shape (n,)."""
        if self.sphere:
            points = completed(points, self.has_a + self.has_b)
        value = np.empty(len(z))
        block = max(1, _BLOCK // len(points))
        for first in range(0, len(z), block):
            rows = np.ascontiguousarray(z[first : first + block])
            features = _core.ReducedFeatures(
                self.activation._core,
                has_a=self.has_a,
                has_b=self.has_b,
                dims=list(self.dims),
                nodes=rows,
                panels=None,
                along=None,
                scale=self.scale,
            )
            value[first : first + block] = weights @ features.features(points)
        return value


def inputs_of(model: Model, found: Nodes) -> Inputs:
    """The inputs of a reduction with these nodes."""
    network, law = model.network, model.data
    split, present = law._split(), tuple(range(found.rows.shape[1]))
    if found.directions[:1] == ("w1",) or np.isinf(law.d):
        split = None
    if split is not None:
        names = (*found.directions, *found.radii)
        present = tuple(j for j, name in enumerate((*split.inside, split.outside)) if name in names)
    sigma, has_a, has_b = network.activation, network.has_a, network.has_b
    return Inputs(found.rows, sigma, has_a, has_b, found.dims, network.scale, split, present, network.sphere)
