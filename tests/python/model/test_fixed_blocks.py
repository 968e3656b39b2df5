"""A fixed block is one that trains at a vanishing rate: whatever follows the flow agrees, at every rung.

With a rate of 1e-13 the block moves by 1e-13 of what it would: numbers agree to about 1e-12 of their size, or
to the tolerance of what integrates them. Decay of the block, at its rate, vanishes with it.
"""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 2)), RNG.normal(size=6)
THETA = RNG.normal(size=(5, 4))
ON_SPHERE = np.concatenate(
    [THETA[:, :2], THETA[:, 2:] / np.linalg.norm(THETA[:, 2:], axis=1)[:, None]], axis=1
)
PLANE, LINE = mf.data.Dataset(X, Y), mf.data.Dataset(X[:, :1], Y)
RATE = 1e-13
ROLES = {"a": {"output": "fixed", "bias": "trained"}, "b": {"output": "trained", "bias": "fixed"}}
PRECISE = {"rtol": 1e-11, "atol": 1e-13}


def fixed_and_slow(block, law=PLANE, init=None, sphere=False, **options):
    every = {"output": "trained", "bias": "trained"}
    shape = {"scale": 1.5, "sphere": sphere}
    networks = (mf.Network(mf.activations.tanh, **shape, **roles) for roles in (ROLES[block], every))
    init = init or mf.init.Points(ON_SPHERE if sphere else THETA)
    fixed, slow = (mf.Model(law, network, init, **options) for network in networks)
    return fixed, slow.replace(rates={block: RATE})


def risks(method):
    def of(model):
        return mf.solve(model, method, horizon=1.0, save_at=3, rng=0).risk

    return of


def moments(start, **options):
    def of(model):
        found = theory.fluctuations(model, 0.5, [0.5], start=start, **options)
        return np.stack([found.risk, found.output, found.variance, found.offset])

    return of


def bounds(model):
    found = theory.laziness(model, THETA)
    run = mf.solve(model, mf.Particles(5, **PRECISE), horizon=0.5, save_at=3, keep="all")
    along = theory.lazy_bounds(run)
    alone = [found.smallest, found.largest, found.displacement, found.curvature, found.kappa]
    return np.concatenate(
        [alone, along.risk_bound, along.displacement, along.displacement_bound, along.gradients_bound]
    )


LAW = mf.init.Product(a=mf.init.Normal(0.3, 1.0), b=mf.init.Normal(-0.2, 0.8), w=mf.init.Radial(1.2))
OF_NETWORKS = {
    "SGD": risks(mf.SGD(5, 0.05)),
    "SGD, batch": risks(mf.SGD(5, 0.05, batch=3)),
    "GD": risks(mf.GD(5, 0.05)),
    "Particles": risks(mf.Particles(5, **PRECISE)),
    "lsoda": risks(mf.Particles(5, method="lsoda", **PRECISE)),
    "heun": risks(mf.Particles(5, method="heun", step=0.05)),
    "dissipation": lambda model: mf.dissipation(model, model.init.theta),
    "fluctuations": lambda model: moments(model.init.theta)(model),
    "fluctuations, SGD": lambda model: moments(model.init.theta, sgd=0.3)(model),
}
LINEAR = {
    "Linearized": risks(mf.Linearized(5)),
    "Linearized, infinite": risks(mf.Linearized(math.inf)),
    "bounds": bounds,
    "kernel": lambda model: theory.tangent_kernel(model, X, measure=THETA),
    "kernel, infinite": lambda model: theory.tangent_kernel(model.replace(init=LAW), X),
}
CLOUD = mf.Cloud(THETA[:, :3])
OF_THE_LIMIT = {
    "Atoms": (risks(mf.Atoms(start=CLOUD, rtol=1e-10, atol=1e-12)), 1e-9),
    "JKO": (risks(mf.JKO(0.1, start=CLOUD)), 1e-7),  # what Newton's method leaves of a movement
    "dissipation": (lambda model: mf.dissipation(model.reduce(), THETA[:, :3]), 1e-11),
    "fluctuations": (lambda model: moments(THETA[:, :3])(model.reduce()), 1e-8),  # differences
}


def assert_agree(one, two, tolerance):
    np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * np.abs(two).max())


@pytest.mark.parametrize("block", ROLES)
@pytest.mark.parametrize("options", [{"ridge": 0.0}, {"ridge": 0.3}, {"sphere": True}], ids=str)
@pytest.mark.parametrize("name", OF_NETWORKS)
def test_networks_move_as_with_a_block_of_vanishing_rate(name, options, block):
    fixed, slow = fixed_and_slow(block, **options)
    assert_agree(OF_NETWORKS[name](fixed), OF_NETWORKS[name](slow), 1e-10)


@pytest.mark.parametrize("block", ROLES)
@pytest.mark.parametrize("name", LINEAR)
def test_kernels_and_their_bounds_are_those_of_a_block_of_vanishing_rate(name, block):
    fixed, slow = fixed_and_slow(block)
    assert_agree(LINEAR[name](fixed), LINEAR[name](slow), 1e-9)  # bounds divide by the smallest eigenvalue


@pytest.mark.parametrize("block", ROLES)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("name", OF_THE_LIMIT)
def test_the_limit_moves_as_with_a_block_of_vanishing_rate(name, ridge, block):
    function, tolerance = OF_THE_LIMIT[name]
    law = mf.init.Gaussian(1.0)
    fixed, slow = fixed_and_slow(block, LINE, law, ridge=ridge)
    assert_agree(function(fixed), function(slow), tolerance)


@pytest.mark.parametrize("block", ROLES)
@pytest.mark.parametrize(
    "method", [mf.GD(5, 0.05), mf.SGD(5, 0.05), mf.Particles(5, method="euler", step=0.05)]
)
def test_noise_moves_neurons_as_with_a_block_of_vanishing_rate(method, block):
    fixed, slow = fixed_and_slow(block, ridge=0.3, temperature=0.02)
    assert_agree(risks(method)(fixed), risks(method)(slow), 1e-6)  # noise is of the size √rate, 3e-7


@pytest.mark.parametrize("block", ROLES)
def test_kernels_on_the_sphere_are_those_of_a_block_of_vanishing_rate(block):
    fixed, slow = (theory.tangent_kernel(model, X) for model in fixed_and_slow(block, sphere=True))
    assert_agree(fixed, slow, 1e-12)


@pytest.mark.parametrize("block", ROLES)
def test_eigenvalues_of_the_flow_are_those_of_a_block_of_vanishing_rate(block):
    fixed, slow = (theory.stability(model, THETA) for model in fixed_and_slow(block, ridge=0.3))
    # A block at rest adds an eigenvalue of the size of its rate to each atom, and one per atom to the mean.
    moving = np.array([np.delete(row, np.abs(row).argmin()) for row in slow.spread])
    assert_agree(fixed.spread, moving, 1e-10)
    assert_agree(fixed.mean, np.sort(slow.mean[np.argsort(np.abs(slow.mean))[len(THETA) :]]), 1e-10)
    column = {"a": 0, "b": 1}[block]
    slopes = np.delete(mf.grad_psi(fixed_and_slow(block, ridge=0.3)[0], THETA, THETA), column, axis=1)
    assert fixed.residual == pytest.approx(math.sqrt(np.square(slopes).sum() / len(THETA)), rel=1e-12)


@pytest.mark.parametrize("block", ROLES)
def test_fixed_points_keep_what_is_fixed_and_have_no_slope_in_what_trains(block):
    fixed, _ = fixed_and_slow(block, ridge=0.3)
    found = theory.fixed_points(fixed, 5, THETA[None])
    column = {"a": 0, "b": 1}[block]
    for point in found:
        assert set(point.measure.points[:, column]) <= set(THETA[:, column])
        assert np.abs(mf.grad_psi(fixed, point.measure.points, point.measure)).max() < 1e-7


@pytest.mark.parametrize(
    "roles", [{"output": "fixed"}, {"bias": "fixed"}, {"output": "fixed", "bias": "fixed"}]
)
def test_the_gradient_is_that_of_the_energy_in_what_trains(roles):
    network = mf.Network(mf.activations.tanh, **({"output": "trained", "bias": "trained"} | roles), scale=1.5)
    model = mf.Model(PLANE, network, ridge=0.3)
    got, want, step = mf.grad_psi(model, THETA, THETA), np.zeros_like(THETA), 1e-5
    for place in np.ndindex(THETA.shape):
        if place[1] in network.still:
            continue
        up, down = THETA.copy(), THETA.copy()
        up[place] += step
        down[place] -= step
        # F of N neurons has the gradient ∇Ψ_λ/N.
        slope = (mf.free_energy(model, up) - mf.free_energy(model, down)) / (2 * step)
        want[place] = len(THETA) * slope
    assert_agree(got, want, 1e-8)  # differences: third derivatives · 1e-10, and 1e-16/1e-5
    assert (got[:, list(network.still)] == 0).all()
