"""Bounds on the errors of F, R and least values by integrals, compressed models and the nodes of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._compact import MOST_SECONDS, Compact, compact, in_pieces, seconds
from ._continuum import Continuum, continuum, wider
from ._panels import rounding

SOME = 48  # points of a law at which the error of its features is measured
ROUNDING = 1e-14  # relative rounding error of sums of about a thousand numbers
OUTSIDE = 1e-11  # more mass than this near the ends of the box asks for a larger box …
MOST_WIDER = 8  # … at most so many times
LITTLE = 1e-2  # error of integrals that is allowed, relative to the error of the features
SAFETY = 2.0  # factor on errors that are measured at some points only


@dataclass(frozen=True, eq=False)
class Integrated:
    """F, D and R of a stationary law, with bounds on their errors.

    Args:
        risk: R.
        dual: D(f), a number that may be above its true value by `error`.
        gap: F − D(f) of the nodes that integrate.
        f: Values at the nodes of the data.
        error: Of F: integrals, fewer nodes, rounding, nodes of the data.
        risk_error: Of R, the same.
        node_error: The part of `error` that is the nodes of the data.
        points: Those of the integrals.
        mass: That of the law at each of them.
        steps: Of the last search.
    """

    risk: float
    dual: float
    gap: float
    f: FloatArray
    error: float
    risk_error: float
    node_error: float
    points: FloatArray
    mass: FloatArray
    steps: int


def integrated(
    reduced: ReducedModel,
    box: Box,
    f: FloatArray,
    tolerance: float,
    *,
    fixed: bool = False,
    ends: bool = False,
    small: Compact | None = None,
) -> Integrated:
    """Compute the stationary law or, if `fixed`, D at `f`, by quadrature and with errors: see `continuum`."""
    small = around(reduced, box, ends) if small is None else small
    found = _resolved(small, box, f, tolerance, fixed, ends)
    for _ in range(MOST_WIDER):
        if found.outside <= OUTSIDE:
            break
        box = wider(reduced, box)
        small = around(reduced, box)
        found = _resolved(small, box, f, tolerance, fixed, ends=False)
    t, law = 1 / found.where.beta, found.found
    root = math.sqrt(found.risk)
    relative = found.integral + found.outside + rounding(found.where, law)
    points = _typical(found)
    missed = SAFETY * _missed(small, points)
    values = small.function(law.h / found.where.features.scale)
    risk_nodes = of_nodes(reduced, small.function(law.mean / found.where.features.scale))
    # D changes by ∫δΨ dρ; h − ∫F dρ and its error bound the distance to the maximiser, as −∇²D >= 1.
    slope = math.sqrt(2 * law.gap)
    moments = found.moments + (rounding(found.where, law) + found.outside) * found.spread
    off = slope + moments
    node_error = 0.5 * risk_nodes
    # Beyond 1/2 the integral is not resolved, and its logarithm is known to a factor only.
    logs = -math.log1p(-relative) if relative < 0.5 else 2 * math.log1p(relative)
    error = t * logs + 0.5 * off**2 - law.gap + root * missed + 0.5 * missed**2 + node_error
    # A change of D moves its maximiser h by at most twice the root of the change, and one of the potential by
    # at most β times the change times the spread of the law.
    square = float(np.square(found.where.features.target).sum()) + found.risk
    error += ROUNDING * (square + abs(law.dual))
    steep = found.where.beta * found.spread
    distance = off + slope + missed
    for change in (root * missed + 0.5 * missed**2, risk_nodes):
        distance += min(2 * math.sqrt(change), steep * change)
    return Integrated(
        found.risk,
        law.dual,
        law.gap,
        values,
        error,
        2 * root * distance + distance**2 + risk_nodes + 10 * ROUNDING * square,
        node_error,
        found.where.points,
        law.mass,
        law.steps,
    )


def _resolved(
    small: Compact, box: Box, f: FloatArray, tolerance: float, fixed: bool, ends: bool
) -> Continuum:
    """The law by so many points as are affordable."""
    most, start, enough = MOST_SECONDS / seconds(small, box, 1.0), small.restricted(f), LITTLE * small.error
    return continuum(small.model, box, start, tolerance, fixed=fixed, ends=ends, enough=enough, most=most)


def around(reduced: ReducedModel, box: Box, ends: bool = False) -> Compact:
    """The model compressed on a box and the room around it."""
    return compact(reduced, box if ends else wider(reduced, box))


def of_nodes(reduced: ReducedModel, f: FloatArray) -> float:
    """By how much the error of the data's nodes can change R of a measure with predictions f.

    V is off by `node_error` times the size of a feature, U by that times the size once more; f is an average
    of features.
    """
    return reduced.risk_node_error(max(1.0, float(np.abs(f).max())))


def _typical(found: Continuum) -> FloatArray:
    """Points at equal distances of mass, and the point with the largest mass."""
    total = np.cumsum(found.found.mass)
    at = np.searchsorted(total, (np.arange(SOME) + 0.5) / SOME * total[-1])
    return np.asarray(found.where.points[np.unique(np.append(at, found.found.mass.argmax()))])


def _missed(small: Compact, points: FloatArray) -> float:
    """The largest error (Σ_q p_q (Φ_q − Φ̃_q)²)^½ of a compressed model at points."""
    if small.rows is None:
        return 0.0
    there = in_pieces(small.whole, points) * np.sqrt(small.whole.weights)
    here = small.model.features(points) / math.sqrt(len(small.rows)) @ small.rows
    return float(np.sqrt(np.square(there - here).sum(axis=1)).max())
