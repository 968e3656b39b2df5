"""`GaussianMixture`, and `MultiIndex` with a covariance: samples, exact averages, files, misuse."""

import copy
import math
import pickle

import mfcore as mf
import numpy as np
import pytest

D = 6
RNG = np.random.default_rng(0)
HALF = RNG.normal(size=(D, D))
COV = HALF @ HALF.T / D + 0.2 * np.eye(D)
LAW = mf.data.GaussianMixture(
    RNG.normal(size=(3, D)), [1.5, COV, RNG.uniform(0.5, 2, D)], [1.0, -1.0, 0.5], [0.2, 0.5, 0.3]
)
NETWORKS = [
    {},
    {"output": "trained"},
    {"bias": "trained"},
    {"output": "trained", "bias": "trained", "scale": 2.0},
]
every_network = pytest.mark.parametrize("parts", NETWORKS)
every_sigma = pytest.mark.parametrize(
    "sigma", [mf.activations.relu, mf.activations.tanh], ids=["relu", "tanh"]
)


def model_of(law, sigma, parts):
    return mf.Model(law, mf.Network(sigma, **parts))


def test_classes_are_chosen_by_their_weights_and_bring_their_labels():
    n = 40_000
    X, y = LAW.draw(n, rng=1)
    for k, share in enumerate(LAW.weights):
        mine = y == LAW.labels[k]
        # 3 shares and 18 means at 5.5 standard errors: a false alarm in 1e6 seeds.
        assert abs(mine.mean() - share) < 5.5 * math.sqrt(share * (1 - share) / n)
        error = np.sqrt(LAW.covariances[k].diagonal() / mine.sum())
        assert np.abs((X[mine].mean(axis=0) - LAW.means[k]) / error).max() < 5.5


@every_sigma
@every_network
def test_exact_averages_are_those_of_plain_sums_over_samples(sigma, parts):
    model = model_of(LAW, sigma, parts)
    scale = parts.get("scale", 1.0)
    theta = np.random.default_rng(1).normal(size=(4, model.row))
    X, y = LAW.draw(100_000, rng=2)
    at = model.network.row(0)
    a = theta[:, 0] if model.network.has_a else np.ones(4)
    b = theta[:, at - 1] if model.network.has_b else np.zeros(4)
    values = scale * a * sigma(X @ theta[:, at:].T + b)
    checks = [(mf.V(model, theta), -y[:, None] * values)]
    checks += [(mf.U(model, theta)[i], values[:, i, None] * values) for i in range(4)]
    checks += [(np.array([mf.risk(model, theta)]), (y - values.mean(axis=1))[:, None] ** 2)]
    for exact, samples in checks:
        error = samples.std(axis=0) / math.sqrt(len(y))
        # 25 numbers and 8 models, tails a little heavier than normal: a false alarm in 1e5 seeds.
        assert np.abs((exact - samples.mean(axis=0)) / error).max() < 5.5


@every_sigma
@every_network
def test_gradients_are_the_differences_of_psi(sigma, parts):
    model = model_of(LAW, sigma, parts)
    theta = np.random.default_rng(3).normal(size=(5, model.row))
    h, unit = 1e-5, np.eye(model.row)
    difference = np.stack(
        [(mf.psi(model, theta + h * e, theta) - mf.psi(model, theta - h * e, theta)) / (2 * h) for e in unit],
        axis=1,
    )
    # Central differences: h² of the third derivative and 1e-15/h of rounding, times the scale².
    np.testing.assert_allclose(mf.grad_psi(model, theta, theta), difference, atol=1e-8)


def test_averages_of_an_activation_without_closed_form_are_refused_with_monte_carlo_as_the_way_out():
    jump = mf.activations.custom(np.sign, slope=np.zeros_like, kinks=[0.0])
    model = model_of(LAW, jump, {})
    theta = np.ones((2, D))
    with pytest.raises(ValueError, match=r"mf.MonteCarlo"):
        mf.V(model, theta)
    found = mf.V(model, theta, expectation=mf.MonteCarlo(1000, rng=0))
    X, y = LAW.draw(1000, rng=0)
    np.testing.assert_allclose(found, -(y * np.sign(X @ theta[0])).mean(), atol=1e-12)


@pytest.mark.parametrize(
    "covariance", [4.0, RNG.uniform(0.5, 2, D), COV], ids=["number", "diagonal", "matrix"]
)
def test_exact_averages_of_a_multi_index_law_with_a_covariance_are_those_of_samples(covariance):
    rows = np.linalg.qr(RNG.normal(size=(D, D)))[0][:2]
    law = mf.data.MultiIndex(D, {(1, 0): 1.0, (1, 1): 0.5}, rows, noise=0.3, covariance=covariance)
    model = model_of(law, mf.activations.relu, {"output": "trained"})
    theta = np.random.default_rng(1).normal(size=(4, model.row))
    X, y = law.draw(100_000, rng=2)
    assert law.target_power() == pytest.approx(
        np.mean(y**2), abs=5.5 * np.std(y**2) / math.sqrt(len(y))
    )  # with the rest: a false alarm in 1e5 seeds
    values = theta[:, 0] * np.maximum(X @ theta[:, 1:].T, 0)
    samples = -y[:, None] * values
    error = samples.std(axis=0) / math.sqrt(len(y))
    assert np.abs((mf.V(model, theta) - samples.mean(axis=0)) / error).max() < 5.5
    h, unit = 1e-5, np.eye(model.row)
    difference = np.stack(
        [(mf.psi(model, theta + h * e, theta) - mf.psi(model, theta - h * e, theta)) / (2 * h) for e in unit],
        axis=1,
    )
    np.testing.assert_allclose(mf.grad_psi(model, theta, theta), difference, atol=1e-8)


def test_a_covariance_of_one_changes_no_average():
    plain = mf.data.MultiIndex(D, [0.0, 1.0, 0.5], 1)
    other = mf.data.MultiIndex(D, [0.0, 1.0, 0.5], 1, covariance=np.eye(D))
    theta = np.random.default_rng(1).normal(size=(4, D))
    for law in (plain, other):
        assert np.array_equal(law.draw(10, 0)[0], plain.draw(10, 0)[0])
    values = [mf.V(mf.Model(law, mf.Network(mf.activations.tanh)), theta) for law in (plain, other)]
    np.testing.assert_allclose(*values, rtol=1e-13)  # coefficients of the link are those of a quadrature


def test_a_linear_target_with_a_covariance_is_that_of_linear():
    direction = np.eye(D)[:1]
    laws = mf.data.MultiIndex(D, [0.0, 1.0], direction, covariance=COV), mf.data.Linear(direction[0], COV)
    theta = np.random.default_rng(1).normal(size=(4, D))
    values = [mf.V(mf.Model(law, mf.Network(mf.activations.relu)), theta) for law in laws]
    np.testing.assert_allclose(*values, rtol=1e-12)  # rounding of a root
    assert np.array_equal(laws[0].draw(5, 0)[0], laws[1].draw(5, 0)[0])


MULTI = mf.data.MultiIndex(D, [0.0, 1.0], 1, covariance=COV)


@pytest.mark.parametrize(
    "law", [LAW, MULTI, mf.data.GaussianMixture([[1.0], [-1.0]], 1.0, [1, -1], d=math.inf)]
)
def test_laws_survive_files_and_pickles(law, tmp_path):
    model = mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0))
    mf.save_config(model, tmp_path / "model.toml")
    for again in (
        mf.load_config(tmp_path / "model.toml").data,
        pickle.loads(pickle.dumps(law)),
        copy.copy(law),
    ):
        assert again == law
        assert repr(again) == repr(law)
        assert hash(again) == hash(law)


def test_equal_laws_are_equal_in_whatever_form_covariances_come():
    means, labels = [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    one = mf.data.GaussianMixture(means, 2.0, labels)
    for form in ([2.0, 2.0], np.full((2, 2), 2.0), [2 * np.eye(2), [2.0, 2.0]]):
        assert mf.data.GaussianMixture(means, form, labels) == one
    assert mf.data.GaussianMixture(means, [2.0, 1.0], labels) != one
    assert mf.data.GaussianMixture(means, 2.0, labels, [0.25, 0.75]) != one
    assert repr(one) == "GaussianMixture(means=<array 2×2>, covariances=<array 2>, labels=<array 2>, d=2)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0], 1.0, [1.0]), r"means must have shape \(any, any\), got \(1,\)"),
        (([[1.0]], [1.0, 2.0], [1.0]), "covariances must have one entry for each of 1 classes, got 2"),
        (([[1.0]], [-1.0], [1.0]), r"covariances\[0\] must be > 0, got -1"),
        (([[1.0, 2.0]], [[1.0, 0.0]], [1.0]), r"covariances\[0\] must be > 0, got 0 at \[1\]"),
        (([[1.0, 2.0]], [[1.0] * 3], [1.0]), r"have d = 2 entries or be a \(d, d\) matrix, got shape \(3,\)"),
        (
            ([[1.0, 2.0]], [[[1.0, 2.0], [2.0, 1.0]]], [1.0]),
            "must be positive definite, got smallest eigenvalue -1",
        ),
        (([[1.0]], 1.0, [1.0, 2.0]), r"labels must have shape \(1\,\), got \(2,\)"),
        (([[1.0]], 1.0, [1.0], [0.5]), "weights must be > 0 and sum to 1, got smallest 0.5, sum 0.5"),
        (([[1.0, 2.0]], 1.0, [1.0], None, 1), "d must be at least the 2 columns of means, got 1"),
    ],
)
def test_misuse_is_told_by_name_and_value(arguments, words):
    with pytest.raises(ValueError, match=words):
        mf.data.GaussianMixture(*arguments)


def test_a_covariance_comes_with_gaussian_inputs_and_not_with_coefficients_under_standard_ones():
    with pytest.raises(ValueError, match="covariance must come with inputs='gaussian', got inputs='sphere'"):
        mf.data.MultiIndex(5, [0.0, 1.0], 1, inputs="sphere", covariance=2.0)
    model = mf.Model(mf.data.MultiIndex(5, [0.0, 1.0], 1, covariance=2.0), mf.Network(mf.activations.relu))
    with pytest.raises(ValueError, match="must have inputs of covariance I"):
        mf.theory.hermite(model, np.ones((2, 5)), [1])
    with pytest.raises(ValueError, match="must have inputs of covariance I"):
        mf.theory.leap(model.data)
