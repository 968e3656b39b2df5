"""The second part of layer-wise training: output weights by ridge regression on fresh samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._base import check, factors
from .._base.check import FloatArray
from .._base.rng import RNG, number_of
from ..model import Model

_BLOCK = 1 << 21  # most numbers of activations held at a time


def second_layer(
    model: Model, theta: npt.ArrayLike, *, samples: int, ridge: float = 1e-6, rng: RNG = None
) -> FloatArray:
    """Fit the output weights of given neurons by ridge regression on fresh samples: eq. (12.10).

    With σ(⟨w, x⟩ + b) given, the risk is quadratic in a, and SGD on it with decay goes to the minimiser of
    the mean of (y − f)² over samples plus ridge·Σa²/N, which is computed here. After `mf.LayerWise` it is
    what the directions that have been found are worth.

    Args:
        model: With output weights, ``output="fixed"`` or ``"trained"``.
        theta: Neurons, shape (N, D).
        samples: How many, fresh ones.
        ridge: λ > 0, which keeps the weights of similar neurons from growing.
        rng: None, int, SeedSequence or Generator.

    Returns:
        A copy of theta with other entries in the column of a.

    Examples:
        f = 2·x_0 of one neuron σ(t) = t:

        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.linear, output="fixed")
        >>> model = mf.Model(mf.data.Linear([2.0, 0.0]), net)
        >>> mf.theory.second_layer(model, [[0.1, 1.0, 0.0]], samples=100, ridge=1e-12, rng=0).round(6)
        array([[2., 1., 0.]])
    """
    check.instance(model, "model", Model, "an mf.Model")
    network = model.network
    if not network.has_a:
        raise ValueError(f'network must have output="fixed" or "trained", got {network!r}')
    n = check.count(samples, "samples")
    ridge = check.number(ridge, "ridge", above=0)
    found = check.array(theta, "theta", shape=(None, model.row)).copy()
    N, at = len(found), network.row(0)
    check.memory(24.0 * N * N, "theta", N)
    w = found[:, at:]
    b = found[:, at - 1] if network.has_b else 0.0
    gram, right = np.zeros((N, N)), np.zeros(N)
    step, seed = max(1, _BLOCK // N), number_of(rng)
    for first in range(0, n, step):
        X, y = model.data.draw(min(step, n - first), seed, first=first)
        with np.errstate(all="ignore"):
            features = network.scale / N * network.activation(X @ w.T + b)
            gram += factors.product(features.T, features) / n
            right += features.T @ y / n
    if not np.isfinite(gram).all() or not np.isfinite(right).all():
        raise ValueError(f"theta must have activations with finite squares, got |w| up to {abs(w).max():.3g}")
    try:
        found[:, 0] = factors.solve(gram + ridge / N * np.eye(N), right)
    except np.linalg.LinAlgError:
        raise ValueError(f"ridge must be larger for neurons that are alike, got {ridge:g}") from None
    return found
