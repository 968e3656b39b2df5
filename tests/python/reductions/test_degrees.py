"""Polynomial networks get the nodes that their degree needs, and labels that grow fast keep their E y².

Exact values are closed forms of the network that is not reduced: V at its coordinates, and U averaged over
rotations across the directions by Gauss rules that are exact for the polynomials that U is of their angles.
"""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from problems import STEP

INF = math.inf


def rotations(dims, n):
    """Angles u between the parts of two neurons across the directions, one column per radius, and weights."""
    rules = [_core.gauss_gegenbauer(dim, n) for dim in dims]
    angles = np.stack(np.meshgrid(*[u for u, _ in rules], indexing="ij"), axis=-1).reshape(-1, len(dims))
    weights = np.ones(1)
    for _, w in rules:
        weights = np.multiply.outer(weights, w).ravel()
    return angles, weights


def neurons(outer, s, radii, dims, angles):
    """Rows [outer, s, parts with these norms at these angles to the first axis of each part]."""
    blocks = [np.tile([*outer, *s], (len(angles), 1))]
    for r, dim, u in zip(radii, dims, angles.T, strict=True):
        part = np.zeros((len(angles), dim))
        part[:, 0] = r * u
        if dim > 1:
            part[:, 1] = r * np.sqrt(np.maximum(1 - u * u, 0))
        blocks.append(part)
    return np.concatenate(blocks, axis=1)


def assert_exact(model, degree, p, dims, seed):
    """V and U of the reduction are those of the model, averaged over rotations across p directions."""
    reduced, rng = model.reduce(), np.random.default_rng(seed)
    angles, weights = rotations(dims, degree + 1)
    straight = np.ones((1, len(dims)))
    z = rng.normal(size=(2, 2 + p + len(dims)))
    z[:, 2 + p :] = np.abs(z[:, 2 + p :])
    first = neurons(z[0, :2], z[0, 2 : 2 + p], z[0, 2 + p :], dims, straight)
    second = neurons(z[1, :2], z[1, 2 : 2 + p], z[1, 2 + p :], dims, angles)
    U = float(weights @ mf.U(model, second, first)[:, 0])
    V = float(mf.V(model, first)[0])
    # Rounding, relative to the squares that the sums are made of.
    sizes = np.sqrt(reduced.U(z, z).diagonal())
    assert reduced.U(z[:1], z[1:])[0, 0] == pytest.approx(U, abs=1e-12 * sizes[0] * sizes[1])
    power = float(reduced.weights @ reduced.targets**2) + reduced.noise
    assert reduced.V(z[:1])[0] == pytest.approx(V, abs=1e-12 * sizes[0] * math.sqrt(power))
    assert power == pytest.approx(model.data.target_power(), rel=1e-12)
    assert reduced.node_error < 1e-12
    return reduced


def network(degree, seed):
    """A polynomial or Hermite network of this degree."""
    coefficients = np.random.default_rng(seed).normal(size=degree + 1)
    kind = mf.activations.polynomial if seed % 2 else mf.activations.hermite
    return mf.Network(kind(coefficients), output="trained", bias="trained")


@settings(max_examples=40, deadline=None)
@given(
    degree=st.integers(1, 7),
    link=st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.floats(0.1, 2), min_size=1),
    across=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_two_directions_have_exact_averages_at_one_node_more_than_the_degree(degree, link, across, seed):
    law = mf.data.MultiIndex(2 + across, link, directions=2, noise=0.1)
    reduced = assert_exact(mf.Model(law, network(degree, seed)), degree, 2, [across], seed)
    highest = [max(alpha[j] for alpha in link) for j in range(2)]
    along = math.prod(1 + max(degree, m) for m in highest)
    assert len(reduced.weights) == along * (degree // 2 + 1)


@settings(max_examples=25, deadline=None)
@given(degree=st.integers(0, 9), d=st.integers(1, 200), delta=st.floats(0, 0.9), seed=st.integers(0, 99))
def test_isotropic_classes_have_exact_averages_at_half_the_degree(degree, d, delta, seed):
    law = mf.data.IsotropicGaussians(d, delta)
    reduced = assert_exact(mf.Model(law, network(degree, seed)), degree, 0, [d], seed)
    assert len(reduced.weights) == 2 * (degree // 2 + 1)


@settings(max_examples=25, deadline=None)
@given(
    degree=st.integers(0, 6),
    dims=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    delta=st.floats(0, 0.9),
    seed=st.integers(0, 99),
)
def test_anisotropic_classes_have_exact_averages_at_half_the_degree_for_each_radius(
    degree, dims, delta, seed
):
    law = mf.data.AnisotropicGaussians(sum(dims), delta, s0=dims[0])
    reduced = assert_exact(mf.Model(law, network(degree, seed)), degree, 0, dims, seed)
    assert len(reduced.weights) == 2 * (degree // 2 + 1) ** 2


@pytest.mark.parametrize("degree", [1, 2, 5])
@pytest.mark.parametrize("d", [2, 5, 40])
def test_linear_targets_have_exact_averages(degree, d):
    w = np.eye(d)[0] * 1.5
    model = mf.Model(mf.data.Linear(w, cov=2.0, noise=0.3), network(degree, degree))
    reduced = assert_exact(model, degree, 1, [d - 1], seed=d)
    assert len(reduced.weights) == (degree + 1) * (degree // 2 + 1)


def test_a_linear_network_on_a_linear_target_has_two_nodes():
    model = mf.Model(mf.data.Linear([3.0, 4.0, 0.0]), mf.Network(mf.activations.linear))
    reduced = model.reduce()
    assert len(reduced.weights) == 2
    # E (5 z − s z)², with parts across that average to 0.
    assert reduced.risk(np.array([[1.0, 2.0]]), np.ones(1)) == pytest.approx(16.0, rel=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    degree=st.integers(1, 5),
    link=st.lists(st.floats(0.1, 2), min_size=1, max_size=6),
    across=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_spheres_have_the_averages_of_many_nodes_at_few(degree, link, across, seed):
    model = mf.Model(mf.data.MultiIndex(1 + across, link, 1, inputs="sphere"), network(degree, seed))
    few, many = model.reduce(), model.reduce(nodes=40)
    z = np.abs(np.random.default_rng(seed).normal(size=(3, 4)))
    sizes = np.sqrt(many.U(z, z).diagonal())
    np.testing.assert_array_less(np.abs(few.U(z, z) - many.U(z, z)), 1e-12 * np.outer(sizes, sizes) + 1e-300)
    power = [float(r.weights @ r.targets**2) for r in (few, many)]
    np.testing.assert_array_less(np.abs(few.V(z) - many.V(z)), 1e-12 * sizes * math.sqrt(power[1]) + 1e-300)
    assert power[0] == pytest.approx(power[1], rel=1e-12)
    assert len(few.weights) <= 1 + max(degree, len(link) - 1)


@settings(max_examples=20, deadline=None)
@given(
    degree=st.integers(1, 5),
    link=st.lists(st.floats(0.1, 2), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
def test_the_limit_in_high_dimension_needs_nodes_of_the_directions_alone(degree, link, seed):
    model = mf.Model(mf.data.MultiIndex(INF, link, directions=1), network(degree, seed))
    few, many = model.reduce(), model.reduce(nodes=40)
    assert len(few.weights) == 1 + max(degree, len(link) - 1)
    z = np.abs(np.random.default_rng(seed).normal(size=(3, 4)))
    sizes = np.sqrt(many.U(z, z).diagonal())
    np.testing.assert_array_less(np.abs(few.U(z, z) - many.U(z, z)), 1e-12 * np.outer(sizes, sizes) + 1e-300)


@pytest.mark.parametrize("teacher", ["polynomial", "relu"])
def test_parameters_themselves_have_exact_averages_of_polynomials(teacher):
    sigma = mf.activations.polynomial([0.2, 1.0, 0.0, 0.4])
    labels = (
        mf.activations.hermite([0.0, 0.0, 1.0, 0.5, 0.3]) if teacher == "polynomial" else mf.activations.relu
    )
    law = mf.data.Teacher(mf.Network(labels), [[1.0, -0.5], [0.3, 0.8]])
    model = mf.Model(law, mf.Network(sigma, bias="trained"))
    reduced, theta = model.reduce(), np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(reduced.U(theta, theta), mf.U(model, theta, theta), rtol=1e-12, atol=1e-12)
    if teacher == "polynomial":
        assert len(reduced.weights) == 5**2  # degree 4, two inputs
        np.testing.assert_allclose(reduced.V(theta), mf.V(model, theta), rtol=1e-12, atol=1e-12)
    else:  # the kink of the labels: 64 nodes of each input
        np.testing.assert_allclose(reduced.V(theta), mf.V(model, theta), atol=2e-2)


def test_more_directions_than_grids_have_are_reduced_for_polynomials():
    links = {tuple(2 * int(j == k) for k in range(6)): 1.0 for j in range(6)}
    law = mf.data.MultiIndex(8, links, directions=6)
    reduced = mf.Model(law, mf.Network(mf.activations.polynomial([0.0, 0.0, 1.0]))).reduce()
    assert len(reduced.weights) == 3**6 * 2
    z = np.array([[0.5, -0.3, 0.2, 0.1, 0.0, 0.4, 0.9]])
    # E y (w·x)² = Σ_j √2 w_j²
    assert reduced.V(z)[0] == pytest.approx(-math.sqrt(2) * (z[0, :6] ** 2).sum(), rel=1e-13)
    with pytest.raises(ValueError, match="data must have at most 4 directions for a grid of nodes, got 6"):
        mf.Model(law, mf.Network(mf.activations.tanh)).reduce()


@pytest.mark.parametrize(
    "sigma", [mf.activations.tanh, STEP, mf.activations.polynomial([0.0, 1.0, 1.0])], ids=str
)
@pytest.mark.parametrize("d", [3, INF])
@pytest.mark.parametrize("degree", [8, 16, 30])
def test_labels_of_high_degree_keep_their_power(sigma, d, degree):
    """Nodes of weight 1e-16 hold .4 of E h_30²: R of a network at 0 was .56 where it is 1."""
    law = mf.data.MultiIndex(d, [0.0] * degree + [1.0], directions=1)
    reduced = mf.Model(law, mf.Network(sigma)).reduce()
    assert float(reduced.weights @ reduced.targets**2) == pytest.approx(1.0, rel=1e-11)


def test_labels_of_a_higher_degree_than_the_grid_are_not_zero_at_all_nodes():
    law = mf.data.MultiIndex(INF, {(20, 0, 0): 1.0}, directions=3)  # 20 nodes are the zeros of h_20
    reduced = mf.Model(law, mf.Network(mf.activations.tanh)).reduce()
    assert float(reduced.weights @ reduced.targets**2) == pytest.approx(1.0, rel=1e-11)


def test_panels_of_a_direction_end_where_they_are_told_to():
    near, far = _core.NormalPanels(8), _core.NormalPanels(12, 12.0)
    assert (near.end, far.end) == (8.3, 12.0)
    z, p = far.rule
    for k, want in ((2, 1), (10, 945), (20, 654729075)):
        assert p @ z**k == pytest.approx(want, rel=1e-12)
    with pytest.raises(ValueError, match=r"end must be in \(2.5, 30\), got 40"):
        _core.NormalPanels(8, 40.0)
