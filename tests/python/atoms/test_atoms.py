"""Atoms without noise: velocities, exact solutions, walls, against SciPy's integrators."""

from __future__ import annotations

import functools
import math

import mfcore as mf
import numpy as np
import problems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore.atoms._atoms import Atoms
from mfcore.runs._solve import solve
from problems import STEP
from scipy import integrate, linalg, special

RELU = mf.activations.relu


def by_hand(features, gradients, targets, coordinates=("z",), weights=None, **options):
    """A reduced model with equal node weights unless they are given."""
    targets = np.atleast_1d(np.asarray(targets, dtype=float))
    weights = np.full(len(targets), 1 / len(targets)) if weights is None else weights
    return mf.ReducedModel(
        coordinates=coordinates,
        weights=weights,
        targets=targets,
        features=features,
        gradients=gradients,
        **options,
    )


def line(target, slope=1.0, **options):
    """One node, Φ(z) = slope·z."""
    return by_hand(lambda z: slope * z, lambda z: np.full((len(z), 1, 1), slope), [target], **options)


def isotropic(d, activation=RELU, norm=0.8, **options):
    return problems.isotropic(d, activation, norm, **options)


def single_index(d, **options):
    """(a, s, r)."""
    law = mf.data.MultiIndex(d=d, link=[0.0, 1.0, 0.5], directions=1)
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), w=mf.init.Radial(0.8))
    return mf.Model(law, mf.Network(mf.activations.erf, output="trained"), init, **options)


def two_radii(activation=RELU, **options):
    """(a, b, r1, r2) at d = inf."""
    law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.3)
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.8))
    return mf.Model(law, mf.Network(activation, output="trained", bias="trained"), init, **options)


MODELS = {
    "r at d=40": lambda: isotropic(40, STEP, ridge=0.05),
    "r at d=320": lambda: isotropic(320, STEP),
    "r at d=inf": lambda: isotropic(math.inf, STEP),
    "a, s, r": lambda: single_index(math.inf, ridge=0.1, rates={"a": 3.0}),
    "a, s, r at d=5": lambda: single_index(5),
    "a, b, r1, r2": lambda: two_radii(rates={"a": 2.0, "b": 0.1}, ridge=0.2),
}


@functools.cache
def reduced_model(name):
    return MODELS[name]().reduce()


def cloud(reduced, count, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.3, 1.5, (count, len(reduced.coordinates)))
    signs = rng.choice([-1, 1], z.shape)
    weights = rng.uniform(0.1, 1, count)
    return mf.Cloud(np.where(reduced.nonnegative, z, z * signs), weights / weights.sum())


def system(reduced, weights, threads=1):
    params = _core.AtomParams(
        rates=list(reduced.rates),
        decays=list(reduced.decays),
        nonnegative=list(reduced.nonnegative),
        volume=list(reduced.volume),
        ridge=reduced.ridge,
    )
    p, y = reduced.weights.tolist(), reduced.targets.tolist()
    return _core.System.atoms(reduced._compiled, p, y, weights.tolist(), params, threads=threads)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=5, deadline=None)
@given(count=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_the_velocity_is_that_of_the_definition(name, count, seed):
    reduced = reduced_model(name)
    rho = cloud(reduced, count, seed)
    got = system(reduced, rho.weights)(rho.points.ravel()).reshape(rho.points.shape)
    want = -np.array(reduced.rates) * mf.grad_psi(reduced, rho.points, rho)
    scale = np.abs(reduced.gradients(rho.points)).max() * np.abs(reduced.targets).max()
    np.testing.assert_allclose(got, want, atol=1e-13 * max(scale, 1.0))  # rounding of Q terms


def test_the_velocity_of_many_atoms_is_that_of_the_definition_for_any_number_of_threads():
    reduced = single_index(math.inf).reduce()
    count = 2**21 // (3 * len(reduced.weights)) + 1  # gradients are made again for the second pass
    rho = cloud(reduced, count)
    one, two, four = (system(reduced, rho.weights, threads)(rho.points.ravel()) for threads in (1, 2, 4))
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)
    want = -mf.grad_psi(reduced, rho.points, rho)
    np.testing.assert_allclose(one.reshape(rho.points.shape), want, atol=1e-12)  # sums of 15 000 terms


@pytest.mark.parametrize("name", MODELS)
def test_atoms_follow_what_scipy_integrates(name):
    reduced = reduced_model(name)
    rho, shape = cloud(reduced, 7), (7, len(reduced.coordinates))

    def velocity(t, y):
        z = y.reshape(shape)
        return -(np.array(reduced.rates) * mf.grad_psi(reduced, z, mf.Cloud(z, rho.weights))).ravel()

    want = integrate.solve_ivp(velocity, (0, 1.0), rho.points.ravel(), "DOP853", rtol=1e-11, atol=1e-12)
    run = solve(reduced, Atoms(start=rho, rtol=1e-10, atol=1e-11), horizon=1.0, save_at=[1.0])
    assert run.status == "completed"
    # A few dozen steps with errors of 1e-10, not amplified by more than the flow's own growth.
    np.testing.assert_allclose(run.final.points, want.y[:, -1].reshape(shape), atol=2e-8)
    np.testing.assert_array_equal(run.final.weights, rho.weights)
    assert run.risk[-1] == pytest.approx(mf.risk(reduced, run.final), abs=1e-13)


@pytest.mark.parametrize(
    ("method", "step"), [("dopri5", None), ("rk4", 0.02), ("bdf", None), ("lsoda", None)]
)
def test_decay_shrinks_and_a_constant_force_translates(method, step):
    """Eq. (10.12)."""
    rho = mf.Cloud(np.random.default_rng(0).normal(size=(9, 1)))
    options = {"start": rho, "method": method, "step": step}
    decaying = line(0.0, slope=0.0, ridge=0.7)
    run = solve(decaying, Atoms(**options), horizon=2.0, save_at=[])
    # rk4 has errors of 2 h^4 lambda^5 / 120, BDF a few hundred times its rtol of 1e-8.
    np.testing.assert_allclose(run.final.points, rho.points * math.exp(-1.4), atol=2e-6)
    small = 1e-6  # Psi = -(c - small^2 mean) z
    run = solve(line(1.5 / small, slope=small), Atoms(**options), horizon=2.0, save_at=[])
    np.testing.assert_allclose(run.final.points, rho.points + 3.0, atol=1e-10)


def test_linear_networks_follow_the_exact_solution():
    """Eqs. (10.10), (10.11), in the coordinates (s, r)."""
    d, c, ridge, t = 50, 1.7, 0.3, 0.8
    w = np.arange(d) / 40
    law, size = mf.data.Linear(w, cov=c, noise=0.2), float(np.linalg.norm(w))
    model = mf.Model(law, mf.Network(mf.activations.linear), mf.init.Radial(0.9), ridge=ridge)
    run = solve(model, Atoms(64), horizon=t, save_at=[t])
    limit = c * size / (c + ridge)
    mean = limit * (1 - math.exp(-(c + ridge) * t))  # of s; that of rho_0 is 0
    shrunk = math.exp(-2 * ridge * t) * 0.81 / d
    assert run.observed["s1_mean"][-1] == pytest.approx(mean, abs=1e-8)
    assert run.observed["s1_std"][-1] == pytest.approx(math.sqrt(shrunk), abs=1e-8)
    z, masses = run.final.points, run.final.weights
    assert masses @ z[:, 1] ** 2 == pytest.approx((d - 1) * shrunk, abs=1e-8)
    risk = c * (mean - size) ** 2 + 0.04
    assert abs(run.risk[-1] - risk) < max(run.error[-1], 1e-12)
    assert run.error[-1] < 1e-5


def test_the_stated_error_bounds_that_of_the_steps():
    reduced = isotropic(40, STEP).reduce()
    rho = mf.Cloud(*reduced.initial.quadrature(16))
    best = solve(reduced, Atoms(start=rho, rtol=1e-12, atol=1e-13), horizon=2.0, save_at=5)
    for options in (
        {"rtol": 1e-5, "atol": 1e-7},
        {"rtol": 1e-7, "atol": 1e-9},
        {"method": "euler", "step": 0.002},
        {"method": "heun", "step": 0.01},
        {"method": "rk4", "step": 0.02},
    ):
        run = solve(reduced, Atoms(start=rho, **options), horizon=2.0, save_at=5)
        assert (np.abs(run.risk - best.risk)[1:] <= run.error[1:]).all(), options
        assert run.error[-1] < 0.3 * best.risk[0]


def test_the_risk_falls_by_twice_the_mean_squared_gradient():
    model = two_radii(mf.activations.tanh, rates={"a": 2.0, "b": 0.5})
    reduced, h = model.reduce(), 1e-3
    rho = cloud(reduced, 11)
    times = [0.5 - h, 0.5, 0.5 + h]
    run = solve(reduced, Atoms(start=rho, rtol=1e-11, atol=1e-12), horizon=1.0, save_at=times, keep="all")
    gradient = mf.grad_psi(reduced, run.kept[0.5].points, run.kept[0.5])
    loss = 2 * np.sum(rho.weights @ (np.array(reduced.rates) * gradient**2))
    slope = (run.risk[2] - run.risk[0]) / (2 * h)
    assert slope == pytest.approx(-loss, rel=1e-5)  # central differences: h^2 R''' / 6


# Walls


def collapse(reduced, d, norm, times):
    """ReLU: all radii shrink alike, r = (r_0 - S)_+, and S' = A m(S) - B: S and the risk."""
    p, y, slope = reduced.weights, reduced.targets, reduced.features([[1.0]])[0]
    A, B, k = p @ slope**2, p @ (slope * y), norm / math.sqrt(d)
    first = math.sqrt(2) * math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2))

    def m(S):
        x = (max(S, 0.0) / k) ** 2 / 2
        return k * first * special.gammaincc((d + 1) / 2, x) - S * special.gammaincc(d / 2, x)

    path = integrate.solve_ivp(
        lambda t, S: [A * m(S[0]) - B], (0, times[-1]), [0.0], "DOP853", rtol=1e-13, atol=1e-14, t_eval=times
    )
    return path.y[0], np.array([p @ (y - slope * m(S)) ** 2 for S in path.y[0]])


def test_a_law_that_collapses_to_zero_is_followed_to_its_stated_error():
    model, times = isotropic(40, norm=30.0), np.array([0.0, 6.0, 10.0, 15.0, 25.0])
    S, risk = collapse(model.reduce(), 40, 30.0, times)
    run = solve(model, Atoms(rtol=1e-6, atol=1e-8), horizon=25.0, save_at=times)
    assert run.status == "completed"
    assert (np.abs(run.risk - risk) <= np.maximum(run.error, 1e-10)).all()
    assert run.error.max() < 1e-3  # of a risk of 400
    radius, masses = run.final.points[:, 0], run.final.weights
    mass = special.gammainc(20, 40 * (S[-1] / 30.0) ** 2 / 2)
    assert mass > 0.4
    assert masses[radius == 0].sum() == pytest.approx(mass, abs=2e-3)  # to an atom of the finest panels
    assert radius.min() == 0


@pytest.mark.parametrize(
    "options", [{}, {"method": "euler", "step": 0.05}, {"method": "heun", "step": 0.1}, {"method": "bdf"}]
)
def test_atoms_driven_into_the_wall_stay_there_and_no_step_stalls(options):
    reduced = isotropic(40).reduce()
    rho = mf.Cloud(np.linspace(0.0, 4.0, 41))  # mean 2, all shrink alike until the mean is 0.9 or so
    run = solve(reduced, Atoms(start=rho, **options), horizon=200.0, save_at=[200.0])
    assert run.status == "completed"
    r, p, y = run.final.points[:, 0], reduced.weights, reduced.targets
    slope = reduced.features([[1.0]])[0]
    at_rest = (p @ (slope * y)) / (p @ slope**2)
    assert r.mean() == pytest.approx(at_rest, abs=2e-3)  # to which m tends as exp(-0.12 t)
    free = r > 1e-9  # implicit solvers do not hit 0
    assert 5 < free.sum() < 36
    assert (free == (rho.points[:, 0] > rho.points[~free].max())).all()  # in order
    np.testing.assert_allclose(np.diff(r[free]), 0.1, atol=1e-7)
    assert run.meta["evaluations"] <= 10_000  # most of them for Jacobians


def test_an_atom_at_the_wall_leaves_when_it_is_pushed_away():
    """Two linear nodes: a relaxes quickly and turns the force on r, which waits at 0 until then."""
    c, y = np.array([3.0, 0.2]), np.array([-2.0, 1.0])
    reduced = by_hand(
        lambda z: z[:, 1:] + z[:, :1] * c,
        lambda z: np.stack([np.tile(c, (len(z), 1)), np.ones((len(z), 2))], axis=2),
        y,
        coordinates=("a", "r"),
        nonnegative=(False, True),
    )
    # While r = 0: a' = -(|c|^2 a - <c, y>)/2; the force on r turns where sum(c a - y) = 0.
    rate, rest, turn = c @ c / 2, (c @ y) / (c @ c), y.sum() / c.sum()
    leaves = -math.log((turn - rest) / (0 - rest)) / rate
    A = -0.5 * np.array([[c @ c, c.sum()], [c.sum(), 2.0]])
    fixed = np.linalg.solve(A, -0.5 * np.array([c @ y, y.sum()]))
    times = leaves + np.array([-0.05, 0.02, 0.1, 1.0])
    want = [[rest + (0 - rest) * math.exp(-rate * times[0]), 0.0]]
    for t in times[1:]:
        want.append(fixed + linalg.expm(A * (t - leaves)) @ (np.array([turn, 0.0]) - fixed))
    start = mf.Cloud([[0.0, 0.0]])
    run = solve(reduced, Atoms(start=start), horizon=times[-1], save_at=times, keep="all")
    got = np.concatenate([run.kept[t].points for t in times])
    assert got[0, 1] == 0
    np.testing.assert_allclose(got, want, atol=2e-7)  # rtol = 1e-8, a kink in the velocity
    assert run.meta["steps"] < 200


def turning():
    """r' = s, s' = 1 + r up to terms of size 1e-7, from Φ = 1e-7·s(1 + r) and y = 1e7."""
    small = 1e-7
    return by_hand(
        lambda z: small * z[:, 1:] * (1 + z[:, :1]),
        lambda z: small * np.stack([z[:, 1], 1 + z[:, 0]], axis=1)[:, None],
        [1 / small],
        coordinates=("r", "s"),
        nonnegative=(True, False),
    )


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_an_atom_that_turns_at_the_wall_within_a_step_stays_there_as_long_as_it_should(rtol):
    """From r = .41 the velocities lead below 0 by .003, where a step may turn it without a stop.

    Errors are up to 13 times rtol; where no step sees the turn they are 90 and 2700 times that.
    """
    r, s, end = 0.41, -1.0, 1.9
    up, down = (1 + r + s) / 2, (1 + r - s) / 2  # of e^t and e^-t
    stops = math.log((1 - math.sqrt(1 - 4 * up * down)) / (2 * up))
    leaves = stops - (up * math.exp(stops) - down * math.exp(-stops))
    method = Atoms(start=mf.Cloud([[r, s]]), rtol=rtol, atol=0.1 * rtol)
    run = solve(turning(), method, horizon=end, save_at=[end])
    want = [[math.cosh(end - leaves) - 1, math.sinh(end - leaves)]]
    np.testing.assert_allclose(run.final.points, want, rtol=0, atol=40 * rtol)


def test_an_atom_that_begins_at_the_wall_leaves_at_once_if_it_is_pushed_away():
    run = solve(turning(), Atoms(start=mf.Cloud([[0.0, 0.5]])), horizon=1.0, save_at=[1.0])
    want = [[math.cosh(1.0) + 0.5 * math.sinh(1.0) - 1, math.sinh(1.0) + 0.5 * math.cosh(1.0)]]
    np.testing.assert_allclose(run.final.points, want, atol=1e-6)  # the terms of size 1e-7, and rtol


def test_zero_masses_are_moved_by_the_others_and_move_nobody():
    reduced = isotropic(40, STEP).reduce()
    rho = cloud(reduced, 5)
    more = mf.Cloud(np.concatenate([rho.points, rho.points[:1], [[1.7]]]), [*rho.weights, 0.0, 0.0])
    options = {"rtol": 1e-10, "atol": 1e-11}
    alone = solve(reduced, Atoms(start=rho, **options), horizon=1.0, save_at=[1.0])
    run = solve(reduced, Atoms(start=more, **options), horizon=1.0, save_at=[1.0])
    np.testing.assert_allclose(run.final.points[:5], alone.final.points, atol=1e-8)  # other steps
    assert run.final.points[5] == run.final.points[0]
    assert run.risk[-1] == pytest.approx(alone.risk[-1], abs=1e-8)


def test_one_atom_is_the_gradient_flow_of_one_neuron():
    """Phi(z) = z^2, y = 1: z' = -2 (z^2 - 1) z, so z^2 = 1 / (1 - (1 - 1/z_0^2) exp(-4 t))."""
    square = by_hand(lambda z: z**2, lambda z: 2 * z[:, None, :], [1.0])
    run = solve(square, Atoms(start=mf.Cloud([[0.5]])), horizon=1.0, save_at=[1.0])
    assert run.final.points[0, 0] ** 2 == pytest.approx(1 / (1 + 3 * math.exp(-4.0)), abs=1e-7)
