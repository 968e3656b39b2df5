"""From the symmetry that a law describes to data nodes: rows [z_q, s_q] of averaged inputs, with labels.

The formulas are in docs/mathematics.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..data import KINDS, DataLaw, Dataset
from ..data._links import hermite_table
from ..data._parts import GaussianPart, HermiteLabel, NetworkLabel
from ..data._symmetry import Radius, Symmetry
from ._node_rules import PLAIN_GRID, counts, importance, pruned, tensor
from ._pairs import MAX_PLAIN_ROW, is_short
from ._rows import Rows, degree, rows_of

if TYPE_CHECKING:
    from ..model import Model


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
    along: tuple[int, float] | None = (
        None  # of the one direction, with their end, if features are projections in these
    )
    centres: tuple[
        float, ...
    ] = ()  # of the groups of nodes that are panels of the direction; () where all are 0
    own_dims: tuple[float, ...] = ()  # as dims, at the law's own d
    exact: bool = False  # the nodes are the law itself


def nodes_of(model: Model, limit: bool, n: int | None, finer: bool = False) -> Nodes:
    """The nodes of the law of `model`; raises ValueError if no reduction is known."""
    law = model.data
    symmetry = law._symmetry()
    if symmetry is not None and not (law._plain_first and is_short(model)):
        radii = tuple(r for r in symmetry.radii if r.dim > 0 and r.share > 0)
        dims = tuple(math.inf if limit else r.dim for r in radii)
        if symmetry.inputs != "hypercube" or all(map(math.isinf, dims)):
            return _mixture(law, symmetry, radii, dims, rows_of(model, symmetry, dims, n, finer))
        if not (is_short(model) and law._nodes):
            raise ValueError(
                f"data must have d=inf to be reduced on the hypercube, got d={law.d}: across its directions "
                "the cube is not rotation invariant, and the reduction is exact only as d → ∞; "
                "model.reduce(limit=True) uses that limit"
            )
    if is_short(model):
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
    stretched, targets, centres = [], [], []
    groups = 0 if rows.along is None else len(z) // rows.group
    for part in symmetry.parts:
        there = [s for s, is_there in zip(part.stretch, present, strict=True) if is_there]
        stretched.append(replace(part, stretch=tuple(there)).seen(rows.nodes))
        targets.append(part.label(z) if callable(part.label) else np.full(len(z), part.label))
        centres += [part.shift[0] if part.shift else 0.0] * groups
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
        tuple(centres) if any(centres) else (),
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
    power = degree(model)
    found = counts(PLAIN_GRID, d, _degrees(parts, d), power, n, finer)
    g, w = tensor([_core.gauss_hermite(nodes) for nodes in found])
    heavy = None if power is not None else importance(w, [_label(part, g) for part in parts])
    g, w = pruned(g, w, heavy)
    rows = np.concatenate([part.at(g) for part in parts])
    weights = np.concatenate([part.weight * w for part in parts])
    targets = np.concatenate([_label(part, g) for part in parts])
    noise = sum(part.weight * part.noise**2 for part in parts)
    return Nodes(names, (), (), rows, weights, targets, (), noise)


def _degrees(parts: list[GaussianPart], d: int) -> tuple[int, ...] | None:
    """The degree of y, which any coordinate may have; None if y is no polynomial."""
    total = 0
    for label in (part.label for part in parts):
        if isinstance(label, HermiteLabel):
            total = max(total, *(sum(alpha) for alpha in label.coefficients))
        elif isinstance(label, NetworkLabel):
            known = label.network.activation._core.facts
            if not known.is_polynomial:
                return None
            total = max(total, known.degree)
    return (total,) * d


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
        return label.factor * np.asarray((a * network.activation(w @ part.at(g).T + b)).mean(axis=0))
    return np.full(len(g), float(label))
