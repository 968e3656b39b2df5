"""Spikes on a circle from their convolution with a Dirichlet kernel, by forward–backward steps of m atoms.

The first example of Chizat and Bach (2018): minimise (1/2λ)‖(1/m)Σ w_i ψ(· − θ_i) − y‖² + (1/m)Σ|w_i|. The
problem is convex in the measure, and its minimum over all of them is known up to a duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base.check import FloatArray

ORDER, SPIKES = 7, 5  # of the kernel ψ(x) = Σ_{|k| ≤ 7} e^{2πikx}; of the truth
LAMBDA = 0.2
STEP = 2e-3
SLOW = (2 * np.pi * ORDER) ** -2  # rate of places beside that of weights: the fastest wave has wavelength 2π
_FREQUENCIES = 2 * np.pi * np.arange(1, ORDER + 1)
_GRID = np.linspace(0.0, 1.0, 4096, endpoint=False)


@dataclass(frozen=True)
class Spikes:
    """Weights and places, of shape (problems, atoms); of the truth, or of what was found."""

    w: FloatArray
    theta: FloatArray


def truth(rng: np.random.Generator) -> Spikes:
    """Five spikes of random signs: distinct tenths of one parity, each with a jitter of up to 1/10."""
    places = 0.2 * np.arange(SPIKES) + 0.1 * rng.integers(2) + 0.1 * rng.uniform(size=SPIKES)
    return Spikes(rng.choice([-1.0, 1.0], size=(1, SPIKES)), np.mod(places, 1.0)[None])


def waves(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal coordinates of ψ(· − θ), 1 and √2 cos, √2 sin, and their derivatives in θ: (…, 15)."""
    angle = theta[..., None] * _FREQUENCIES
    c, s = np.sqrt(2) * np.cos(angle), np.sqrt(2) * np.sin(angle)
    one = np.ones((*theta.shape, 1))
    return (
        np.concatenate([one, c, s], axis=-1),
        np.concatenate([0 * one, -_FREQUENCIES * s, _FREQUENCIES * c], axis=-1),
    )


def signal(spikes: Spikes) -> FloatArray:
    """Coordinates of Σ w_i ψ(· − θ_i), (problems, 15)."""
    return np.asarray(np.einsum("bi,bik->bk", spikes.w, waves(spikes.theta)[0]))


def descend(y: FloatArray, atoms: int, steps: int, saved: int) -> list[Spikes]:
    """Forward–backward steps from w = 0 and even places, for all problems at once; as seen `saved` times.

    Gradients are those of the particle flow, m times those of the objective: the masses are w/m.
    """
    w = np.zeros((len(y), atoms))
    theta = np.repeat(np.arange(atoms)[None] / atoms, len(y), axis=0)
    seen = [Spikes(w / atoms, theta)]
    for k in range(1, steps + 1):
        phi, slope = waves(theta)
        residual = (np.einsum("bi,bik->bk", w, phi) / atoms - y) / LAMBDA
        moved = w - STEP * np.einsum("bik,bk->bi", phi, residual)
        theta = theta - STEP * SLOW * w * np.einsum("bik,bk->bi", slope, residual)
        w = np.sign(moved) * np.maximum(np.abs(moved) - STEP, 0.0)
        if k * saved // steps > (k - 1) * saved // steps:
            seen.append(Spikes(w / atoms, np.mod(theta, 1.0)))
    return seen


def objective_and_gap(y: FloatArray, found: Spikes) -> tuple[FloatArray, FloatArray]:
    """½‖f − y‖² + λ|μ| of each problem, and a bound on what it is above the minimum over all measures.

    The bound is the duality gap at the residual, scaled so that |⟨·, ψ(· − θ)⟩| ≤ λ at 4096 places.
    """
    residual = y - signal(found)
    objective = 0.5 * np.square(residual).sum(axis=-1) + LAMBDA * np.abs(found.w).sum(axis=-1)
    largest = np.abs(residual @ waves(_GRID)[0].T).max(axis=-1)
    dual = residual * np.minimum(1.0, LAMBDA / np.maximum(largest, LAMBDA))[:, None]
    value = 0.5 * np.square(y).sum(axis=-1) - 0.5 * np.square(y - dual).sum(axis=-1)
    return objective, objective - value
