"""Steppers for foreign loops: against NumPy, against the rungs, and in the caller's own memory."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core, steppers
from mfcore._base.rng import seed_of
from mfcore.neurons import _methods as methods
from mfcore.neurons._sgd import start_of
from mfcore.runs._solve import solve

OPTIONS = {
    "output": st.sampled_from(["one", "fixed", "trained"]),
    "bias": st.sampled_from(["none", "trained"]),
    "sphere": st.booleans(),
    "ridge": st.sampled_from([0.0, 0.3]),
    "rate": st.sampled_from([1.0, 0.4]),
    "seed": st.integers(0, 99),
}


def neurons_of(network, n, d, seed):
    theta = np.random.default_rng(seed).normal(size=(n, network.row(d)))
    if network.sphere:
        w = theta[:, network.row(0) :]
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return theta


def samples_of(count, d, seed):
    rng = np.random.default_rng([seed, 1])
    return rng.normal(size=(count, d)), rng.normal(size=count)


def reference(network, theta, X, y, h, ridge, temperature, rates, seed, step):
    """One step in NumPy, tanh."""
    n, row = theta.shape
    at = network.row(0)
    speed = np.zeros(row)
    for name in network.trained:
        speed[network.blocks(row - at)[name]] = rates.get(name, 1.0)
    a = theta[:, 0] if network.has_a else np.ones(n)
    b = theta[:, at - 1] if network.has_b else np.zeros(n)
    s = np.tanh(X @ theta[:, at:].T + b)
    e = (y - s @ a / n) / len(y)
    c = e[:, None] * (1 - s * s) * a
    pull = -ridge * theta
    if network.has_a:
        pull[:, 0] += e @ s
    if network.has_b:
        pull[:, at - 1] += c.sum(axis=0)
    pull[:, at:] += c.T @ X
    g = _core.normals(seed, "langevin", step, 0, n * row).reshape(n, row)
    theta = theta + h * speed * pull + np.sqrt(2 * h * temperature * speed) * g
    if network.sphere:
        theta[:, at:] /= np.linalg.norm(theta[:, at:], axis=1, keepdims=True)
    return theta


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 140),
    d=st.integers(1, 40),
    batch=st.integers(1, 70),
    temperature=st.sampled_from([0.0, 0.1]),
    **OPTIONS,
)
def test_a_step_is_the_update_rule_for_every_combination_of_options(
    n, d, batch, output, bias, sphere, ridge, temperature, rate, seed
):
    network = mf.Network(mf.activations.tanh, output=output, bias=bias, sphere=sphere)
    theta, (X, y) = neurons_of(network, n, d, seed), samples_of(batch, d, seed)
    rates = {network.trained[0]: rate}
    stepper = steppers.SGD(network, theta, ridge=ridge, temperature=temperature, rates=rates, rng=seed)
    expected = theta.copy()
    for k, h in enumerate((0.1, 0.05)):
        stepper.step(X, y, h)
        expected = reference(network, expected, X, y, h, ridge, temperature, rates, seed_of(seed), k)
    # Two steps of sums of at most 140 terms; one division by |w| >= 0.1 for d = 1 on the sphere.
    np.testing.assert_allclose(theta, expected, rtol=1e-11, atol=1e-12)
    assert stepper.steps == 2


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 30),
    count=st.integers(1, 260),
    temperature=st.sampled_from([0.0, 0.0, 0.1]),
    **OPTIONS,
)
def test_a_run_is_one_step_per_row(n, d, count, output, bias, sphere, ridge, temperature, rate, seed):
    network = mf.Network(mf.activations.tanh, output=output, bias=bias, sphere=sphere)
    theta, (X, y) = neurons_of(network, n, d, seed), samples_of(count, d, seed)
    other = theta.copy()
    h = np.random.default_rng([seed, 2]).uniform(0.0, 0.1 / d, size=count)
    options = {"ridge": ridge, "temperature": temperature, "rng": seed, "rates": {"w": rate}}
    whole, single = (steppers.SGD(network, rows, **options) for rows in (theta, other))
    whole.run(X, y, h)
    for row, label, size in zip(X, y, h, strict=True):
        single.step(row, label, size)
    # The blocked algorithm is exact; at most 260 steps of rounding, not amplified at steps this small.
    np.testing.assert_allclose(theta, other, rtol=1e-10, atol=1e-11)
    assert whole.steps == single.steps == count


@pytest.mark.parametrize("batch", [1, 3])
def test_a_run_on_the_samples_of_the_rung_ends_where_it_does(batch):
    n, d, steps, h = 50, 20, 700, 0.002
    law, network = mf.data.IsotropicGaussians(d, 0.5), mf.Network(mf.activations.tanh, output="trained")
    model = mf.Model(law, network, mf.init.Gaussian(1.0), ridge=0.1, rates={"a": 2.0})
    rung = solve(
        model, methods.SGD(n, h, batch=batch), horizon=h * steps, save_at=[], risk=False, rng=5
    ).final
    X, y = law.draw(steps * batch, rng=5)
    theta = start_of(model, n, seed_of(5))
    stepper = steppers.SGD(network, theta, ridge=0.1, rates={"a": 2.0})
    if batch == 1:
        stepper.run(X[:500], y[:500], h)
        stepper.run(X[500:], y[500:], h)
    else:
        for k in range(0, len(X), batch):
            stepper.step(X[k : k + batch], y[k : k + batch], h)
    np.testing.assert_allclose(theta, rung, atol=1e-12)  # 700 steps of rounding


def test_noisy_steps_go_on_at_the_next_address():
    network = mf.Network(mf.activations.tanh)
    X, y = samples_of(6, 4, 0)
    one, two = neurons_of(network, 5, 4, 0), neurons_of(network, 5, 4, 0)
    whole = steppers.SGD(network, one, temperature=0.2, rng=7)
    whole.run(X, y, 0.1)
    first = steppers.SGD(network, two, temperature=0.2, rng=7)
    first.run(X[:4], y[:4], 0.1)
    second = steppers.SGD(network, two, temperature=0.2, rng=7)
    second.steps = first.steps
    second.run(X[4:], y[4:], 0.1)
    assert np.array_equal(one, two)


@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_steps_of_size_zero_change_nothing(temperature):
    network = mf.Network(mf.activations.gelu, output="trained", bias="trained")
    theta = neurons_of(network, 30, 5, 0)
    kept = theta.copy()
    X, y = samples_of(150, 5, 0)
    sgd = steppers.SGD(network, theta, ridge=0.5, temperature=temperature, rng=0)
    sgd.step(X[0], y[0], 0.0)
    sgd.step(X, y, 0.0)
    sgd.run(X, y, 0.0)
    model = mf.Model(mf.data.Dataset(X, y), network)
    flow = steppers.Flow(model, theta)
    flow.step(0)
    flow.integrate(0)
    assert np.array_equal(theta, kept)


@pytest.mark.parametrize("batch", [1, 20, 100])
def test_threads_change_no_bit(batch):
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    X, y = samples_of(200, 150, 0)
    ends = []
    for threads in (1, 2, 5):
        theta = neurons_of(network, 700, 150, 0)
        sgd = steppers.SGD(network, theta, ridge=0.1, temperature=0.1, rng=0, threads=threads)
        sgd.step(X[:batch], y[:batch], 1e-3)
        sgd.run(X[:3], y[:3], 1e-3)
        quiet = steppers.SGD(network, theta, threads=threads)
        quiet.run(X, y, 1e-3)
        ends.append(theta)
    assert np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[0], ends[2])


def test_predictions_are_those_of_the_network():
    network = mf.Network(mf.activations.relu, output="trained", bias="trained")
    theta, (X, _) = neurons_of(network, 21, 6, 0), samples_of(9, 6, 0)
    expected = np.maximum(X @ theta[:, 2:].T + theta[:, 1], 0) @ theta[:, 0] / 21
    sgd = steppers.SGD(network, theta)
    np.testing.assert_allclose(sgd.predict(X), expected, atol=1e-14)
    np.testing.assert_allclose(sgd.predict(X[0]), expected[:1], atol=1e-14)


@pytest.mark.parametrize("rows", [1, 200])
def test_divergence_raises_and_leaves_the_last_finite_state(rows):
    network = mf.Network(mf.activations.linear)
    theta, (X, y) = neurons_of(network, 4, 3, 0), samples_of(5000, 3, 0)
    sgd = steppers.SGD(network, theta)

    def go():
        for k in range(0, len(X), rows):
            sgd.run(X[k : k + rows], y[k : k + rows], 100.0)

    with pytest.raises(FloatingPointError, match="no longer finite at step") as caught:
        go()
    assert f"step {sgd.steps};" in str(caught.value)
    assert np.isfinite(theta).all()
    assert np.abs(theta).max() > 1e100
    state = theta.copy()
    with pytest.raises(FloatingPointError):
        sgd.step(X[sgd.steps], y[sgd.steps], 1.0)
    assert np.array_equal(theta, state)


def erf_problem(n=8, d=3, **options):
    rng = np.random.default_rng(0)
    network = mf.Network(mf.activations.erf, output="trained", bias="trained")
    teacher = mf.Network(mf.activations.erf, output="trained")
    model = mf.Model(mf.data.Teacher(teacher, rng.normal(size=(2, d + 1))), network, **options)
    return model, rng.normal(size=(n, d + 2))


@pytest.mark.parametrize("expectation", [None, mf.MonteCarlo(300, rng=0)])
def test_flow_steps_are_those_of_gd_and_velocities_minus_the_gradient(expectation):
    model, theta = erf_problem(ridge=0.2, rates={"a": 3.0})
    start = theta.copy()
    flow = steppers.Flow(model, theta, expectation=expectation)
    speed = np.array([3.0, 1, 1, 1, 1])
    gradient = mf.grad_psi(model, start, start, expectation=expectation)
    out = np.empty_like(theta)
    assert flow.velocity(out=out) is out
    np.testing.assert_allclose(out, -speed * gradient, atol=1e-14)
    assert np.array_equal(out, flow.velocity())
    for _ in range(10):
        flow.step(0.05)
    method = methods.GD(8, 0.05, expectation=expectation)
    gd = solve(model.replace(init=mf.init.Points(start)), method, horizon=0.5, save_at=[], risk=False)
    assert np.array_equal(theta, gd.final)
    assert flow.t == pytest.approx(0.5)


def test_integration_follows_the_flow_and_can_be_cut():
    model, theta = erf_problem()
    start, parts = theta.copy(), theta.copy()
    steppers.Flow(model, theta).integrate(2.0, rtol=1e-10, atol=1e-12)
    cut = steppers.Flow(model, parts)
    for t in (0.5, 1.0, 0.5):
        cut.integrate(t, rtol=1e-10, atol=1e-12)
    assert cut.t == 2.0
    np.testing.assert_allclose(parts, theta, atol=1e-8)  # some ten steps of error rtol
    rung = methods.Particles(8, rtol=1e-10, atol=1e-12)
    run = solve(model.replace(init=mf.init.Points(start)), rung, horizon=2.0, save_at=[], risk=False)
    assert np.array_equal(theta, run.final)


def test_a_flow_that_leaves_the_finite_numbers_raises():
    model = mf.Model(mf.data.Linear([1.0, 2.0]), mf.Network(mf.activations.linear))
    theta = np.ones((2, 2))
    flow = steppers.Flow(model, theta)
    with pytest.raises(FloatingPointError, match="smaller step than 1e\\+30"):
        [flow.step(1e30) for _ in range(20)]
    assert np.isfinite(theta).all()


def frozen():
    theta = np.zeros((3, 2))
    theta.flags.writeable = False
    return theta


@pytest.mark.parametrize(
    ("theta", "error", "message"),
    [
        (np.zeros((3, 2), order="F"), ValueError, r"rows without gaps, .* got strides \(8, 24\)"),
        (np.zeros((3, 4))[:, ::2], ValueError, r"rows without gaps, .* got strides \(32, 16\)"),
        (np.zeros((3, 2))[::-1], ValueError, r"one after the other, got strides \(-16, 8\)"),
        (frozen(), ValueError, r"theta must be writable, got a read-only array; np.array\(theta\) copies it"),
        (np.zeros((3, 2), dtype=np.float32), TypeError, "theta must be a float64 NumPy array, got float32"),
        ([[1.0, 2.0]], TypeError, "theta must be a float64 NumPy array, got list"),
        (np.zeros(3), ValueError, r"theta must have shape \(any, .*\), got \(3,\)"),
        (np.zeros((0, 2)), ValueError, r"got \(0, 2\)"),
    ],
)
def test_neurons_that_could_only_be_copied_are_refused(theta, error, message):
    network = mf.Network(mf.activations.linear)
    with pytest.raises(error, match=message):
        steppers.SGD(network, theta)
    with pytest.raises(error, match=message):
        steppers.Flow(mf.Model(mf.data.Linear([1.0, 2.0]), network), theta)


def test_misuse_names_the_argument():
    network = mf.Network(mf.activations.linear)
    sgd = steppers.SGD(network, np.zeros((3, 2)))
    for call, message in [
        (lambda: sgd.step([[1.0, 2.0, 3.0]], 1.0, 0.1), r"X must have shape \(any, 2\), got \(1, 3\)"),
        (lambda: sgd.step([[1.0, 2.0]], [1.0, 2.0], 0.1), r"y must have shape \(1,\), got \(2,\)"),
        (lambda: sgd.step([1.0, np.nan], 1.0, 0.1), "X must be finite"),
        (lambda: sgd.step([1.0, 2.0], 1.0, -0.1), "h must be >= 0, got -0.1"),
        (lambda: sgd.run(np.ones((2, 2)), np.ones(2), [0.1, -0.1]), "h must be >= 0, got -0.1"),
        (lambda: sgd.run(np.ones((2, 2)), np.ones(2), np.ones(3)), r"h must have shape \(2,\)"),
        (lambda: steppers.SGD(network, np.zeros((3, 2)), rates={"a": 1.0}), "rates must name trained blocks"),
        (lambda: steppers.SGD(network, np.zeros((3, 2)), ridge=-1.0), "ridge must be >= 0"),
        (
            lambda: steppers.Flow(mf.Model(mf.data.Linear([1.0]), network), np.zeros((3, 2))),
            "theta must have",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert sgd.steps == 0
    noisy = mf.Model(mf.data.Linear([1.0, 1.0]), network, temperature=0.1)
    with pytest.raises(ValueError, match="temperature must be 0 for a flow"):
        steppers.Flow(noisy, np.zeros((3, 2)))
    limit = mf.Model(mf.data.IsotropicGaussians(np.inf, 0.5), network)
    with pytest.raises(ValueError, match="data must have finite d"):
        steppers.Flow(limit, np.zeros((3, 2)))


def test_steppers_show_what_they_hold():
    network = mf.Network(mf.activations.linear)
    theta = np.zeros((3, 2))
    sgd = steppers.SGD(network, theta)
    assert sgd.theta is theta
    assert "theta=<array 3×2>, steps=0" in repr(sgd)
    flow = steppers.Flow(mf.Model(mf.data.Linear([1.0, 1.0]), network), theta)
    assert flow.theta is theta
    assert "t=0" in repr(flow)
