"""One-pass SGD of N neurons σ(⟨w, x⟩), σ rising from −2.5 to 7.5 between 0.5 and 1.5, in other libraries.

Each contender is a function (W, X, y, h) -> W after one step per row of X, written as its users would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mfcore as mf
import numpy as np

from .harness import installed

Run = Callable[[Any, Any, Any, float], Any]


def numpy_run(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    """The loop as one writes it down."""
    W = W.copy()
    for x, target in zip(X, y, strict=True):
        z = W @ x
        error = target - np.mean(np.clip(10 * (z - 0.5), 0, 10) - 2.5)
        W += np.outer(h * error * 10.0 * ((z > 0.5) & (z <= 1.5)), x)
    return W


def contenders(threads: int) -> dict[str, Callable[[], Run]]:
    """Makers of the runs of NumPy and of what else is installed; they import, and compile when called.

    numba runs on one thread and, where it may, on several ("numba par").
    """
    makers: dict[str, Callable[[], Run]] = {"numba": _numba, "jax": _jax, "torch": _torch}
    runs = {"numpy": lambda: numpy_run, **{name: makers[name] for name in installed(*makers)}}
    if threads > 1 and "numba" in runs:
        runs["numba par"] = lambda: _numba(threads)
    return runs


def tanh_spans() -> mf.activations.Custom:
    """tanh that a compiler makes a loop of vectors of; numba's own calls the C library for every number."""
    import numba

    @numba.njit(inline="always")
    def decay(z: float) -> float:  # e^{-2 |z|}: 256 times the root of it
        x = min(abs(z), 20.0) / -128.0
        e = 1.0
        for k in (10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
            e = 1.0 + x * e * (1.0 / k)
        for _ in range(8):
            e = e * e
        return e

    numbers = numba.types.CPointer(numba.types.float64)
    signature = numba.types.void(numba.types.int64, *[numbers] * 4, numba.types.voidptr)

    @numba.cfunc(signature, error_model="numpy")
    def tanh(n: int, z: Any, value: Any, slope: Any, curvature: Any, user: Any) -> None:
        z, value, slope = numba.carray(z, n), numba.carray(value, n), numba.carray(slope, n)
        if slope.ctypes.data == 0:
            for i in range(n):
                e = decay(z[i])
                value[i] = math.copysign((1.0 - e) / (1.0 + e), z[i])
        else:
            for i in range(n):
                e = decay(z[i])
                r = 1.0 / (1.0 + e)
                value[i] = math.copysign((1.0 - e) * r, z[i])
                slope[i] = 4.0 * e * (r * r)

    return mf.activations.custom(tanh, name="tanh by spans")


def _numba(threads: int = 1) -> Run:
    import numba

    @numba.njit(fastmath=True, parallel=threads > 1)
    def steps(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> None:
        n, d = W.shape
        z = np.empty(n)
        for k in range(len(y)):
            f = 0.0
            for i in numba.prange(n):
                s = 0.0
                for j in range(d):
                    s += W[i, j] * X[k, j]
                z[i] = s
                f += min(max(10.0 * (s - 0.5), 0.0), 10.0) - 2.5
            error = y[k] - f / n
            for i in numba.prange(n):
                if 0.5 < z[i] <= 1.5:
                    c = h * error * 10.0
                    for j in range(d):
                        W[i, j] += c * X[k, j]

    def run(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
        numba.set_num_threads(threads)
        W = W.copy()
        steps(W, X, y, h)
        return W

    return run


def _jax() -> Run:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def scan(W: Any, X: Any, y: Any, h: float) -> Any:
        def step(W: Any, sample: Any) -> Any:
            x, target = sample
            z = W @ x
            error = target - jnp.mean(jnp.clip(10 * (z - 0.5), 0, 10) - 2.5)
            c = h * error * 10.0 * ((z > 0.5) & (z <= 1.5))
            return W + c[:, None] * x[None, :], None

        return jax.lax.scan(step, W, (X, y))[0]

    return lambda W, X, y, h: scan(W, X, y, h).block_until_ready()


def _torch() -> Run:
    import torch

    def run(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> Any:
        torch.set_num_threads(1)  # faster than two on products of this size
        w, samples, targets = (torch.from_numpy(np.array(v)) for v in (W, X, y))
        with torch.no_grad():
            for x, target in zip(samples, targets.tolist(), strict=True):
                z = w @ x
                error = target - (torch.clamp(10 * (z - 0.5), 0, 10) - 2.5).mean()
                w.addr_(h * error * 10.0 * ((z > 0.5) & (z <= 1.5)), x)
        return w

    return run


def batch_contenders() -> dict[str, Callable[[], Run]]:
    """The same for mini-batches: X is (steps, batch, d), y is (steps, batch)."""
    builders: dict[str, Callable[[], Run]] = {"jax": _jax_batches, "torch": _torch_batches}
    return {"numpy": lambda: numpy_batches} | {name: builders[name] for name in installed(*builders)}


def numpy_batches(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    """Two matrix products a step."""
    W = W.copy()
    for x, target in zip(X, y, strict=True):
        z = x @ W.T
        error = target - np.mean(np.clip(10 * (z - 0.5), 0, 10) - 2.5, axis=1)
        W += (h / len(x) * error[:, None] * (10.0 * ((z > 0.5) & (z <= 1.5)))).T @ x
    return W


def _jax_batches() -> Run:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def scan(W: Any, X: Any, y: Any, h: float) -> Any:
        def step(W: Any, sample: Any) -> Any:
            x, target = sample
            z = x @ W.T
            error = target - jnp.mean(jnp.clip(10 * (z - 0.5), 0, 10) - 2.5, axis=1)
            c = h / len(x) * error[:, None] * (10.0 * ((z > 0.5) & (z <= 1.5)))
            return W + c.T @ x, None

        return jax.lax.scan(step, W, (X, y))[0]

    return lambda W, X, y, h: scan(W, X, y, h).block_until_ready()


def _torch_batches() -> Run:
    import torch

    def run(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> Any:
        w, samples, targets = (torch.from_numpy(np.array(v)) for v in (W, X, y))
        with torch.no_grad():
            for x, target in zip(samples, targets, strict=True):
                z = x @ w.T
                error = target - (torch.clamp(10 * (z - 0.5), 0, 10) - 2.5).mean(dim=1)
                w.addmm_((h / len(x) * error[:, None] * (10.0 * ((z > 0.5) & (z <= 1.5)))).T, x)
        return w

    return run
