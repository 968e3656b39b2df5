"""f of a measure in reduced coordinates, at inputs."""

import math
import pickle

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._project import Coordinates

LAWS = {
    "isotropic": mf.data.IsotropicGaussians(d=7, delta=0.5),
    "anisotropic": mf.data.AnisotropicGaussians(d=8, delta=0.5, s0=3),
    "whole subspace": mf.data.AnisotropicGaussians(d=4, delta=0.5, s0=4),
    "one index": mf.data.MultiIndex(6, [0.0, 1.0, 1.0], 1),
    "rows": mf.data.MultiIndex(4, {(1, 1): 1.0}, np.array([[0.6, 0.8, 0, 0], [0, 0, 1, 0]])),
    "sphere": mf.data.MultiIndex(6, {(1, 1): 1.0}, 2, inputs="sphere"),
    "linear": mf.data.Linear([1.0, 2.0, 3.0, 4.0], cov=2.0),
    "parameters": mf.data.Dataset([[1.0, 2.0], [0.0, 1.0]], [1.0, -1.0]),
}


@pytest.mark.parametrize("bias", ["none", "trained"])
@pytest.mark.parametrize("law", LAWS)
def test_they_are_averages_over_the_symmetry_of_networks_of_neurons(law, bias):
    # 100 000 neurons in random directions with the coordinates of one atom: the mean of a, b, w uniform over
    # the symmetry, to 6 standard errors (one test in 10^7 fails by chance, with 5 inputs).
    law = LAWS[law]
    output = "one" if isinstance(law, mf.data.Dataset) else "trained"
    network = mf.Network(mf.activations.relu, output=output, bias="none" if output == "one" else bias)
    model = mf.Model(law, network, mf.init.Gaussian(0.5))
    rng, reduced = np.random.default_rng(0), model.reduce()
    z = np.abs(rng.normal(size=(1, len(reduced.coordinates))))
    rows = rng.normal(size=(100_000, model.row))
    lifted = Coordinates(network, law, reduced.coordinates).lift(rows, np.repeat(z, len(rows), axis=0))
    X = rng.normal(size=(5, int(law.d)))
    each = np.array([mf.predict(model, neuron[None], X) for neuron in lifted[:2000]])
    error = 6 * each.std(axis=0) / math.sqrt(len(rows)) + 1e-12
    assert (np.abs(mf.predict(model, mf.Cloud(z), X) - mf.predict(model, lifted, X)) <= error).all()


@pytest.mark.parametrize(
    "law",
    [
        mf.data.IsotropicGaussians(d=math.inf, delta=0.5),
        mf.data.Staircase(math.inf, [(0,), (0, 1)]),
        mf.data.MultiIndex(math.inf, {(1, 1): 1.0}, 2),
        mf.data.MultiIndex(6, {(1, 1): 1.0}, 2),
    ],
    ids=repr,
)
def test_at_the_nodes_they_are_the_features_of_the_reduction(law):
    reduced = mf.Model(law, mf.Network(mf.activations.tanh, bias="trained")).reduce()
    points = np.random.default_rng(0).random((4, len(reduced.coordinates)))
    f = mf.predict(reduced, mf.Cloud(points), reduced.nodes)
    assert np.abs(f - reduced.features(points).mean(axis=0)).max() < 1e-13  # both to rounding
    risk = reduced.weights @ (reduced.targets - f) ** 2
    assert risk == pytest.approx(mf.risk(reduced, mf.Cloud(points)), rel=1e-12)


def test_at_infinite_d_the_directions_alone_say_where():
    law = mf.data.MultiIndex(math.inf, {(1, 1): 1.0}, 2)
    reduced = mf.Model(law, mf.Network(mf.activations.tanh)).reduce()
    cloud = mf.Cloud([[1.0, 0.5, 0.3]])
    z = np.array([[1.0, 2.0], [0.0, -1.0]])
    assert np.array_equal(
        mf.predict(reduced, cloud, z), mf.predict(reduced, cloud, np.column_stack([z, np.ones(2)]))
    )
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\) or \(n, 2\), the coordinates of"):
        mf.predict(reduced, cloud, z[:, :1])


@pytest.mark.parametrize(
    "method",
    [mf.PDE(40), mf.Atoms(), mf.JKO(0.1, count=20), mf.SGD(9, 0.01), mf.Nonlinear(9)],
    ids=lambda m: type(m).__name__,
)
def test_a_run_of_any_rung_predicts_at_inputs(method):
    model = mf.Model(LAWS["isotropic"], mf.Network(mf.activations.relu), mf.init.Radial(0.5))
    run = mf.solve(model, method, horizon=0.2, rng=0)
    X = np.random.default_rng(0).normal(size=(3, 7))
    f = mf.predict(run, X)
    assert f.shape == (3,)
    assert np.array_equal(f, mf.predict(model, run.final, X))
    assert np.array_equal(f, mf.predict(run, X=X))


def test_a_reduction_keeps_its_inputs_in_pickles_and_copies():
    reduced = mf.Model(LAWS["one index"], mf.Network(mf.activations.tanh)).reduce()
    other = pickle.loads(pickle.dumps(reduced))
    cloud, z = mf.Cloud([[1.0, 0.5]]), [[1.0, 2.0]]
    assert np.array_equal(mf.predict(reduced, cloud, z), mf.predict(other, cloud, z))


def test_features_by_hand_say_that_they_know_no_inputs():
    square = mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z**2)
    with pytest.raises(ValueError, match="model must be a reduction that mfcore made"):
        mf.predict(square, mf.Cloud([[1.0]]), [[1.0]])
    with pytest.raises(ValueError, match="nodes must be those of a reduction that mfcore made"):
        _ = square.nodes


def test_inputs_must_be_given():
    with pytest.raises(TypeError, match="X must be inputs, as in"):
        mf.predict(mf.Model(LAWS["isotropic"], mf.Network(mf.activations.relu)), [[1.0] * 7])
