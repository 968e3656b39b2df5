"""Potentials, gradients, risks and interactions over nodes, against plain NumPy."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ACTIVATIONS = {
    "tanh": (mf.activations.tanh, np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "clip": (
        mf.activations.piecewise_linear([0.0, 1.0], [0.0, 1.0]),
        lambda z: np.clip(z, 0, 1),
        lambda z: ((z > 0) & (z < 1)).astype(float),
    ),
}
sizes = st.integers(1, 75)


def reference(network, theta, points, weights, X, y):
    """Ψ, ∇Ψ, U and R by the definitions, sample by sample averages in one matrix each."""
    _, value, slope = next(v for v in ACTIVATIONS.values() if v[0] == network.activation)

    def split(rows):
        a = rows[:, 0] if network.has_a else np.ones(len(rows))
        b = rows[:, int(network.has_a)] if network.has_b else np.zeros(len(rows))
        return a, b, rows[:, network.row(0) :]

    a, b, w = split(theta)
    pa, pb, pw = split(points)
    z = X @ w.T + b
    s_points = value(X @ pw.T + pb)
    f = s_points @ (pa * weights)
    e = (f - y) / len(y)
    gradient = []
    if network.has_a:
        gradient.append(e @ value(z))
    if network.has_b:
        gradient.append(a * (e @ slope(z)))
    gradient.extend(((e[:, None] * slope(z)).T @ X * a[:, None]).T)
    U = (value(z) * a).T @ (s_points * pa) / len(y)
    return a * (e @ value(z)), np.array(gradient).T, U, np.mean((y - f) ** 2)


def networks():
    return st.builds(
        mf.Network,
        st.sampled_from([v[0] for v in ACTIVATIONS.values()]),
        output=st.sampled_from(["one", "trained"]),
        bias=st.sampled_from(["none", "trained"]),
    )


@settings(deadline=None, max_examples=60)
@given(network=networks(), n=sizes, m=sizes, d=st.integers(1, 20), count=sizes, seed=st.integers(0, 99))
def test_functions_over_a_dataset_are_its_averages(network, n, m, d, count, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(count, d)), rng.normal(size=count)
    theta, points = rng.normal(size=(n, network.row(d))), rng.normal(size=(m, network.row(d)))
    weights = rng.dirichlet(np.ones(m))
    model = mf.Model(data=mf.data.Dataset(X, y), network=network, init=None)
    rho = mf.Cloud(points, weights)
    psi, gradient, U, risk = reference(network, theta, points, weights, X, y)
    # Sums of at most 75 terms of size O(10): rounding stays far below 1e-12 of that scale.
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(mf.psi(model, theta, rho), psi, **close)
    np.testing.assert_allclose(mf.grad_psi(model, theta, rho), gradient, **close)
    np.testing.assert_allclose(mf.U(model, theta, points), U, **close)
    np.testing.assert_allclose(mf.risk(model, rho), risk, **close)
    np.testing.assert_allclose(mf.V(model, theta), psi - U @ weights, rtol=1e-11, atol=1e-11)


@settings(deadline=None, max_examples=30)
@given(network=networks(), n=sizes, d=st.integers(1, 20), seed=st.integers(0, 99))
def test_neurons_in_their_own_field_share_work_but_not_results(network, n, d, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, d)), rng.normal(size=30)
    theta = rng.normal(size=(n, network.row(d)))
    model = mf.Model(data=mf.data.Dataset(X, y), network=network, init=None)
    psi, gradient, _, _ = reference(network, theta, theta, np.full(n, 1 / n), X, y)
    for measure in (theta, theta.copy()):  # the same object takes the shared path, a copy the general one
        np.testing.assert_allclose(mf.psi(model, theta, measure), psi, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mf.grad_psi(model, theta, measure), gradient, rtol=1e-12, atol=1e-12)


@pytest.fixture
def problem():
    rng = np.random.default_rng(5)
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=7, delta=0.5),
        network=mf.Network(mf.activations.tanh, output="trained", bias="trained"),
        init=mf.init.Gaussian(std=1.0),
        ridge=0.3,
    )
    return model, rng.normal(size=(41, 9)), rng.normal(size=(13, 9))


def test_monte_carlo_functions_average_the_samples_the_law_draws(problem):
    model, theta, points = problem
    rule = mf.MonteCarlo(700, rng=3)
    X, y = model.data.draw(700, rng=3)
    weights = np.full(13, 1 / 13)
    psi, gradient, U, risk = reference(model.network, theta, points, weights, X, y)
    decay = 0.5 * 0.3 * np.square(theta).sum(axis=1)
    # Averages of 700 terms of size O(10).
    np.testing.assert_allclose(mf.psi(model, theta, points, expectation=rule), psi + decay, rtol=1e-12)
    np.testing.assert_allclose(
        mf.grad_psi(model, theta, points, expectation=rule), gradient + 0.3 * theta, atol=1e-12
    )
    np.testing.assert_allclose(mf.U(model, theta, points, expectation=rule), U, atol=1e-12)
    np.testing.assert_allclose(mf.risk(model, points, expectation=rule), risk, rtol=1e-12)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_no_bit(problem, threads):
    model, theta, points = problem
    theta = np.tile(theta, (40, 1))  # enough work for threads to be used
    rule = mf.MonteCarlo(3000, rng=3)

    def results(k):
        options = {"expectation": rule, "threads": k}
        yield mf.psi(model, theta, points, **options)
        yield mf.grad_psi(model, theta, theta, **options)
        yield mf.U(model, theta, points, **options)
        yield mf.predict(model, theta, model.data.draw(5000, rng=0)[0], threads=k)
        yield np.array(mf.risk(model, theta, **options))

    for one, many in zip(results(1), results(threads), strict=True):
        assert np.array_equal(one, many)


def test_the_gradient_is_that_of_psi(problem):
    model, theta, points = problem
    rule, h = mf.MonteCarlo(500, rng=1), 1e-5
    gradient = mf.grad_psi(model, theta, points, expectation=rule)
    for j in range(theta.shape[1]):
        step = np.zeros_like(theta)
        step[:, j] = h
        up = mf.psi(model, theta + step, points, expectation=rule)
        down = mf.psi(model, theta - step, points, expectation=rule)
        # Central differences: h² f'''/6 + rounding/h, both below 1e-9 for h = 1e-5 and values O(10).
        np.testing.assert_allclose((up - down) / (2 * h), gradient[:, j], atol=5e-9)


def test_a_fixed_output_weight_neither_moves_nor_decays(problem):
    model, theta, _ = problem
    trained = model
    fixed = mf.Model(
        data=model.data,
        network=mf.Network(mf.activations.tanh, output="fixed", bias="trained"),
        init=model.init,
        ridge=model.ridge,
    )
    rule = mf.MonteCarlo(100, rng=0)
    gradient = mf.grad_psi(fixed, theta, theta, expectation=rule)
    assert np.all(gradient[:, 0] == 0)
    assert np.array_equal(gradient[:, 1:], mf.grad_psi(trained, theta, theta, expectation=rule)[:, 1:])
    decay = mf.psi(trained, theta, theta, expectation=rule) - mf.psi(fixed, theta, theta, expectation=rule)
    np.testing.assert_allclose(decay, 0.5 * 0.3 * theta[:, 0] ** 2, atol=1e-12)  # rounding of O(1) values


def test_on_the_sphere_the_gradient_is_tangential():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(20, 5))
    theta = np.column_stack([rng.normal(size=20), w / np.linalg.norm(w, axis=1, keepdims=True)])
    network = mf.Network(mf.activations.tanh, output="trained", sphere=True)
    data = mf.data.Dataset(rng.normal(size=(30, 5)), rng.normal(size=30))
    model = mf.Model(data=data, network=network, init=None, ridge=0.5)
    free = mf.Model(
        data=data, network=mf.Network(mf.activations.tanh, output="trained"), init=None, ridge=0.5
    )
    tangential = mf.grad_psi(model, theta, theta)
    full = mf.grad_psi(free, theta, theta)
    assert np.abs((tangential[:, 1:] * theta[:, 1:]).sum(axis=1)).max() < 1e-15
    assert np.array_equal(tangential[:, 0], full[:, 0])
    rest = full[:, 1:] - tangential[:, 1:]  # what was removed is radial
    radial = (rest * theta[:, 1:]).sum(axis=1, keepdims=True) * theta[:, 1:]
    np.testing.assert_allclose(rest, radial, atol=1e-14)


def test_out_receives_the_result_and_arguments_are_not_written(problem):
    model, theta, points = problem
    rule = mf.MonteCarlo(50, rng=0)
    before = theta.copy()
    out = np.empty_like(theta)
    assert mf.grad_psi(model, theta, points, expectation=rule, out=out) is out
    assert np.array_equal(out, mf.grad_psi(model, theta, points, expectation=rule))
    for other in (theta.tolist(), theta.astype(np.float32), np.asfortranarray(theta), theta[::-1][::-1]):
        mf.grad_psi(model, other, points, expectation=rule)
    assert np.array_equal(theta, before)
    with pytest.raises(ValueError, match=r"out must have shape \(41,\), got \(40,\)"):
        mf.psi(model, theta, points, expectation=rule, out=np.empty(40))


def test_predict_is_the_mean_of_the_neurons(problem):
    model, theta, _ = problem
    X = np.random.default_rng(1).normal(size=(83, 7))
    expected = np.tanh(X @ theta[:, 2:].T + theta[:, 1]) @ theta[:, 0] / len(theta)
    np.testing.assert_allclose(mf.predict(model, theta, X), expected, atol=1e-14)  # 41 terms of size O(1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m, t: mf.V(m, t[:, 1:]),
            ValueError,
            r"theta must have shape \(N, 9\) or \(9,\), got \(41, 8\)",
        ),
        (lambda m, t: mf.V(m, t * np.nan), ValueError, r"theta must be finite, got nan at \[0, 0\]"),
        (lambda m, t: mf.V(m, t * 1j), TypeError, r"theta must hold real numbers, got dtype complex128"),
        (lambda m, t: mf.V(m, t[:0]), ValueError, r"theta must not be empty, got shape \(0, 9\)"),
        (lambda m, t: mf.V("model", t), TypeError, r"model must be an mf.Model"),
        (lambda m, t: mf.V(m, t, expectation="exact"), TypeError, r"expectation must be mf.Exact\(\)"),
        (lambda m, t: mf.V(m, t, threads=0), ValueError, r"threads must be >= 1, got 0"),
        (lambda m, t: mf.V(m, t, threads=5000), ValueError, r"threads must be <= 4096, got 5000"),
        (lambda m, t: mf.MonteCarlo(-5), ValueError, r"samples must be >= 1, got -5"),
        (
            lambda m, t: mf.predict(m, t, np.ones((2, 3))),
            ValueError,
            r"X must have shape \(N, 7\) or \(7,\), got \(2, 3\)",
        ),
        (lambda m, t: mf.estimate(m, t, samples=0), ValueError, r"samples must be >= 1, got 0"),
    ],
)
def test_misuse_names_argument_rule_and_value(problem, call, error, message):
    model, theta, _ = problem
    with pytest.raises(error, match=message):
        call(model, theta)


def test_gradients_on_the_sphere_refuse_rows_without_direction():
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=3, delta=0.5),
        network=mf.Network(mf.activations.relu, sphere=True),
        init=None,
    )
    theta = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(
        ValueError, match=r"theta must have w != 0 on a network with sphere=True, got 0 in row 1"
    ):
        mf.grad_psi(model, theta, theta[:1])
