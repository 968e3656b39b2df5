"""Warnings where it is provable that a run cannot do what is wanted."""

import math
import warnings

import mfcore as mf
import pytest

START = mf.init.Gaussian(0.1)
EVEN = [
    mf.data.IsotropicGaussians(d=4, delta=0.5),
    mf.data.AnisotropicGaussians(d=4, delta=0.5, s0=2),
    mf.data.MultiIndex(4, {(1, 1): 1.0}, 2),
    mf.data.MultiIndex(4, lambda z: z[:, 0] * z[:, 1], 2),
    mf.data.MultiIndex(4, {(0, 1): 1.0}, 2, inputs="hypercube"),
    mf.data.MultiIndex(4, {(2, 0): 1.0}, 2, inputs="sphere"),
    mf.data.Staircase(4, [(0, 1)]),
]


def run(data, **network):
    activation = network.pop("activation", mf.activations.tanh)
    model = mf.Model(data, mf.Network(activation, **network), START)
    return mf.solve(model, mf.SGD(3, 0.1), horizon=0.1, rng=0)


@pytest.mark.parametrize("data", EVEN, ids=repr)
def test_an_odd_network_without_bias_is_told_that_the_target_is_even(data):
    with pytest.warns(
        UserWarning, match="the target is even in x, and f is odd, .* no such network learns it"
    ) as caught:
        run(data, output="trained")
    assert caught[0].filename == __file__


def test_an_even_network_is_told_that_the_target_is_odd():
    square = mf.activations.polynomial([0.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match="the target is odd in x, and f is even"):
        run(mf.data.MultiIndex(4, [0.0, 1.0], 1), activation=square)


@pytest.mark.parametrize(
    ("data", "network"),
    [
        (EVEN[2], {"bias": "trained"}),
        (EVEN[2], {"activation": mf.activations.relu}),
        (mf.data.MultiIndex(4, {(1, 1): 1.0, (1, 0): 0.1}, 2), {}),
        (mf.data.Staircase(4, [(0,), (0, 1)]), {}),
        (mf.data.Linear([1.0, 2.0]), {}),
        (mf.data.Dataset([[1.0, 2.0]], [1.0]), {}),
    ],
    ids=repr,
)
def test_nobody_is_told_so_where_it_is_not_provable(data, network):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(data, **network)


def test_samples_that_are_learned_by_heart_are_a_warning():
    data = mf.data.MultiIndex(10, [0.0, 1.0, 1.0], 1)
    model = mf.Model(data, mf.Network(mf.activations.relu, output="trained"), mf.init.Gaussian(0.5))
    few = mf.GD(50, 0.05, expectation=mf.MonteCarlo(40, rng=0))
    with pytest.warns(
        UserWarning, match="on the 40 samples of the method's expectation: they are learned by heart"
    ):
        result = mf.solve(model, few, horizon=40.0, save_at=[40.0], rng=0)
    assert result.meta["training_risk"] < 0.5 * result.risk[-1]


def test_many_samples_are_none():
    data = mf.data.MultiIndex(4, [0.0, 1.0, 1.0], 1)
    model = mf.Model(data, mf.Network(mf.activations.relu, output="trained"), mf.init.Gaussian(0.5))
    result = mf.solve(model, mf.GD(10, 0.1, expectation=mf.MonteCarlo(5000, rng=0)), horizon=2.0, rng=0)
    assert math.isclose(result.meta["training_risk"], result.risk[-1], rel_tol=0.2)
