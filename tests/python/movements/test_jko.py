"""Minimising movements: exact steps, convergence to the limit, descent for every τ, walls."""

import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore.movements._jko import JKO
from problems import moments, radius, waves
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

THREADS = 1


class Gaussian:
    """N(mean, std²) as a law by hand, with a quantile function."""

    def __init__(self, mean, std):
        self.law = mf.init.Normal(mean, std)

    def sample(self, n, rng):
        return self.law.quantile(np.random.default_rng(rng).random((n, 1)))

    def quadrature(self, n):
        z, w = self.law.quadrature(n)
        return z[:, None], w

    def quantile(self, s):
        return self.law.quantile(s)


def linear(target=0.0, *, mean=0.7, std=0.5, strength=1.0, **options):
    """Φ(z) = strength·z at one node: Ψ_λ = strength (strength·z̄ − y) z + λz²/2. Free motion at strength 0."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[target],
        features=lambda z: strength * z,
        gradients=lambda z: strength * np.ones((len(z), 1, 1)),
        initial=Gaussian(mean, std),
        **options,
    )


def solve(model, method, **options):
    return mf.solve(model, method, threads=THREADS, **{"save_at": 0, **options})


def one_step(m, s, ridge, heat, tau):
    """Eq. (10.15): the Gaussian after one movement in F = λx²/2 + β⁻¹ Ent."""
    widened = s + math.sqrt(s * s + 4 * (1 + ridge * tau) * tau * heat)
    return m / (1 + tau * ridge), widened / (2 * (1 + ridge * tau))


@settings(max_examples=15, deadline=None)
@given(
    mean=st.floats(-2, 2),
    std=st.floats(0.1, 2),
    ridge=st.floats(0, 3),
    heat=st.floats(0.05, 2),
    log_tau=st.floats(-3, 1),
)
def test_one_step_of_a_gaussian_is_exact_up_to_count_squared(mean, std, ridge, heat, log_tau):
    tau = 10**log_tau
    want = one_step(mean, std, ridge, heat, tau)
    model = linear(mean=mean, std=std, strength=0.0, ridge=ridge, temperature=heat)
    for count in (25, 101):
        run = solve(model, JKO(tau, count=count), horizon=tau)
        got = moments(run.final)
        assert run.meta["unfinished"] == 0
        assert abs(got[0] - want[0]) < 1e-10 * (1 + abs(mean))
        # Measured up to 5.3/n², most of it from ρ₀ on cells.
        assert abs(got[1] / want[1] - 1) < 6 / count**2


def test_the_error_of_one_step_falls_by_four_when_cells_are_halved():
    model = linear(strength=0.0, ridge=1.0, temperature=0.4)
    want = one_step(0.7, 0.5, 1.0, 0.4, 0.5)[1]
    errors = [
        abs(moments(solve(model, JKO(0.5, count=n), horizon=0.5).final)[1] - want)
        for n in (50, 100, 200, 400)
    ]
    assert errors[-1] < 1e-5  # with quantiles of equal mass it would be 8e-4
    for coarse, fine in itertools.pairwise(errors):
        assert 3.3 < coarse / fine < 4.3


def test_a_point_spreads_into_the_gaussian_of_one_step():
    model = linear(strength=0.0, ridge=1.0, temperature=0.5)
    run = solve(model, JKO(0.3, count=200, start=[0.4]), horizon=0.3)
    assert np.allclose(moments(run.final), one_step(0.4, 0.0, 1.0, 0.5, 0.3), rtol=1e-4)  # 2/n²


def test_small_steps_converge_to_ornstein_uhlenbeck_with_order_one():
    ridge, heat, t = 0.8, 0.5, 1.0
    model = linear(strength=0.0, ridge=ridge, temperature=heat)
    exact = 0.25 * math.exp(-2 * ridge * t) + heat / ridge * (1 - math.exp(-2 * ridge * t))
    errors = []
    for tau in (0.2, 0.1, 0.05):
        mean, std = moments(solve(model, JKO(tau), horizon=t).final)
        assert abs(mean - 0.7 / (1 + ridge * tau) ** round(t / tau)) < 1e-12
        errors.append(std**2 - exact)
    orders = np.log2(np.abs(np.array(errors[:-1]) / errors[1:]))
    assert (np.abs(orders - 1) < 0.15).all()


def test_noiseless_steps_of_a_linear_network_are_implicit_euler():
    strength, ridge, target, tau, steps = 1.3, 0.4, 2.0, 0.7, 6
    model = linear(target, strength=strength, ridge=ridge, rates=[1.5])
    run = solve(model, JKO(tau, count=60), horizon=tau * steps, keep="all", save_at=[0.0, tau * steps])
    first, last = run.kept[0.0], run.kept[tau * steps]
    mean = first.weights @ first.points[:, 0]
    spread = first.points[:, 0] - mean
    h = tau * 1.5
    for _ in range(steps):
        mean = (mean + h * strength * target) / (1 + h * (strength**2 + ridge))
        spread = spread / (1 + h * ridge)
    assert np.allclose(last.points[:, 0], mean + spread, rtol=0, atol=1e-12)


def check_descent(model, method, steps):
    """F falls at every step, by at least W²/2τ, up to rounding."""
    rung = method.begin(model, 0, THREADS)
    before, at = rung.observed()["free_energy"], rung.measure()
    for n in range(1, steps + 1):
        assert rung.advance(n * method.tau, math.inf).reached
        after, now = rung.observed()["free_energy"], rung.measure()
        if math.isinf(before):  # atoms that noise has just spread
            square = 0.0
        elif isinstance(now, mf.Cloud):  # W² itself in one coordinate, where atoms are sorted
            square = at.weights @ np.square(now.points - at.points).sum(axis=1)
        else:
            d = now.edges[0] - at.edges[0]
            square = now.mass @ (d[1:] ** 2 + d[1:] * d[:-1] + d[:-1] ** 2) / 3
        # A few roundings of sums of terms of size 10.
        assert after + square / (2 * method.tau) <= before + 1e-12
        before, at = after, now
    assert rung.meta()["largest_increase"] <= 1e-12
    return rung


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 3),
    heat=st.sampled_from([0.0, 0.02, 0.5]),
    wall=st.booleans(),
    log_tau=st.floats(-3, 3),
    count=st.sampled_from([8, 9, 33]),
)
def test_the_free_energy_falls_at_every_step_for_every_tau(seed, k, heat, wall, log_tau, count):
    k = 1 if heat else k
    model = waves(seed, k, ridge=0.1, temperature=heat, nonnegative=[wall] * k)
    start = np.abs(np.random.default_rng(seed).normal(0, 1, (count, k)))
    check_descent(model, JKO(10**log_tau, count=count, start=start), 3)


def test_in_a_double_well_even_huge_steps_end_at_stationary_points():
    model = mf.ReducedModel(  # Ψ = (z² mean − 1) z²: the origin is unstable, ∂²Ψ = −2 there
        coordinates=["z"],
        weights=[1.0],
        targets=[1.0],
        features=lambda z: z**2,
        gradients=lambda z: 2 * z[:, None, :],
    )
    z = np.linspace(-0.5, 0.4, 10)
    rung = check_descent(model, JKO(100.0, start=z), 4)
    cloud = rung.measure()
    assert rung.meta()["unfinished"] == 0
    assert abs(cloud.weights @ cloud.points[:, 0] ** 2 - 1) < 1e-6  # R = (1 − E z²)² is at its minimum


def reference(reduced, start, t):
    """The atoms after time t by a general solver."""
    shape = start.shape

    def velocity(_, y):
        z = y.reshape(shape)
        return -mf.grad_psi(reduced, z, z, threads=1).ravel()

    solution = solve_ivp(velocity, (0, t), start.ravel(), rtol=1e-9, atol=1e-11)
    return solution.y[:, -1].reshape(shape)


@pytest.mark.parametrize("law", ["isotropic", "anisotropic"])
def test_small_steps_converge_to_the_gradient_flow_with_order_one(law):
    activation = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
    rng = np.random.default_rng(1)
    if law == "isotropic":
        data, start = mf.data.IsotropicGaussians(d=40, delta=0.5), rng.uniform(0.2, 0.9, (13, 1))
    else:  # two coordinates
        data = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
        start = rng.uniform(0.1, 0.6, (12, 2))
    reduced = mf.Model(data=data, network=mf.Network(activation)).reduce()
    want = np.sort(reference(reduced, start, 0.4), axis=0)
    risk = mf.risk(reduced, want if law == "isotropic" else reference(reduced, start, 0.4))
    errors, gaps = [], []
    for tau in (0.02, 0.01, 0.005):
        run = solve(reduced, JKO(tau, start=start), horizon=0.4, save_at=1)
        assert run.meta["unfinished"] == 0
        errors.append(np.abs(np.sort(run.final.points, axis=0) - want).max())
        gaps.append(abs(run.risk[-1] - risk))
        assert 2 < run.error[-1] / gaps[-1] < 3  # five halves of the error made, to leading order
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 1) < 0.25).all()


def test_the_limit_agrees_with_wide_networks_of_the_same_model():
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(0.5),
        temperature=2e-3,
        ridge=0.1,
    )
    limit = solve(model, JKO(0.05, count=100), horizon=2.0, save_at=[2.0])
    wide = solve(
        model,
        mf.Particles(400, method="heun", step=0.05),
        horizon=2.0,
        save_at=[2.0],
        risk=mf.Exact(),
        rng=0,
    )
    # The fluctuation of R_N is 2 sd(Ψ)/√N < 0.006 here: 5 deviations, odds of a false alarm 1e-6.
    assert abs(limit.risk[-1] - wide.risk[-1]) < limit.error[-1] + 0.03
    assert abs(limit.observed["norm_mean"][-1] - wide.observed["norm_mean"][-1]) < 0.02


def test_atoms_that_reach_a_wall_rest_there_exactly():
    model = radius(target=-1.0)  # the drift is −(r̄ + 1) for all
    z, tau = np.linspace(0.0, 1.0, 21), 0.1
    run = solve(model, JKO(tau, start=z), horizon=0.4)
    for _ in range(4):
        mean = brentq(lambda m, z=z: np.maximum(z - tau * (m + 1), 0).mean() - m, 0, 1, xtol=1e-15)
        z = np.maximum(z - tau * (mean + 1), 0)
    assert np.allclose(run.final.points[:, 0], z, rtol=0, atol=1e-12)
    assert (run.final.points[:, 0] == 0).sum() == (z == 0).sum() > 5
    assert run.meta["unfinished"] == 0


def test_atoms_leave_a_wall_when_the_potential_turns():
    model = radius(target=1.0)
    run = solve(model, JKO(0.5, start=[0.0, 0.0, 2.0]), horizon=0.5)
    # m' = (m + τ)/(1 + τ) = 7/9, all move by τ(1 − m').
    assert np.allclose(run.final.points[:, 0], np.array([0, 0, 2]) + 0.5 * (1 - 7 / 9), atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_noise_in_d_directions_brings_a_radius_to_its_maxwell_law(d):
    model = mf.ReducedModel(
        coordinates=["r"],
        weights=[1.0],
        targets=[0.0],
        features=np.zeros_like,
        gradients=lambda z: np.zeros((len(z), 1, 1)),
        nonnegative=[True],
        volume=[d - 1],
        temperature=0.3,
        ridge=2.0,
    )
    start = mf.Density(np.linspace(0.1, 0.9, 5), [0.1, 0.4, 0.3, 0.2])
    run = solve(model, JKO(1e3, count=200, start=start, tolerance=1e-9), horizon=1e5)
    assert run.status == "stationary"
    cloud = run.final.as_cloud()
    second = cloud.weights @ cloud.points[:, 0] ** 2
    assert abs(second / (d * 0.3 / 2.0) - 1) < 6 / 200**2 * 4  # order n⁻²; measured 1e-4 and less
    assert (run.final.edges[0][0] == 0) == (d <= 2)  # mass presses against the wall, or hardly knows it
