"""From a model to its reduction: which nodes and coordinates each data law has.

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
from ..data import AnisotropicGaussians, IsotropicGaussians, Linear, MultiIndex
from ..data._links import hermite_table
from ..data._parts import GaussianPart, HermiteLabel, NetworkLabel
from ..init._blocks import SpherePoint
from ._init import MOST_NODES, reduced_init
from ._model import ReducedModel
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
KINK_SAFETY = 8  # on errors of kinks measured at a few points
KINKS_MATTER = 38  # dimensions of a radius beside another, below which nodes see kinks
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
        along: int | None = None,
    ) -> None:
        chi = None if panels is None else _core.ChiPanels(dims[0], panels)
        normal = None if along is None else _core.NormalPanels(along)
        super().__init__(
            activation._core,
            has_a=has_a,
            has_b=has_b,
            dims=list(dims),
            nodes=rows,
            panels=chi,
            along=normal,
        )
        self.rows = rows
        # Nodes whose values depend on each other:
        self.together = math.prod(len(rule.rule[0]) for rule in (chi, normal) if rule is not None)
        self._arguments = activation, has_a, has_b, dims, rows, panels, along

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
    return replace(reduced, node_error=_node_error(model, limit, n, reduced, found.panels is not None))


def _nodes(model: Model, limit: bool, n: int | None, finer: bool = False) -> Nodes:
    law = model.data
    if isinstance(law, IsotropicGaussians):
        return _one_radius(law.delta, "r", math.inf if limit else law.d, n, _kinked(model), finer)
    if isinstance(law, AnisotropicGaussians):
        return _anisotropic(law, limit, n, _kinked(model), finer)
    if isinstance(law, MultiIndex):
        plain = law.inputs == "hypercube" and law.d > law.P and not limit
        if plain and _short(model) and law._nodes:
            return _plain(model, n, finer)
        return _multi_index(law, limit, n, _kinked(model), finer)
    if isinstance(law, Linear) and not isinstance(law.cov, np.ndarray):
        return _linear(law, limit, n, _kinked(model), finer)
    if _short(model):
        return _plain(model, n, finer)
    raise ValueError(
        f"data must have a symmetry to be reduced, got {law!r}; laws with a reduction: "
        "IsotropicGaussians, AnisotropicGaussians, MultiIndex, Staircase, Linear with isotropic cov; "
        f"or, with at most {MAX_PLAIN_ROW} parameters per neuron, any finite or Gaussian law. An "
        "mf.ReducedModel(…) of features by hand runs with mf.Atoms, neurons with mf.Particles"
    )


def _kinked(model: Model) -> bool:
    pieces = model.network.activation.pieces
    return pieces is not None and len(pieces.knots) > 0


def _short(model: Model) -> bool:
    return model.row is not None and model.row <= MAX_PLAIN_ROW


def _one_radius(delta: float, name: str, d: float, n: int | None, kinked: bool, finer: bool) -> Nodes:
    panels = kinked_chi(d, n, alone=True, finer=finer) if kinked else None
    if panels is None:
        s, w = tensor([chi(d, n, alone=True, kinked=kinked)])
        return _two_classes(delta, (name,), (d,), s, w, (1.0,))
    s, w = panels.rule
    return replace(_two_classes(delta, (name,), (d,), s[:, None], w, (1.0,)), panels=panels.panels)


def _anisotropic(law: AnisotropicGaussians, limit: bool, n: int | None, kinked: bool, finer: bool) -> Nodes:
    gamma, d = law.gamma, law.d
    inner = math.inf if law.s0 is None else float(law.s0)
    blocks = [("r1", inner, gamma), ("r2", d - inner if law.s0 else math.inf, 1 - gamma)]
    radii, sizes, shares = zip(*[block for block in blocks if block[2] > 0], strict=True)
    dims = tuple(math.inf if limit else dim for dim in sizes)
    if len(dims) == 1:
        return _one_radius(law.delta, radii[0], dims[0], n, kinked, finer)
    s, w = tensor([chi(dim, n, alone=False, kinked=kinked, finer=finer) for dim in dims])
    return _two_classes(law.delta, radii, dims, s, w, shares)


def _two_classes(
    delta: float,
    radii: tuple[str, ...],
    dims: tuple[float, ...],
    s: FloatArray,
    w: FloatArray,
    shares: tuple[float, ...],
) -> Nodes:
    """y = ±1, with norms s of x in its blocks, the first of them stretched by 1 ± delta."""
    stretch = np.ones(s.shape[1])
    rows = []
    for label in (1, -1):
        stretch[0] = 1 + label * delta
        rows.append(s * stretch)
    targets = np.repeat([1.0, -1.0], len(w))
    return Nodes((), radii, dims, np.concatenate(rows), np.concatenate([w, w]) / 2, targets, shares)


def _multi_index(law: MultiIndex, limit: bool, n: int | None, kinked: bool, finer: bool) -> Nodes:
    d, p = (math.inf if limit and law.d > law.P else law.d), law.P
    if law.inputs == "hypercube":
        if not math.isinf(d) and p < d:
            raise ValueError(
                f"data must have d=inf to be reduced on the hypercube, got d={d}: across its directions the "
                "cube is not rotation invariant, and the reduction is exact only as d → ∞; "
                "model.reduce(limit=True) uses that limit"
            )
        if p > MAX_CUBE:
            raise ValueError(f"data must have at most {MAX_CUBE} directions on the hypercube, got {p}")
        cube = np.stack(np.meshgrid(*[[-1.0, 1.0]] * p, indexing="ij"), axis=-1).reshape(-1, p)
        z, w = cube, np.full(len(cube), 0.5**p)
    elif kinked and n is None and p == 1 and not (law.inputs == "sphere" and math.isfinite(d)):
        return _along(law, d, finer)
    elif law.inputs == "sphere" and not math.isinf(d):
        # |x|² = d ties the norm across the directions to z: one row [z, |x⊥|] per node.
        across = (d - p,) if p < d else ()
        rows, w = pruned(*SpherePoint(math.sqrt(d), p, across).quadrature(count(SMOOTH_GRID, p, n, finer)))
        return _indexed(law, rows, w, across)
    else:
        z, w = tensor([_core.gauss_hermite(count(SMOOTH_GRID, p, n, finer))] * p)
    if p == d:
        return _indexed(law, z, w, ())
    panels = kinked_chi(d - p, n, alone=False, finer=finer) if kinked else None
    if panels is None:
        return _indexed(law, *tensor([(z, w), chi(d - p, n, alone=False, finer=finer)]), (d - p,))
    s, w_s = panels.rule
    rows = np.column_stack([np.repeat(z, len(s), axis=0), np.tile(s, len(z))])
    return replace(_indexed(law, rows, np.multiply.outer(w, w_s).ravel(), (d - p,)), panels=panels.panels)


def _along(law: MultiIndex, d: float, finer: bool) -> Nodes:
    """One direction of Gaussian x and features with kinks: projected in panels of the direction."""
    along = kinked_direction(finer)
    z, w = along.rule
    if d == 1:
        return replace(_indexed(law, z[:, None], w, ()), along=along.panels)
    s, w_s = chi_beside_kinks(d - 1, finer)
    rows = np.column_stack([np.tile(z, len(s)), np.repeat(s, len(z))])
    return replace(_indexed(law, rows, np.multiply.outer(w_s, w).ravel(), (d - 1,)), along=along.panels)


def _indexed(law: MultiIndex, rows: FloatArray, weights: FloatArray, dims: tuple[float, ...]) -> Nodes:
    names = tuple(f"s{j + 1}" for j in range(law.P))
    radii = ("r",) * len(dims)
    targets = law._link(np.ascontiguousarray(rows[:, : law.P]))
    return Nodes(names, radii, dims, rows, weights, targets, (1.0,) * len(dims), law.noise_power())


def _linear(law: Linear, limit: bool, n: int | None, kinked: bool, finer: bool) -> Nodes:
    """y = ⟨w, x⟩ depends on one direction of x ~ N(0, c I): a single-index model in x/√c."""
    size = float(np.linalg.norm(law.w))
    direction = law.w / size if size > 0 else np.eye(law.d)[0]
    c = 1.0 if law.cov is None else float(law.cov)
    single = MultiIndex(law.d, [0.0, size], direction[None], noise=law.noise)
    nodes = _multi_index(single, limit, n, kinked, finer)
    scale = math.sqrt(c)
    return replace(nodes, rows=nodes.rows * scale, targets=nodes.targets * scale)


def _plain(model: Model, n: int | None, finer: bool) -> Nodes:
    """θ itself: nodes are inputs x, of a finite law as they are, of a Gaussian one on a grid."""
    law = model.data
    d = int(law.d)
    names = tuple(f"w{j + 1}" for j in range(d))
    sampler = law._node_sampler
    if sampler is not None:
        x, y = sampler.draw(0, 0, law._nodes)
        weights = np.full(len(y), 1 / len(y))
        return Nodes(names, (), (), x, weights, y, (), law.noise_power())
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
    dims = _dims(model, found)
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
    core = Features(
        network.activation, network.has_a, network.has_b, found.dims, found.rows, found.panels, found.along
    )
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


def _dims(model: Model, found: Nodes) -> tuple[float, ...]:
    """Dimensions of the radii at the model's own d."""
    law = model.data
    if len(found.radii) == 2:
        assert isinstance(law, AnisotropicGaussians)
        if law.s0 is None:
            return (math.inf, math.inf)
        return (float(law.s0), float(law.d - law.s0))
    return tuple(float(law.d - len(found.directions)) for _ in found.radii)


def _log_sphere(d: float) -> float:
    """Log of the area of the unit sphere in R^d: a law of w invariant under rotations is spread over it."""
    return math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)


def _node_error(model: Model, limit: bool, n: int | None, reduced: ReducedModel, panels: bool) -> float:
    """Largest error of V and U on probes, relative to features: against exact averages, or more nodes."""
    law = model.data
    classes = isinstance(law, IsotropicGaussians | AnisotropicGaussians)
    many = not limit and isinstance(law, AnisotropicGaussians) and _kinked(model) and _low(law)
    if classes and not panels and not many:  # in the limit V is the same, U is not
        fine = _assemble(model.replace(temperature=0.0), _nodes(model, True, None))
    elif _exact(model, reduced):
        return 0.0
    else:
        fine = _assemble(model, _nodes(model, limit, n, finer=True))
    sharp = _kinked(model) and not isinstance(law, IsotropicGaussians)
    z = _probes(reduced, sharp, 4 if many else 8)
    size = np.sqrt(reduced.U(z, z).diagonal()) if _kinked(model) else np.abs(reduced.features(z))
    largest = max(1.0, float(size.max()))
    error = float(np.abs(reduced.V(z) - fine.V(z)).max()) / largest
    if classes and not panels and not many:
        return error
    error = max(error, float(np.abs(reduced.U(z, z) - fine.U(z, z)).max()) / largest**2)
    # A few probes do not meet the worst places of kinks: measured, up to 5 times what they say.
    return KINK_SAFETY * error if sharp else error


def _low(law: AnisotropicGaussians) -> bool:
    """Whether kinks matter beside each other's average over a direction."""
    return law.s0 is not None and 0 < law.s0 < law.d and min(law.s0, law.d - law.s0) < KINKS_MATTER


def _probes(reduced: ReducedModel, small: bool, most: int) -> FloatArray:
    """Points to measure errors at; if `small` also with radii so small that kinks are sharp."""
    rng = np.random.default_rng(0)
    k = len(reduced.coordinates)
    radii = np.array(reduced.nonnegative)
    z = rng.uniform(0.2, 2.0, (8, k)) * np.where(radii, 1.0, rng.choice([-0.5, 0.5], (8, k)))
    if not small or not radii.any():
        return z
    shrunk = [
        np.where(np.arange(k) == c, by * z, z) for by in (0.1, 0.01) for c in np.flatnonzero(radii)[::-1]
    ]
    if most < 8:
        return np.concatenate([z[:1], *(points[:1] for points in shrunk)])[:most]
    return np.concatenate([z, *shrunk])


def _exact(model: Model, reduced: ReducedModel) -> bool:
    """Whether the nodes are the law itself."""
    law: Any = model.data
    return law._node_sampler is not None or getattr(law, "inputs", "") == "hypercube"
