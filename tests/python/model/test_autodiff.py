"""∇Ψ and ∇V against automatic differentiation of the definitions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mfcore as mf
import numpy as np
import pytest
from jax.scipy.special import erf

jax.config.update("jax_enable_x64", True)

ACTIVATIONS = {
    "relu": (mf.activations.relu, jax.nn.relu),
    "tanh": (mf.activations.tanh, jnp.tanh),
    "erf": (mf.activations.erf, erf),
    "sigmoid": (mf.activations.sigmoid, jax.nn.sigmoid),
    "softplus": (mf.activations.softplus, jax.nn.softplus),
    "silu": (mf.activations.silu, jax.nn.silu),
    "sin": (mf.activations.sin, jnp.sin),
    "cos": (mf.activations.cos, jnp.cos),
    "gelu": (mf.activations.gelu, lambda z: jax.nn.gelu(z, approximate=False)),
    "clip": (mf.activations.piecewise_linear([0.0, 1.0], [0.0, 1.0]), lambda z: jnp.clip(z, 0, 1)),
    "hermite": (mf.activations.hermite([0.1, 0.5, 0.3]), lambda z: 0.1 + 0.5 * z + 0.3 * (z**2 - 1) / 2**0.5),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("output", "bias"), [("one", "none"), ("trained", "none"), ("trained", "trained")])
def test_gradients_are_those_of_autodiff(name, output, bias):
    sigma, function = ACTIVATIONS[name]
    network = mf.Network(sigma, output=output, bias=bias)
    rng = np.random.default_rng(0)
    d, n, m, count = 5, 13, 7, 60
    X, y = rng.normal(size=(count, d)), rng.normal(size=count)
    theta, points = rng.normal(size=(n, network.row(d))), rng.normal(size=(m, network.row(d)))
    model = mf.Model(data=mf.data.Dataset(X, y), network=network, ridge=0.3)

    def neurons(rows):
        a = rows[:, 0] if network.has_a else 1.0
        b = rows[:, int(network.has_a)] if network.has_b else 0.0
        return a * function(X @ rows[:, network.row(0) :].T + b)  # (samples, neurons)

    residual = neurons(jnp.asarray(points)).mean(axis=1) - y

    def total_psi(rows):
        return jnp.sum(residual @ neurons(rows)) / count + 0.15 * jnp.sum(rows**2)

    expected = jax.grad(total_psi)(jnp.asarray(theta))
    # Means of 60 numbers of size O(10); both sides are exact derivatives.
    np.testing.assert_allclose(mf.grad_psi(model, theta, points), expected, atol=1e-13, rtol=1e-12)
