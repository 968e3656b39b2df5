"""Steps of wide networks, large batches and tiny networks: each way of doing them against NumPy, bit for bit
on any number of threads and wherever a run is looked at."""

from __future__ import annotations

import _thread
import threading
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core, steppers
from mfcore._base.rng import seed_of

FULL = mf.Network(mf.activations.tanh, output="trained", bias="trained")


def problem(n, d, samples, seed=0, network=FULL):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, network.row(d))), rng.normal(size=(samples, d)), rng.normal(size=samples)


def numpy_step(theta, X, y, h, ridge=0.0):
    """One step in NumPy, tanh with a, b and w."""
    a, b, w = theta[:, 0], theta[:, 1], theta[:, 2:]
    s = np.tanh(X @ w.T + b)
    e = (y - s @ a / len(theta)) / len(y)
    c = e[:, None] * (1 - s * s) * a
    return theta + h * (np.column_stack([e @ s, c.sum(axis=0), c.T @ X]) - ridge * theta)


# Activations kept; made again; samples in two sections; few neurons and very many samples; one more tile.
@pytest.mark.parametrize(("n", "batch"), [(200, 100), (3000, 90), (150, 1500), (100, 5000), (5, 33)])
def test_a_step_of_a_large_batch_is_the_update_rule_on_any_number_of_threads(n, batch):
    theta, X, y = problem(n, 15, batch)
    expected = numpy_step(theta, X, y, 0.3, ridge=0.1)
    ends = []
    for threads in (1, 2, 5):
        rows = theta.copy()
        steppers.SGD(FULL, rows, ridge=0.1, threads=threads).step(X, y, 0.3)
        ends.append(rows)
    # Sums of at most 5000 terms of order 1 over the batch.
    np.testing.assert_allclose(ends[0], expected, rtol=1e-12, atol=1e-13)
    assert all(np.array_equal(end, ends[0]) for end in ends)


# The second keeps activations between the halves of a step on five threads only.
@pytest.mark.parametrize(("n", "batch"), [(60, 40), (3000, 100)])
@pytest.mark.parametrize("options", [{}, {"sphere": True}, {"temperature": 0.1}])
def test_steps_of_large_batches_of_a_run_are_those_of_a_stepper(n, batch, options):
    sphere, temperature = options.get("sphere", False), options.get("temperature", 0.0)
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained", sphere=sphere)
    d, h, steps = 9, 0.05, 3
    theta, _, _ = problem(n, d, 1, network=network)
    if sphere:
        theta[:, 2:] /= np.linalg.norm(theta[:, 2:], axis=1, keepdims=True)
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    seed = seed_of(0)
    X, y = sampler.draw(seed, 0, steps * batch)
    ends = []
    for threads in (1, 2, 5):
        run = _core.Sgd(
            network._core,
            [theta],
            [sampler],
            [seed],
            h,
            batch=batch,
            ridge=0.1,
            temperature=temperature,
            threads=threads,
        )
        run.advance(steps)
        ends.append(run.theta()[0])
    stepper = steppers.SGD(network, theta, ridge=0.1, temperature=temperature, rng=0)
    for k in range(steps):
        stepper.step(X[k * batch : (k + 1) * batch], y[k * batch : (k + 1) * batch], h)
    np.testing.assert_allclose(ends[0], theta, rtol=1e-11, atol=1e-12)  # three steps of rounding
    assert all(np.array_equal(end, ends[0]) for end in ends)


@pytest.mark.parametrize("samples", [8, 33, 80])
def test_a_short_run_of_a_wide_network_is_one_step_per_row(samples):
    theta, X, y = problem(3000, 100, samples)
    expected = theta.copy()
    for x, label in zip(X, y, strict=True):
        expected = numpy_step(expected, x[None], label[None], 0.01)
    ends = []
    for threads in (1, 2):
        rows = theta.copy()
        stepper = steppers.SGD(FULL, rows, threads=threads)
        stepper.run(X, y, 0.01)
        assert stepper.steps == samples
        ends.append(rows)
    np.testing.assert_allclose(ends[0], expected, rtol=1e-10, atol=1e-11)  # 80 steps of rounding
    assert np.array_equal(*ends)


# Blocks of 32 steps in the caller's rows; blocks of 8, few and many; rows whose last square is not whole.
@pytest.mark.parametrize(("n", "d", "samples"), [(2700, 101, 200), (14_000, 20, 30), (14_000, 20, 50)])
@pytest.mark.parametrize("bias", ["none", "trained"])
@pytest.mark.parametrize("output", ["one", "trained"])
def test_a_run_in_the_rows_of_the_caller_is_one_step_per_row(n, d, samples, bias, output):
    network = mf.Network(mf.activations.tanh, output=output, bias=bias)
    theta, X, y = problem(n, d, samples, network=network)
    wide = np.full((n, theta.shape[1] + 3), 7.0)  # rows that do not follow one another
    wide[:, : theta.shape[1]] = theta
    whole = steppers.SGD(network, wide[:, : theta.shape[1]], ridge=0.2, rates={"w": 2.0})
    whole.run(X, y, np.linspace(0.0, 0.01, samples))
    single = steppers.SGD(network, theta, ridge=0.2, rates={"w": 2.0})
    for x, label, h in zip(X, y, np.linspace(0.0, 0.01, samples), strict=True):
        single.step(x, label, h)
    np.testing.assert_allclose(whole.theta, theta, rtol=1e-10, atol=1e-11)  # 200 steps of rounding
    assert (wide[:, theta.shape[1] :] == 7.0).all()


def test_ctrl_c_in_a_run_in_the_rows_of_the_caller_leaves_the_steps_done():
    theta, X, y = problem(3000, 100, 60_000)
    stepper = steppers.SGD(FULL, theta.copy())

    def run():
        threading.Timer(0.1, _thread.interrupt_main).start()
        stepper.run(X, y, 1e-4)
        time.sleep(60)  # until Ctrl-C, where the run was faster

    with pytest.raises(KeyboardInterrupt):
        run()
    done = stepper.steps
    assert done % 32 == 0 or done == len(X)  # whole blocks
    again = steppers.SGD(FULL, theta)
    if done:
        again.run(X[:done], y[:done], 1e-4)
    assert np.array_equal(again.theta, stepper.theta)


def test_a_run_of_a_wide_network_refuses_neurons_that_are_not_finite():
    theta, X, y = problem(3000, 100, 8)
    theta[2999, -1] = np.nan
    with pytest.raises(ValueError, match="theta must be finite, got"):
        steppers.SGD(FULL, theta).run(X, y, 0.01)


@pytest.mark.parametrize("bad", [0, 40, 79])
def test_weights_that_overflow_unseen_by_predictions_end_a_short_run_of_a_wide_network(bad):
    network = mf.Network(mf.activations.relu)
    theta, X, y = problem(3000, 100, 80, network=network)
    X[bad, 0], X[bad, 1:], y[bad] = 1e300, 0.0, -1e12  # f is finite, and moves w to -inf, where it is 0
    theta[:, 0] = np.where(theta[:, 0] > 0, 1e-290, -1.0)
    X[np.arange(80) != bad, 0] = 0.0
    expected = theta.copy()
    before = steppers.SGD(network, expected)
    for k in range(bad):
        before.step(X[k], y[k], 0.01)
    stepper = steppers.SGD(network, theta)
    with pytest.raises(FloatingPointError, match=f"at step {bad};"):
        stepper.run(X, y, 0.01)
    assert stepper.steps == bad
    np.testing.assert_allclose(theta, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("bad", [0, 40, 79])
def test_a_short_run_of_a_wide_network_that_diverges_leaves_the_state_before_that_step(bad):
    theta, X, y = problem(3000, 100, 80)
    y[bad] = 1e308
    h = np.full(80, 0.01)
    h[bad] = 1e10
    expected = theta.copy()
    before = steppers.SGD(FULL, expected)
    for k in range(bad):
        before.step(X[k], y[k], 0.01)
    stepper = steppers.SGD(FULL, theta)
    with pytest.raises(FloatingPointError, match=f"at step {bad};"):
        stepper.run(X, y, h)
    assert stepper.steps == bad
    np.testing.assert_allclose(theta, expected, rtol=1e-10, atol=1e-11)


# One tile and two, whatever the instruction set: vectors are of 2, 4 or 8 numbers.
@pytest.mark.parametrize(("n", "d"), [(1, 2), (10, 2), (13, 7), (30, 5), (45, 3), (45, 32)])
@pytest.mark.parametrize("network", [FULL, mf.Network(mf.activations.relu)])
def test_a_tiny_network_has_the_same_bits_wherever_it_is_looked_at(network, n, d):
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    theta, _, _ = problem(n, d, 1, network=network)
    X, y = sampler.draw(0, 0, 200)

    def run(*stops):
        run = _core.Sgd(network._core, [theta], [sampler], [0], 0.1, ridge=0.1)
        for stop in stops:
            run.advance(stop)
        return run.theta()[0]

    whole = run(200)
    assert np.array_equal(run(1, 2, 33, 64, 65, 199, 200), whole)
    other = theta.copy()
    stepper = steppers.SGD(network, other, ridge=0.1)
    for x, label in zip(X, y, strict=True):
        stepper.step(x, label, 0.1)
    np.testing.assert_allclose(whole, other, rtol=1e-11, atol=1e-12)  # 200 steps of rounding
