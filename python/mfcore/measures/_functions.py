"""V, U, Ψ, ∇Ψ, the risk and predictions, of a model or a reduced model, on the caller's arrays."""

from __future__ import annotations

import math
from typing import cast, overload

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..model import Model
from ..reductions._model import ReducedModel
from ._evaluators import evaluator_of
from ._measure import as_measure, as_points
from ._place import (
    AnyModel,
    MeasureLike,
    in_shared_coordinates,
    refuse_swapped,
    row_of,
    rows_of,
    target_of,
    with_inputs,
)
from ._replicas import Run, per_replica
from ._results import check_out, give, too_large
from ._tangent import LinearMeasure, linear_risk

# numbers that are not finite are refused with a message instead of a warning
_quiet = np.errstate(all="ignore")


@_quiet
def V(
    model: AnyModel,
    theta: npt.ArrayLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """V(θ) = −E[y σ*(x; θ)] for every row of `theta`.

    Args:
        model: A `Model`, or a `ReducedModel` (then `theta` holds reduced points).
        theta: Neurons, shape (n, D); a single row (D,) is one neuron. Not modified.
        expectation: `Exact()` (the default) or `MonteCarlo(samples, rng)`.
        threads: Threads to use; default `OMP_NUM_THREADS`, else the cores. They change no bit of the result.
        out: Array of shape (n,) to put the result in.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> mf.V(model, [[3.0, 4.0], [0.0, 0.0]]).round(6)
        array([-0.997356,  0.      ])
    """
    rows = rows_of(model, theta, "theta")
    check_out(out, len(rows))
    return give(evaluator_of(model, expectation, threads).V(rows), out, "V", theta=rows)


@_quiet
def U(
    model: AnyModel,
    theta: npt.ArrayLike,
    other: npt.ArrayLike | None = None,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """U(θ, θ') = E[σ*(x; θ) σ*(x; θ')] for all pairs of rows, shape (n, m); `other` defaults to `theta`.

    Arguments are those of `V`.

    Examples:
        >>> import math, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.0),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> (2 * math.pi * mf.U(model, [[1.0, 0.0]], [[0.0, 1.0]])).round(12)
        array([[1.]])
    """
    rows = rows_of(model, theta, "theta")
    columns = rows if other is None else rows_of(model, other, "other")
    check_out(out, len(rows), len(columns))
    longer = "theta" if len(rows) >= len(columns) else "other"
    check.memory(16.0 * len(rows) * len(columns), longer, rows if longer == "theta" else columns)
    value = evaluator_of(model, expectation, threads).U(rows, columns)
    return give(value, out, "U", theta=rows, other=columns)


@_quiet
@per_replica
def psi(
    model: AnyModel,
    theta: npt.ArrayLike,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Ψ_λ(θ; ρ) = V(θ) + ∫U(θ, ·)dρ + λ|θ|²/2 for every row of `theta`, λ = `model.ridge`.

    `measure` is ρ: an (N, D) array of equal masses, `mf.Cloud` or `mf.Density`. Points as long as a row of
    parameters are neurons; others, and densities, are in the coordinates of ``model.reduce()``, which takes
    the place of the model then; `theta` may hold neurons or points in these coordinates. An array
    (replicas, N, D) is several measures: results have that axis first, and `theta` may have it, too. Decay
    acts on trained blocks only: fixed ones do not enter |θ|². Other arguments are those of `V`.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> theta = np.array([[1.0, 0.0], [0.0, 2.0]])
        >>> by_parts = mf.V(model, theta) + mf.U(model, theta).mean(axis=1)
        >>> bool(np.allclose(mf.psi(model, theta, theta), by_parts))
        True
    """
    at = in_shared_coordinates(model, theta, measure)
    check_out(out, len(at.rows))
    value = evaluator_of(at.model, expectation, threads).psi(at.z, at.points, at.weights)
    if model.ridge:
        value = value + 0.5 * model.ridge * np.square(at.z[:, _decaying(at.model, at.z)]).sum(axis=1)
    return give(value, out, "Ψ", theta=at.rows, measure=at.points)


@_quiet
@per_replica
def grad_psi(
    model: AnyModel,
    theta: npt.ArrayLike,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """∇Ψ_λ(θ; ρ) for every row of `theta`, shape (n, D): the direction that trained parameters descend.

    The columns of a fixed output weight or bias are 0, and for networks on the sphere the w part is the
    tangential gradient, so that −∇Ψ_λ is the velocity of every rung (for equal rates). Arguments are those
    of `psi`.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ...     ridge=0.1,
        ... )
        >>> theta = np.array([[1.0, 0.0], [0.0, 2.0]])
        >>> mf.grad_psi(model, theta, theta).shape
        (2, 2)
    """
    at = in_shared_coordinates(model, theta, measure)
    rows, z = at.rows, at.z
    if out is not None:
        check_out(out, *rows.shape)
    network = model.network if isinstance(model, Model) else None
    if network and network.sphere:
        zero = np.flatnonzero((rows[:, network.row(0) :] == 0).all(axis=1))
        if len(zero):
            raise ValueError(f"theta must have w != 0 on a network with sphere=True, got 0 in row {zero[0]}")
    gradient = evaluator_of(at.model, expectation, threads).grad_psi(z, at.points, at.weights)
    if model.ridge:
        decaying = _decaying(at.model, z)
        gradient[:, decaying] += model.ridge * z[:, decaying]
    if at.lift is not None:
        gradient = at.lift.lift_velocity(rows, gradient)
    if network and (at.model is model or at.lift is not None):
        if still := network.still:
            gradient[:, list(still)] = 0.0
        if network.sphere:
            w = rows[:, network.row(0) :]
            along = gradient[:, network.row(0) :]
            along -= w * (np.sum(along * w, axis=1) / np.sum(w * w, axis=1))[:, None]
    return give(gradient, out, "∇Ψ", theta=rows, measure=at.points)


@_quiet
@per_replica
def risk(
    model: AnyModel,
    measure: MeasureLike | LinearMeasure,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> float:
    """R(ρ) = E(y − f_ρ(x))², label noise included, weight decay not. Arguments are those of `psi`.

    A measure in reduced coordinates, such as ``mf.solve(model, mf.PDE(), …).final``, is that of a law
    invariant under the symmetry of the model: the risk is that of ``model.reduce()``. Of replicas, an array
    (replicas, N, D), it is the array of their risks.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> mf.risk(model, [[0.0, 0.0]])
        1.0
    """
    if isinstance(measure, LinearMeasure):
        return linear_risk(with_inputs(model), measure, expectation, check.threads(threads))[0]
    target = target_of(model, measure)
    points, weights = as_measure(measure, "measure", row_of(target))
    value = float(evaluator_of(target, expectation, threads).risk(points, weights))
    if not math.isfinite(value):
        raise ValueError(too_large("the risk", measure=points))
    return value


@overload
def predict(
    model: Run, X: npt.ArrayLike, *, threads: int | None = None, out: FloatArray | None = None
) -> FloatArray: ...


@overload
def predict(
    model: AnyModel,
    measure: MeasureLike | LinearMeasure,
    X: npt.ArrayLike,
    *,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray: ...


@_quiet  # type: ignore[misc]
@per_replica  # which puts model and measure in the place of a run
def predict(
    model: AnyModel | Run,
    measure: MeasureLike | LinearMeasure,
    X: npt.ArrayLike | None = None,
    *,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """f_ρ(x) = ∫σ*(x; ·)dρ for every row of `X`, shape (n, d) to (n,).

    Args:
        model: A `Model`; or a `Trajectory` in place of model and measure: ``mf.predict(run, X)`` is f at the
            end of a run of any rung. Or a `ReducedModel`.
        measure: Neurons, or a measure in the coordinates of ``model.reduce()``, such as the rungs of the
            limit return: f(x) depends on x through Πx and the norms that the reduction knows.
        X: Inputs. For a `ReducedModel`, and at d = ∞, rows in the coordinates of ``reduced.nodes``; at d = ∞
            the norms across the directions may be left out.
        threads: As in `V`.
        out: Array of shape (n,) to put the result in.

    An `mf.Tangent` or `mf.TangentLimit` stands for a linearised network.

    Examples:
        >>> import math, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> mf.predict(model, [[1.0, 0.0], [0.0, 1.0]], [[2.0, -1.0], [2.0, 4.0]])
        array([1., 3.])
        >>> run = mf.solve(model, mf.Atoms(), horizon=1.0)
        >>> f = mf.predict(run, [[3.0, 4.0], [5.0, 0.0]])
        >>> bool(abs(f[0] - f[1]) < 1e-12)  # f of the limit depends on |x| alone
        True
    """
    if X is None:
        check.instance(model, "model", (Model, ReducedModel), "an mf.Model, an mf.ReducedModel or a run")
        raise TypeError("X must be inputs, as in predict(model, measure, X) or predict(run, X), got None")
    if isinstance(measure, LinearMeasure):
        whole = with_inputs(cast(AnyModel, model))
        inputs = as_points(X, "X", row_of(whole) - whole.network.row(0))
        check_out(out, len(inputs))
        return give(measure._predict(whole, inputs, check.threads(threads)), out, "f", X=inputs)
    refuse_swapped(model, measure, X)
    target = target_of(cast(AnyModel, model), measure)  # a run has been taken apart
    points, weights = as_measure(measure, "measure", row_of(target))
    if isinstance(target, ReducedModel):
        if target.inputs is None:
            raise ValueError(
                "model must be a reduction that mfcore made, to be evaluated at inputs, got features by hand"
            )
        if isinstance(model, Model) and not math.isinf(model.d):
            inputs = as_points(X, "X", int(model.d))
            z = target.inputs.of(inputs)
        else:
            inputs = as_points(X, "X")
            z = target.inputs.completed(inputs)
        check_out(out, len(inputs))
        return give(target.inputs.predict(points, weights, z), out, "f", measure=points, X=inputs)
    inputs = as_points(X, "X", points.shape[1] - target.network.row(0))
    check_out(out, len(inputs))
    value = _core.predict(target.network._core, points, weights, inputs, check.threads(threads))
    if target.network.scale != 1:
        value *= target.network.scale
    return give(value, out, "f", measure=points, X=inputs)


def _decaying(model: AnyModel, rows: FloatArray) -> npt.NDArray[np.bool_]:
    """A mask of the entries of a row that weight decay acts on."""
    if isinstance(model, ReducedModel):
        return np.asarray(model.decays, dtype=bool)
    decaying = np.ones(rows.shape[1], dtype=bool)
    decaying[list(model.network.still)] = False
    return decaying
