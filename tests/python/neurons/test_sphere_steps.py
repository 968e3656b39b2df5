"""On the sphere all methods take the same step: in the whole space, then back to the sphere."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest

from .ranks import on_ranks

H, N, D = 0.3, 7, 3
LAW = mf.data.Dataset(
    np.random.default_rng(0).normal(size=(24, D)), 2 * np.random.default_rng(1).normal(size=24)
)
RUN = {"save_at": [], "risk": False, "rng": 0}
# Sums of 24 terms of size O(1) in another order, five steps.
ROUNDING = {"rtol": 0, "atol": 1e-13}


def problem(temperature=0.0, scale=1.3):
    network = mf.Network(mf.activations.tanh, output="trained", bias="fixed", sphere=True, scale=scale)
    theta = np.random.default_rng(2).normal(size=(N, D + 2))
    theta[:, 2:] /= np.linalg.norm(theta[:, 2:], axis=1, keepdims=True)
    options = {"ridge": 0.4, "rates": {"a": 2.0}, "temperature": temperature}
    return mf.Model(LAW, network, mf.init.Points(theta), **options)


def split(method, **options):
    def solve(model, horizon):
        runs = on_ranks(
            3, lambda comm: mf.solve(model, method(N, comm=comm, **options), horizon=horizon, **RUN)
        )
        return np.concatenate([run.final for run in runs])

    return solve


def solved(method):
    return lambda model, horizon: mf.solve(model, method, horizon=horizon, **RUN).final


def by_stepper(model, horizon):
    theta = model.init.theta.copy()
    forces = {"ridge": model.ridge, "temperature": model.temperature, "rates": model.rates}
    stepper = mf.steppers.SGD(model.network, theta, **forces, rng=0)
    for _ in range(round(horizon / H)):
        stepper.step(LAW.X, LAW.y, H)
    return theta


def by_flow(model, horizon):
    theta = model.init.theta.copy()
    flow = mf.steppers.Flow(model, theta)
    for _ in range(round(horizon / H)):
        flow.step(H)
    return theta


def of_replica(model, horizon):
    runs = mf.solve(model, mf.SGD(N, H, batch=24, replicas=2), horizon=horizon, **RUN).final
    np.testing.assert_allclose(runs[1], runs[0], **ROUNDING)  # all samples, in another order
    return runs[0]


WAYS = {
    "SGD": solved(mf.SGD(N, H, batch=24, coupled=True)),
    "Particles": solved(mf.Particles(N, method="euler", step=H)),
    "steppers.SGD": by_stepper,
    "split SGD": split(mf.SGD, step=H, batch=24, coupled=True),
    "split GD": split(mf.GD, step=H),
}
WITHOUT_NOISE = {"replicas": of_replica, "steppers.Flow": by_flow}


@pytest.mark.parametrize("way", [*WAYS, *WITHOUT_NOISE])
@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_full_batches_and_gradient_descent_agree_to_rounding(way, temperature):
    if temperature and way in WITHOUT_NOISE:
        way = "SGD"
    model, solve = problem(temperature), (WAYS | WITHOUT_NOISE)[way]
    for steps in (1, 5):
        np.testing.assert_allclose(solve(model, steps * H), solved(mf.GD(N, H))(model, steps * H), **ROUNDING)


def test_the_tangential_step_differs_at_order_h_squared():
    """Halving h from 0.02 divides the difference of one step by 4; the terms of order h^3 are below 10 %."""
    model = problem()
    theta = model.init.theta
    gaps = []
    for h in (0.02, 0.01):
        tangential = theta - h * np.array([2.0, 0, 1, 1, 1]) * mf.grad_psi(model, theta, theta)
        tangential[:, 2:] /= np.linalg.norm(tangential[:, 2:], axis=1, keepdims=True)
        one = mf.solve(model, mf.GD(N, h), horizon=h, **RUN).final
        gaps.append(np.abs(one - tangential).max())
    assert 3.6 < gaps[0] / gaps[1] < 4.4


def test_gradient_descent_rests_where_the_tangential_gradient_does():
    """The gradient of one linear neuron that fits y = 2<e, x> points out of the sphere for ever."""
    law = mf.data.Linear([2.0, 0.0])
    network = mf.Network(mf.activations.linear, sphere=True)
    model = mf.Model(law, network, mf.init.Points([[0.6, 0.8]]))
    run = mf.solve(model, mf.GD(1, 0.1, tolerance=1e-6), horizon=1000.0, save_at=[], rng=0)
    assert run.status == "stationary"
    np.testing.assert_allclose(run.final, [[1.0, 0.0]], atol=1e-6)
