"""Tangent kernels of neurons, against an explicit Jacobian in NumPy and automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import theory

from .harness import Case, Prepared, installed


def tangent(quick: bool) -> Iterator[Case]:
    """K(x, x') of tanh neurons with output weights; the others make all gradients first."""
    n, d, inputs = (40, 10, 30) if quick else (2000, 100, 500)
    network = mf.Network(mf.activations.tanh, output="trained")
    model = mf.Model(
        mf.data.IsotropicGaussians(d=d, delta=0.5), network, mf.init.Gaussian(std=1 / np.sqrt(d))
    )
    assert model.init is not None
    theta = model.init.sample(network, d, n, rng=1)
    x, _ = model.data.draw(inputs, rng=0)

    def numpy() -> np.ndarray:
        a, w = theta[:, 0], theta[:, 1:]
        s = np.tanh(x @ w.T)
        of_w = ((1 - s * s) * a)[:, :, None] * x[:, None]
        jacobian = np.concatenate([s, of_w.reshape(inputs, -1)], axis=1) / np.sqrt(n)
        return np.asarray(jacobian @ jacobian.T)

    contenders: dict[str, Callable[[], Any]] = {
        "mfcore": lambda: theory.tangent_kernel(model, x, measure=theta),
        "numpy": numpy,
    }
    if installed("jax"):
        contenders["jax"] = Prepared(partial(_jax, theta, x))
    yield Case(
        f"tangent kernel, tanh, a and w, N={n}, d={d}, {inputs} inputs",
        contenders,
        bars={"numpy": 5.0, "jax": 5.0},
    )


def _jax(theta: np.ndarray, x: np.ndarray) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    given, inputs, n = jnp.asarray(theta), jnp.asarray(x), len(theta)

    @jax.jit
    def kernel(t: Any, x: Any) -> Any:
        jacobian = jax.jacrev(lambda t: jnp.tanh(x @ t[:, 1:].T) @ t[:, 0] / jnp.sqrt(n))(t)
        flat = jacobian.reshape(len(x), -1)
        return flat @ flat.T

    return lambda: kernel(given, inputs).block_until_ready()


CASES = (tangent,)
