"""Reductions of `GaussianMixture`, and of `MultiIndex` with a covariance, against averages and other laws."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._project import Coordinates
from problems import STEP

INF = math.inf
ORTHOGONAL = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
SPREAD = np.eye(12) + ORTHOGONAL[:, :1] @ ORTHOGONAL[:, :1].T
OUTER = {"output": "trained", "bias": "trained"}

# Means, or inputs, that span at most two directions; covariances of every form.
MIXTURES = {
    "two means": mf.data.GaussianMixture([[1.0], [-0.5]], [1.0, 0.25], [1.0, -1.0], d=12),
    "span of two": mf.data.GaussianMixture(ORTHOGONAL[[0, 1, 0]], [1.0, 0.25, 2.0], [1.0, -1.0, 0.3]),
    "matrices": mf.data.GaussianMixture(
        [ORTHOGONAL[:, 0], -ORTHOGONAL[:, 1]], [SPREAD, 0.5 * SPREAD], [1.0, -1.0], [0.3, 0.7]
    ),
    "diagonal": mf.data.GaussianMixture(
        np.zeros((2, 12)), [[3.0, 2.0] + [1.0] * 10, [1.0, 2.0] + [0.5] * 10], [1.0, -1.0]
    ),
}
SPANS = {"two means": 1, "span of two": 2, "matrices": 2, "diagonal": 2, "scaled": 2, "matrix": 2}
LABELS = {
    "scaled": mf.data.MultiIndex(12, {(1, 1): 1.0, (2, 0): 0.5}, 2, covariance=2.0),
    "diagonal": mf.data.MultiIndex(12, [0.0, 1.0, 0.5], 1, covariance=[2.0, *[1.0] * 10, 3.0]),
    "matrix": mf.data.MultiIndex(12, [0.0, 1.0, 0.5], ORTHOGONAL[:, 1:2].T, covariance=SPREAD),
}


POLYNOMIAL = mf.activations.hermite([0.3, 1.0, 0.5, 0.2])  # few nodes are exact


def reduced_and_neurons(law, sigma, n=6):
    """A model, its reduction, and neurons with their reduced coordinates."""
    model = mf.Model(law, mf.Network(sigma, **OUTER))
    reduced = model.reduce()
    theta = np.random.default_rng(2).normal(size=(n, model.row))
    return model, reduced, theta, Coordinates(model.network, law, reduced.coordinates).of(theta)


@pytest.mark.parametrize("law", [*MIXTURES.values(), *LABELS.values()], ids=[*MIXTURES, *LABELS])
def test_v_of_the_reduction_is_that_of_neurons(law):
    # V depends on the reduced coordinates alone. Rounding: features of size 100.
    model, reduced, theta, z = reduced_and_neurons(law, POLYNOMIAL)
    np.testing.assert_allclose(reduced.V(z), mf.V(model, theta), atol=1e-11)
    assert reduced.node_error < 1e-13


@pytest.mark.parametrize(("name", "p"), SPANS.items())
def test_the_subspace_is_as_small_as_it_can_be(name, p):
    law = (MIXTURES | LABELS)[name]
    directions = tuple(f"s{j + 1}" for j in range(p))
    assert mf.Model(law, mf.Network(POLYNOMIAL)).reduce().coordinates == (*directions, "r")


def test_diagonals_of_many_entries_need_no_matrix():
    d = 100_000  # a matrix would have 80 GB
    variances = np.ones(d)
    variances[7] = 3.0
    law = mf.data.GaussianMixture(np.zeros((2, d)) + np.eye(2, d), [variances, variances], [1.0, -1.0])
    network = mf.Network(mf.activations.hermite([0.0, 1.0]))
    assert mf.Model(law, network).reduce().coordinates == ("s1", "s2", "s3", "r")
    centred = mf.data.GaussianMixture(np.zeros((2, d)), [variances, variances / 2], [1.0, -1.0])
    assert mf.Model(centred, network).reduce().coordinates == ("r1", "r2")


def test_nodes_of_activations_that_are_no_polynomials_are_as_good_as_they_say():
    model, reduced, theta, z = reduced_and_neurons(MIXTURES["two means"], mf.activations.tanh)
    np.testing.assert_allclose(reduced.V(z), mf.V(model, theta), atol=1e-11)
    assert reduced.node_error < 1e-11


@pytest.mark.parametrize("law", [*MIXTURES.values(), *LABELS.values()], ids=[*MIXTURES, *LABELS])
def test_u_of_the_reduction_is_the_mean_over_rotations_across_the_directions(law):
    model, reduced, theta, z = reduced_and_neurons(law, POLYNOMIAL, n=2)
    split = law._split()
    along, rest = split.parts(theta[1:, 2:])
    rng, rotated = np.random.default_rng(3), []
    for _ in range(4000):
        g = split.parts(rng.normal(size=(1, 12)))[1]
        w = split.joined(along, g * np.linalg.norm(rest) / np.linalg.norm(g))
        rotated.append(np.concatenate([theta[1, :2], w[0]]))
    u = mf.U(model, theta[:1], np.array(rotated))[0]
    # 7 laws at 5.5 standard errors: a false alarm in 3e6 seeds.
    error = u.std() / math.sqrt(len(u))
    assert abs(reduced.U(z[:1], z[1:])[0, 0] - u.mean()) < 5.5 * error + 1e-12


@pytest.mark.parametrize("sigma", [STEP, mf.activations.relu], ids=["step", "relu"])
@pytest.mark.parametrize("d", [1, 3, 5, 40])
def test_kinks_beside_one_mean_are_averaged_exactly(sigma, d):
    law = mf.data.GaussianMixture([[1.5], [-0.5]], [1.0, 0.25], [1.0, -1.0], d=d)
    model, reduced, theta, z = reduced_and_neurons(law, sigma)
    np.testing.assert_allclose(reduced.V(z), mf.V(model, theta), atol=1e-12)  # features of size 10
    h, unit = 1e-6, np.eye(z.shape[1])
    ends = (z, np.full(len(z), 1 / len(z)))
    difference = [(reduced.psi(z + h * e, *ends) - reduced.psi(z - h * e, *ends)) / (2 * h) for e in unit]
    # Central differences of a function with kinks where r is small; here |w| is of order 1.
    np.testing.assert_allclose(reduced.grad_psi(z, *ends), np.stack(difference, axis=1), atol=2e-5)


@pytest.mark.parametrize("d", [2, 7, 40, 320, INF])
@pytest.mark.parametrize("sigma", [STEP, mf.activations.erf], ids=["step", "erf"])
def test_two_centred_classes_are_isotropic_gaussians(d, sigma):
    mine = mf.data.GaussianMixture([[0.0], [0.0]], [1.5**2, 0.5**2], [1.0, -1.0], d=d)
    known = mf.data.IsotropicGaussians(d, 0.5)
    ours, theirs = (mf.Model(law, mf.Network(sigma, **OUTER)).reduce() for law in (mine, known))
    assert ours.coordinates == theirs.coordinates == ("a", "b", "r")
    np.testing.assert_allclose(ours.nodes, theirs.nodes, rtol=1e-15)
    z = np.random.default_rng(0).uniform(0.2, 2.0, (5, 3))
    np.testing.assert_allclose(ours.V(z), theirs.V(z), atol=1e-14)
    np.testing.assert_allclose(ours.U(z, z), theirs.U(z, z), rtol=1e-14)
    if d == 7:
        theta = np.random.default_rng(1).normal(size=(4, 9))
        values = [mf.U(mf.Model(law, mf.Network(sigma, **OUTER)), theta) for law in (mine, known)]
        np.testing.assert_allclose(*values, rtol=1e-14)


@pytest.mark.parametrize("basis", [None, ORTHOGONAL[:, :4]])
def test_two_centred_classes_with_two_blocks_are_anisotropic_gaussians(basis):
    known = mf.data.AnisotropicGaussians(12, 0.4, s0=4, basis=basis)
    span = np.eye(12)[:, :4] if basis is None else basis
    covs = [np.eye(12) + ((1 + y * 0.4) ** 2 - 1) * span @ span.T for y in (1, -1)]
    mine = mf.data.GaussianMixture(np.zeros((2, 12)), covs, [1.0, -1.0])
    models = [mf.Model(law, mf.Network(POLYNOMIAL, **OUTER)) for law in (mine, known)]
    ours, theirs = (model.reduce() for model in models)
    assert ours.coordinates == theirs.coordinates == ("a", "b", "r1", "r2")
    z = np.random.default_rng(0).uniform(0.2, 2.0, (5, 4))
    np.testing.assert_allclose(ours.V(z), theirs.V(z), atol=1e-12)  # rounding of eigenvalues
    np.testing.assert_allclose(ours.U(z, z), theirs.U(z, z), rtol=1e-12)
    theta = np.random.default_rng(1).normal(size=(4, 14))
    np.testing.assert_allclose(*(mf.V(model, theta) for model in models), atol=1e-13)
    projected = [Coordinates(m.network, m.data, ours.coordinates).of(theta) for m in models]
    np.testing.assert_allclose(*projected, rtol=1e-12)


def test_blocks_of_equal_size_are_found_all_the_same():
    covs = [[1.44] * 4 + [1.0] * 4, [0.64] * 4 + [1.0] * 4]
    law = mf.data.GaussianMixture(np.zeros((2, 8)), covs, [1.0, -1.0])
    assert mf.Model(law, mf.Network(mf.activations.relu)).reduce().coordinates == ("r1", "r2")


def test_the_limit_of_means_in_high_dimension_is_that_of_infinite_d():
    def law(d):
        return mf.data.GaussianMixture([[1.0], [-1.0]], [1.0, 0.5], [1.0, -1.0], d=d)

    network = mf.Network(mf.activations.relu, output="trained")
    init = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
    limit = mf.Model(law(INF), network, init).reduce()
    finite = mf.Model(law(50), network, init).reduce(limit=True)
    z = np.array([[1.0, 0.3, 0.8], [-0.5, -1.0, 0.2]])
    np.testing.assert_allclose(limit.V(z), finite.V(z), rtol=1e-14)
    assert limit.coordinates == ("a", "s1", "r")


def test_networks_approach_the_limit_of_their_mixture():
    law = MIXTURES["two means"]
    model = mf.Model(law, mf.Network(mf.activations.hermite([0.0, 1.0, 0.3])), mf.init.Radial(1.0))
    runs = [mf.solve(model, method, horizon=0.5, rng=0) for method in (mf.Particles(1000), mf.Atoms(10))]
    wide, limit = runs
    X = law.draw(2000, rng=1)[0]
    gap = mf.predict(wide, X) - mf.predict(limit, X)
    # 1000 neurons are off by |σ|/√1000 = 0.03, at the start; risks by twice that and what is stated.
    assert np.sqrt(np.mean(gap**2)) < 0.06
    assert (np.abs(wide.risk - limit.risk) < limit.error + 0.06).all()
    assert set(wide.observed) >= {"s1_mean", "r_mean"}


def test_laws_without_symmetry_are_refused_in_words():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 20))
    generic = mf.data.GaussianMixture(np.zeros((1, 20)), [half @ half.T], [1.0])
    many = mf.data.GaussianMixture(np.eye(6, 20), 1.0, np.arange(6.0))
    labels = mf.data.MultiIndex(20, [0.0, 1.0], 1, covariance=half @ half.T)
    for law, words in (
        (generic, "data must have a symmetry to be reduced, got GaussianMixture"),
        (many, "data must have at most 4 directions for a grid of nodes, got 6"),
        (labels, "data must have a symmetry to be reduced, got MultiIndex"),
    ):
        model = mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Radial(1.0))
        with pytest.raises(ValueError, match=words):
            model.reduce()
        run = mf.solve(model, mf.SGD(5, 0.01), horizon=0.1, save_at=[0.1], rng=0)
        assert np.isfinite(run.risk).all()


def test_the_reductions_of_other_laws_kept_their_nodes():
    law = mf.data.MultiIndex(12, [0.0, 1.0, 0.5], 1)
    same = mf.data.MultiIndex(12, [0.0, 1.0, 0.5], 1, covariance=1.0)
    ours, theirs = (mf.Model(each, mf.Network(STEP)).reduce() for each in (law, same))
    assert np.array_equal(ours.nodes, theirs.nodes)
    assert np.array_equal(ours.targets, theirs.targets)
