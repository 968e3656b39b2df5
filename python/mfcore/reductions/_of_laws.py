"""From a model to its reduction: features at the data nodes of its law, and the error of those nodes.

The formulas are in docs/mathematics.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.course import Course
from ..activations import Activation
from ..init._scalar import MOST_NODES
from ._init import reduced_init
from ._inputs import Inputs, inputs_of
from ._model import ReducedModel
from ._nodes import Nodes, nodes_of
from ._pairs import Pairs, is_short, meets_kinks, no_features, pairs_of, served
from ._rows import kinked
from ._sphere import on_sphere

if TYPE_CHECKING:
    from ..model import Model

KINK_SAFETY = 8  # on errors of kinks measured at a few points
KINKS_MATTER = 38  # dimensions of a radius beside another, below which nodes see kinks


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
        along: tuple[int, float] | None = None,
        scale: float = 1.0,
        centres: tuple[float, ...] = (),
    ) -> None:
        chi = None if panels is None else _core.ChiPanels(dims[0], panels)
        normal = None if along is None else _core.NormalPanels(*along)
        super().__init__(
            activation._core,
            has_a=has_a,
            has_b=has_b,
            dims=list(dims),
            nodes=rows,
            panels=chi,
            along=normal,
            scale=scale,
            centres=list(centres),
        )
        self.rows = rows
        # Nodes whose values depend on each other:
        self.together = math.prod(len(rule.rule[0]) for rule in (chi, normal) if rule is not None)
        self._arguments = activation, has_a, has_b, dims, rows, panels, along, scale, centres

    def __reduce__(self) -> tuple[Any, ...]:
        return Features, self._arguments

    def apex(self, rates: Sequence[float]) -> _core.Apex:
        """Find where a kink of σ meets w = 0 (eq. (6.18))."""
        activation, has_a, has_b = self._arguments[:3]
        columns = list(range(has_a + has_b, self.coordinates))
        return _core.Apex(activation._core, columns, int(has_a) if has_b else -1, list(rates))


def build(model: Model, limit: bool, nodes: int | None, features: bool = False) -> ReducedModel:
    """The reduction of `model`; raises ValueError if none is known.

    With `features`, one with features at nodes, also where closed pairs are better.
    """
    if nodes is None and not features and served(model) and (pairs := pairs_of(model, limit)) is not None:
        return _with_pairs(model, pairs)
    n = None if nodes is None else check.integer(nodes, "nodes", at_least=1, at_most=MOST_NODES)
    found = nodes_of(model, limit, n)
    if not (found.exact or (limit and not found.directions)) and _grows(model.network.activation):
        raise ValueError(
            "activation must grow like a power where a reduction sums over nodes, got "
            f"{model.network.activation!r}; use reduce(limit=True) without directions, or mf.Exact()"
        )
    reduced = _assemble(model, found)
    reduced = replace(reduced, node_error=_node_error(model, limit, n, reduced, found))
    if not model.network.sphere:
        return reduced
    core = reduced._compiled
    assert core is not None
    return on_sphere(model, reduced, core, len(found.directions) if found.radii else 0)


def features_of(model: Model) -> ReducedModel:
    """The reduction to features at nodes of a model whose own reduction has closed pairs; kept."""
    if "features" not in model._kept:
        model._kept["features"] = build(model, False, None, features=True)
    known: ReducedModel = model._kept["features"]
    return known


def paired(model: Model) -> ReducedModel | None:
    """The reduction to closed pairs of a model, where these are better in motion than nodes; kept."""
    if "pairs" not in model._kept:
        pairs = pairs_of(model, False) if meets_kinks(model) else None
        model._kept["pairs"] = None if pairs is None else _with_pairs(model, pairs)
    known: ReducedModel | None = model._kept["pairs"]
    return known


def _with_pairs(model: Model, pairs: Pairs) -> ReducedModel:
    """The reduction to closed pairs, of neurons in the directions of a law and the norm across them."""
    d, p = float(model.data.d), pairs.p
    plain = model.data._plain_first and is_short(model)
    names = tuple(f"w{j + 1}" for j in range(p))
    split = model.data._split()
    if not plain:
        assert split is not None
        names = split.inside
    radii, dims = (("r",), (d - p,)) if d > p else ((), ())
    own = math.sqrt(max(pairs.power - model.data.noise_power(), 0.0))
    network, present = model.network, tuple(range(p + len(radii)))
    # Inputs have no nodes; two rows tell which coordinate is known at d = ∞.
    rows = np.outer([-1.0, 1.0], np.ones(len(present)))
    rows[:, p:] = 1.0
    average = (pairs.dim,) if radii else ()
    inputs = Inputs(
        rows,
        network.activation,
        network.has_a,
        network.has_b,
        average,
        network.scale,
        None if plain or math.isinf(d) else split,
        present,
        False,
    )
    reduced = ReducedModel(
        weights=np.ones(1),
        targets=np.array([own]),
        noise=model.data.noise_power(),
        **_frame(model, names, radii, dims, (1.0,)),
        features=no_features,
        gradients=no_features,
        inputs=inputs,
        pairs=pairs,
    )
    return replace(reduced, node_error=pairs.error(_probes(reduced, True, 8)))


def _assemble(model: Model, found: Nodes) -> ReducedModel:
    network = model.network
    core = Features(
        network.activation,
        network.has_a,
        network.has_b,
        found.dims,
        found.rows,
        found.panels,
        found.along,
        network.scale,
        found.centres,
    )
    return ReducedModel(
        weights=found.weights,
        targets=found.targets,
        features=core.features,
        gradients=core.gradients,
        noise=found.noise,
        inputs=inputs_of(model, found),
        **_frame(model, found.directions, found.radii, found.own_dims, found.shares),
    )


def _grows(sigma: Activation) -> bool:
    """Whether σ grows faster than |z|^16, as values show: its averages have their mass beyond the nodes."""
    with np.errstate(all="ignore"):
        values = np.abs(sigma(np.array([-700.0, 700.0, -2.0, -1.0, 0.0, 1.0, 2.0])))
    return not values[:2].max() <= 700.0**16 * values[2:].max()


def _frame(
    model: Model,
    directions: tuple[str, ...],
    radii: tuple[str, ...],
    dims: tuple[float, ...],
    shares: tuple[float, ...],
) -> dict[str, Any]:
    """What holds for the coordinates of a reduction, whatever V and U are made of."""
    network = model.network
    present = [("a", network.has_a), ("b", network.has_b)]
    outer = [name for name, there in present if there]
    # Volume and start are those of the model's own d, also where the features are those of the limit.
    d = float(model.data.d)
    if math.isinf(d) and radii and (isinstance(model.temperature, Course) or model.temperature > 0):
        raise ValueError(
            f"temperature must be 0 at d=inf, got {model.temperature!r}: in infinitely many directions noise "
            "drives radii to infinity; use a finite d, with reduce(limit=True) for the limit's features"
        )
    flat = len(outer) + len(directions)
    volume = [0.0] * flat + [0.0 if math.isinf(dim) else dim - 1.0 for dim in dims]
    blocks = [*outer, *["w"] * (len(directions) + len(radii))]
    moving = network.trained
    speeds = model.rates or {}
    return {
        "coordinates": (*outer, *directions, *radii),
        "ridge": model.ridge,
        "temperature": model.temperature,
        "volume": tuple(volume),
        "log_volume": sum(_log_sphere(dim) for dim in dims if math.isfinite(dim)),
        "nonnegative": (False,) * flat + (True,) * len(radii),
        "rates": tuple(speeds.get(block, 1.0) if block in moving else 0.0 for block in blocks),
        "decays": tuple(block in moving for block in blocks),
        "initial": reduced_init(model, directions, dims, shares),
        "d": d,
    }


def _log_sphere(d: float) -> float:
    """Log of the area of the unit sphere in R^d: a law of w invariant under rotations is spread over it."""
    return math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)


def _node_error(model: Model, limit: bool, n: int | None, reduced: ReducedModel, found: Nodes) -> float:
    """Largest error of V and U on probes, relative to features: against exact averages, or more nodes."""
    if found.exact:
        return 0.0
    kinks, radial = kinked(model), not found.directions
    # Two radii: kinks matter beside each other's average over a direction.
    many = kinks and not limit and len(found.radii) == 2 and min(found.own_dims) < KINKS_MATTER
    exact_V = radial and found.panels is None and not many
    if exact_V:  # the features of the limit, of one node, give V (not U) of any d
        fine = _assemble(model.replace(temperature=0.0), nodes_of(model, True, None))
    else:
        fine = _assemble(model, nodes_of(model, limit, n, finer=True))
    sharp = kinks and not (radial and len(found.radii) == 1)
    z = _probes(reduced, sharp, 4 if many else 8)
    size = np.sqrt(reduced.U(z, z).diagonal()) if kinks else np.abs(reduced.features(z))
    largest = max(1.0, float(size.max()))
    error = float(np.abs(reduced.V(z) - fine.V(z)).max()) / largest
    if exact_V:
        return error
    error = max(error, float(np.abs(reduced.U(z, z) - fine.U(z, z)).max()) / largest**2)
    # A few probes do not meet the worst places of kinks: measured, up to 5 times what they say.
    return KINK_SAFETY * error if sharp else error


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
