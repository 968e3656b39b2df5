"""From the symmetry that a law describes to data nodes: rows [z_q, s_q] of averaged inputs, with labels.

The formulas are in docs/mathematics.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..data import KINDS, DataLaw, Dataset
from ..data._links import hermite_table
from ..data._parts import GaussianPart, HermiteLabel, NetworkLabel
from ..data._symmetry import Radius, Symmetry
from ..init._blocks import SpherePoint
from ._node_rules import (
    PLAIN_GRID,
    SMOOTH_GRID,
    chi,
    chi_beside_kinks,
    count,
    kinked_chi,
    kinked_direction,
    pruned,
    tensor,
)

if TYPE_CHECKING:
    from ..model import Model

MAX_PLAIN_ROW = 3  # rows of parameters so short need no symmetry
MAX_CUBE = 16  # directions of a hypercube that are enumerated


@dataclass(frozen=True)
class Nodes:
    """Rows [z_q, s_q] of averaged inputs: P directions, and a radius for each of `dims`."""

    directions: tuple[str, ...]
    radii: tuple[str, ...]
    dims: tuple[float, ...]  # of the averages; inf in the limit
    rows: FloatArray
    weights: FloatArray
    targets: FloatArray
    shares: tuple[float, ...] = (1.0,)  # of |w|² in the radii at d = inf
    noise: float = 0.0
    panels: int | None = None  # of s, if features are projections in them
    along: int | None = None  # of the one direction, if features are projections in these
    own_dims: tuple[float, ...] = ()  # as dims, at the law's own d
    exact: bool = False  # the nodes are the law itself


def nodes_of(model: Model, limit: bool, n: int | None, finer: bool = False) -> Nodes:
    """The nodes of the law of `model`; raises ValueError if no reduction is known."""
    law = model.data
    symmetry = law._symmetry()
    if symmetry is not None:
        radii = tuple(r for r in symmetry.radii if r.dim > 0 and r.share > 0)
        dims = tuple(math.inf if limit else r.dim for r in radii)
        if symmetry.inputs != "hypercube" or all(map(math.isinf, dims)):
            return _mixture(law, symmetry, radii, dims, _rows(model, symmetry, dims, n, finer))
        if not (_short(model) and law._nodes):
            raise ValueError(
                f"data must have d=inf to be reduced on the hypercube, got d={law.d}: across its directions "
                "the cube is not rotation invariant, and the reduction is exact only as d → ∞; "
                "model.reduce(limit=True) uses that limit"
            )
    if _short(model):
        return _plain(model, n, finer)
    if isinstance(law, Dataset):
        raise ValueError(
            f"data must have a symmetry, which leaves the limit few coordinates, got {law!r}: without one, "
            f"neurons may have at most {MAX_PLAIN_ROW} parameters, and these have {model.row}. For the limit "
            "use mf.Nonlinear(N, mf.Particles(20 * N)), which runs on any data, as networks do"
        )
    raise ValueError(
        f"data must have a symmetry to be reduced, got {law!r}; laws with a reduction: {_reduced_laws()}; "
        f"or, with at most {MAX_PLAIN_ROW} parameters per neuron, any finite or Gaussian law. Without "
        "one mf.SGD, mf.GD and mf.Particles run, and mf.Nonlinear(N, mf.Particles(20 * N)) for the limit"
    )


def _reduced_laws() -> str:
    laws = [law for law in KINDS.values() if law._symmetry is not DataLaw._symmetry]
    return ", ".join(f"{law.__name__} {law._reduced_if}".rstrip() for law in laws)


def kinked(model: Model) -> bool:
    """Whether features have kinks."""
    return len(model.network.activation.kinks) > 0


def _short(model: Model) -> bool:
    return model.row is not None and model.row <= MAX_PLAIN_ROW


@dataclass(frozen=True)
class Rows:
    """Nodes [z, s] of x before it is stretched, and the panels that features are projected in."""

    nodes: FloatArray
    weights: FloatArray
    panels: int | None = None  # of s
    along: int | None = None  # of z


def _rows(model: Model, symmetry: Symmetry, dims: tuple[float, ...], n: int | None, finer: bool) -> Rows:
    p, kinks = len(symmetry.directions), kinked(model)
    projected = kinks and model.network.activation.pieces is not None  # of others kinks remain
    sphere = symmetry.inputs == "sphere" and not any(map(math.isinf, dims))
    if projected and n is None and p == 1 and symmetry.inputs != "hypercube" and not sphere:
        return _along(dims, finer)
    if sphere:
        # |x|² = d ties the norm across the directions to z: one row [z, |x⊥|] per node.
        point = SpherePoint(math.sqrt(p + sum(dims)), p, dims)
        return Rows(*pruned(*point.quadrature(count(SMOOTH_GRID, p, n, finer))))
    z, w = _directions(symmetry, n, finer)
    if not dims:
        return Rows(z, w)
    alone = p == 0 and len(dims) == 1
    panels = kinked_chi(dims[0], n, alone=alone, finer=finer) if projected and len(dims) == 1 else None
    if panels is None:
        norms = [chi(dim, n, alone=alone, kinked=kinks, finer=finer) for dim in dims]
        return Rows(*tensor([(z, w), *norms]))
    s, w_s = panels.rule
    rows = np.column_stack([np.repeat(z, len(s), axis=0), np.tile(s, len(z))])
    return Rows(rows, np.multiply.outer(w, w_s).ravel(), panels=panels.panels)


def _along(dims: tuple[float, ...], finer: bool) -> Rows:
    """One direction of Gaussian x and features with kinks: projected in panels of the direction."""
    along = kinked_direction(finer)
    z, w = along.rule
    if not dims:
        return Rows(z[:, None], w, along=along.panels)
    s, w_s = chi_beside_kinks(dims[0], finer)
    rows = np.column_stack([np.tile(z, len(s)), np.repeat(s, len(z))])
    return Rows(rows, np.multiply.outer(w_s, w).ravel(), along=along.panels)


def _directions(symmetry: Symmetry, n: int | None, finer: bool) -> tuple[FloatArray, FloatArray]:
    p = len(symmetry.directions)
    if p == 0:
        return np.empty((1, 0)), np.ones(1)
    if symmetry.inputs != "hypercube":
        return tensor([_core.gauss_hermite(count(SMOOTH_GRID, p, n, finer))] * p)
    if p > MAX_CUBE:
        raise ValueError(f"data must have at most {MAX_CUBE} directions on the hypercube, got {p}")
    cube = np.stack(np.meshgrid(*[[-1.0, 1.0]] * p, indexing="ij"), axis=-1).reshape(-1, p)
    return cube, np.full(len(cube), 0.5**p)


def _mixture(
    law: DataLaw,
    symmetry: Symmetry,
    radii: tuple[Radius, ...],
    dims: tuple[float, ...],
    rows: Rows,
) -> Nodes:
    """The nodes of all parts, one after the other: [z, s] stretched, with the label of z."""
    p = len(symmetry.directions)
    z = np.ascontiguousarray(rows.nodes[:, :p])
    present = [True] * p + [r in radii for r in symmetry.radii]
    stretched, targets = [], []
    for part in symmetry.parts:
        stretched.append(rows.nodes * np.array(part.stretch)[present])
        targets.append(part.label(z) if callable(part.label) else np.full(len(z), part.label))
    return Nodes(
        symmetry.directions,
        tuple(r.name for r in radii),
        dims,
        np.concatenate(stretched),
        np.concatenate([part.weight * rows.weights for part in symmetry.parts]),
        np.concatenate(targets),
        tuple(r.share for r in radii),
        law.noise_power(),
        rows.panels,
        rows.along,
        own_dims=tuple(float(r.dim) for r in radii),
        exact=symmetry.inputs == "hypercube",
    )


def _plain(model: Model, n: int | None, finer: bool) -> Nodes:
    """θ itself: nodes are inputs x, of a finite law as they are, of a Gaussian one on a grid."""
    law = model.data
    d = int(law.d)
    names = tuple(f"w{j + 1}" for j in range(d))
    sampler = law._node_sampler
    if sampler is not None:
        x, y = sampler.draw(0, 0, law._nodes)
        weights = np.full(len(y), 1 / len(y))
        return Nodes(names, (), (), x, weights, y, (), law.noise_power(), exact=True)
    parts = law._parts()
    if parts is None:
        raise ValueError(f"data must be a finite or Gaussian law to be reduced, got {law!r}")
    g, w = tensor([_core.gauss_hermite(count(PLAIN_GRID, d, n, finer))] * d)
    rows = np.concatenate([part.root(g) for part in parts])
    weights = np.concatenate([part.weight * w for part in parts])
    targets = np.concatenate([_label(part, g) for part in parts])
    noise = sum(part.weight * part.noise**2 for part in parts)
    return Nodes(names, (), (), rows, weights, targets, (), noise)


def _label(part: GaussianPart, g: FloatArray) -> FloatArray:
    label = part.label
    if isinstance(label, HermiteLabel):
        degree = max(max(alpha) for alpha in label.coefficients)
        h = hermite_table(g @ label.directions.T, degree)
        axes = range(len(label.directions))
        terms = [
            c * np.prod([h[:, j, alpha[j]] for j in axes], axis=0) for alpha, c in label.coefficients.items()
        ]
        return np.asarray(sum(terms))
    if isinstance(label, NetworkLabel):
        network = label.network
        w = label.theta[:, network.row(0) :]
        a = label.theta[:, :1] if network.has_a else 1.0
        b = label.theta[:, [int(network.has_a)]] if network.has_b else 0.0
        return label.factor * np.asarray((a * network.activation(w @ part.root(g).T + b)).mean(axis=0))
    return np.full(len(g), float(label))
