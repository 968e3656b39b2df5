"""`lazy_bounds`: the three lemmas along runs, measured beside their bounds."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory

SHAPE = {"output": "trained", "bias": "trained"}
BIASES = st.sampled_from(["trained", "fixed"])
SPEEDS = {"a": 2.0, "b": 0.3, "w": 1.7}


def problem(seed, scale, sigma=mf.activations.tanh, samples=5, neurons=12, bias="trained"):
    rng = np.random.default_rng(seed)
    network = mf.Network(sigma, output="trained", bias=bias, scale=scale)
    law = mf.data.Dataset(rng.normal(size=(samples, 3)), rng.normal(size=samples))
    start = rng.normal(size=(neurons, network.row(3)))
    rates = {block: SPEEDS[block] for block in network.trained}
    return mf.Model(law, network, mf.init.Points(start), rates=rates)


def run_of(model, method=None, horizon=1.0):
    method = method or mf.Particles(12, rtol=1e-9, atol=1e-12)
    return mf.solve(model, method, horizon=horizon / model.network.scale**2, save_at=9, keep="all")


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.5, 3.0, 30.0]),
    sigma=st.sampled_from([mf.activations.tanh, mf.activations.erf, mf.activations.softplus]),
    bias=BIASES,
)
def test_all_bounds_hold_along_nonlinear_flows_of_random_problems(seed, scale, sigma, bias):
    found = theory.lazy_bounds(run_of(problem(seed, scale, sigma, bias=bias)))
    # Eigenvalues and suprema are those of points of the path: 1 % for what is between nine of them.
    assert found.broken(slack=0.01) == 0
    assert found.displacement[-1] > 0


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.5, 3.0, 30.0]), bias=BIASES)
def test_linearised_neurons_keep_their_kernel_and_obey_their_bounds(seed, scale, bias):
    model = problem(seed, scale, bias=bias)
    found = theory.lazy_bounds(run_of(model, mf.Linearized(12), horizon=5.0))
    assert found.broken(slack=1e-9) == 0
    assert (found.kernel == 0).all()
    assert (found.gradients == 0).all()
    alone = theory.laziness(model, model.init.theta)
    assert math.isclose(found.smallest[0], alone.smallest, rel_tol=1e-6)
    assert (found.displacement <= alone.displacement * (1 + 1e-9)).all()
    np.testing.assert_allclose(found.risk_bound, alone.risk_bound(found.t), rtol=1e-6)
    passed = -np.expm1(-alone.smallest * found.t)
    np.testing.assert_allclose(found.displacement_bound, alone.displacement * passed, rtol=1e-6)


def test_the_bounds_of_linearised_neurons_are_attained_with_one_sample():
    """K is a number: the risk falls as e^{−2Kt}, and θ moves along one gradient. Exact in time."""
    found = theory.lazy_bounds(run_of(problem(3, 2.0, samples=1), mf.Linearized(12), horizon=0.1))
    np.testing.assert_allclose(found.risk, found.risk_bound, rtol=1e-9)
    np.testing.assert_allclose(found.displacement, found.displacement_bound, rtol=1e-9)
    assert found.displacement[-1] > 0.01


def test_the_change_of_gradients_is_that_of_the_jacobian():
    model = problem(0, 2.0)
    run = run_of(model)
    found = theory.lazy_bounds(run)
    one, two = run.kept[0.0], run.final
    X = model.data.X
    blocks = model.network.blocks(3).items()
    speed = np.concatenate([np.full(where.stop - where.start, SPEEDS[block]) for block, where in blocks])

    def jacobian(theta):
        a, z = theta[:, 0], X @ theta[:, 2:].T + theta[:, 1]
        slope = a * (1 - np.tanh(z) ** 2)
        return np.concatenate(
            [np.tanh(z)[..., None], slope[..., None], slope[..., None] * X[:, None]], axis=2
        )

    square = 4.0 * np.sum((jacobian(two) - jacobian(one)) ** 2 * speed) / len(one) / len(X)
    assert math.isclose(found.gradients[-1], math.sqrt(square), rel_tol=1e-12)
    moved = math.sqrt(np.sum((two - one) ** 2 / speed) / len(one))
    assert math.isclose(found.displacement[-1], moved, rel_tol=1e-12)
    kernels = [theory.tangent_kernel(model, X, measure=theta) for theta in (one, two)]
    change = np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])
    assert math.isclose(found.kernel[-1], change, rel_tol=1e-10)
    np.testing.assert_allclose(found.risk, run.risk, rtol=1e-12)


def test_gradients_and_displacement_fall_with_the_scale():
    small, large = (theory.lazy_bounds(run_of(problem(1, scale))) for scale in (100.0, 1000.0))
    for one, two in ((small.displacement, large.displacement), (small.kernel, large.kernel)):
        # f is not 0 at the start: it is α g, so that residuals grow with α, and neither falls
        assert 0.8 < one[-1] / two[-1] < 1.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": 0.1}, "without ridge"),
        ({"temperature": 0.1}, "without temperature"),
        ({"network": mf.Network(mf.activations.relu, **SHAPE)}, "two derivatives"),
        (
            {"network": mf.Network(mf.activations.tanh, output="trained", bias="trained", sphere=True)},
            "sphere",
        ),
    ],
)
def test_what_has_no_bounds_is_refused_in_words(change, message):
    model = problem(0, 1.0)
    if "sphere" in message:
        rows = model.init.theta.copy()
        rows[:, 2:] /= np.linalg.norm(rows[:, 2:], axis=1, keepdims=True)
        change = change | {"init": mf.init.Points(rows)}
    model = model.replace(**change)
    run = mf.solve(model, mf.GD(12, step=1e-3), horizon=2e-3, save_at=2, keep="all", rng=0)
    with pytest.raises(ValueError, match=message):
        theory.lazy_bounds(run)


def test_runs_without_their_start_are_refused():
    model = problem(0, 1.0)
    with pytest.raises(ValueError, match="from t = 0 on"):
        theory.lazy_bounds(mf.solve(model, mf.Particles(12), horizon=0.1))
    run = mf.solve(model, mf.Linearized(12), horizon=0.1, save_at=[0.0, 0.1], keep="all")
    assert theory.lazy_bounds(run).t.tolist() == [0.0, 0.1]
