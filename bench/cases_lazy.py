"""Tangent kernels of neurons, against explicit Jacobians: by hand in NumPy, by differentiation in JAX."""

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
        jacobian = np.empty((inputs, n * (d + 1)))  # 0.8 GB
        jacobian[:, :n] = s
        of_w = jacobian[:, n:].reshape(inputs, n, d)
        np.multiply(((1 - s * s) * a)[:, :, None], x[:, None], out=of_w)
        return np.asarray(jacobian @ jacobian.T) / n

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
        long=not quick,
    )


def _jax(theta: np.ndarray, x: np.ndarray) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    given, inputs, n = jnp.asarray(theta), jnp.asarray(x), len(theta)

    @jax.jit
    def kernel(t: Any, x: Any) -> Any:
        gradient = jax.jacrev(lambda t, one: jnp.tanh(t[:, 1:] @ one) @ t[:, 0])
        flat = jax.vmap(gradient, in_axes=(None, 0))(t, x).reshape(len(x), -1)  # 0.8 GB
        return flat @ flat.T / n

    return lambda: kernel(given, inputs).block_until_ready()


CASES = (tangent,)
