"""Gradient descent on the population risk: against NumPy, closed forms, and its contracts."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore._base.rng import seed_of
from mfcore.neurons import _flow as particles
from mfcore.neurons._methods import GD, SGD, Particles
from mfcore.runs._solve import resume, solve


def dataset(n, d, seed):
    rng = np.random.default_rng(seed)
    return mf.data.Dataset(rng.normal(size=(n, d)), rng.normal(size=n))


def erf_model(neurons=7, d=4, seed=0, **options):
    """A smooth problem with an exact expectation: erf student of an erf teacher."""
    rng = np.random.default_rng(seed)
    network = mf.Network(mf.activations.erf, output="trained")
    teacher = mf.data.Teacher(network, rng.normal(size=(2, d + 1)))
    return mf.Model(teacher, network, mf.init.Points(rng.normal(size=(neurons, d + 1))), **options)


def linear_model(neurons, d, seed=0, **options):
    rng = np.random.default_rng(seed)
    cov = np.diag(rng.uniform(0.5, 1.5, size=d))
    law = mf.data.Linear(rng.normal(size=d), cov=cov, noise=0.3)
    start = mf.init.Points(rng.normal(size=(neurons, d)))
    return mf.Model(law, mf.Network(mf.activations.linear), start, **options)


def final(model, method, horizon, **options):
    return solve(model, method, horizon=horizon, save_at=[], risk=False, rng=0, **options).final


def reference(model, h, steps, seed):
    """The update rule in NumPy, on the nodes of a dataset, tanh."""
    theta, network, d = model.init.theta.copy(), model.network, int(model.d)
    n, row = theta.shape
    X, y, at = model.data.X, model.data.y, network.row(0)
    speed = np.zeros(row)
    for name in network.trained:
        speed[network.blocks(d)[name]] = (model.rates or {}).get(name, 1.0)
    for k in range(steps):
        a = theta[:, 0] if network.has_a else np.ones(n)
        b = theta[:, at - 1] if network.has_b else np.zeros(n)
        w = theta[:, at:]
        s = np.tanh(X @ w.T + b)
        e = (s @ a / n - y) / len(y)
        c = e[:, None] * (1 - s * s) * a
        gradient = np.zeros_like(theta)
        if network.has_a:
            gradient[:, 0] = e @ s
        if network.has_b:
            gradient[:, at - 1] = c.sum(axis=0)
        gradient[:, at:] = c.T @ X
        gradient += model.ridge * theta
        g = _core.normals(seed, "langevin", k, 0, n * row).reshape(n, row)
        theta = theta - h * speed * gradient + np.sqrt(2 * h * speed * model.temperature) * g
        if network.sphere:
            theta[:, at:] /= np.linalg.norm(theta[:, at:], axis=1, keepdims=True)
    return theta


@settings(deadline=None, max_examples=40)
@given(
    neurons=st.integers(1, 70),
    d=st.integers(1, 20),
    nodes=st.integers(1, 90),
    output=st.sampled_from(["one", "fixed", "trained"]),
    bias=st.sampled_from(["none", "trained"]),
    sphere=st.booleans(),
    ridge=st.sampled_from([0.0, 0.3]),
    temperature=st.sampled_from([0.0, 0.1]),
    rate=st.sampled_from([1.0, 0.4]),
    seed=st.integers(0, 99),
)
def test_gd_is_the_update_rule_for_every_combination_of_options(
    neurons, d, nodes, output, bias, sphere, ridge, temperature, rate, seed
):
    network = mf.Network(mf.activations.tanh, output=output, bias=bias, sphere=sphere)
    theta = np.random.default_rng(seed).normal(size=(neurons, network.row(d)))
    if sphere:
        w = theta[:, network.row(0) :]
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    model = mf.Model(
        dataset(nodes, d, seed),
        network,
        mf.init.Points(theta),
        ridge=ridge,
        temperature=temperature,
        rates={network.trained[0]: rate},
    )
    got = final(model, GD(neurons, 0.05), 0.25)
    # Five steps of sums of at most 90 terms of size O(1); one division by |w| >= 0.1 for d = 1 on the sphere.
    np.testing.assert_allclose(got, reference(model, 0.05, 5, seed_of(0)), rtol=1e-11, atol=1e-12)
    if output == "fixed":
        assert np.array_equal(got[:, 0], theta[:, 0])


def test_linear_neurons_follow_the_powers_of_their_matrices():
    h, steps, ridge = 0.1, 30, 0.2
    model = linear_model(neurons=9, d=5, ridge=ridge)
    S, target, start = np.diag(model.data.cov), model.data.w, model.init.theta
    mean = start.mean(axis=0)
    limit = S * target / (S + ridge)
    mean_k = limit + (1 - h * (S + ridge)) ** steps * (mean - limit)
    spread_k = (1 - h * ridge) ** steps * (start - mean)
    got = final(model, GD(9, h), h * steps)
    np.testing.assert_allclose(got, mean_k + spread_k, atol=1e-13)  # 30 contracting steps of rounding


def test_langevin_gd_has_the_variance_of_its_own_recursion():
    h, steps, ridge, temperature, n, d = 0.1, 25, 0.5, 0.3, 4000, 5
    model = linear_model(n, d, ridge=ridge, temperature=temperature)
    got = final(model, GD(n, h), h * steps)
    keep = (1 - h * ridge) ** 2
    start = model.init.theta - model.init.theta.mean(axis=0)
    noise = 2 * h * temperature * (1 - keep**steps) / (1 - keep)
    # Given the start, the square of an entry has variance 2 noise^2 + 4 noise start^2 keep^steps.
    spread = got - got.mean(axis=0)
    expected = keep**steps * np.mean(start**2) + noise * (1 - 1 / n)
    error = np.sqrt(np.mean(2 * noise**2 + 4 * noise * keep**steps * start**2) / (n * d))
    assert abs(np.mean(spread**2) - expected) < 5 * error  # false alarm: 6e-7


def test_noisy_gd_and_noisy_sgd_on_one_sample_share_their_path():
    """With a single sample both gradients agree, so equal ends mean equal noise."""
    d, neurons = 6, 13
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    theta = np.random.default_rng(1).normal(size=(neurons, d + 2))
    model = mf.Model(
        dataset(1, d, 1), network, mf.init.Points(theta), ridge=0.1, temperature=0.2, rates={"a": 3.0}
    )
    gd, sgd = (final(model, method(neurons, 0.01), 0.2) for method in (GD, SGD))
    np.testing.assert_allclose(gd, sgd, atol=1e-13)  # 20 steps of rounding


def test_coupled_sgd_shares_its_increments_with_gd_where_blocks_do_not():
    # One sample again, so that SGD and GD differ by their noise alone; d = 40 and N = 40 make blocks.
    rng = np.random.default_rng(0)
    data = mf.data.Dataset(rng.normal(size=(1, 40)), [1.0])
    model = mf.Model(
        data=data,
        network=mf.Network(mf.activations.tanh),
        init=mf.init.Gaussian(0.1),
        temperature=0.1,
    )
    final = {
        method: mf.solve(model, method, horizon=1.0, risk=False, rng=3).final
        for method in (mf.GD(40, 0.01), mf.SGD(40, 0.01, coupled=True), mf.SGD(40, 0.01))
    }
    gd, coupled, blocked = final.values()
    np.testing.assert_allclose(coupled, gd, rtol=0, atol=1e-12)  # 100 steps of rounding
    assert np.abs(blocked - gd).max() > 0.1


def test_gd_tends_to_the_flow_with_order_one():
    model = erf_model(ridge=0.1)
    limit = final(model, Particles(7, rtol=1e-11, atol=1e-13), 1.0)
    errors = [np.abs(final(model, GD(7, h), 1.0) - limit).max() for h in (0.02, 0.01, 0.005)]
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 2.0, atol=0.05)  # the next order is O(h)


def test_neurons_in_another_order_move_the_same_way():
    model = erf_model(neurons=50)
    order = np.random.default_rng(3).permutation(50)
    shuffled = model.replace(init=mf.init.Points(model.init.theta[order]))
    one, two = (final(m, GD(50, 0.1), 1.0) for m in (model, shuffled))
    np.testing.assert_allclose(one[order], two, atol=1e-14)  # sums over neurons in another order


@pytest.mark.parametrize("kind", ["exact", "nodes", "noisy"])
def test_threads_stops_and_save_points_change_no_bit(kind):
    neurons = 150
    if kind == "exact":
        model = erf_model(neurons)
    else:
        network = mf.Network(mf.activations.tanh, output="trained")
        start = mf.init.Gaussian(0.5)
        temperature = 0.1 if kind == "noisy" else 0.0
        model = mf.Model(dataset(700, 30, 0), network, start, temperature=temperature)
    method = GD(neurons, 0.05)
    whole = final(model, method, 1.0, threads=1)
    assert np.array_equal(whole, final(model, method, 1.0, threads=3))
    saved = solve(model, method, horizon=1.0, save_at=7, risk=False, rng=0)
    assert np.array_equal(whole, saved.final)
    parts = method.begin(model, seed_of(0), 2)
    assert parts.advance(0.5, np.inf).reached
    other = method.begin(model, seed_of(0), 1)
    other.restore(parts.state())
    assert other.t == 0.5
    assert other.advance(1.0, np.inf).reached
    assert np.array_equal(whole, other.measure())
    assert other.meta() == {"steps": 20, "rejected": 0, "evaluations": 20}


def test_a_resumed_run_ends_with_the_same_bits(tmp_path):
    model = erf_model()
    file = tmp_path / "run.npz"
    options = {"horizon": 1.0, "save_at": 5, "rng": 4}
    part = solve(model, GD(7, 0.05), checkpoint=file, max_seconds=0, **options)
    assert part.status == "out of time"
    whole, resumed = solve(model, GD(7, 0.05), **options), resume(file)
    assert np.array_equal(whole.final, resumed.final)
    assert np.array_equal(whole.risk, resumed.risk)


def test_monte_carlo_is_a_dataset_of_its_samples_held_or_not(monkeypatch):
    law = mf.data.IsotropicGaussians(d=8, delta=0.5)
    network = mf.Network(mf.activations.tanh, output="trained")
    model = mf.Model(law, network, mf.init.Gaussian(0.7))
    method = GD(20, 0.1, expectation=mf.MonteCarlo(500, rng=3))
    held = final(model, method, 1.0)
    same = final(model.replace(data=mf.data.Dataset(*law.draw(500, rng=3))), GD(20, 0.1), 1.0)
    assert np.array_equal(held, same)
    monkeypatch.setattr(particles, "_HELD_BYTES", 0)
    assert np.array_equal(held, final(model, method, 1.0))


def test_a_run_stops_where_the_gradient_is_below_the_tolerance():
    model = linear_model(neurons=3, d=2, ridge=0.5)
    run = solve(model, GD(3, 0.2, tolerance=1e-6), horizon=1e4, save_at=[0.0], rng=0)
    assert run.status == "stationary"
    assert "1e-06" in run.message
    gradient = mf.grad_psi(model, run.final, run.final)
    assert np.sqrt(np.mean(gradient**2)) < 1e-6
    before = final(model, GD(3, 0.2), run.meta["t"] - 0.2)
    assert np.sqrt(np.mean(mf.grad_psi(model, before, before) ** 2)) >= 1e-6


def test_too_large_a_step_is_reported_with_its_number_and_the_last_finite_state():
    model = linear_model(neurons=3, d=2)
    run = solve(model, GD(3, 100.0), horizon=1e6, save_at=[0.0], rng=0)
    assert run.status == "diverged"
    assert np.isfinite(run.final).all()
    steps = run.meta["steps"]
    assert f"at step {steps + 1}" in run.message
    assert "smaller step than 100" in run.message
    # Factors of 49 to 149 a step: |w|^2 or w passes 1e308.
    assert 154 / np.log10(149) - 2 < steps < 308 / np.log10(49)


def test_the_callers_points_are_not_written():
    theta = np.random.default_rng(0).normal(size=(4, 3))
    kept = theta.copy()
    model = mf.Model(dataset(5, 3, 0), mf.Network(mf.activations.tanh), mf.init.Points(theta))
    run = solve(model, GD(4, 0.1), horizon=1.0, save_at=3, keep="all", rng=0)
    assert np.array_equal(theta, kept)
    assert np.array_equal(run.kept[0.0], kept)
    assert not np.array_equal(run.final, kept)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neurons": 0}, "neurons must be >= 1, got 0"),
        ({"step": 0.0}, "step must be > 0, got 0.0"),
        ({"tolerance": -1.0}, r"tolerance must be > 0, got -1\.0"),
        ({"expectation": 100}, "expectation must be mf.Exact"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        GD(**{"neurons": 3, "step": 0.1, **arguments})


def test_refusals_that_depend_on_the_model_say_what_would_work():
    law = mf.data.MultiIndex(4, lambda z: np.tanh(z[:, 0]), directions=1)
    model = mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Gaussian(1.0))
    with pytest.raises(ValueError, match="MonteCarlo"):
        solve(model, GD(3, 0.1), horizon=1.0)
    noisy = linear_model(3, 2, temperature=0.1)
    with pytest.raises(ValueError, match=r"tolerance must be left out at temperature = 0\.1"):
        solve(noisy, GD(3, 0.1, tolerance=1e-3), horizon=1.0)
