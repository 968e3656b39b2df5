"""V, U, Ψ, ∇Ψ, the risk and predictions, of a model or a reduced model, on the caller's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _check, _core
from ._check import FloatArray
from ._evaluator import Evaluator
from .expectation import Exact, Expectation
from .measure import Cloud, Density, as_measure, as_points
from .model import Model
from .reduce import ReducedModel

AnyModel = Model | ReducedModel
MeasureLike = npt.ArrayLike | Cloud | Density


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
    rows = _rows(model, theta, "theta")
    _check_out(out, len(rows))
    return _give(_evaluator(model, expectation, threads).V(rows), out)


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
    rows = _rows(model, theta, "theta")
    columns = rows if other is None else _rows(model, other, "other")
    _check_out(out, len(rows), len(columns))
    return _give(_evaluator(model, expectation, threads).U(rows, columns), out)


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

    `measure` is ρ: an (N, D) array of equal masses, `mf.Cloud` or `mf.Density`. Decay acts on trained blocks
    only: a fixed output weight does not enter |θ|². Other arguments are those of `V`.

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
    rows = _rows(model, theta, "theta")
    points, weights = _measure(model, measure, rows, theta)
    _check_out(out, len(rows))
    value = _evaluator(model, expectation, threads).psi(rows, points, weights)
    if model.ridge:
        value = value + 0.5 * model.ridge * np.square(rows[:, _decaying(model, rows)]).sum(axis=1)
    return _give(value, out)


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

    The column of a fixed output weight is 0, and for networks on the sphere the w part is the tangential
    gradient, so that −∇Ψ_λ is the velocity of every rung (for equal rates). Arguments are those of `psi`.

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
    rows = _rows(model, theta, "theta")
    points, weights = _measure(model, measure, rows, theta)
    _check_out(out, *rows.shape)
    if isinstance(model, Model) and model.network.sphere:
        still = np.flatnonzero((rows[:, model.network.row(0) :] == 0).all(axis=1))
        if len(still):
            raise ValueError(f"theta must have w != 0 on a network with sphere=True, got 0 in row {still[0]}")
    gradient = _evaluator(model, expectation, threads).grad_psi(rows, points, weights)
    if model.ridge:
        decaying = _decaying(model, rows)
        gradient[:, decaying] += model.ridge * rows[:, decaying]
    if isinstance(model, Model):
        network = model.network
        if network.output == "fixed":
            gradient[:, 0] = 0.0
        if network.sphere:
            w = rows[:, network.row(0) :]
            along = gradient[:, network.row(0) :]
            along -= w * (np.sum(along * w, axis=1) / np.sum(w * w, axis=1))[:, None]
    return _give(gradient, out)


def risk(
    model: AnyModel,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> float:
    """R(ρ) = E(y − f_ρ(x))², label noise included, weight decay not. Arguments are those of `psi`.

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
    points, weights = as_measure(measure, "measure", _row(model))
    return float(_evaluator(model, expectation, threads).risk(points, weights))


def predict(
    model: Model,
    measure: MeasureLike,
    X: npt.ArrayLike,
    *,
    threads: int | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """f_ρ(x) = ∫σ*(x; ·)dρ for every row of `X`, shape (n, d) to (n,).

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> mf.predict(model, [[1.0, 0.0], [0.0, 1.0]], [[2.0, -1.0], [2.0, 4.0]])
        array([1., 3.])
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be a mf.Model: inputs x are averaged out of {model!r}")
    points, weights = as_measure(measure, "measure", _row(model))
    inputs = as_points(X, "X", points.shape[1] - model.network.row(0))
    _check_out(out, len(inputs))
    return _give(_core.predict(model.network._core, points, weights, inputs, _check.threads(threads)), out)


def _evaluator(model: AnyModel, expectation: Expectation | None, threads: int | None) -> Evaluator:
    count = _check.threads(threads)
    if isinstance(model, ReducedModel):
        if expectation is not None:
            raise ValueError(f"expectation must be left out for a reduced model, got {expectation!r}")
        return model
    if not isinstance(model, Model):
        raise TypeError(f"model must be a mf.Model or mf.ReducedModel, got {model!r}")
    if expectation is None:
        expectation = Exact()
    if not isinstance(expectation, Expectation):
        raise TypeError(f"expectation must be mf.Exact() or mf.MonteCarlo(samples, rng), got {expectation!r}")
    return expectation.evaluator(model, count)


def _row(model: AnyModel) -> int:
    """Entries of a row of parameters, or of a reduced point."""
    if isinstance(model, ReducedModel):
        return len(model.coordinates)
    if not isinstance(model, Model):
        raise TypeError(f"model must be a mf.Model or mf.ReducedModel, got {model!r}")
    if model.row is None:
        raise ValueError(f"data must have finite d for neurons, got {model.data!r}; use model.reduce()")
    return model.row


def _rows(model: AnyModel, theta: Any, name: str) -> FloatArray:
    return as_points(theta, name, _row(model))


def _measure(
    model: AnyModel, measure: MeasureLike, rows: FloatArray, theta: Any
) -> tuple[FloatArray, FloatArray]:
    """Points and weights; the very same array as `rows` where both are one object, so that work is shared."""
    points, weights = as_measure(measure, "measure", _row(model))
    return (rows if measure is theta else points), weights


def _decaying(model: AnyModel, rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Which entries of a row weight decay acts on."""
    if isinstance(model, ReducedModel):
        return np.asarray(model.decays, dtype=bool)
    decaying = np.ones(rows.shape[1], dtype=bool)
    if model.network.output == "fixed":
        decaying[0] = False
    return decaying


def _check_out(out: FloatArray | None, *shape: int) -> None:
    """Refuse an unfit `out` before the work, not after it."""
    if out is not None:
        _check.output(out, "out", shape)


def _give(result: FloatArray, out: FloatArray | None) -> FloatArray:
    if out is None:
        return result
    out[...] = result
    return out
