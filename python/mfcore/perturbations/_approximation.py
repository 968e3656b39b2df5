"""How well N neurons stand for a measure: the gap of independent ones (eq. (10.1)), norms (eq. (13.8))."""

from __future__ import annotations

import math

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..expectations._evaluator import Evaluator
from ..expectations._rules import Expectation
from ..measures._evaluators import evaluator_of
from ..measures._measure import as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..model import Model
from ..reductions._given import convex
from ..reductions._model import ReducedModel
from ..reductions._project import Coordinates

_BLOCK = 64  # neurons whose U(θ, θ) are found at a time


def approximation_gap(
    model: AnyModel,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> float:
    """Compute the gap of a measure: N independent neurons of ρ have E R_N − R(ρ) = E‖f_N − f‖² = gap/N.

    The gap is ∫U(θ, θ)dρ − ∫∫U dρdρ. Of a model and a measure in reduced coordinates it is that of neurons
    in independent uniform directions, whose U(θ, θ) is that of any of them. Of a `ReducedModel` it is the
    gap of N reduced points, each averaged over its directions; with weights of either sign it can be < 0, and
    is E R_N − R(ρ) alone.

    Args:
        model: A model, or a `ReducedModel`.
        measure: ρ, as everywhere.
        expectation: `mf.Exact()` (the default) or `mf.MonteCarlo(samples, rng)`.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(mf.data.Dataset([[1.0]], [0.0]), mf.Network(mf.activations.linear))
        >>> theory.approximation_gap(model, [[-1.0], [1.0]])  # f_N is the mean of N signs
        1.0
    """
    target = target_of(model, measure)
    points, weights = as_measure(measure, "measure", row_of(target))
    evaluator = evaluator_of(target, expectation, threads)
    f_square = float(weights @ (evaluator.psi(points, points, weights) - evaluator.V(points)))
    if isinstance(model, Model) and isinstance(target, ReducedModel):
        points = _any_direction(model, target, points)
        evaluator = evaluator_of(model, expectation, threads)
    gap = float(weights @ _own(evaluator, points)) - f_square
    signed = isinstance(target, ReducedModel) and not convex(target)
    return gap if signed else max(gap, 0.0)  # but for rounding the gap of positive weights is ≥ 0


def path_norm(model: AnyModel, measure: MeasureLike, *, norm: float = 2.0, power: float = 1.0) -> float:
    """Compute the path norm of a measure, α(∫(|a|(|w| + |b|))^p dρ)^{1/p}: above that of its function.

    With the norm ℓ¹ of w, p = 1 is the path norm and p = 2 bounds the Barron norm of E, Ma and Wu; with ℓ²,
    p = 1 and homogeneous σ, it is the variation norm of Bach and of Chizat and Bach. Where a network has no
    a or b, a = 1 and b = 0.

    Args:
        model: Its network, with scale.
        measure: Neurons or, with norm 2, a measure in reduced coordinates.
        norm: 1 or 2, the norm of w.
        power: p ≥ 1.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     mf.data.Dataset([[1.0, 0.0]], [0.0]), mf.Network(mf.activations.relu, output="trained")
        ... )
        >>> theory.path_norm(model, [[2.0, 3.0, 4.0], [-1.0, 0.0, 1.0]])
        5.5
        >>> theory.path_norm(model, [[2.0, 3.0, 4.0], [-1.0, 0.0, 1.0]], norm=1)
        7.5
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model, which knows a, b and w, got {check.shown(model)}")
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, got {check.shown(norm)}")
    p = check.number(power, "power", at_least=1)
    target = target_of(model, measure)
    if isinstance(target, ReducedModel) and norm == 1:
        raise ValueError("norm must be 2 in reduced coordinates, which know w up to rotations, got 1")
    points, weights = as_measure(measure, "measure", row_of(target))
    network = model.network
    row = network.row(0)
    w = np.abs(points[:, row:])
    unit = w.max(axis=1, keepdims=True, initial=np.finfo(float).tiny)  # squares of w/unit are numbers
    size = unit[:, 0] * np.linalg.norm(w / unit, ord=norm, axis=1)
    if network.has_b:
        size = size + np.abs(points[:, row - 1])
    with np.errstate(over="ignore"):
        if network.has_a:
            size = size * np.abs(points[:, 0])
        largest = float(size.max())
        mean = float(weights @ (size / largest) ** p) if 0 < largest < math.inf else 1.0
        found = float(network.scale * largest * mean ** (1 / p))
    if not math.isfinite(found):
        raise ValueError("measure must have a path norm that is a number, got one beyond 1.8e308")
    return found


def _own(evaluator: Evaluator, points: FloatArray) -> FloatArray:
    """U(θ, θ) of every point, in blocks."""
    blocks = [
        evaluator.U(points[i : i + _BLOCK], points[i : i + _BLOCK]).diagonal()
        for i in range(0, len(points), _BLOCK)
    ]
    return np.concatenate(blocks)


def _any_direction(model: Model, reduced: ReducedModel, z: FloatArray) -> FloatArray:
    """Neurons with reduced coordinates z, in some direction."""
    if math.isinf(model.d):
        raise ValueError(
            "model must have finite d for neurons in independent directions, got d=inf; the gap of reduced "
            "points is that of model.reduce()"
        )
    theta = np.random.default_rng(0).normal(size=(1, row_of(model)))  # any direction will do
    lift = Coordinates(model.network, model.data, reduced.coordinates)
    return lift.lift(np.repeat(theta, len(z), axis=0), z)
