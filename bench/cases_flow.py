"""Population dynamics of finite networks: a velocity from held samples, and from closed-form pairs."""

from __future__ import annotations

from collections.abc import Iterator

import mfcore as mf
import numpy as np

from .cases_expectation import gradient_contenders, tanh_problem
from .harness import Case


def velocity(quick: bool) -> Iterator[Case]:
    """One right-hand side of particle dynamics, a and w trained, over a fixed set of samples."""
    model, theta, x, y = tanh_problem(quick, "trained")
    n, d = theta.shape[0], theta.shape[1] - 1
    stepper = mf.steppers.Flow(model, theta.copy(), expectation=mf.MonteCarlo(len(y), rng=0))
    yield Case(
        f"PD velocity, tanh, a and w, N={n}, d={d}, {len(y):,}",
        {"mfcore": lambda: -stepper.velocity(), **gradient_contenders(theta, x, y)},
        flops=4.0 * len(y) * n * d,
        bars={"numpy": 3.0, "jax": 3.0, "torch": 6.0},
    )


def pairs(quick: bool) -> Iterator[Case]:
    """The exact gradient of ReLU neurons under Gaussian inputs, N² pairs in closed form, memory O(N d)."""
    n, d = (100, 10) if quick else (4000, 50)
    teacher = np.eye(d)[:1]
    model = mf.Model(
        data=mf.data.Teacher(mf.Network(mf.activations.relu), teacher),
        network=mf.Network(mf.activations.relu),
    )
    w = np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d)

    def numpy(tile: int = 500) -> np.ndarray:
        """∇_w U = |v|/(2π)[sin θ·w/|w| + (π − θ)·v/|v|], tile by tile."""
        out = np.empty_like(w)
        for first in range(0, n, tile):
            rows = w[first : first + tile]
            out[first : first + tile] = _relu_pairs(rows, w) / n - _relu_pairs(rows, teacher)
        return out

    yield Case(
        f"exact ReLU pairs, N={n}, d={d}",
        {"mfcore": lambda: mf.grad_psi(model, w, w), "numpy": numpy},
        bars={"numpy": 6.0},
    )


def _relu_pairs(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Σ_j ∇_w U(w_i, v_j) for ReLU without bias, x ~ N(0, I)."""
    a, b = np.linalg.norm(w, axis=1), np.linalg.norm(v, axis=1)
    cosine = np.clip(w @ v.T / np.outer(a, b), -1, 1)
    angle = np.arccos(cosine)
    along = (np.sqrt(1 - cosine * cosine) @ b) / a
    return (along[:, None] * w + (np.pi - angle) @ v) / (2 * np.pi)


CASES = (velocity, pairs)
