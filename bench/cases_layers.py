"""Layer-wise training: samples drawn inside the timing on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import _core

from .harness import Case, Prepared

H, SIZE, D = 1e-3, 0.01, 200
LAW = mf.data.Staircase(D, [(0,), (0, 1)])
NETWORK = mf.Network(mf.activations.hermite([0.0, 1.0, 1.0, 1.0, 1.0]), output="fixed")


def _start(n: int) -> np.ndarray:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(n, D))
    return np.column_stack([np.full(n, SIZE), signs / np.sqrt(D)])


def _run(n: int, batch: int) -> _core.LayerWise:
    return _core.LayerWise(NETWORK._core, _start(n), LAW._sampler, 0, H, batch=batch)


def _sigma(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h_1 + h_2 + h_3 + h_4 and its slope, as one writes them with NumPy."""
    h = [np.ones_like(z), z]
    for k in range(1, 4):
        h.append((z * h[k] - np.sqrt(k) * h[k - 1]) / np.sqrt(k + 1))
    slope = sum(np.sqrt(k) * h[k - 1] for k in range(1, 5))
    return h[1] + h[2] + h[3] + h[4], slope


def numpy_steps(theta: np.ndarray, X: np.ndarray, y: np.ndarray, batch: int) -> np.ndarray:
    """Eqs. (12.8) and (12.9) with arrays, a step for every `batch` rows."""
    theta = theta.copy()
    a, w = theta[:, 0], theta[:, 1:]
    small, norms = np.abs(w) < 0.5, np.linalg.norm(w, axis=1)
    for first in range(0, len(X), batch):
        x, target = X[first : first + batch], y[first : first + batch]
        value, slope = _sigma(x @ w.T)
        residual = target - value @ a / len(a)
        move = (H / batch) * ((slope * a * residual[:, None]).T @ x)
        inside = np.where(small, w, 0.0)
        along = (move * inside).sum(axis=1) / np.maximum((inside**2).sum(axis=1), 1e-300)
        moved = np.where(small, inside + move - along[:, None] * inside, 0.0)
        moved *= (norms / np.maximum(np.linalg.norm(moved, axis=1), 1e-300))[:, None]
        w[:] = np.where(small, moved, np.clip(w + move, -1.0, 1.0))
        small &= np.abs(w) < 0.5
    return theta


def layer_wise(quick: bool) -> Iterator[Case]:
    """A few neurons and many, a sample a step and a batch."""
    for n, batch, bar in ((20, 1, 5.0), (20, 100, 5.0), (400, 1, 2.0), (400, 100, 2.0)):
        steps = 10 if quick else max(20, 4_000_000 // (n * D * batch))
        slow = 3 if quick else max(10, steps // 10)

        def ours(n: int = n, batch: int = batch, steps: int = steps) -> Callable[[], Any]:
            run = _run(n, batch)
            return lambda: run.advance(run.step + steps)

        def theirs(n: int = n, batch: int = batch, slow: int = slow) -> Callable[[], Any]:
            generator, start = np.random.default_rng(0), _start(n)

            def call() -> Any:
                X = generator.choice([-1.0, 1.0], size=(slow * batch, D))
                return numpy_steps(start, X, X[:, 0] + X[:, 0] * X[:, 1], batch)

            return call

        def moved(n: int = n, batch: int = batch) -> np.ndarray:
            run = _run(n, batch)
            run.advance(20)
            return np.asarray(run.theta())

        def given(n: int = n, batch: int = batch) -> np.ndarray:
            return numpy_steps(_start(n), *LAW._sampler.draw(0, 0, 20 * batch), batch)

        yield Case(
            f"LayerWise N={n}, d={D}, batches of {batch}",
            {"mfcore": Prepared(ours), "numpy": Prepared(theirs)},
            flops=4.0 * n * D * batch,
            tolerance=None,
            checks={"mfcore": moved, "numpy": given},
            units={"mfcore": steps, "numpy": slow},
            bars={} if quick else {"numpy": bar},
        )


CASES = (layer_wise,)
