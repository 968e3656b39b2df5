"""`pull`: residuals of samples pulled back to the neurons, the gradient half of a step of SGD."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.output import output
from ..model import Model
from ..network import Network
from ._results import require_finite


def pull(
    model: Model | Network,
    theta: npt.ArrayLike,
    X: npt.ArrayLike,
    residual: npt.ArrayLike,
    *,
    out: FloatArray | None = None,
    threads: int | None = None,
) -> FloatArray:
    """Pull residuals back to the neurons, as the second half of a step does: one row for each neuron.

    Row i is B⁻¹Σ_q residual_q ∂[ασ*(x_q; θ_i)]/∂θ_i. With residual_q = y_q − f_N(x_q) a step of SGD without
    decay and rates is θ ← θ + h·pull. Entries that are not trained get their derivative too.

    Args:
        model: Whose network it is; a `Network` will do.
        theta: Neurons, shape (N, D).
        X: Inputs, shape (B, d).
        residual: One number for each input, shape (B,).
        out: An array (N, D) to put the result in.
        threads: Their number. It changes no bit.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> network, theta = mf.Network(mf.activations.linear), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> mf.pull(network, theta, [[1.0, 1.0]], [2.0]).tolist()
        [[2.0, 2.0], [2.0, 2.0]]
    """
    check.instance(model, "model", (Model, Network), "an mf.Model or an mf.Network")
    network = model.network if isinstance(model, Model) else model
    inputs = check.array(X, "X", shape=(None, None))
    rows = check.array(theta, "theta", shape=(None, network.row(inputs.shape[1])))
    errors = check.array(residual, "residual", shape=(len(inputs),))
    result = pull_back(network, rows, inputs, errors, check.threads(threads))
    require_finite(result, "the pull", theta=rows, X=inputs, residual=errors)
    if out is None:
        return result
    output(out, "out", result.shape)[...] = result
    return out


def pull_back(
    network: Network, theta: FloatArray, inputs: FloatArray, residual: FloatArray, threads: int
) -> FloatArray:
    """`pull` of arrays that were checked: −∇V of the labels `residual`, as V = −E[yσ*] (eq. (1.6))."""
    law = _core.finite_law(inputs, residual)
    _, slope, _ = _core.potential(
        network._core, theta, None, None, law, 0, len(inputs), value=False, gradient=True, threads=threads
    )
    slope *= -network.scale
    return np.asarray(slope)
