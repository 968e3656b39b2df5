"""SGD of few neurons in many dimensions, whose weight vectors lie along the lanes, against NumPy."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from neurons.test_sgd import networks, random_rows, sequential, start

FULL = mf.Network(mf.activations.tanh, output="trained", bias="trained")


@settings(deadline=None, max_examples=60)
@given(
    network=networks(),
    n=st.integers(1, 5),  # the last one is of tiles
    d=st.sampled_from([63, 64, 65, 71, 96, 127, 130, 1000]),
    steps=st.integers(1, 100),
    ridge=st.sampled_from([0.0, 0.3]),
    rates=st.tuples(*[st.floats(0.5, 2.0)] * 3),
    threads=st.integers(1, 3),
    stops=st.lists(st.integers(0, 100), max_size=3),
)
def test_long_rows_equal_the_sequential_algorithm(network, n, d, steps, ridge, rates, threads, stops):
    theta, h = random_rows(network, n, d, steps), 0.02 / d
    X, y = mf.data.IsotropicGaussians(d, 0.5)._sampler.draw(5, 0, steps)
    expected = list(sequential(network, theta, X, y, np.full(steps, h), ridge=ridge, rates=rates))
    whole, run = (start(network, theta, 5, h, ridge=ridge, rates=rates, threads=k) for k in (1, threads))
    whole.advance(steps)
    for at in sorted({min(stop, steps) for stop in [*stops, steps]}):
        run.advance(at)
        # Rounding of at most 100 steps on sums of at most 1000 terms, of size O(30).
        np.testing.assert_allclose(run.theta()[0], expected[at], rtol=1e-11, atol=1e-11)
    assert np.array_equal(run.theta()[0], whole.theta()[0])


def test_a_fixed_bias_stays_and_counts():
    network = mf.Network(mf.activations.tanh, output="trained", bias="fixed")
    theta = random_rows(network, 2, 70, 0)
    fixed, trained = (start(n, theta, 5, 1e-3, rates=(1.0, 0.0, 1.0)) for n in (network, FULL))
    for run in (fixed, trained):
        run.advance(50)
    assert np.array_equal(fixed.theta()[0][:, 1], theta[:, 1])
    assert np.array_equal(fixed.theta()[0], trained.theta()[0])


def test_single_precision_follows_double_precision():
    theta = random_rows(FULL, 3, 201, 0)
    double, single = (start(FULL, theta, 3, 1e-4, single_precision=p) for p in (False, True))
    double.advance(300)
    single.advance(300)
    gap = np.abs(double.theta()[0] - single.theta()[0]).max()
    assert 0 < gap < 1e-4  # 300 steps of relative rounding 6e-8 on numbers of size 3


@pytest.mark.parametrize("sphere", [False, True])
def test_neurons_that_overflow_are_divergence(sphere):
    network = mf.Network(mf.activations.tanh, sphere=sphere)
    theta = random_rows(network, 2, 100, 0) * (1 if sphere else 0.1)  # slopes that are not 0
    for target in (1, 7, 32, 64):
        run = start(network, theta, 3, 1e308)
        assert run.advance(target) is _core.End.diverged
        assert 0 <= run.diverged_at[0] < target
        assert np.isfinite(run.theta()[0]).all()


def test_the_state_of_a_diverged_run_is_that_of_its_step():
    network = mf.Network(mf.activations.relu, output="trained")
    theta = random_rows(network, 3, 64, 0)
    run = start(network, theta, 3, 5.0)
    run.advance(10_000)
    bad = run.diverged_at[0]
    assert 0 < bad < 10_000
    for stops in ([bad + 1], [bad - 1, bad + 1]):
        run, before = (start(network, theta, 3, 5.0) for _ in range(2))
        for stop in stops:
            run.advance(stop)
        assert run.diverged_at[0] == bad
        assert run.steps[0] <= bad
        before.advance(run.steps[0])
        assert np.array_equal(run.theta()[0], before.theta()[0])
