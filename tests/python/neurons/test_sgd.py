"""Blocked SGD against the sequential algorithm in NumPy, and its contracts on bits."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from scipy.special import expit

ACTIVATIONS = {
    "relu": (mf.activations.relu, lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "tanh": (mf.activations.tanh, np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    # sigma(0) != 0: what fills the last tile of neurons must stay out of the prediction
    "sigmoid": (mf.activations.sigmoid, expit, lambda z: expit(z) * expit(-z)),
}


def sequential(network, theta, X, y, steps, *, batch=1, ridge=0.0, rates=(1.0, 1.0, 1.0)):
    """SGD as one writes it down: yields the neurons before every step and at the end."""
    _, value, slope = next(v for v in ACTIVATIONS.values() if v[0] == network.activation)
    theta, n = theta.copy(), len(theta)
    a_at, b_at, w = 0, int(network.has_a), slice(network.row(0), None)
    for k, h in enumerate(steps):
        yield theta.copy()
        x, target = X[k * batch : (k + 1) * batch], y[k * batch : (k + 1) * batch]
        a = theta[:, a_at].copy() if network.has_a else np.ones(n)
        z = x @ theta[:, w].T + (theta[:, b_at] if network.has_b else 0.0)
        e = (target - value(z) @ a / n) / batch
        forces = [e @ value(z), (e @ slope(z)) * a, ((e[:, None] * slope(z)).T @ x) * a[:, None]]
        if network.output == "trained":
            theta[:, a_at] += rates[0] * h * (forces[0] - ridge * a)
        if network.has_b:
            theta[:, b_at] += rates[1] * h * (forces[1] - ridge * theta[:, b_at])
        theta[:, w] += rates[2] * h * (forces[2] - ridge * theta[:, w])
        if network.sphere:
            theta[:, w] /= np.linalg.norm(theta[:, w], axis=1, keepdims=True)
    yield theta


def networks(sphere=None):
    return st.builds(
        mf.Network,
        st.sampled_from([v[0] for v in ACTIVATIONS.values()]),
        output=st.sampled_from(["one", "fixed", "trained"]),
        bias=st.sampled_from(["none", "trained"]),
        sphere=st.booleans() if sphere is None else st.just(sphere),
    )


def random_rows(network, n, d, seed):
    theta = np.random.default_rng(seed).normal(size=(n, network.row(d)))
    if network.sphere:
        w = theta[:, network.row(0) :]
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return theta


def start(network, theta, seed, step, **options):
    d = theta.shape[1] - network.row(0)
    return _core.Sgd(
        network._core, [theta], [mf.data.IsotropicGaussians(d, 0.5)._sampler], [seed], step, **options
    )


@settings(deadline=None, max_examples=100)
@given(
    network=networks(),
    n=st.integers(1, 60),
    d=st.integers(1, 50),
    batch=st.sampled_from([1, 1, 2, 3, 5, 8, 70]),
    steps=st.integers(1, 120),
    block=st.sampled_from([0, 1, 7, 16, 64]),
    ridge=st.sampled_from([0.0, 0.3]),
    rates=st.tuples(*[st.floats(0.5, 2.0)] * 3),
    schedule=st.booleans(),
    threads=st.integers(1, 3),
    data=st.data(),
)
def test_blocks_equal_the_sequential_algorithm(
    network, n, d, batch, steps, block, ridge, rates, schedule, threads, data
):
    theta, h = random_rows(network, n, d, steps), 0.02 / d
    sizes = h * (1.0 + np.arange(steps)) ** -0.25 if schedule else np.full(steps, h)
    step = (lambda first, count: h * (1.0 + np.arange(first, first + count)) ** -0.25) if schedule else h
    run = start(network, theta, 5, step, batch=batch, ridge=ridge, rates=rates, block=block, threads=threads)
    X, y = mf.data.IsotropicGaussians(d, 0.5)._sampler.draw(5, 0, steps * batch)
    expected = list(sequential(network, theta, X, y, sizes, batch=batch, ridge=ridge, rates=rates))
    middle = data.draw(st.integers(0, steps))
    for at in (middle, steps):
        run.advance(at)
        # Rounding of at most 120 steps on numbers of size O(10); measured 3e-14.
        np.testing.assert_allclose(run.theta()[0], expected[at], rtol=1e-12, atol=1e-12)


def test_a_thousand_steps_stay_within_1e_12():
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    theta = random_rows(network, 83, 45, 0)
    X, y = mf.data.IsotropicGaussians(45, 0.5)._sampler.draw(1, 0, 1000)
    *_, expected = sequential(network, theta, X, y, np.full(1000, 1e-3), ridge=0.2)
    run = start(network, theta, 1, 1e-3, ridge=0.2)
    run.advance(1000)
    assert np.abs(run.theta()[0] - expected).max() < 1e-12


@settings(deadline=None, max_examples=30)
@given(
    network=networks(),
    temperature=st.sampled_from([0.0, 0.1]),
    d=st.integers(1, 40),
    stops=st.lists(st.integers(0, 130), max_size=6),
    threads=st.integers(1, 4),
)
def test_stops_and_threads_change_no_bit(network, temperature, d, stops, threads):
    theta = random_rows(network, 300, d, 1)
    one = start(network, theta, 3, 1e-3, temperature=temperature, threads=1)
    one.advance(130)
    many = start(network, theta, 3, 1e-3, temperature=temperature, threads=threads)
    for stop in sorted(stops):
        many.advance(stop)
    many.advance(130)
    assert np.array_equal(one.theta()[0], many.theta()[0])


def test_a_restored_run_goes_on_to_the_same_bits():
    network = mf.Network(mf.activations.relu, output="trained")
    theta = random_rows(network, 50, 30, 1)
    whole = start(network, theta, 3, 1e-3, temperature=0.05)
    whole.advance(100)
    first = start(network, theta, 3, 1e-3, temperature=0.05)
    first.advance(57)
    rest = start(network, theta + 1.0, 3, 1e-3, temperature=0.05)
    rest.advance(80)
    rest.restore(first.state())
    assert rest.steps == [57]
    assert np.array_equal(rest.theta()[0], first.theta()[0])
    rest.advance(100)
    assert np.array_equal(rest.theta()[0], whole.theta()[0])


def test_permuting_neurons_permutes_the_result():
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    theta = random_rows(network, 31, 5, 0)
    order = np.random.default_rng(0).permutation(31)
    runs = [start(network, rows, 3, 1e-2) for rows in (theta, theta[order])]
    for run in runs:
        run.advance(200)
    # Sums over neurons in another order: rounding only.
    np.testing.assert_allclose(runs[0].theta()[0][order], runs[1].theta()[0], rtol=1e-12, atol=1e-13)


def test_single_precision_follows_double_precision():
    network = mf.Network(mf.activations.tanh, output="trained")
    theta = random_rows(network, 100, 20, 0)
    double, single = (start(network, theta, 3, 1e-3, single_precision=p) for p in (False, True))
    double.advance(500)
    single.advance(500)
    gap = np.abs(double.theta()[0] - single.theta()[0]).max()
    assert 0 < gap < 1e-4  # 500 steps of relative rounding 6e-8 on numbers of size 3


def test_divergence_is_reported_with_its_step_and_the_last_finite_state():
    network = mf.Network(mf.activations.relu, output="trained")
    run = start(network, random_rows(network, 20, 10, 0), 3, 5.0)
    run.advance(10_000)
    assert 0 < run.diverged_at[0] < 10_000
    assert run.steps[0] <= run.diverged_at[0]
    assert np.isfinite(run.theta()[0]).all()


@pytest.mark.parametrize("d", [3, 40])  # direct noise, projected noise
def test_langevin_noise_has_the_moments_of_the_linear_network(d):
    n, h, steps, ridge, temperature = 4000, 0.01, 96, 0.8, 0.3
    network = mf.Network(mf.activations.linear)
    run = _core.Sgd(
        network._core,
        [np.zeros((n, d))],
        [mf.data.Linear(np.ones(d) / d, noise=0.1)._sampler],
        [11],
        h / d,
        ridge=ridge * d,
        temperature=temperature,
    )
    for at in (7, 50, steps):  # inside and at the ends of blocks
        run.advance(at)
        w = run.theta()[0]
        spread = w - w.mean(axis=0)
        # All neurons see the same force of the data (linear activation): w' = (1 - h lambda) w + noise.
        keep = (1 - h * ridge) ** 2
        variance = 2 * h / d * temperature * (1 - keep**at) / (1 - keep)
        measured = (spread**2).sum() / (n - 1) / d
        # Relative error of a variance from n d normals: sqrt(2 / (n d)); 5 of them: false alarm 6e-7 each.
        assert abs(measured / variance - 1) < 5 * np.sqrt(2 / (n * d))
        kurtosis = (spread**4).mean() / (spread**2).mean() ** 2
        assert abs(kurtosis - 3) < 5 * np.sqrt(24 / (n * d)) + 6 / n


def test_noise_of_successive_steps_is_independent_however_it_is_asked_for():
    # Increments over [0, 5), [5, 16), [16, 40) of a run asked for step by step, inside and across blocks.
    n, d, h = 3000, 60, 1e-3
    network = mf.Network(mf.activations.linear)
    sampler = mf.data.Linear(np.ones(d) / d)._sampler
    run = _core.Sgd(network._core, [np.zeros((n, d))], [sampler], [7], h, temperature=1.0)
    states = [np.zeros((n, d))]
    for at in (5, 16, 40):
        run.advance(at)
        states.append(run.theta()[0] - run.theta()[0].mean(axis=0))
    increments = np.diff(states, axis=0)
    lengths = np.array([5, 11, 24])
    for increment, length in zip(increments, lengths, strict=True):
        # Variance 2 h per step; relative error sqrt(2 / (n d)) = 0.33 %, 5 of them.
        assert abs(increment.var() / (2 * h * length) - 1) < 0.017 + 1 / n
    for i, j in ((0, 1), (0, 2), (1, 2)):
        correlation = np.mean(increments[i] * increments[j]) / np.sqrt(
            increments[i].var() * increments[j].var()
        )
        assert abs(correlation) < 5 / np.sqrt(n * d)  # false alarm 6e-7 each


def linear_model(w, noise=0.0, ridge=0.0):
    return mf.Model(
        data=mf.data.Linear(w, noise=noise),
        network=mf.Network(mf.activations.linear),
        init=mf.init.Points(np.zeros((1, len(w)))),
        ridge=ridge,
    )


def test_finite_step_second_moment_is_exact():
    # Eq. (10.16): linear activation, Sigma = I: E|e'|² = (1 - 2h + h²(d + 2)) E|e|² + h² tau² d.
    d, h, steps, tau = 5, 0.05, 20, 0.5
    w = np.linspace(1, 2, d)
    model = linear_model(w, noise=tau)
    run = mf.solve(
        model, mf.SGD(1, step=h, replicas=20_000), horizon=h * steps, save_at=[h * steps], risk=False, rng=0
    )
    squares = ((run.final[:, 0] - w) ** 2).sum(axis=1)
    expected = w @ w
    for _ in range(steps):
        expected = (1 - 2 * h + h * h * (d + 2)) * expected + h * h * tau**2 * d
    error = squares.std(ddof=1) / np.sqrt(len(squares))
    assert abs(squares.mean() - expected) < 5 * error  # false alarm 6e-7


def test_the_mean_over_runs_is_gradient_descent():
    # Linear activation, decay: the mean of SGD is exactly population gradient descent.
    d, h, steps = 4, 0.02, 30
    model = linear_model(np.linspace(1, 2, d), ridge=0.5)
    run = mf.solve(model, mf.SGD(1, step=h, replicas=20_000), horizon=h * steps, save_at=0, risk=False, rng=1)
    w = np.zeros(d)
    for _ in range(steps):
        w = w - h * mf.grad_psi(model, w[None], w[None])[0]
    mean = run.final[:, 0].mean(axis=0)
    error = run.final[:, 0].std(axis=0, ddof=1) / np.sqrt(20_000)
    assert (np.abs(mean - w) < 5 * error).all()  # false alarm 2e-6


def test_replicas_equal_their_own_runs():
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=6, delta=0.5),
        network=mf.Network(mf.activations.tanh, output="trained"),
        init=mf.init.Gaussian(std=0.5),
    )
    together = mf.solve(model, mf.SGD(9, step=0.01, replicas=5), horizon=1.0, rng=4)
    alone = mf.solve(model, mf.SGD(9, step=0.01), horizon=1.0, rng=4)
    assert together.final.shape == (5, 9, 7)
    assert together.risk.shape == (51, 5)
    assert np.array_equal(together.final[0], alone.final)
    assert len({rows.tobytes() for rows in together.final}) == 5
    again = mf.solve(model, mf.SGD(9, step=0.01, replicas=3), horizon=1.0, rng=4, threads=1)
    assert np.array_equal(again.final, together.final[:3])


def test_a_dataset_is_passed_through_in_a_new_order_each_time():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    law = mf.data.Dataset(X, y)
    drawn, _ = law._run_sampler().draw(5, 0, 36)
    passes = drawn.reshape(3, 12, 3)
    for one in passes:
        assert np.array_equal(np.sort(one[:, 0]), np.sort(X[:, 0]))
    assert not np.array_equal(passes[0], passes[1])
    assert np.array_equal(law._run_sampler().draw(5, 17, 6)[0], drawn[17:23])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"neurons": 0, "step": 1.0}, ValueError, "neurons must be >= 1, got 0"),
        ({"neurons": 5, "step": 0.0}, ValueError, "step must be > 0, got 0.0"),
        ({"neurons": 5, "step": 1.0, "batch": 1.5}, ValueError, "batch must be an integer, got 1.5"),
        ({"neurons": 5, "step": 1.0, "precision": "float16"}, ValueError, "precision must be one of"),
        (
            {"neurons": 5, "step": 1.0, "precision": "float32", "coupled": True},
            ValueError,
            "precision must be 'float64' with coupled=True, as other rungs draw, got 'float32'",
        ),
        ({"neurons": 5, "step": 1.0, "schedule": 3}, TypeError, "schedule must be a function"),
    ],
)
def test_misuse_of_sgd_names_argument_rule_and_value(arguments, error, message):
    with pytest.raises(error, match=message):
        mf.SGD(**arguments)
