"""`tangent_kernel`: the kernel of the gradients of neurons, given ones or those of a law (eq. (11.2))."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..init import Points
from ..measures._measure import as_measure, as_points
from ..measures._place import MeasureLike, row_of, target_of
from ..measures._results import require_finite
from ..model import Model
from ..neurons._flow import rates_of
from ._infinite import InfiniteWidth


def tangent_kernel(
    model: Model,
    X: npt.ArrayLike,
    other: npt.ArrayLike | None = None,
    *,
    measure: MeasureLike | None = None,
    blocks: Sequence[str] | None = None,
    threads: int | None = None,
) -> FloatArray:
    """Compute the tangent kernel of a network: inner products of the gradients of neurons at two inputs.

    K(x, x') = Σ_c rate_c ∫⟨∂_cf, ∂_cf'⟩dρ over the trained blocks c of a row, f = α·σ*: eq. (11.2).
    Along the flow ∂_t f(x) = −E[K(x, x')(f(x') − y')], on the clock of every rung.

    Args:
        model: Its network, with scale and rates; without `measure` also its initial law.
        X: Inputs, shape (n, d).
        other: Inputs of the columns; default `X`.
        measure: Neurons, an (N, D) array or an `mf.Cloud`. None: infinitely many neurons of ``model.init``,
            in closed form, or by quadrature to 1e-10.
        blocks: The trained blocks c that count; default all. ``"a"`` alone is the kernel of random features.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Returns:
        An array of shape (n, m). No Jacobian is stored; memory is that of two such arrays, and 720 numbers
        per input.

    Raises:
        ValueError: No exact form is known for this law and activation; the message says what would work.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(1.0),
        ... )
        >>> X = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
        >>> theory.tangent_kernel(model, X[:1], X).round(6).tolist()  # ⟨x, x'⟩(π − φ)/2π
        [[0.5, 0.0, -0.0]]
        >>> theory.tangent_kernel(model, X[:1], X, measure=[[1.0, 2.0]]).tolist()
        [[1.0, 0.0, 0.0]]
    """
    check.instance(model, "model", Model, "an mf.Model: inputs x are averaged out of reduced ones")
    d = row_of(model) - model.network.row(0)
    rows = as_points(X, "X", d)
    columns = None if other is None else as_points(other, "other", d)
    count = check.threads(threads)
    speeds = speeds_of(model, blocks)
    longer, length = ("X", len(rows)) if columns is None else ("other", len(columns))
    check.memory(24.0 * len(rows) * length, longer, length)
    if measure is None and model.init is None:
        raise ValueError("measure must be given for a model without initial law, got None")
    if measure is None and isinstance(model.init, Points):
        measure = model.init.theta
    with np.errstate(all="ignore"):
        if measure is None:
            kernel = InfiniteWidth(model, count, speeds).kernel(rows, rows if columns is None else columns)
        else:
            if target_of(model, measure) is not model:
                raise ValueError(
                    "measure must hold neurons: the mean over the directions that a reduction leaves out is "
                    "not known to tangent kernels; got one in reduced coordinates"
                )
            points, weights = as_measure(measure, "measure", row_of(model))
            kernel = of_neurons(model, points, weights, rows, columns, count, speeds)
    require_finite(kernel, "the kernel", X=rows)
    return kernel


def of_neurons(
    model: Model,
    points: FloatArray,
    weights: FloatArray | None,
    rows: FloatArray,
    columns: FloatArray | None,
    threads: int,
    speeds: tuple[float, float, float] | None = None,
) -> FloatArray:
    """The kernel of neurons with masses (None: equal ones) on checked arrays, with rates of a, b and w."""
    speeds = speeds or rates_of(model.rates)
    kernel = _core.tangent_kernel(model.network._core, points, weights, speeds, rows, columns, threads)
    if model.network.scale != 1:
        kernel *= model.network.scale**2
    return kernel


def speeds_of(model: Model, blocks: Sequence[str] | None) -> tuple[float, float, float]:
    """The rates of a, b and w, 0 for those that do not count."""
    a, b, w = rates_of(model.rates)
    if blocks is None:
        return a, b, w
    trained = model.network.trained
    chosen = tuple(blocks) if isinstance(blocks, Iterable) else ()
    if not chosen or not all(isinstance(c, str) and c in trained for c in chosen):
        listed = ", ".join(trained)
        raise ValueError(f"blocks must be some of the trained ones ({listed}), got {check.shown(blocks)}")
    one, two, three = ((speed if c in chosen else 0.0) for c, speed in zip("abw", (a, b, w), strict=True))
    return one, two, three
