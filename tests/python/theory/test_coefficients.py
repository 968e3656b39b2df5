"""Fourier and Hermite coefficients: enumeration, quadrature, samples, the limit, observables of runs."""

import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.data._links import hermite_table

SETS = [(), (0,), (1,), (0, 1), (0, 2), (0, 1, 2)]


def cube_model(d, activation=mf.activations.sigmoid, monomials=((0,), (0, 1), (0, 1, 2)), **network):
    network = {"output": "trained", "bias": "trained"} | network
    return mf.Model(mf.data.Staircase(d, list(monomials)), mf.Network(activation, **network))


def neurons(model, n, seed=0, size=1.0):
    theta = np.random.default_rng(seed).normal(size=(n, model.row))
    w = theta[:, model.network.row(0) :]
    w *= size / (np.linalg.norm(w, axis=1, keepdims=True) if model.network.sphere else math.sqrt(model.d))
    return theta


def enumerated(model, measure, sets):
    """E f χ_S over all 2^d inputs."""
    x = np.array(list(itertools.product([-1.0, 1.0], repeat=int(model.d))))
    f = mf.predict(model, measure, x)
    return np.array([np.mean(f * x[:, list(key)].prod(axis=1)) for key in sets])


@pytest.mark.parametrize("activation", [mf.activations.sigmoid, mf.activations.relu, mf.activations.tanh])
def test_fourier_coefficients_of_networks_are_those_of_the_enumeration(activation):
    model = cube_model(8, activation, scale=2.0)
    theta = neurons(model, 20, size=3.0)
    cloud = mf.Cloud(theta, np.arange(1, 21) / 210)
    assert np.allclose(theory.fourier(model, cloud, SETS), enumerated(model, cloud, SETS), atol=1e-14)
    value, error = theory.fourier(model, theta, SETS, errors=True)
    assert np.allclose(value, enumerated(model, theta, SETS), atol=1e-14)
    assert not error.any()


def test_fourier_coefficients_give_the_risk_of_a_network_by_parseval():
    model = cube_model(3, output="one", bias="none")
    theta = neurons(model, 5)
    every = [key for k in range(4) for key in itertools.combinations(range(3), k)]
    target = [1.0 if key in ((0,), (0, 1), (0, 1, 2)) else 0.0 for key in every]
    got = theory.fourier(model, theta, every)
    assert mf.risk(model, theta) == pytest.approx(((got - target) ** 2).sum(), abs=1e-13)


def test_the_normal_law_with_its_correction_is_within_its_stated_error_of_the_enumeration():
    # d = 17 is the first dimension that is not enumerated. Spread weights leave errors of order 1/d².
    model = cube_model(17)
    theta = neurons(model, 8, size=2.0)
    got, error = theory.fourier(model, theta, SETS, errors=True)
    gap = abs(got - enumerated(model, theta, SETS))
    assert (gap < 0.5 * error + 1e-5).all()
    assert 1e-5 < error.max() < 1e-2


def test_samples_agree_with_the_normal_law_within_their_errors():
    model = cube_model(60, mf.activations.relu)
    theta = neurons(model, 10)
    drawn, error = theory.fourier(model, theta, SETS, samples=4000, rng=0, errors=True)
    normal, correction = theory.fourier(model, theta, SETS, errors=True)
    # 6 coefficients within 5 standard errors: a false alarm has odds of 4e-6 (and the seed is fixed).
    assert (abs(drawn - normal) < 5 * error + correction).all()
    assert (error > 0).all()


def test_coefficients_of_the_limit_are_those_of_its_nodes():
    model = cube_model(math.inf)
    z = np.random.default_rng(1).uniform(0.2, 1.0, (7, 6))
    cloud, reduced = mf.Cloud(z, np.arange(1, 8) / 28), model.reduce()
    f = cloud.weights @ reduced.features(z)
    want = [f @ (reduced.weights * reduced.nodes[:, list(key)].prod(axis=1)) for key in SETS]
    assert np.allclose(theory.fourier(model, cloud, SETS), want, atol=1e-14)
    # At finite d the same measure is one of the limit.
    assert np.allclose(theory.fourier(cube_model(50), cloud, SETS), want, atol=1e-14)


@pytest.mark.parametrize("activation", [mf.activations.relu, mf.activations.tanh])
def test_hermite_coefficients_of_networks_are_those_of_quadrature(activation):
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0][:2]
    law = mf.data.MultiIndex(6, {(1, 0): 1.0}, directions=axes)
    model = mf.Model(law, mf.Network(activation, output="trained", bias="trained", scale=1.5))
    theta = neurons(model, 4, size=2.5)
    keys = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 3)]
    # z on a Gauss–Hermite grid, and E σ(m + |w⊥|G) from the library's own average over G.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    z = np.array(list(itertools.product(nodes, nodes)))
    p = np.multiply.outer(weights, weights).ravel() / (2 * math.pi)
    s = theta[:, 2:] @ axes.T
    r = np.linalg.norm(theta[:, 2:] - s @ axes, axis=1)
    flat = mf.Model(mf.data.MultiIndex(math.inf, {(1, 0): 1.0}, 2), model.network).reduce()
    points = np.column_stack([theta[:, :2], s, r])
    f = mf.predict(flat, points, np.column_stack([z, np.ones(len(z))]))
    table = hermite_table(z, 3)
    want = [p @ (f * table[:, 0, i] * table[:, 1, j]) for i, j in keys]
    assert np.allclose(theory.hermite(model, theta, keys), want, atol=1e-10)
    # and of the same neurons in reduced coordinates
    assert np.allclose(theory.hermite(model, points, keys), want, atol=1e-10)


def test_hermite_coefficients_take_numbers_for_one_direction():
    model = mf.Model(
        mf.data.MultiIndex(4, [0.0, 1.0], 1), mf.Network(mf.activations.hermite([0.5, 0.0, 1.0]))
    )
    assert theory.hermite(model, [[0.6, 0.8, 0, 0]], [0, 1, (2,)]) == pytest.approx([0.5, 0.0, 0.36])


def test_coefficients_are_observables_of_networks_and_of_the_limit():
    law = mf.data.Staircase(30, [(0,), (0, 1)])
    init = mf.init.Product(a=mf.init.Uniform(-1, 1), w=mf.init.Normal(0, 30**-0.5))
    model = mf.Model(law, mf.Network(mf.activations.sigmoid, output="trained"), init)
    observe = {"f": lambda rho: theory.fourier(model, rho, [(0,), (0, 1)])}
    net = mf.solve(model, mf.SGD(20, 0.1, replicas=2), horizon=1.0, save_at=3, rng=0, observe=observe)
    assert net.observed["f"].shape == (3, 2, 2)
    limit = model.reduce(limit=True)
    start = mf.Cloud([[0.5, 0.0, 0.0, 1.0], [-0.5, 0.0, 0.0, 1.0]])
    run = mf.solve(limit, mf.Atoms(start=start), horizon=1.0, save_at=3, observe=observe)
    assert run.observed["f"].shape == (3, 2)
    assert np.allclose(run.observed["f"][0], 0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m, t: theory.fourier(m, t, [(3,)]), "coordinates must be < P = 3"),
        (lambda m, t: theory.fourier(m, t, []), "at least one entry"),
        (lambda m, t: theory.fourier(m, t[:, :4], [()]), "points of length|shape"),
        (lambda m, t: theory.fourier(m, np.float32(0.5), [()]), "measure must have shape"),
        (lambda m, t: theory.fourier(m, mf.Cloud(t[:, :6]), [()], samples=10), "samples must be left out"),
        (lambda m, t: theory.hermite(m, t, [(1, 0, 0)]), "inputs='gaussian'"),
    ],
)
def test_misuse_is_answered_with_argument_and_rule(call, match):
    model = cube_model(20)
    with pytest.raises(ValueError, match=match):
        call(model, neurons(model, 3))
