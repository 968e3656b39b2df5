"""Streaming Monte-Carlo estimates: means and standard errors against NumPy on the same samples."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def model_of(d, output="trained", bias="trained"):
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=d, delta=0.5),
        network=mf.Network(mf.activations.tanh, output=output, bias=bias),
        init=mf.init.Gaussian(std=1.0),
    )


def block_statistics(values):
    """Mean over samples and the standard error of it from means of blocks, as documented."""
    samples = len(values)
    length = min(max(-(-samples // 20), 1), 512)
    blocks = [values[k : k + length] for k in range(0, samples, length)]
    mean = values.mean(axis=0)
    spread = sum(len(b) * (b.mean(axis=0) - mean) ** 2 for b in blocks)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean, np.sqrt(spread / ((len(blocks) - 1) * samples))


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 60), d=st.integers(1, 12), samples=st.integers(2, 2000), seed=st.integers(0, 50))
def test_estimates_are_means_over_the_drawn_samples_with_errors_of_block_means(n, d, samples, seed):
    model = model_of(d)
    theta = np.random.default_rng(seed).normal(size=(n, d + 2))
    X, y = model.data.draw(samples, rng=seed)
    a, b, w = theta[:, 0], theta[:, 1], theta[:, 2:]
    s = np.tanh(X @ w.T + b)
    slope = 1 - s * s
    e = mf.estimate(model, theta, samples=samples, rng=seed, gradient=True)
    products = (a * s)[:, :, None] * (a * s)[:, None, :]
    gradient = np.concatenate(
        [
            (-y[:, None] * s)[:, :, None],
            (-y[:, None] * a * slope)[:, :, None],
            -y[:, None, None] * (a * slope)[:, :, None] * X[:, None, :],
        ],
        axis=2,
    )
    for values, mean, error in (
        (-y[:, None] * a * s, e.V, e.V_error),
        (products, e.U, e.U_error),
        (gradient, e.grad_V, e.grad_V_error),
    ):
        expected_mean, expected_error = block_statistics(values)
        # Means of at most 2000 terms of size O(10); errors are square roots of sums with cancellation.
        np.testing.assert_allclose(mean, expected_mean, atol=1e-12)
        np.testing.assert_allclose(error, expected_error, rtol=1e-7, atol=1e-9)
    assert np.array_equal(e.U, e.U.T)


@settings(deadline=None, max_examples=15)
@given(chunk=st.integers(1, 5000), threads=st.integers(1, 5))
def test_chunks_and_threads_change_no_bit(chunk, threads):
    model = model_of(5)
    theta = np.random.default_rng(0).normal(size=(150, 7))
    fields = ("V", "V_error", "U", "U_error", "grad_V", "grad_V_error")
    one = mf.estimate(model, theta, samples=4001, rng=1, gradient=True, threads=1)
    other = mf.estimate(model, theta, samples=4001, rng=1, gradient=True, threads=threads, chunk=chunk)
    assert all(np.array_equal(getattr(one, f), getattr(other, f)) for f in fields)


def test_standard_errors_cover_the_truth_as_often_as_they_promise():
    model = model_of(3, output="one")
    theta = np.array([[0.3, 1.0, -0.5, 0.2], [-1.0, 0.1, 0.4, 2.0]])
    exact_V, exact_U = mf.V(model, theta), mf.U(model, theta)
    runs = 300
    inside_V = inside_U = 0
    for seed in range(runs):
        e = mf.estimate(model, theta, samples=1024, rng=seed)
        inside_V += abs(e.V[0] - exact_V[0]) < 2 * e.V_error[0]
        inside_U += abs(e.U[0, 1] - exact_U[0, 1]) < 2 * e.U_error[0, 1]
    # 20 blocks: Student t with 19 degrees of freedom covers |t| < 2 with probability 0.940. Of 300 runs
    # 282 ± 4.1; the bounds are 4.1 standard deviations away: false alarm below 1e-4 each.
    assert 265 <= inside_V <= 299
    assert 265 <= inside_U <= 299


def test_the_mean_over_many_estimates_is_unbiased():
    model = model_of(3, output="one")
    theta = np.array([[0.3, 1.0, -0.5, 0.2]])
    values = np.array([mf.estimate(model, theta, samples=64, rng=seed).U[0, 0] for seed in range(2000)])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - mf.U(model, theta)[0, 0]) < 4.5 * error  # false alarm 7e-6


def test_one_sample_has_no_error_estimate_and_one_block_of_each_is_exact():
    model = model_of(2)
    e = mf.estimate(model, [[1.0, 0.0, 1.0, 1.0]], samples=1, rng=0)
    assert np.isinf(e.V_error).all()
    assert np.isinf(e.U_error).all()
    X, y = model.data.draw(1, rng=0)
    assert e.V[0] == pytest.approx(-y[0] * np.tanh(X.sum()), abs=1e-15)


def test_what_is_not_asked_for_is_none_and_the_repr_is_short():
    e = mf.estimate(model_of(2), [[1.0, 0.0, 1.0, 1.0]], samples=10, rng=0, interactions=False)
    assert e.U is None
    assert e.grad_V is None
    assert repr(e) == "Estimate(N=1, samples=10, status='completed')"


def test_the_rng_follows_spec_7():
    model, theta = model_of(2), [[1.0, 0.0, 1.0, 1.0]]
    by_int = mf.estimate(model, theta, samples=10, rng=7).V
    assert np.array_equal(by_int, mf.estimate(model, theta, samples=10, rng=np.random.SeedSequence(7)).V)
    generator = np.random.default_rng(7)
    first = mf.estimate(model, theta, samples=10, rng=generator).V
    assert not np.array_equal(first, mf.estimate(model, theta, samples=10, rng=generator).V)
    assert not np.array_equal(by_int, mf.estimate(model, theta, samples=10).V)


def test_a_stream_of_the_users_own_samples_is_estimated_too():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(4096, 2))

    def draw(n, generator):
        X = pool[generator.integers(len(pool), size=n)]
        return X, X[:, 0]

    model = mf.Model(data=mf.data.Stream(draw, d=2), network=mf.Network(mf.activations.linear), init=None)
    e = mf.estimate(model, [[1.0, 0.0]], samples=50_000, rng=0)
    assert abs(e.V[0] + np.mean(pool[:, 0] ** 2)) < 5 * e.V_error[0]  # false alarm below 1e-5


def test_misuse_of_estimate_names_argument_rule_and_value():
    model, theta = model_of(2), [[1.0, 0.0, 1.0, 1.0]]
    with pytest.raises(TypeError, match=r"model must be an mf.Model, got ReducedModel"):
        mf.estimate(model_of(4, "one", "none").reduce(), [[1.0]], samples=10)
    with pytest.raises(ValueError, match=r"samples must be <= 9223372036854775807, got 10{30}"):
        mf.estimate(model, theta, samples=10**30)
    with pytest.raises(TypeError, match="interactions must be True or False, got 'no'"):
        mf.estimate(model, theta, samples=10, interactions="no")
