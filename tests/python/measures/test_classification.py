"""`mf.classification_error`, and the same as recorded by runs."""

import math
from statistics import NormalDist

import mfcore as mf
import numpy as np
import pytest

LAW = mf.data.GaussianMixture([[1.0], [-1.0]], 1.0, [1.0, -1.0], d=4)
MODEL = mf.Model(LAW, mf.Network(mf.activations.hermite([0.0, 1.0, 0.3])), mf.init.Radial(0.5))
TEST = LAW.draw(2000, rng=1)


def slow_share(f, y):
    return sum(1.0 if a * b < 0 else 0.5 if a == 0 else 0.0 for a, b in zip(f, y, strict=True)) / len(y)


def test_it_is_the_share_of_wrong_signs_and_half_of_those_without_one():
    X, y = TEST
    theta = np.random.default_rng(0).normal(size=(3, 4))
    found = mf.classification_error(MODEL, theta, X, y)
    assert isinstance(found, float)
    assert found == pytest.approx(slow_share(mf.predict(MODEL, theta, X), y), abs=1e-15)
    tanh = mf.Model(LAW, mf.Network(mf.activations.tanh))
    assert mf.classification_error(tanh, np.zeros((1, 4)), X, y) == 0.5


def test_the_best_direction_has_the_error_of_the_normal_law():
    X, y = LAW.draw(100_000, rng=0)
    tanh = mf.Model(LAW, mf.Network(mf.activations.tanh))
    p = NormalDist().cdf(-1)
    found = mf.classification_error(tanh, np.eye(1, 4), X, y)
    assert abs(found - p) < 5 * math.sqrt(p * (1 - p) / len(y))  # a false alarm in 2e6 seeds


@pytest.mark.parametrize(
    "method",
    [
        mf.SGD(9, 0.01),
        mf.SGD(9, 0.01, replicas=2),
        mf.Particles(9),
        mf.Linearized(9, expectation=mf.MonteCarlo(500, rng=0)),
        mf.Atoms(4),
    ],
    ids=repr,
)
def test_runs_record_it_of_a_held_out_set_with_signs(method):
    X, y = TEST
    run = mf.solve(MODEL, method, horizon=0.2, save_at=3, rng=0, test=TEST)
    last = mf.classification_error(run, X, y)
    assert run.observed["test_error"].shape == run.risk.shape
    assert np.array_equal(run.observed["test_error"][-1], last)
    own = mf.solve(
        MODEL,
        method,
        horizon=0.2,
        save_at=3,
        rng=0,
        observe={"wrong": lambda rho: mf.classification_error(MODEL, rho, X, y)},
    )
    assert np.array_equal(own.observed["wrong"], run.observed["test_error"])


def test_other_labels_have_no_error_to_record():
    X, y = TEST
    run = mf.solve(MODEL, mf.SGD(5, 0.01), horizon=0.1, rng=0, test=(X, 2 * y))
    assert "test_error" not in run.observed


def test_the_limit_classifies_in_its_own_coordinates_at_infinite_d():
    law = mf.data.GaussianMixture([[1.0], [-1.0]], 1.0, [1.0, -1.0], d=math.inf)
    model = mf.Model(law, mf.Network(mf.activations.erf))
    z = np.random.default_rng(0).normal(size=(1000, 1)) + np.repeat([[1.0], [-1.0]], 500, axis=0)
    y = np.repeat([1.0, -1.0], 500)
    found = mf.classification_error(model, mf.Cloud([[1.0, 0.5]]), z, y)
    assert found == pytest.approx(np.mean(np.sign(z[:, 0]) != y), abs=1e-15)


def test_misuse_is_told_by_name_and_value():
    X, y = TEST
    theta = np.ones((2, 4))
    with pytest.raises(ValueError, match=r"y must hold labels -1 and 1, got 0\.5"):
        mf.classification_error(MODEL, theta, X[:2], [0.5, 1.0])
    with pytest.raises(ValueError, match="y must have one label for each of the 2000 rows"):
        mf.classification_error(MODEL, theta, X, y[:3])
    with pytest.raises(
        TypeError, match=r"y must be given, as in classification_error\(model, measure, X, y\)"
    ):
        mf.classification_error(MODEL, theta, X)
    with pytest.raises(ValueError, match="must not use names that mfcore records itself, got 'test_error'"):
        mf.solve(MODEL, mf.SGD(5, 0.1), horizon=1.0, observe={"test_error": len})
