"""SGD at its limits: divergence between save points, decay that empties a step, large batches, teams."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core


def start(network, theta, step, law=None, seed=3, **options):
    law = law or mf.data.IsotropicGaussians(theta.shape[1] - network.row(0), 0.5)
    return _core.Sgd(network._core, [theta], [law._sampler], [seed], step, **options)


def growing(blocks):
    """A run that diverges, and the step at which it does."""
    network = mf.Network(mf.activations.relu, output="trained")
    theta = np.random.default_rng(0).normal(size=(20, 11))
    run = start(network, theta, 5.0, block=blocks)
    run.advance(10_000)
    return lambda: start(network, theta, 5.0, block=blocks), run.diverged_at[0]


@pytest.mark.parametrize("block", [0, 1, 32])
def test_the_state_of_a_diverged_run_is_that_of_its_step(block):
    again, bad = growing(block)
    for stops in ([bad + 1], [bad - 1, bad + 1], [bad - 2, 10_000]):
        run = again()
        for stop in stops:
            run.advance(stop)
        assert run.diverged_at[0] == bad
        assert run.steps[0] <= bad
        before = again()
        before.advance(run.steps[0])
        assert np.array_equal(run.theta()[0], before.theta()[0])


def test_neurons_that_overflow_are_divergence_even_if_no_prediction_says_so():
    network = mf.Network(mf.activations.tanh)
    theta = np.random.default_rng(0).normal(size=(5, 40))
    for target in (1, 7, 32, 64):
        run = start(network, theta, 1e308)
        assert run.advance(target) is _core.End.diverged
        assert 0 <= run.diverged_at[0] < target
        assert np.isfinite(run.theta()[0]).all()


@pytest.mark.parametrize("factor", [1.0, 1.5])  # the step forgets w altogether, or overshoots
def test_noise_stays_exact_where_decay_leaves_nothing_of_a_step(factor):
    n, d, h, temperature = 4000, 40, 2.0**-10, 0.5  # powers of 2: h λ is exactly 1
    network = mf.Network(mf.activations.linear)
    law = mf.data.Linear(np.zeros(d))
    run = start(network, np.zeros((n, d)), h, law, ridge=factor / h, temperature=temperature)
    for at in (3, 5, 6, 30):
        run.advance(at)
        keep = (1 - factor) ** 2
        variance = 2 * h * temperature * (1 - keep**at) / (1 - keep)
        w = run.theta()[0]
        measured = ((w - w.mean(axis=0)) ** 2).sum() / (n - 1) / d
        # Relative error of a variance from n d normals: sqrt(2 / (n d)); 5 of them: false alarm 6e-7 each.
        assert abs(measured / variance - 1) < 5 * np.sqrt(2 / (n * d))


def test_large_batches_need_no_memory_beyond_their_samples_and_activations():
    # Inner products of all pairs of samples would take 3 TB.
    batch, network = 400_000, mf.Network(mf.activations.tanh)
    theta = np.random.default_rng(0).normal(size=(3, 2))
    run = start(network, theta, 0.1, batch=batch, temperature=0.1)
    assert run.advance(1) is _core.End.reached
    assert np.isfinite(run.theta()[0]).all()


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_replicas_stop_at_a_common_step(threads):
    method = mf.SGD(200, step=1e-7, replicas=3)
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=50, delta=0.5),
        network=mf.Network(mf.activations.tanh, output="trained"),
        init=mf.init.Gaussian(std=0.5),
    )
    run = mf.solve(model, method, horizon=1.0, save_at=0, risk=False, rng=0, threads=threads, max_seconds=0.2)
    assert run.status == "out of time"
    steps = run.meta["steps"]
    again = mf.solve(model, method, horizon=steps * 1e-7, save_at=0, risk=False, rng=0)
    assert again.meta["steps"] == steps
    assert np.array_equal(run.final, again.final)
