"""`tangent_kernel`: the kernel of the gradients of neurons, given ones or those of a law (eq. (11.2))."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ..measures._measure import as_measure, as_points
from ..measures._place import MeasureLike, row_of, target_of
from ..measures._results import require_finite
from ..model import Model
from ._infinite import infinite_width
from ._neurons import Speeds, of_neurons, speeds_of


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
            in closed form, or by quadrature to 1e-10; of `mf.init.Points` the mean over these points.
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
        >>> abs(theory.tangent_kernel(model, X[:1], X)).round(6).tolist()  # ⟨x, x'⟩(π − φ)/2π
        [[0.5, 0.0, 0.0]]
        >>> theory.tangent_kernel(model, X[:1], X, measure=[[1.0, 2.0]]).tolist()
        [[1.0, 0.0, 0.0]]
    """
    check.instance(model, "model", Model, "an mf.Model: inputs x are averaged out of reduced ones")
    d = row_of(model) - model.network.row(0)
    rows = as_points(X, "X", d)
    columns = None if other is None else as_points(other, "other", d)
    count = check.threads(threads)
    speeds = chosen_speeds(model, blocks)
    longer, length = ("X", len(rows)) if columns is None else ("other", len(columns))
    check.memory(24.0 * len(rows) * length, longer, length)
    if measure is None and model.init is None:
        raise ValueError("measure must be given for a model without initial law, got None")
    with np.errstate(all="ignore"):
        if measure is None:
            kernel = infinite_width(model, count, speeds).kernel(rows, rows if columns is None else columns)
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


def chosen_speeds(model: Model, blocks: Sequence[str] | None) -> Speeds:
    """The rates of a, b and w, 0 of those that do not count."""
    speeds = speeds_of(model)
    if blocks is None:
        return speeds
    trained = model.network.trained
    chosen = tuple(blocks) if isinstance(blocks, Iterable) else ()
    if not chosen or not all(isinstance(c, str) and c in trained for c in chosen):
        listed = ", ".join(trained)
        raise ValueError(f"blocks must be some of the trained ones ({listed}), got {check.shown(blocks)}")
    one, two, three = ((speed if c in chosen else 0.0) for c, speed in zip("abw", speeds, strict=True))
    return one, two, three
