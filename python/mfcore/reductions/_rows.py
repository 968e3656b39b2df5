"""Choose the rule of each direction z and each norm s of a symmetry, and combine them to rows [z, s].

Where σ is a polynomial, so are features, and the Gauss rules that are exact for the products of y and
features need few nodes. Elsewhere nodes are chosen for 1e-12 in V and U.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..data._symmetry import Symmetry
from ..init._blocks import SpherePoint
from ._node_rules import (
    SMOOTH_GRID,
    chi,
    chi_beside_kinks,
    counts,
    importance,
    kinked_chi,
    kinked_direction,
    pruned,
    tensor,
)

if TYPE_CHECKING:
    from ..model import Model

MAX_CUBE = 16  # directions of a hypercube that are enumerated


@dataclass(frozen=True)
class Rows:
    """Nodes [z, s] of x before it is stretched, and the panels that features are projected in."""

    nodes: FloatArray
    weights: FloatArray
    panels: int | None = None  # of s
    along: tuple[int, float] | None = None  # of z: how many panels, and where they end
    group: int = 0  # nodes in the panels of z


def kinked(model: Model) -> bool:
    """Tell whether features have kinks."""
    return len(model.network.activation.kinks) > 0


def degree(model: Model) -> int | None:
    """The degree of σ if it is a polynomial."""
    known = model.network.activation._core.facts
    return known.degree if known.is_polynomial else None


def rows_of(model: Model, symmetry: Symmetry, dims: tuple[float, ...], n: int | None, finer: bool) -> Rows:
    """The rows for radii of these dimensions, with `n` nodes per coordinate if the user gives a number."""
    p, kinks, power = len(symmetry.directions), kinked(model), degree(model)
    projected = kinks and model.network.activation.pieces is not None  # of others kinks remain
    sphere = symmetry.inputs == "sphere" and not any(map(math.isinf, dims))
    if projected and n is None and p == 1 and symmetry.inputs != "hypercube" and not sphere:
        return _along(symmetry, dims, finer)
    if sphere:
        return _sphere(symmetry, dims, power, n, finer)
    z, w, heavy = _directions(symmetry, power, n, finer)
    if not dims:
        return Rows(z, w)
    alone = p == 0 and len(dims) == 1
    panels = kinked_chi(dims[0], n, alone=alone, finer=finer) if projected and len(dims) == 1 else None
    if panels is None:
        norms = [chi(dim, n, alone=alone, kinked=kinks, finer=finer, degree=power) for dim in dims]
        points, weights = tensor([(z, w), *norms])
        return Rows(*pruned(points, weights, _beside(heavy, len(weights))))
    s, w_s = panels.rule
    rows = np.column_stack([np.repeat(z, len(s), axis=0), np.tile(s, len(z))])
    return Rows(rows, np.multiply.outer(w, w_s).ravel(), panels=panels.panels)


def _along(symmetry: Symmetry, dims: tuple[float, ...], finer: bool) -> Rows:
    """One direction of Gaussian x and features with kinks: projected in panels of the direction."""
    (nodes,) = counts(SMOOTH_GRID, 1, symmetry.degrees, None, None, finer=False)
    fixed, weights = _core.gauss_hermite(nodes)
    along = kinked_direction(fixed, weights * _importance(symmetry, fixed[:, None], weights), finer)
    z, w = along.rule
    panels = (along.panels, along.end)
    if not dims:
        return Rows(z[:, None], w, along=panels, group=len(z))
    s, w_s = chi_beside_kinks(dims[0], finer)
    rows = np.column_stack([np.tile(z, len(s)), np.repeat(s, len(z))])
    return Rows(rows, np.multiply.outer(w_s, w).ravel(), along=panels, group=len(z))


def _sphere(
    symmetry: Symmetry, dims: tuple[float, ...], power: int | None, n: int | None, finer: bool
) -> Rows:
    """|x|² = d ties the norm across the directions to z: one row [z, |x⊥|] per node."""
    p = len(symmetry.directions)
    point = SpherePoint(math.sqrt(p + sum(dims)), p, dims)
    # Averages over one coordinate leave polynomials of the whole degree in those before it.
    total = None if symmetry.degrees is None else (sum(symmetry.degrees),)
    (nodes,) = set(counts(SMOOTH_GRID, p, total and total * p, power, n, finer))
    points, weights = point.quadrature(nodes)
    heavy = None if power is not None else _importance(symmetry, points[:, :p], weights)
    return Rows(*pruned(points, weights, heavy))


def _directions(
    symmetry: Symmetry, power: int | None, n: int | None, finer: bool
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Nodes z of the directions, their weights, and their importance: None if all count."""
    p = len(symmetry.directions)
    if p == 0:
        return np.empty((1, 0)), np.ones(1), None if power is not None else np.ones(1)
    if symmetry.inputs == "hypercube":
        return (*_cube(p), np.ones(2**p))
    found = counts(SMOOTH_GRID, p, symmetry.degrees, power, n, finer)
    z, w = tensor([_core.gauss_hermite(nodes) for nodes in found])
    if power is not None:
        return (*pruned(z, w, None), None)
    heavy = _importance(symmetry, z, w)
    points, weights = pruned(z, w, heavy)
    return points, weights, pruned(heavy[:, None], w, heavy)[0][:, 0]


def _cube(p: int) -> tuple[FloatArray, FloatArray]:
    if p > MAX_CUBE:
        raise ValueError(f"data must have at most {MAX_CUBE} directions on the hypercube, got {p}")
    cube = np.stack(np.meshgrid(*[[-1.0, 1.0]] * p, indexing="ij"), axis=-1).reshape(-1, p)
    return cube, np.full(len(cube), 0.5**p)


def _importance(symmetry: Symmetry, z: FloatArray, weights: FloatArray) -> FloatArray:
    z = np.ascontiguousarray(z)
    return importance(weights, [part.label(z) for part in symmetry.parts if callable(part.label)])


def _beside(heavy: FloatArray | None, n: int) -> FloatArray | None:
    """The importance of n nodes, z with all norms."""
    return None if heavy is None else np.repeat(heavy, n // len(heavy))
