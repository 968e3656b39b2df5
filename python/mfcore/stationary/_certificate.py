"""`mf.certificate`: an upper bound on how far the risk or free energy of a measure is above the least
(eqs. (9.3), (9.5)).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from .._base.check import FloatArray
from ..measures._cells import check_density, log_volumes, reduction_for
from ..measures._functions import risk
from ..measures._measure import Density, as_measure
from ..measures._place import AnyModel, MeasureLike
from ..model import Model
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel
from ..reductions._project import Coordinates
from ..runs._reduced import featured, reduced_of
from ._boxes import as_box, moving
from ._compact import predictions
from ._extent import UnconfinedError
from ._fields import NodeField, PairField, decay
from ._gibbs import dual_bound
from ._newton import support
from ._search import search, twice

FARTHEST = 1e5  # Ψ_λ is searched up to this distance where no extent is given
ROUNDING = 1e-15
# fraction of the gap that Ψ_λ may fall over the last decade of the box and still count as bounded below
FLAT = 1e-3


@dataclass(frozen=True, eq=False)
class Certificate:
    """The value of a measure and a bound on its distance from the least value, as returned by
    `mf.certificate`.

    Args:
        value: R at λ = 0, R/2 + (λ/2)∫|θ|²dρ with decay, and with noise the free energy F, of the measure.
        lower_bound: No measure has a lower value than this (in `box`, where one is given), `error` included.
        gap: How far the measure can be from the best one, if searches, sums over nodes of the data and cells
            are exact; how far they are not is `error`: ``value - lower_bound <= gap + error``.
        risk: R of the measure.
        argmin: Where Ψ_λ is lowest, in reduced coordinates: where mass would help most. None with noise.
        box: Ends of the coordinates between which Ψ_λ was searched or, with noise, integrated.
        message: What to know about the bound, if anything.
        error: Estimate of what `gap` does not contain. Without noise: twice the difference of the minimum of
            Ψ_λ to that of a second search from other points, and the error of the data's nodes. With noise:
            the difference between the dual on the cells and as an integral over the coordinates, and the
            error of that.
    """

    value: float
    lower_bound: float
    gap: float
    risk: float
    argmin: FloatArray | None
    box: tuple[tuple[float, float], ...] | None
    message: str = ""
    error: float = 0.0

    def __repr__(self) -> str:
        told = f", message={self.message!r}" if self.message else ""
        return (
            f"Certificate(gap={self.gap:.3g}, error={self.error:.1e}, value={self.value:.8g}, "
            f"lower_bound={self.lower_bound:.8g}, risk={self.risk:.8g}{told})"
        )


def certificate(model: AnyModel, measure: MeasureLike, *, extent: Any = None) -> Certificate:
    """A bound on how far `measure` is from the global optimum, from convexity (no run needed).

    Without noise R(ρ) − inf R ≤ 2(∫Ψdρ − inf Ψ), with decay R/2 + (λ/2)∫|z|²dρ likewise with Ψ_λ and
    without the 2. The minimum of Ψ_λ is searched on a grid (quasi-random points in three and more
    coordinates) and followed to the bottom. The infimum is over all measures, also of coordinates that do not
    move.

    Neurons ρ_N are rotated at random first, which can only lower the risk and leads to reduced coordinates:
    ``lower_bound`` is that of the averaged measure, and ``gap`` is the value of the neurons themselves above
    it.

    With noise F(ρ) − F* ≤ β⁻¹KL(ρ‖ρ̂), ρ̂ ∝ v e^{−βΨ_λ(·;ρ)}, for an `mf.Density`: ``gap`` is that among all
    laws on its grid, ``lower_bound`` is D(f_ρ) as an integral and holds for all laws, on the box of the grid
    alone if nothing else confines them. For points, whose F is infinite, only F* ≥ D(f_ρ) is left.

    Args:
        model: A model with a reduction, or a `ReducedModel`.
        measure: Neurons, or a measure in reduced coordinates.
        extent: Ends (low, high) of each coordinate: only measures in this box compete.

    Examples:
        >>> import math, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=math.inf, delta=0.2),
        ...     network=mf.Network(
        ...         mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
        ...     ),
        ... ).reduce()
        >>> mf.certificate(model, [1.4616]).gap < 1e-6  # an optimum, nearly
        True
        >>> start = mf.certificate(model, [1.0])
        >>> start.gap > mf.risk(model, [1.0]) - mf.risk(model, [1.4616])
        True
    """
    reduced = reduction_for(model, measure)
    if reduced is None:
        assert isinstance(model, Model)
        return _of_neurons(model, measure, extent)
    if reduced.pairs is not None and reduced.temperature > 0:
        reduced = featured(model)
    require_convex(reduced, "mf.certificate")
    if reduced.temperature == 0:
        points, weights = as_measure(measure, "measure", len(reduced.coordinates))
        return _convexity(reduced, points, weights, extent)
    if extent is not None:
        raise ValueError(f"extent must be left out at temperature = {reduced.temperature:g}, got {extent!r}")
    if isinstance(measure, Density):
        return _relative_entropy(reduced, measure)
    points, weights = as_measure(measure, "measure", len(reduced.coordinates))
    f, _ = predictions(reduced, points, weights)
    size = float(reduced.weights @ np.square(f - reduced.targets)) + reduced.noise
    return _dual(reduced, points, weights, size)


def _of_neurons(model: Model, measure: MeasureLike, extent: Any) -> Certificate:
    """The certificate of neurons: that of their rotation average, plus what averaging gains (eq. (5.13))."""
    reduced = featured(model) if model.temperature > 0 else reduced_of(model)
    require_convex(reduced, "mf.certificate")
    assert model.row is not None  # neurons: see reduction_for
    rows, weights = as_measure(measure, "measure", model.row)
    points = Coordinates(model.network, model.data, reduced.coordinates).of(rows)
    own = risk(model, measure)
    if model.temperature > 0:
        return _dual(reduced, points, weights, own)
    averaged = _convexity(reduced, points, weights, extent)
    more = _share(reduced) * (own - averaged.risk)
    value, gap = averaged.value + more, max(averaged.gap + more, 0.0)
    return dataclasses.replace(averaged, value=value, gap=gap, risk=own)


def _share(reduced: ReducedModel) -> float:
    """The factor of R in what is minimised: 1 without ridge, else ½."""
    return 0.5 if reduced.ridge else 1.0


def _convexity(reduced: ReducedModel, points: FloatArray, weights: FloatArray, extent: Any) -> Certificate:
    """The bound (9.5) without noise."""
    box = (
        [(0.0 if radius else -FARTHEST, FARTHEST) for radius in reduced.nonnegative]
        if extent is None
        else as_box(extent, reduced)
    )
    share = _share(reduced)
    missed, field = _field(reduced, points, weights)
    size = field.risk
    value = share * size + float(weights @ decay(reduced, points))
    mean = float(weights @ field.at(points))
    (argmin, depth), difference = twice(search(reduced, box), field)
    gap = 2 * share * max(mean - depth, 0.0)
    error = share * (4 * difference + field.node_risk + missed * (2 * math.sqrt(size) + missed))
    error += ROUNDING * (1 + value)
    lower, message = value - gap - error, ""
    trivial = share * reduced.noise
    if extent is None and _falls(field, argmin, depth, mean):
        lower, message = (
            trivial,
            "Ψ has no lower bound, it seems: the bound is that of any fit",
        )
    elif lower < trivial:
        lower, message = trivial, "the bound is that of any fit"
    if message:
        gap, error = value - lower, ROUNDING * (1 + value)
    return Certificate(value, lower, gap, size, argmin, tuple(box), message, error)


def _field(
    reduced: ReducedModel, points: FloatArray, weights: FloatArray
) -> tuple[float, NodeField | PairField]:
    """Ψ_λ of a measure, and how far its predictions may be off."""
    if reduced.pairs is not None:
        return 0.0, PairField(reduced, points, weights)
    f, missed = predictions(reduced, points, weights)
    return missed, NodeField(reduced, f)


def _falls(field: NodeField | PairField, argmin: FloatArray, depth: float, mean: float) -> bool:
    """Whether Ψ_λ is lowest at an end of the box and still falls there."""
    if np.abs(argmin).max() < 0.99 * FARTHEST:
        return False
    inner = float(field.at(np.clip(argmin, -0.1 * FARTHEST, 0.1 * FARTHEST)[None])[0])
    return inner - depth > FLAT * max(mean - depth, 0.0) + 1e-9


def _relative_entropy(reduced: ReducedModel, density: Density) -> Certificate:
    """The bound (9.3) with noise: F(ρ) − D(f_ρ) = β⁻¹KL(ρ‖ρ̂), on the cells of the density."""
    check_density(density, reduced)
    cloud = density.as_cloud()
    mass = cloud.weights / cloud.weights.sum()
    where = support(reduced, cloud.points, log_volumes(density.edges, reduced.volume).ravel())
    h = mass @ where.features.values
    law, log_z = where.law(h)
    gap = reduced.temperature * float(special.kl_div(mass, law).sum())
    dual = where.dual(h, log_z)
    size = float(np.square(h - where.features.target).sum()) + where.features.unreached
    box = tuple((float(e[0]), float(e[-1])) for e in density.edges)
    lower, _ = dual_bound(reduced, where.features.function(h), list(box))
    return Certificate(dual + gap, lower, gap, size, None, box, error=abs(dual - lower))


def _dual(reduced: ReducedModel, points: FloatArray, weights: FloatArray, size: float) -> Certificate:
    message = "the free energy of points is infinite; only the lower bound means something"
    try:
        lower, error = dual_bound(moving(reduced), predictions(reduced, points, weights)[0])
    except UnconfinedError:
        lower, error = -math.inf, 0.0
        message = (
            "the free energy of points is infinite, and their potential confines no law: nothing is known"
        )
    return Certificate(math.inf, lower, math.inf, size, None, None, message, error)
