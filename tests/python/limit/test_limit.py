"""Exact solutions (eqs. (10.9) to (10.13)) on every solver that has them, beyond tests of single ones.

All of them are linear networks: Φ_q(z) = ⟨x_q, z⟩, so that Ψ_λ = ⟨Σ(m − w*), z⟩ + λ|z|²/2 with m the mean of
ρ_t, Σ = E xxᵀ: then m' = −Σ(m − w*) − λm, Cov' = −2λCov + 2/β. Translation is Σ(m − w*) = −c with Σ → 0,
contraction Σ = 0, quadratic interaction a scalar Σ. Means and covariances are compared with those that follow
from the solver's own measure at t = 0, so that nothing but the dynamics is measured.
"""

import math
from dataclasses import replace

import mfcore as mf
import numpy as np
import pytest
from mfcore.init._blocks import Chi, Scalar
from scipy import linalg

T = 1.0


def reduced(slopes, targets, *, ridge=0.0, temperature=0.0):
    """Features ⟨x_q, z⟩ at nodes x_q, the rows of `slopes`, from independent normals."""
    slopes = np.array(slopes, dtype=float)
    q, k = slopes.shape
    return mf.ReducedModel(
        coordinates=["y", "z"][-k:],
        weights=np.full(q, 1 / q),
        targets=targets,
        features=lambda z: z @ slopes.T,
        gradients=lambda z: np.broadcast_to(slopes, (len(z), q, k)),
        initial=mf.ReducedInit([Scalar(mf.init.Normal(m, s)) for m, s in ((1.2, 0.4), (-0.5, 0.3))[:k]]),
        ridge=ridge,
        temperature=temperature,
    )


COUPLED = [[1.0, 0.6], [0.0, 1.1]]  # Σ has eigenvalues 0.2 and 1.0
CASES = {
    "translation": reduced([[1e-7]], [0.8e7]),
    "contraction": reduced([[0.0]], [0.0], ridge=0.7),
    "interaction": reduced([[1.3]], [0.0], ridge=0.4),
    "regression": reduced(COUPLED, [1.0, -0.4], ridge=0.5),
}


def cloud(measure):
    """Points and weights of what runs keep."""
    if isinstance(measure, np.ndarray):
        return mf.Cloud(measure)
    return measure.as_cloud() if isinstance(measure, mf.Density) else measure


def moments(measure):
    """Mean and covariance."""
    points, weights = cloud(measure).points, cloud(measure).weights
    mean = weights @ points
    return mean, (points - mean).T @ (weights[:, None] * (points - mean))


def exact(model, first, t):
    """Mean and covariance at t of what has these at 0, and the risk."""
    if isinstance(model, mf.Model):
        sigma, b = np.asarray(model.data.cov), np.asarray(model.data.cov) @ model.data.w
    else:
        x = model.features(np.eye(len(model.coordinates))).T  # its rows are the nodes
        sigma, b = x.T @ (model.weights[:, None] * x), x.T @ (model.weights * model.targets)
    (mean, cov), k = first, len(b)
    matrix = sigma + model.ridge * np.eye(k)
    flow = linalg.expm(t * np.block([[-matrix, b[:, None]], [np.zeros((1, k + 1))]]))  # m' = b − (Σ + λ)m
    decayed = math.exp(-2 * model.ridge * t)
    gained = 2 * t if model.ridge == 0 else (1 - decayed) / model.ridge
    return flow[:k, :k] @ mean + flow[:k, k], decayed * cov + model.temperature * gained * np.eye(k)


def run_error(model, method, horizon=T):
    """Largest error of mean and covariance at the horizon."""
    run = mf.solve(model, method, horizon=horizon, save_at=[0.0, horizon], keep="all", threads=1, rng=1)
    assert run.status == "completed"
    mean, cov = exact(model, moments(run.kept[0.0]), run.t[-1])
    found = moments(run.final)
    return max(np.abs(found[0] - mean).max(), np.abs(found[1] - cov).max())


def refined(model, methods, order, slack=0.25):
    """The last of errors that fall by 2^order from method to method, or to rounding."""
    errors = np.array([run_error(model, method) for method in methods])
    small = 1e-11
    rates = np.log2(np.maximum(errors[:-1], small) / np.maximum(errors[1:], small))
    assert ((rates > order - slack) | (errors[1:] <= small)).all(), errors
    return errors[-1]


# Order, and twice the error measured in the steepest case, (Σ + λ)h = 0.1.
FIXED = {"euler": (1, 6e-2), "heun": (2, 1.2e-3), "rk4": (4, 7e-7)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", FIXED)
def test_atoms_in_fixed_steps_have_the_order_of_the_method(case, method):
    order, last = FIXED[method]
    steps = [mf.Atoms(32, method=method, step=h) for h in (0.2, 0.1, 0.05)]
    assert refined(CASES[case], steps, order) < last


@pytest.mark.parametrize("case", CASES)
def test_atoms_in_chosen_steps_have_the_tolerance(case):
    for rtol in (1e-5, 1e-9):
        # Errors of steps add up to a few times the tolerance, relative to positions of size 2.
        assert run_error(CASES[case], mf.Atoms(144, rtol=rtol, atol=rtol)) < 20 * rtol


@pytest.mark.parametrize("case", CASES)
def test_minimising_movements_have_order_one_without_noise(case):
    assert refined(CASES[case], [mf.JKO(tau, count=36) for tau in (0.2, 0.1, 0.05)], 1) < 2e-2


@pytest.mark.parametrize(("scheme", "order", "last"), [("muscl", 2, 1e-3), ("upwind", 1, 4e-2)])
def test_densities_follow_a_coupled_regression(scheme, order, last):
    """Boxes are chosen by the run, and grow; only the second moments see the width of cells."""
    methods = [mf.PDE(n, scheme=scheme, error=False) for n in (40, 80, 160)]
    assert refined(CASES["regression"], methods, order, 0.45) < last


NOISY = {name: replace(model, temperature=0.3) for name, model in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_noisy_densities_have_order_two(case):
    """Solutions 2, 3 and 5, with the diffusion of pure noise for translation."""
    methods = [mf.PDE(n, error=False) for n in ((60, 120, 240) if case != "regression" else (30, 60, 120))]
    assert refined(NOISY[case], methods, 2, 0.6) < 4e-3  # grids grow, by different factors


@pytest.mark.parametrize("case", ["translation", "contraction", "interaction"])
def test_noisy_minimising_movements_have_order_one(case):
    assert refined(NOISY[case], [mf.JKO(tau, count=200) for tau in (0.2, 0.1, 0.05)], 1) < 4e-2


def deviations(model, method, horizon=T):
    """Error of mean and variances at the horizon, in standard deviations of those of independent points.

    Noise has added `gained` to the variance of each point: a mean of N has variance gained/N, a variance C of
    points at most 2C²/N.
    """
    run = mf.solve(model, method, horizon=horizon, save_at=[0.0, horizon], keep="all", threads=1, rng=3)
    first, found = moments(run.kept[0.0]), moments(run.final)
    n = len(run.final)
    mean, cov = exact(model, first, run.t[-1])
    gained = np.diag(cov - math.exp(-2 * model.ridge * horizon) * first[1])
    return max(
        np.abs((found[0] - mean) / np.sqrt(gained / n)).max(),
        np.abs(np.diag(found[1] - cov) / np.sqrt(2 * np.diag(cov) ** 2 / n)).max(),
    )


@pytest.mark.parametrize("case", CASES)
def test_noisy_atoms_have_the_exact_moments(case):
    # At most 4 Gaussian numbers: 5 deviations are false alarms with odds 2e-6. The bias of Heun's method at
    # h = 0.05 is 1e-4 or less, a fiftieth of a deviation.
    assert deviations(NOISY[case], mf.Atoms(4000, method="heun", step=0.05)) < 5


def network(d, temperature=0.0):
    """Linear regression in d = 1 or 2 dimensions by rows w: no symmetry is needed for a reduction."""
    w, cov = ([1.5], [[0.8]]) if d == 1 else ([1.0, -0.5], [[1.0, 0.3], [0.3, 0.5]])
    return mf.Model(
        data=mf.data.Linear(w, cov=cov, noise=0.3),
        network=mf.Network(mf.activations.linear),
        init=mf.init.Gaussian(std=0.6),
        ridge=0.5,
        temperature=temperature,
    )


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
def test_networks_of_particles_follow_the_same_solution_with_orders(d, method):
    order, last = FIXED[method]
    steps = [mf.Particles(20, method=method, step=h) for h in (0.2, 0.1, 0.05)]
    assert refined(network(d), steps, order) < last


@pytest.mark.parametrize("method", ["euler", "heun"])
def test_noisy_particles_have_the_exact_moments(method):
    # Means of particles obey w̄' = … + √(2/(βN))dB: their own noise is damped, so that `gained` is an upper
    # bound of its variance: 4 numbers within 5 deviations, odds 2e-6. The bias of Euler's method at h = 0.02
    # is 4e-3, a third of a deviation.
    step = {"euler": 0.02, "heun": 0.1}[method]
    assert deviations(network(2, 0.2), mf.Particles(1000, method=method, step=step)) < 5


DRIVERS = {"atoms": mf.Atoms(32), "density": mf.PDE(200, error=False), "movements": mf.JKO(0.01, count=50)}


@pytest.mark.parametrize(("driver", "error"), [("atoms", 1e-5), ("density", 1e-4), ("movements", 1e-2)])
def test_neurons_in_the_field_of_the_limit_have_its_characteristics(driver, error):
    """θ(t) = e^{−λt}θ(0) + c(t) with c from the exact mean of the limit, whatever neurons do themselves."""
    model = network(1)
    method = mf.Nonlinear(7, DRIVERS[driver])
    run = mf.solve(model, method, horizon=T, save_at=[0.0, T], keep="all", threads=1, rng=1)
    limit = exact(model, (np.zeros(1), np.eye(1)), T)[0]  # ρ₀ has mean 0
    assert np.abs(run.final - math.exp(-0.5 * T) * run.kept[0.0] - limit).max() < error


def test_noisy_neurons_in_the_field_of_the_limit_have_the_exact_moments():
    model = network(1, 0.2)
    method = mf.Nonlinear(4000, mf.PDE(100, error=False), step=0.01)
    run = mf.solve(model, method, horizon=T, save_at=[0.0, T], keep="all", threads=1, rng=3)
    # The mean has its own start, damped by λ alone, and the drift of the limit that starts at 0.
    start, cov = moments(run.kept[0.0])
    mean, cov = exact(model, (np.zeros(1), cov), T)
    gained = 0.2 * (1 - math.exp(-T)) / 0.5
    found = moments(run.final)
    # Two numbers within 5 deviations: odds 1e-6. Euler's bias at h = 0.01 is 1e-3, a tenth of a deviation.
    assert abs(found[0] - mean - math.exp(-0.5 * T) * start) < 5 * math.sqrt(gained / 4000)
    assert abs(found[1] - cov) < 5 * math.sqrt(2 / 4000) * cov


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("solver", ["density", "movements", "atoms"])
def test_radii_relax_as_in_full_dimension(d, solver):
    """Solution 2: d(E r²)/dt = −2λE r² + 2d/β."""
    ridge, temperature, t = 0.8, 0.6 / d, 0.7
    model = mf.ReducedModel(
        coordinates=["r"],
        weights=[1.0],
        targets=[0.0],
        features=lambda z: 0 * z,
        gradients=lambda z: 0 * z[:, :, None],
        nonnegative=[True],
        volume=[d - 1],
        initial=mf.ReducedInit([Chi(d, 1.5 / math.sqrt(d))]),
        ridge=ridge,
        temperature=temperature,
    )
    methods = {
        "density": [mf.PDE(n, error=False) for n in (50, 100, 200)],
        "movements": [mf.JKO(tau, count=200) for tau in (0.1, 0.05, 0.025)],
        "atoms": [mf.Atoms(8000, method="heun", step=0.05)],
    }[solver]
    errors = []
    for method in methods:
        run = mf.solve(model, method, horizon=t, save_at=[0.0, t], keep="all", threads=1, rng=5)
        first, last = (float(cloud(m).weights @ cloud(m).points[:, 0] ** 2) for m in run.kept.values())
        decayed = math.exp(-2 * ridge * run.t[-1])
        errors.append(abs(last / (decayed * first + (1 - decayed) * d * temperature / ridge) - 1))
    if solver == "atoms":
        # r² is a sum of d squares: its relative spread is at most √(2/d). 5 deviations: odds 6e-7.
        assert errors[0] < 5 * math.sqrt(2 / d / 8000)
    else:
        order = {"density": 2, "movements": 1}[solver]
        assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > order - 0.5, errors
        assert errors[-1] < 1e-2
