"""f_q = ∫Φ_q dρ and the velocity −rates·∇Ψ_λ of weighted atoms in reduced coordinates, for the
integrators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..grids._separable import Separable
from ..reductions._model import ReducedModel

_CHUNK = 1 << 20  # most numbers of features that Python holds at a time


def features_at(reduced: ReducedModel, z: FloatArray, threads: int) -> FloatArray:
    """Φ_q(z), shape (n, Q), on this many threads."""
    core = reduced._compiled
    return reduced.features(z) if core is None else core.features(z, threads)


def gradients_at(reduced: ReducedModel, z: FloatArray, threads: int) -> FloatArray:
    """∂Φ_q/∂z_c, shape (n, Q, k), on this many threads."""
    core = reduced._compiled
    return reduced._gradients(z) if core is None else core.gradients(z, threads)


def moments(reduced: ReducedModel, z: FloatArray, weights: FloatArray, threads: int) -> FloatArray:
    """f_q = ∫Φ_q dρ of weighted atoms, summed chunk by chunk."""
    f = np.zeros(len(reduced.weights))
    for part in chunks(reduced, len(z)):
        f += weights[part] @ features_at(reduced, z[part], threads)
    return f


def chunks(reduced: ReducedModel, n: int) -> list[slice]:
    """Slices of n atoms, each with at most _CHUNK numbers of features and gradients."""
    rows = max(1, _CHUNK // (len(reduced.weights) * (1 + len(reduced.coordinates))))
    return [slice(k, k + rows) for k in range(0, n, rows)]


def clamped(z: FloatArray, walls: np.ndarray) -> FloatArray:
    """A copy with negative radii set to 0; rows may hold the coordinates several times in sequence."""
    return np.where(np.resize(walls, z.shape[1]), np.maximum(z, 0.0), z)


def system_of(
    reduced: ReducedModel,
    features: Separable | ReducedModel,
    weights: FloatArray,
    box: FloatArray | None,
    panels: _core.Panels,
    threads: int,
) -> _core.System:
    """The system ż_i = −rates·∇Ψ_λ(z_i; ρ), ρ = Σ w_i δ_{z_i}, for the integrators of the core."""
    masses, inner = weights.tolist(), np.empty((0, 2)) if box is None else box
    params = _core.AtomParams(
        rates=list(reduced.rates),
        decays=list(reduced.decays),
        nonnegative=list(reduced.nonnegative),
        volume=list(reduced.volume),
        ridge=float(reduced.ridge),
        low=inner[:, 0].tolist(),
        high=inner[:, 1].tolist(),
        apex=reduced._apex,
    )
    if isinstance(features, Separable):
        return _core.System.atoms_separable(features.compiled, masses, params, panels, threads)
    if features.pairs is not None:
        of_pairs = _gradient_of_pairs(features, weights, threads)
        return _core.System.atoms_calling(of_pairs, masses, params, panels)
    compiled = features._compiled
    if compiled is None:
        return _core.System.atoms_calling(_gradient(features, weights), masses, params, panels)
    p, y = reduced.weights.tolist(), reduced.targets.tolist()
    return _core.System.atoms(compiled, p, y, masses, params, panels, threads)


def _gradient(reduced: ReducedModel, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """∇Ψ(z_i; ρ) for features written in Python, computed chunk by chunk."""
    by_hand: Any = reduced.gradients

    def gradient(z: FloatArray) -> FloatArray:
        out = np.full(z.shape, np.nan)
        if not np.isfinite(z).all():  # reported as divergence
            return out
        at = clamped(z, np.array(reduced.nonnegative))
        with np.errstate(all="ignore"):
            residual = reduced.weights * (moments(reduced, at, weights, 1) - reduced.targets)
            for part in chunks(reduced, len(z)):
                out[part] = np.einsum("nqk,q->nk", by_hand(at[part]), residual)
        return out

    return gradient


def _gradient_of_pairs(
    reduced: ReducedModel, weights: FloatArray, threads: int
) -> Callable[[FloatArray], FloatArray]:
    """∇Ψ(z_i; ρ) by closed forms of pairs, on this many threads."""
    assert reduced.pairs is not None
    pairs, walls = reduced.pairs.with_threads(threads), np.array(reduced.nonnegative)

    def gradient(z: FloatArray) -> FloatArray:
        if not np.isfinite(z).all():  # reported as divergence
            return np.full(z.shape, np.nan)
        at = clamped(z, walls)
        with np.errstate(all="ignore"):
            return pairs.grad_psi(at, at, weights)

    return gradient
