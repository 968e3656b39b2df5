"""Ridge regression on draws: exact cases, the deterministic equivalent, random features, double descent."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore._base.rng import Seed, derive, seed_of

SPHERE = mf.data.MultiIndex(12, [0.0, 1.0, 0.5], directions=1, inputs="sphere")


def relu(d, **blocks):
    law = {"a": mf.init.Constant(1.0), "w": mf.init.Radial(1.0)} | blocks
    network = mf.Network(mf.activations.relu, output="trained", bias="trained" if "b" in law else "none")
    data = mf.data.MultiIndex(d, [0.0, 1.0], directions=1, inputs="sphere")
    return mf.Model(data, network, mf.init.Product(**law))


def test_a_draw_is_the_solution_of_its_linear_system():
    found = theory.kernel_ridge(np.exp, SPHERE, samples=15, ridge=0.3, noise=0.2, draws=2, test=40, rng=3)
    again = theory.kernel_ridge(
        np.exp, SPHERE, samples=[7, 15], ridge=0.3, noise=0.2, draws=2, test=40, rng=3
    )
    assert (found.risk[0] == again.risk[1]).all()  # more rows change no draw
    own = derive(seed_of(3), 1)
    X, f = SPHERE.draw(55, rng=Seed(own))
    y = f[:15] + math.sqrt(0.2) * np.random.default_rng(own).normal(size=15)
    K = np.exp(X @ X[:15].T / 12)
    predicted = K @ np.linalg.solve(K[:15] + 0.3 * np.eye(15), y)
    assert math.isclose(found.risk[0, 1], np.mean((predicted[15:] - f[15:]) ** 2), rel_tol=1e-10)
    assert math.isclose(found.train[0, 1], np.mean((predicted[:15] - y) ** 2), rel_tol=1e-10)


def test_the_mean_over_draws_is_the_deterministic_equivalent():
    # 5 standard errors of 16 draws, odds of a false alarm 2e-4 (Student's t) at a fixed seed, and 5 % for
    # terms of order 1/n that the equivalent leaves out.
    model = relu(12)
    spectrum = theory.zonal_spectrum(model, 12, degree=8)
    target = theory.zonal_spectrum(
        lambda u: math.sqrt(12) * u + 0.5 * (12 * u**2 - 1) / math.sqrt(2), 12, degree=2
    )
    power = target.multiplicities * target.eigenvalues**2
    options = {"samples": [40, 160], "ridge": 0.1, "noise": 0.1}
    want = theory.regression_risk(spectrum, power, **options)
    found = theory.kernel_ridge(model, SPHERE, draws=16, rng=0, **options)
    for drawn, expected in ((found.risk, want.risk), (found.train, want.train)):
        error = drawn.std(axis=1, ddof=1) / 4
        assert (np.abs(drawn.mean(axis=1) - expected) < 5 * error + 0.05 * expected).all()


def test_least_squares_has_its_closed_form_and_its_peak():
    """Of x ~ N(0, I), labels of noise τ² and d < n − 1 parameters: risk τ²d/(n − d − 1)."""
    d, noise = 10, 0.5
    data = mf.data.Linear(w=np.eye(1, d)[0])
    found = theory.kernel_ridge(lambda u: u, data, samples=[30, 60], noise=noise, draws=100, rng=0)
    want = noise * d / (np.array([30, 60]) - d - 1)
    # 100 draws, 4.5 standard errors: odds of 2e-5 for two numbers
    error = found.risk.std(axis=1, ddof=1) / 10
    assert (np.abs(found.mean - want) < 4.5 * error).all()
    near, under = theory.kernel_ridge(lambda u: u, data, samples=[d, 5], noise=noise, draws=20, rng=0).mean
    assert near > 4 * under  # as many samples as parameters: the peak


def test_random_features_peak_where_they_are_as_many_as_samples_and_tend_to_their_kernel():
    model = relu(12)
    options = {"samples": 60, "blocks": "a", "noise": 0.1, "draws": 12, "test": 400, "rng": 0}
    few, equal, many, infinite = theory.kernel_ridge(
        model, SPHERE, neurons=[20, 60, 6000, math.inf], **options
    ).mean
    assert equal > 3 * max(few, many)  # at a fixed seed; about 20 times
    assert abs(many - infinite) < 0.2 * infinite  # 1/√N: 0.013 times a constant, same draws


def test_all_blocks_peak_where_parameters_are_as_many_as_samples():
    model = relu(6)
    data = mf.data.MultiIndex(6, [0.0, 1.0, 0.5], directions=1, inputs="sphere")
    options = {"samples": 70, "noise": 0.1, "draws": 12, "test": 400, "rng": 0}
    few, equal, many = theory.kernel_ridge(model, data, neurons=[4, 10, 200], **options).mean
    assert equal > 2 * max(few, many)  # 10 neurons of 7 parameters


def test_random_features_have_the_kernel_of_their_values():
    model = relu(5, b=mf.init.Normal(0.0, 0.7))
    X = np.random.default_rng(0).normal(size=(6, 5))
    theta = model.init.sample(model.network, 5, 30, rng=0)
    values = np.maximum(X @ theta[:, 2:].T + theta[:, 1], 0.0)
    got = theory.tangent_kernel(model, X, measure=theta, blocks="a")
    np.testing.assert_allclose(got, values @ values.T / 30, rtol=1e-13)
    parts = [theory.tangent_kernel(model, X, blocks=block) for block in ("a", "b", "w")]
    np.testing.assert_allclose(sum(parts), theory.tangent_kernel(model, X), rtol=1e-13)
    batches = [model.init.sample(model.network, 5, 20_000, rng=k) for k in range(16)]
    drawn = [theory.tangent_kernel(model, X, measure=rows, blocks="a") for rows in batches]
    # 6 standard errors of 16 batches, as for whole kernels: wrong once in 1e4 seeds for each of 21 numbers
    assert (np.abs(np.mean(drawn, axis=0) - parts[0]) < 6 * np.std(drawn, axis=0, ddof=1) / 4).all()


def test_the_spectrum_of_random_features_is_that_of_their_kernel():
    model = relu(6)
    arc = theory.zonal_spectrum(
        lambda u: (np.sqrt(1 - u**2) + (math.pi - np.arccos(u)) * u) / (2 * math.pi), 6, degree=4
    )
    found = theory.zonal_spectrum(model, 6, degree=4, blocks="a")
    np.testing.assert_allclose(found.eigenvalues, arc.eigenvalues, rtol=1e-10, atol=1e-12)


def test_the_power_of_a_ridge_function_sums_to_its_second_moment():
    for d in (3, 20):
        found = theory.zonal_spectrum(lambda u, d=d: np.tanh(math.sqrt(d) * u), d, degree=60)
        X, _ = mf.data.MultiIndex(d, [0.0, 1.0], directions=1, inputs="sphere").draw(200_000, rng=0)
        squares = np.tanh(X[:, 0]) ** 2
        total = float(found.multiplicities @ found.eigenvalues**2)
        # 5 standard errors: odds of 6e-7; degrees beyond 60 have less than 1e-5 of it
        assert abs(total - squares.mean()) < 5 * squares.std() / math.sqrt(200_000) + 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": mf.data.Linear(w=[1.0, 0.0], noise=0.1)}, "data must have labels without noise"),
        ({"data": mf.data.IsotropicGaussians(math.inf, 0.5)}, "data must have inputs of finite dimension"),
        ({"samples": 0}, "samples must be >= 1, got 0"),
        ({"samples": [4, 2.5]}, "samples must be an integer, got 2.5"),
        ({"neurons": 3}, "neurons must be inf for a function"),
        ({"blocks": "a"}, "blocks must be None for a function"),
        ({"kernel": lambda u: u[:1]}, "kernel must return one finite number"),
        ({"kernel": relu(4)}, "data must be of dimension 4"),
        ({"kernel": relu(2).replace(init=None)}, "kernel must be a model with an initial law"),
        ({"kernel": relu(2), "blocks": "ab"}, r"blocks must be some of the trained ones \(a, w\), got 'ab'"),
        ({"kernel": relu(2), "samples": [4, 5, 6], "neurons": [4, 5]}, "neurons must be one number or 3"),
        ({"draws": 1}, "draws must be >= 2, got 1"),
        ({"ridge": -1.0}, "ridge must be >= 0"),
    ],
)
def test_misuse_is_refused_in_words(change, message):
    given = {"kernel": np.exp, "data": mf.data.Linear(w=[1.0, 0.0]), "samples": 4} | change
    with pytest.raises(ValueError, match=message):
        theory.kernel_ridge(given.pop("kernel"), given.pop("data"), **given)


@pytest.mark.parametrize("name", ["samples", "neurons"])
@pytest.mark.parametrize("value", ["", [], [[1, 2]], 0, 1.5, math.nan, None, [3, "x"]])
def test_counts_that_are_not_whole_numbers_are_named(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        theory.kernel_ridge(relu(20), SPHERE, **{"samples": 5, "neurons": 5, name: value})
