"""Closed potentials of pairs in reduced coordinates, against full dimension, other formulas and networks."""

import copy
import math
import pickle

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._pairs import Pairs, pairs_of
from mfcore.reductions._project import Coordinates

ACTIVATIONS = [mf.activations.relu, mf.activations.erf, mf.activations.hermite([0.3, 1.0, 0.0, 0.5])]


def teacher(d, k, activation=mf.activations.relu, seed=0):
    """k orthogonal teacher neurons of norm 3, rotated away from the axes."""
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    return mf.data.Teacher(mf.Network(activation), 3 * rotation[:k])


def problem(data, activation=mf.activations.relu, **network):
    network = mf.Network(activation, output="trained", **network)
    init = mf.init.Product(
        a=mf.init.Normal(0.0, 1.0),
        w=mf.init.Radial(1.0),
        **({"b": mf.init.Normal()} if network.has_b else {}),
    )
    return mf.Model(data, network, init)


def rows_of(model, n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, model.row)) * 0.5


def pairs_by_hand(model):
    """The closed potential of a model whose reduction may have nodes."""
    found = pairs_of(model, False)
    assert found is not None
    return found


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_V_is_that_of_rows_in_full_dimension(activation):
    for data in (teacher(7, 3, activation), mf.data.MultiIndex(6, {(1, 2): 1.0, (0, 3): 0.5}, 2)):
        for bias in ("none", "trained"):
            model = problem(data, activation, bias=bias)
            theta, reduced = rows_of(model, 6), pairs_by_hand(model)
            names = [*"ab"[: model.network.row(0)], *data._split().inside, "r"]
            z = Coordinates(model.network, data, names).of(theta)
            # Two closed forms of numbers of size one: rounding.
            np.testing.assert_allclose(reduced.V(z), mf.V(model, theta), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("d", "k"), [(3, 3), (4, 3), (5, 3), (9, 3)])
def test_U_is_the_average_over_rotations_across_the_directions(d, k):
    model = problem(teacher(d, k))
    theta, reduced = rows_of(model, 2), model.reduce()
    z = Coordinates(model.network, model.data, reduced.coordinates).of(theta)
    axes = model.data._axes
    rest = np.linalg.svd(axes)[2][k:]
    draws = 20_000
    turned = np.random.default_rng(2).normal(size=(draws, d - k))
    turned /= np.maximum(np.linalg.norm(turned, axis=1), 1e-300)[:, None]
    w = theta[1, 1:]
    moved = w @ axes.T @ axes + np.linalg.norm(w @ rest.T) * turned @ rest
    found = mf.U(model, theta[:1], np.column_stack([np.full(draws, theta[1, 0]), moved]))[0]
    want = reduced.U(z[:1], z[1:])[0, 0]
    # Five standard errors: odds of a false alarm 6e-7 for each d. At d = k nothing is random.
    assert abs(found.mean() - want) <= 5 * found.std() / math.sqrt(draws) + 1e-12


def test_U_without_directions_across_is_that_of_rows():
    model = problem(teacher(5, 5))
    theta, reduced = rows_of(model, 4), model.reduce()
    assert reduced.coordinates == ("a", "s1", "s2", "s3", "s4", "s5")
    z = Coordinates(model.network, model.data, reduced.coordinates).of(theta)
    np.testing.assert_allclose(reduced.U(z, z), mf.U(model, theta, theta), rtol=0, atol=1e-12)


def test_in_infinite_dimension_parts_across_are_orthogonal():
    link = {(1, 0): 1.0, (0, 2): 0.5}
    limit = problem(mf.data.MultiIndex(math.inf, link, 2)).reduce()
    wide = problem(mf.data.MultiIndex(10**9, link, 2)).reduce()
    assert limit.pairs is not None
    z = np.abs(np.random.default_rng(3).normal(size=(5, 4)))
    # The average over u differs from u = 0 by U''/(2d).
    np.testing.assert_allclose(limit.U(z, z), wide.U(z, z), rtol=0, atol=1e-8)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("d", [3, 4, 5, 20, math.inf])
def test_gradients_are_differences_of_the_potential(activation, d):
    reduced = pairs_by_hand(problem(mf.data.MultiIndex(d, {(1, 0, 1): 1.0, (0, 2, 0): 0.5}, 3), activation))
    k = 4 + (d > 3)
    z = np.random.default_rng(4).uniform(0.2, 1.0, (5, k))
    masses = np.full(5, 0.2)
    step = 1e-5 * np.eye(k)
    differences = [(reduced.psi(z + e, z, masses) - reduced.psi(z - e, z, masses)) / 2e-5 for e in step]
    # Central differences: h² times third derivatives of size one, and rounding 1e-15/h.
    np.testing.assert_allclose(
        reduced.grad_psi(z, z, masses), np.stack(differences, axis=1), rtol=0, atol=1e-8
    )


def test_a_kink_lets_the_average_converge_as_fast_as_the_dimension_allows():
    model = problem(mf.data.MultiIndex(5, {(1, 0, 0): 1.0}, 3))  # two dimensions across
    z = np.array([[1.0, 0.3, 0.2, 0.1, 0.9]])  # a neuron with itself: the kink is at u = 1

    def error(nodes):
        fine = Pairs(model, *model.data._along(), 2.0, 1.0, 400)
        return abs(Pairs(model, *model.data._along(), 2.0, 1.0, nodes).U(z, z) - fine.U(z, z)).max()

    # (1 − u)^{3/2} beside the weight (1 − u²)^{−1/2}: n^{−4}, that is 16 for twice the nodes, within a third.
    assert 10 < error(8) / error(16) < 25
    polynomial = pairs_by_hand(problem(mf.data.MultiIndex(5, {(1, 0, 0): 1.0}, 3), ACTIVATIONS[2]))
    assert polynomial.nodes == 2  # exact for the third power of u
    assert polynomial.error(np.abs(z)) < 1e-15


@pytest.mark.parametrize("k", range(1, 11))
def test_the_risk_is_zero_at_the_teacher_itself(k):
    data = teacher(12, k)
    model = problem(data)
    reduced = model.reduce()
    theta = np.column_stack([np.ones(k), data.theta])
    z = Coordinates(model.network, data, reduced.coordinates).of(theta)
    assert len(reduced.coordinates) == k + 2
    masses = np.full(k, 1 / k)
    assert reduced.risk(z, masses) <= 1e-14 * data.target_power()
    # The cone at r = 0 has no slope there either.
    assert np.abs(reduced.grad_psi(z, z, masses)).max() < 1e-12


def test_neurons_that_are_invariant_have_the_risk_of_their_reduction():
    model = problem(teacher(4, 3))  # one dimension across: ±r
    z = np.array([[1.0, 0.5, 0.2, -0.1, 0.7], [-0.5, 0.1, 0.9, 0.3, 0.4]])
    axes = model.data._axes
    rest = np.linalg.svd(axes)[2][3:]
    theta = np.concatenate(
        [np.column_stack([z[:, :1], z[:, 1:4] @ axes + sign * z[:, 4:] * rest]) for sign in (-1, 1)]
    )
    reduced = model.reduce()
    both = reduced.risk(z, np.full(2, 0.5)), mf.risk(model, theta)
    assert both[0] == pytest.approx(both[1], abs=1e-13)


def test_scales_of_the_network_and_of_the_teacher_count():
    data = mf.data.Teacher(mf.Network(mf.activations.relu, scale=2.0), 3 * np.eye(3))
    model = problem(data, scale=3.0)
    theta, reduced = rows_of(model, 4), model.reduce()
    z = Coordinates(model.network, data, reduced.coordinates).of(theta)
    masses = np.full(4, 0.25)
    assert reduced.risk(z, masses) == pytest.approx(mf.risk(model, theta), rel=1e-13)
    np.testing.assert_allclose(
        reduced.grad_psi(z, z, masses), mf.grad_psi(model, theta, theta), rtol=0, atol=1e-12
    )


def test_a_network_is_evaluated_at_inputs():
    model = problem(teacher(3, 2))
    theta = rows_of(model, 3)
    z = Coordinates(model.network, model.data, model.reduce().coordinates).of(theta)
    X = np.random.default_rng(5).normal(size=(4, 3))
    axes = model.data._axes
    rest = np.linalg.svd(axes)[2][2:]
    flipped = theta.copy()
    flipped[:, 1:] -= 2 * (theta[:, 1:] @ rest.T) @ rest
    want = 0.5 * (mf.predict(model, theta, X) + mf.predict(model, flipped, X))
    # With one dimension across, coordinates are as many as those of a neuron: inputs are reduced, too.
    seen = np.column_stack([X @ axes.T, np.abs(X @ rest.T)])
    found = mf.predict(model.reduce(), mf.Cloud(z), seen)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


def test_directions_of_teachers_are_axes_where_these_span_them():
    relu = mf.Network(mf.activations.relu)
    for theta, names in (
        (3 * np.eye(3, 5), ("s1", "s2", "s3", "r")),
        ([[1.0, 2.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0]], ("s1", "r")),  # parallel
        (np.ones((3, 4)), ("s1", "r")),
        (np.eye(3), ("w1", "w2", "w3")),  # θ itself
    ):
        model = mf.Model(mf.data.Teacher(relu, theta), relu, mf.init.Gaussian(std=1.0))
        reduced = model.reduce()
        assert reduced.coordinates == names
        z = reduced.initial.sample(5, rng=0)
        assert z.shape == (5, len(names))
    assert mf.data.Teacher(relu, 3 * np.eye(3, 5))._split().axes == 3


def test_nodes_serve_where_they_are_asked_for():
    model = problem(mf.data.MultiIndex(10, {(1, 0): 1.0, (0, 2): 0.5}, 2))
    assert model.reduce().pairs is not None
    assert model.reduce(nodes=6).pairs is None
    smooth = problem(mf.data.MultiIndex(10, {(1, 0): 1.0, (0, 2): 0.5}, 2), mf.activations.tanh)
    assert smooth.reduce().pairs is None
    plane = mf.Model(teacher(2, 2, mf.activations.tanh), mf.Network(mf.activations.tanh))
    assert plane.reduce().pairs is None  # θ itself, whose features are smooth


def test_features_are_refused_with_what_works():
    reduced = problem(teacher(5, 2)).reduce()
    axes = [np.ones(2)] * 4
    for use in (
        lambda: reduced.features(np.ones((1, 4))),
        lambda: reduced.nodes,
        lambda: reduced.table(*axes),
    ):
        with pytest.raises(
            ValueError, match=r"model must have features at nodes of the data here, got closed"
        ):
            use()


def test_reductions_with_pairs_are_copied_and_pickled():
    reduced = problem(teacher(5, 2)).reduce()
    z = np.abs(np.random.default_rng(6).normal(size=(3, 4)))
    for other in (copy.deepcopy(reduced), pickle.loads(pickle.dumps(reduced)), reduced.replace(ridge=0.1)):
        assert np.array_equal(other.U(z, z), reduced.U(z, z))
    assert "pairs=Pairs(" in repr(reduced)
