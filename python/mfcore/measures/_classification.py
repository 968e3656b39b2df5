"""The share of inputs whose label ±1 a measure gets wrong."""

from __future__ import annotations

from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ._functions import predict
from ._place import AnyModel, MeasureLike
from ._replicas import Run, per_replica
from ._tangent import LinearMeasure


@overload
def classification_error(
    model: Run, X: npt.ArrayLike, y: npt.ArrayLike, /, *, threads: int | None = None
) -> float: ...


@overload
def classification_error(
    model: AnyModel,
    measure: MeasureLike | LinearMeasure,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    threads: int | None = None,
) -> float: ...


@per_replica  # which puts model and measure in the place of a run
def classification_error(
    model: AnyModel | Run,
    measure: MeasureLike | LinearMeasure,
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> float:
    """P(sign f_ρ(x) ≠ y) over rows of `X` with labels y = ±1: the share of them that f_ρ gets wrong.

    Where f_ρ(x) = 0 there is no sign, and a row counts one half. `mf.solve(…, test=(X, y))` records it as
    ``observed["test_error"]`` of any rung. For a law, draw: ``X, y = model.data.draw(10_000, rng=0)``.

    Args:
        model: As of `predict`: a `Model` or `ReducedModel`, or a run in place of model and measure.
        measure: Neurons, or a measure in reduced coordinates.
        X: Inputs.
        y: Their labels, −1 or 1, shape (n,).
        threads: As in `V`.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.GaussianMixture([[1.0], [-1.0]], 1.0, labels=[1, -1], d=5)
        >>> model = mf.Model(law, mf.Network(mf.activations.tanh))
        >>> X, y = law.draw(20_000, rng=0)
        >>> w = [[1.0, 0, 0, 0, 0]]  # the best direction: P(z > 1) = 0.1587
        >>> round(mf.classification_error(model, w, X, y), 2)
        0.16
    """
    if X is None or y is None:
        missing = "X" if X is None else "y"
        raise TypeError(
            f"{missing} must be given, as in classification_error(model, measure, X, y) or "
            f"classification_error(run, X, y), got None"
        )
    f = predict(cast(AnyModel, model), measure, X, threads=threads)  # a run has been taken apart
    labels = check.labels(y, "y", len(f))
    if not are_signs(labels):
        odd = labels[np.abs(labels) != 1][0]
        raise ValueError(f"y must hold labels -1 and 1, got {check.shown(odd)}")
    return float(wrong_share(f, labels))


def are_signs(y: FloatArray) -> bool:
    """Whether all labels are −1 or 1."""
    return bool((np.abs(y) == 1).all())


def wrong_share(f: FloatArray, y: FloatArray) -> Any:
    """The share of entries, along the last axis, where sign f ≠ y = ±1; where f = 0 one half."""
    return 0.5 * (1 - (y * np.sign(f)).mean(axis=-1))
