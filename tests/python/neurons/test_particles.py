"""Gradient flow and Langevin dynamics of particles: exact solutions and orders."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore._base.rng import seed_of
from mfcore.neurons._methods import GD, Particles
from mfcore.runs._solve import solve
from problems import erf_model, final, linear_model

ADAPTIVE = ("dopri5", "lsoda", "bdf", "radau")


def linear_flow(model, t):
    """w(t) of every particle for the linear activation (bias: x has mean 0, so b decouples)."""
    S, target, ridge = np.diag(model.data.cov), model.data.w, model.ridge
    rates = {"b": 1.0, "w": 1.0, **(model.rates or {})}
    start, at = model.init.theta, model.network.row(0)
    limit, pull, speed = (
        np.zeros(start.shape[1]),
        np.ones(start.shape[1]),
        np.full(start.shape[1], rates["b"]),
    )
    limit[at:], pull[at:], speed[at:] = S * target / (S + ridge), S, rates["w"]
    mean = start.mean(axis=0)
    mean_t = limit + np.exp(-speed * (pull + ridge) * t) * (mean - limit)
    return mean_t + np.exp(-speed * ridge * t) * (start - mean)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_linear_particles_follow_the_exact_solution_at_every_save_point(method, ridge):
    model = linear_model(4, 3, bias="trained", ridge=ridge, rates={"w": 2.0})
    times = np.array([0.0, 0.1, 0.5, 0.77, 3.0])
    run = solve(
        model, Particles(4, method=method, rtol=1e-8, atol=1e-10), horizon=3.0, save_at=times, keep="all"
    )
    assert run.status == "completed"
    for t in times:
        # Errors per step below the tolerance, a few times it in sum; the flow contracts.
        np.testing.assert_allclose(run.kept[t], linear_flow(model, t), atol=2e-6)
    mean = run.final.mean(axis=0)
    offset = mean[1:] - model.data.w
    risk = offset @ model.data.cov @ offset + mean[0] ** 2 + 0.09
    assert run.risk[-1] == pytest.approx(risk, rel=1e-12)  # one formula, two ways


@pytest.mark.parametrize(("method", "step"), [("dopri5", None), ("euler", 0.5), ("heun", 0.5), ("rk4", 0.5)])
def test_a_constant_force_translates_every_particle(method, step):
    """y = C<c, x> with rate 1/C: the force is c up to t/C, so z moves by c t."""
    big, c = 1e12, np.array([1.0, -2.0])
    start = np.random.default_rng(0).normal(size=(5, 2))
    law, network = mf.data.Linear(big * c), mf.Network(mf.activations.linear)
    model = mf.Model(law, network, mf.init.Points(start), rates={"w": 1 / big})
    got = final(model, Particles(5, method=method, step=step), 3.0)
    np.testing.assert_allclose(got, start + 3.0 * c, atol=1e-10)  # 9 / (2 big) and rounding


def test_rates_that_differ_by_a_million_are_followed_by_the_stiff_solvers():
    model = linear_model(3, 2, bias="trained", ridge=0.3, rates={"b": 1e3, "w": 1e-3})
    for method in ("lsoda", "bdf", "radau"):
        times = [1e-4, 1e-2, 1.0, 1000.0]
        run = solve(model, Particles(3, method=method), horizon=1000.0, save_at=times, keep="all", rng=0)
        assert run.status == "completed"
        assert run.meta["steps"] < 1000  # explicit steps are below 3e-3: 300 000 of them
        for t in times:
            # rtol = 1e-6 per step of some hundreds.
            np.testing.assert_allclose(run.kept[t], linear_flow(model, t), atol=2e-4)


def test_a_slow_fast_network_ends_where_both_gradients_vanish():
    """Output weights a million times faster than w: quasi-stationary throughout, dR/dt <= 0."""
    model = erf_model(4, 2, bias="none", ridge=0.1, rates={"a": 1.0, "w": 1e-6})
    run = solve(model, Particles(4, method="lsoda"), horizon=1e5, save_at=[0.0, 1e2, 1e5], rng=0)
    assert run.status == "completed"
    gradient = mf.grad_psi(model, run.final, run.final)
    # At rest up to the lag 1e-6 / 0.1 behind w, and rtol.
    assert np.abs(gradient[:, 0]).max() < 1e-4
    assert np.abs(gradient[:, 1:]).max() > 1e-3
    assert run.meta["steps"] < 2000


def test_the_error_of_dopri5_follows_rtol():
    model = erf_model()
    best = final(model, Particles(6, rtol=1e-12, atol=1e-14), 2.0)
    errors = []
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
        got = final(model, Particles(6, rtol=rtol, atol=1e-3 * rtol), 2.0)
        errors.append(np.abs(got - best).max())
        assert errors[-1] < 20 * rtol  # a handful of steps of error rtol
    assert (np.array(errors[1:]) < 0.1 * np.array(errors[:-1])).all()


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_fixed_steps_have_their_order(method, order):
    model = erf_model(ridge=0.1)
    best = final(model, Particles(6, method="rk4", step=0.002), 1.0)
    sizes = (0.04, 0.02, 0.01)
    errors = [np.abs(final(model, Particles(6, method=method, step=h), 1.0) - best).max() for h in sizes]
    # Log-ratios of errors, to which the next order adds O(h) and the reference 5^-4.
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), order, atol=0.1)


def test_the_risk_falls_by_twice_the_mean_squared_gradient():
    model = erf_model(rates={"a": 2.0, "b": 0.5})
    speed = np.array([2.0, 0.5, 1.0, 1.0, 1.0])
    delta, centres = 1e-3, np.array([0.1, 0.6, 1.7])
    times = np.sort(np.concatenate([centres - delta, centres, centres + delta]))
    run = solve(
        model, Particles(6, rtol=1e-12, atol=1e-14), horizon=2.0, save_at=times, keep="all", risk=mf.Exact()
    )
    for k, t in enumerate(centres):
        theta = run.kept[t]
        gradient = mf.grad_psi(model, theta, theta)
        slope = (run.risk[3 * k + 2] - run.risk[3 * k]) / (2 * delta)
        loss = 2 * np.mean(np.sum(speed * gradient**2, axis=1))
        assert slope == pytest.approx(-loss, rel=1e-5)  # central differences: delta^2 R''' / 6


@pytest.mark.parametrize("method", [*ADAPTIVE, "euler", "heun", "rk4"])
def test_on_the_sphere_every_w_stays_there_and_a_fixed_weight_at_rest(method):
    model = erf_model(output="fixed", sphere=True, ridge=0.2)
    step = 0.02 if method in ("euler", "heun", "rk4") else None
    run = solve(model, Particles(6, method=method, step=step), horizon=2.0, save_at=9, keep="all", rng=0)
    for theta in run.kept.values():
        np.testing.assert_allclose(np.linalg.norm(theta[:, 2:], axis=1), 1.0, atol=1e-14)
        assert np.array_equal(theta[:, 0], model.init.theta[:, 0])
    assert run.risk[-1] < run.risk[0]
    best = final(model, Particles(6, rtol=1e-11, atol=1e-13), 2.0)
    bound = {"euler": 2e-2, "heun": 2e-4}.get(method, 2e-5)  # h, h^2, some rtol
    np.testing.assert_allclose(run.final, best, atol=bound)


def test_euler_particles_are_gradient_descent():
    model = erf_model(temperature=0.1)
    same = Particles(6, method="euler", step=0.05)
    assert np.array_equal(final(model, GD(6, 0.05), 1.0), final(model, same, 1.0))


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2)])
def test_noisy_schemes_have_their_weak_order_on_the_ornstein_uhlenbeck_process(method, order):
    """One linear particle, dz = -k(z - m) dt + sqrt(2T) dB: a step is z' - m = A(z - m) + B g.

    A and B are read off single steps, with the noise at its address; mean and variance follow exactly.
    """
    temperature, t = 0.3, 1.0
    model = linear_model(1, 3, ridge=0.2, temperature=temperature)
    S = np.diag(model.data.cov)
    k, z0 = S + 0.2, model.init.theta[0]
    limit = S * model.data.w / k
    biases = []
    for steps in (20, 40, 80):
        h = t / steps
        g = _core.normals(seed_of(0), "langevin", 0, 0, 3)
        x = k * h
        A = 1 - x if method == "euler" else 1 - x + x**2 / 2
        B = np.sqrt(2 * temperature * h) * (1 if method == "euler" else 1 - x / 2)
        one = final(model, Particles(1, method=method, step=h), h)
        np.testing.assert_allclose(one[0], limit + A * (z0 - limit) + B * g, atol=1e-14)
        mean = A**steps * (z0 - limit)
        variance = B**2 * (1 - A ** (2 * steps)) / (1 - A**2)
        exact = temperature / k * (1 - np.exp(-2 * k * t))
        biases.append(np.concatenate([mean - np.exp(-k * t) * (z0 - limit), variance - exact]))
    ratios = np.log2(np.abs(biases[1]) / np.abs(biases[2]))
    np.testing.assert_allclose(ratios, order, atol=0.15)  # the next order adds O(h)


def test_langevin_particles_have_the_moments_of_the_exact_law():
    n, d, ridge, temperature, t = 2000, 4, 0.5, 0.25, 1.5
    model = linear_model(n, d, ridge=ridge, temperature=temperature)
    got = final(model, Particles(n, method="heun", step=0.05), t)
    start = model.init.theta
    expected_mean = linear_flow(model, t).mean(axis=0)
    # The mean has the law of N(., s/n) with s below T(1 - e^{-2(k)t})/k <= T / ridge: 5 standard errors.
    assert np.abs(got.mean(axis=0) - expected_mean).max() < 5 * np.sqrt(temperature / ridge / n)
    keep = np.exp(-2 * ridge * t)
    spread = start - start.mean(axis=0)
    noise = (1 - keep) * temperature / ridge
    variance = np.mean((got - got.mean(axis=0)) ** 2)
    error = np.sqrt(np.mean(2 * noise**2 + 4 * noise * keep * spread**2) / (n * d))
    bias = 1e-3 * noise  # (ridge h)^2 / 4 and smaller
    # False alarm below 5e-6 in all (five events at 5 standard errors).
    assert abs(variance - keep * np.mean(spread**2) - noise * (1 - 1 / n)) < 5 * error + bias


def test_noise_on_the_sphere_makes_directions_uniform():
    """Without force, d<w, w0>/dt = -(d - 1)/beta <w, w0>: the heat flow of the sphere."""
    n, d, temperature, t = 4000, 3, 0.5, 0.6
    network = mf.Network(mf.activations.linear, output="fixed", sphere=True)
    start = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))  # a = 0: no force
    model = mf.Model(mf.data.Linear([1.0, 0, 0]), network, mf.init.Points(start), temperature=temperature)
    one_sample = mf.MonteCarlo(1, rng=0)
    got = final(model, Particles(n, method="euler", step=0.01, expectation=one_sample), t)
    cosine = got[:, 3]
    expected = np.exp(-(d - 1) * temperature * t)
    # 5 standard errors (sd <= 1/sqrt(3) here; false alarm 6e-7), and O(h) of projected steps.
    assert abs(cosine.mean() - expected) < 5 * cosine.std() / np.sqrt(n) + 0.01
