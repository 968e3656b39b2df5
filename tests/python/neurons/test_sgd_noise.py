"""Langevin noise of blocked SGD is that of the sequential algorithm, path by path."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core

SEED, H, TEMPERATURE = 11, 1e-3, 0.2


def increments(n, d, X, steps, keep):
    """g_k of a sequential run that has the projections and the sum of complements the block draws.

    The block sees projections e_k = g_k Q on the span of its samples, addressed as numbers q·n + i of
    (langevin_span, k), and one draw ξ for the sum of the complements. All of that sum is put into the last
    step: only the sum counts.
    """
    factor = np.linalg.cholesky(X @ X.T)
    Q = np.linalg.solve(factor, X)  # orthonormal rows spanning the samples
    e = np.stack(
        [_core.normals(SEED, "langevin_span", k, 0, steps * n).reshape(steps, n).T for k in range(steps)]
    )
    xi = _core.normals(SEED, "langevin_rest", 0, 0, n * d).reshape(n, d)
    g = e @ Q
    scale = np.sqrt(sum(keep ** (2 * (steps - 1 - k)) for k in range(steps)))
    g[-1] += scale * (xi - (xi @ Q.T) @ Q)
    return g


@pytest.mark.parametrize("ridge", [0.0, 40.0])
@pytest.mark.parametrize("d", [30, 150])
def test_a_block_is_the_sequential_run_with_the_same_projections(d, ridge):
    n = 37
    network = mf.Network(mf.activations.tanh)
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    start = np.random.default_rng(0).normal(size=(n, d))
    run = _core.Sgd(network._core, [start], [sampler], [SEED], H, ridge=ridge, temperature=TEMPERATURE)
    steps = run.block_steps
    assert steps > 1
    run.advance(steps)

    X, y = sampler.draw(SEED, 0, steps)
    keep = 1 - H * ridge
    w = start.copy()
    for x, target, g in zip(X, y, increments(n, d, X, steps, keep), strict=True):
        z = w @ x
        error = target - np.tanh(z).mean()
        w = keep * w + np.outer(H * error * (1 - np.tanh(z) ** 2), x) + np.sqrt(2 * H * TEMPERATURE) * g
    # A dozen steps on numbers of size 3, and a basis from a Cholesky factor of condition below 10.
    np.testing.assert_allclose(run.theta()[0], w, atol=1e-12)


def test_few_dimensions_draw_the_increments_that_all_rungs_share():
    n, d = 20, 3
    network = mf.Network(mf.activations.tanh, output="trained")
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    start = np.random.default_rng(0).normal(size=(n, d + 1))
    rates = (2.0, 1.0, 0.5)
    run = _core.Sgd(network._core, [start], [sampler], [SEED], H, temperature=TEMPERATURE, rates=rates)
    assert run.block_steps == 1
    run.advance(5)
    X, y = sampler.draw(SEED, 0, 5)
    theta = start.copy()
    for k in range(5):
        a, w = theta[:, 0].copy(), theta[:, 1:]
        z = w @ X[k]
        error = y[k] - np.mean(a * np.tanh(z))
        g = _core.normals(SEED, "langevin", k, 0, n * (d + 1)).reshape(n, d + 1)
        speed = np.array([rates[0], *[rates[2]] * d])
        drift = np.column_stack([error * np.tanh(z), np.outer(error * a * (1 - np.tanh(z) ** 2), X[k])])
        theta = theta + H * speed * drift + np.sqrt(2 * H * TEMPERATURE * speed) * g
    np.testing.assert_allclose(run.theta()[0], theta, atol=1e-14)


def test_the_scalars_of_a_block_receive_noise_of_their_own():
    n, d = 4000, 60
    network = mf.Network(mf.activations.linear, output="trained", bias="trained")
    sampler = mf.data.Linear(np.ones(d) / d)._sampler
    start = np.zeros((n, d + 2))
    run = _core.Sgd(network._core, [start], [sampler], [SEED], H, temperature=1.0, rates=(2.0, 3.0, 1.0))
    run.advance(40)
    theta = run.theta()[0]
    for column, rate in ((theta[:, 0], 2.0), (theta[:, 1], 3.0)):
        # Variance 2 h rate per step (the forces are of order h each); relative error sqrt(2/n) = 2.2 %, 5 of
        # them: false alarm 6e-7, and below 1 % from the forces.
        assert abs(column.var() / (2 * H * rate * 40) - 1) < 5 * np.sqrt(2 / n) + 0.01
    correlation = np.corrcoef(theta[:, 0], theta[:, 1])[0, 1]
    assert abs(correlation) < 5 / np.sqrt(n)  # false alarm 6e-7
