"""From a model to its reduction: data nodes and features from the symmetry that its law describes.

The formulas are in docs/mathematics.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..activations import Activation
from ..data import KINDS, DataLaw
from ..data._links import hermite_table
from ..data._parts import GaussianPart, HermiteLabel, NetworkLabel
from ..data._symmetry import Radius, Symmetry
from ..init._blocks import SpherePoint
from ._init import MOST_NODES, reduced_init
from ._model import ReducedModel
from ._node_rules import PLAIN_GRID, SMOOTH_GRID, chi, count, kinked_chi, pruned, tensor

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
    own_dims: tuple[float, ...] = ()  # as dims, at the law's own d
    exact: bool = False  # the nodes are the law itself


class Features(_core.ReducedFeatures):
    """The compiled features; pickles and copies make them again from their arguments."""

    def __init__(
        self,
        activation: Activation,
        has_a: bool,
        has_b: bool,
        dims: tuple[float, ...],
        rows: FloatArray,
        panels: int | None = None,
    ) -> None:
        chi = None if panels is None else _core.ChiPanels(dims[0], panels)
        super().__init__(activation._core, has_a=has_a, has_b=has_b, dims=list(dims), nodes=rows, panels=chi)
        self.rows = rows
        self._arguments = activation, has_a, has_b, dims, rows, panels

    def __reduce__(self) -> tuple[Any, ...]:
        return Features, self._arguments


def build(model: Model, limit: bool, nodes: int | None) -> ReducedModel:
    """The reduction of `model`; raises ValueError if none is known."""
    if model.network.sphere:
        raise ValueError(
            "network must have sphere=False to be reduced, got sphere=True: |w| = 1 would tie the reduced "
            "coordinates to each other"
        )
    n = None if nodes is None else check.integer(nodes, "nodes", at_least=1, at_most=MOST_NODES)
    found = _nodes(model, limit, n)
    reduced = _assemble(model, found)
    return replace(reduced, node_error=_node_error(model, limit, n, reduced, found))


def _nodes(model: Model, limit: bool, n: int | None, finer: bool = False) -> Nodes:
    law = model.data
    symmetry = law._symmetry()
    if symmetry is not None:
        radii = tuple(r for r in symmetry.radii if r.dim > 0 and r.share > 0)
        dims = tuple(math.inf if limit else r.dim for r in radii)
        if symmetry.inputs != "hypercube" or all(map(math.isinf, dims)):
            rows, weights, panels = _rows(symmetry, dims, n, _kinked(model), finer)
            return _mixture(law, symmetry, radii, dims, rows, weights, panels)
        if not (_short(model) and law._nodes):
            raise ValueError(
                f"data must have d=inf to be reduced on the hypercube, got d={law.d}: across its directions "
                "the cube is not rotation invariant, and the reduction is exact only as d → ∞; "
                "model.reduce(limit=True) uses that limit"
            )
    if _short(model):
        return _plain(model, n, finer)
    raise ValueError(
        f"data must have a symmetry to be reduced, got {law!r}; laws with a reduction: {_reduced_laws()}; "
        f"or, with at most {MAX_PLAIN_ROW} parameters per neuron, any finite or Gaussian law. An "
        "mf.ReducedModel(…) of features by hand runs with mf.Atoms, neurons with mf.Particles"
    )


def _reduced_laws() -> str:
    laws = [law for law in KINDS.values() if law._symmetry is not DataLaw._symmetry]
    return ", ".join(f"{law.__name__} {law._reduced_if}".rstrip() for law in laws)


def _kinked(model: Model) -> bool:
    pieces = model.network.activation.pieces
    return pieces is not None and len(pieces.knots) > 0


def _short(model: Model) -> bool:
    return model.row is not None and model.row <= MAX_PLAIN_ROW


def _rows(
    symmetry: Symmetry, dims: tuple[float, ...], n: int | None, kinked: bool, finer: bool
) -> tuple[FloatArray, FloatArray, int | None]:
    """Nodes [z, s] of x before it is stretched, their weights, and the panels of s if it has some."""
    p = len(symmetry.directions)
    if symmetry.inputs == "sphere" and not any(map(math.isinf, dims)):
        # |x|² = d ties the norm across the directions to z: one row [z, |x⊥|] per node.
        point = SpherePoint(math.sqrt(p + sum(dims)), p, dims)
        return *pruned(*point.quadrature(count(SMOOTH_GRID, p, n, finer))), None
    z, w = _directions(symmetry, n, finer)
    if not dims:
        return z, w, None
    alone = p == 0 and len(dims) == 1
    panels = kinked_chi(dims[0], n, alone=alone, finer=finer) if kinked and len(dims) == 1 else None
    if panels is None:
        norms = [chi(dim, n, alone=alone, kinked=kinked, finer=finer) for dim in dims]
        return *tensor([(z, w), *norms]), None
    s, w_s = panels.rule
    rows = np.column_stack([np.repeat(z, len(s), axis=0), np.tile(s, len(z))])
    return rows, np.multiply.outer(w, w_s).ravel(), panels.panels


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
    rows: FloatArray,
    weights: FloatArray,
    panels: int | None,
) -> Nodes:
    """The nodes of all parts, one after the other: [z, s] stretched, with the label of z."""
    p = len(symmetry.directions)
    z = np.ascontiguousarray(rows[:, :p])
    present = [True] * p + [r in radii for r in symmetry.radii]
    stretched, targets = [], []
    for part in symmetry.parts:
        stretched.append(rows * np.array(part.stretch)[present])
        targets.append(part.label(z) if callable(part.label) else np.full(len(rows), part.label))
    return Nodes(
        symmetry.directions,
        tuple(r.name for r in radii),
        dims,
        np.concatenate(stretched),
        np.concatenate([part.weight * weights for part in symmetry.parts]),
        np.concatenate(targets),
        tuple(r.share for r in radii),
        law.noise_power(),
        panels,
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
        return np.asarray((a * network.activation(w @ part.root(g).T + b)).mean(axis=0))
    return np.full(len(g), float(label))


def _assemble(model: Model, found: Nodes) -> ReducedModel:
    network = model.network
    present = [("a", network.has_a), ("b", network.has_b)]
    outer = [name for name, there in present if there]
    directions, radii = found.directions, found.radii
    # Volume and start are those of the model's own d, also where the features are those of the limit.
    d = float(model.data.d)
    dims = found.own_dims
    if model.temperature > 0 and math.isinf(d) and radii:
        raise ValueError(
            f"temperature must be 0 at d=inf, got {model.temperature:g}: in infinitely many directions noise "
            "drives radii to infinity; use a finite d, with reduce(limit=True) for the limit's features"
        )
    flat = len(outer) + len(directions)
    volume = [0.0] * flat + [0.0 if math.isinf(dim) else dim - 1.0 for dim in dims]
    blocks = [*outer, *["w"] * (len(directions) + len(radii))]
    moving = network.trained
    speeds = model.rates or {}
    core = Features(network.activation, network.has_a, network.has_b, found.dims, found.rows, found.panels)
    return ReducedModel(
        coordinates=(*outer, *directions, *radii),
        weights=found.weights,
        targets=found.targets,
        features=core.features,
        gradients=core.gradients,
        noise=found.noise,
        ridge=model.ridge,
        temperature=model.temperature,
        volume=tuple(volume),
        log_volume=sum(_log_sphere(dim) for dim in dims if math.isfinite(dim)),
        nonnegative=(False,) * flat + (True,) * len(radii),
        rates=tuple(speeds.get(block, 1.0) if block in moving else 0.0 for block in blocks),
        decays=tuple(block in moving for block in blocks),
        initial=reduced_init(model, directions, dims, found.shares),
        d=d,
    )


def _log_sphere(d: float) -> float:
    """Log of the area of the unit sphere in R^d: a law of w invariant under rotations is spread over it."""
    return math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)


def _node_error(model: Model, limit: bool, n: int | None, reduced: ReducedModel, found: Nodes) -> float:
    """Largest error of V and U on probes, relative to features: against exact averages, or more nodes."""
    if found.exact:
        return 0.0
    rng = np.random.default_rng(0)
    k = len(reduced.coordinates)
    z = rng.uniform(0.2, 2.0, (8, k)) * np.where(reduced.nonnegative, 1.0, rng.choice([-0.5, 0.5], (8, k)))
    # Without directions the features of the limit, of one node, give V (not U) of any d.
    exact_V = not found.directions and found.panels is None
    if exact_V:
        fine = _assemble(model.replace(temperature=0.0), _nodes(model, True, None))
    else:
        fine = _assemble(model, _nodes(model, limit, n, finer=True))
    largest = max(1.0, float(np.abs(reduced.features(z)).max()))
    error = float(np.abs(reduced.V(z) - fine.V(z)).max()) / largest
    if exact_V:
        return error
    return max(error, float(np.abs(reduced.U(z, z) - fine.U(z, z)).max()) / largest**2)
