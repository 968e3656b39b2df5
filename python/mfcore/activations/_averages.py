"""Means of activations over a normal argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from ._kinds import Activation


def gaussian_mean(activation: Activation, mean: npt.ArrayLike, scale: npt.ArrayLike) -> Any:
    """Average an activation over a normal argument: E σ(m + R G), G ~ N(0, 1).

    It is what a neuron with |w| = R and bias m gives on average over x ~ N(0, I): eq. (3.5) and on.
    Closed forms of piecewise linear functions, polynomials, Hermite series, erf, gelu, sin and cos;
    quadrature of the others, to about 1e-14 of the size of σ there.

    Args:
        activation: σ.
        mean: m, of any shape.
        scale: R ≥ 0, of a shape that broadcasts with that of `mean`.

    Returns:
        An array of the common shape, or a float for two numbers.

    Raises:
        ValueError: R is negative, no quadrature is known for σ, or the mean is no number.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.gaussian_mean(mf.activations.relu, [0.0, 1.0], 1.0).round(4)  # 1/√2π, Φ(1) + φ(1)
        array([0.3989, 1.0833])
    """
    check.instance(activation, "activation", Activation, "one such as mf.activations.tanh")
    m, R = (check.array(value, name) for value, name in ((mean, "mean"), (scale, "scale")))
    try:
        m, R = np.broadcast_arrays(m, R)
    except ValueError:
        raise ValueError(
            f"scale must have a shape that broadcasts with {m.shape} of mean, got {R.shape}"
        ) from None
    if (R < 0).any():
        raise ValueError(f"scale must be >= 0, got {R[R < 0].flat[0]}")
    values, _, _ = _core.smooth(activation._core, np.ravel(m), np.ravel(R))
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"scale must be of a size at which E σ(m + R G) is finite and known for {activation!r}, got "
            f"m = {np.ravel(m)[at]:g}, R = {np.ravel(R)[at]:g}"
        )
    return float(values[0]) if m.ndim == 0 else np.asarray(values).reshape(m.shape)
