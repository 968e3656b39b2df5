"""The constant of independent neurons, quantised measures and their promises, norms."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from problems import erf_model, isotropic, waves


def cloud(seed, atoms, k):
    rng = np.random.default_rng(seed)
    return mf.Cloud(rng.normal(size=(atoms, k)), rng.dirichlet(np.ones(atoms)))


def dataset(seed=0, scale=1.5):
    rng = np.random.default_rng(seed)
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained", scale=scale)
    return mf.Model(mf.data.Dataset(rng.normal(size=(9, 3)), rng.normal(size=9)), network)


@pytest.mark.parametrize(
    "model", [dataset(), erf_model(), waves(0, 2)], ids=["nodes", "Gaussian", "features"]
)
def test_the_gap_is_the_mean_excess_of_independent_draws(model):
    """20 000 draws of 4 points; 4.9 standard errors: a false alarm once in a million."""
    row = model.row if isinstance(model, mf.Model) else 2
    rho = cloud(1, 5, row)
    gap = theory.approximation_gap(model, rho)
    U, V = mf.U(model, rho.points), mf.V(model, rho.points)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(4, rho.weights, size=20_000) / 4

    def risk(w):
        return 2 * w @ V + np.einsum("...i,ij,...j->...", w, U, w)

    excess = risk(counts) - risk(rho.weights)
    error = excess.std() / math.sqrt(len(counts))
    assert abs(excess.mean() - gap / 4) < 4.9 * error
    assert gap == pytest.approx(rho.weights @ U.diagonal() - rho.weights @ U @ rho.weights, rel=1e-12)


def test_the_gap_of_a_reduced_law_is_that_of_neurons_in_all_directions():
    """2000 neurons with |w| = r in random directions; U(θ, θ) is one number, ∫∫U that of the reduction."""
    model = isotropic(8, mf.activations.softplus)
    rho = mf.Cloud([[0.7], [1.5]], [0.25, 0.75])
    rows = np.zeros((2, 8))
    rows[:, 3] = rho.points[:, 0]
    own = rho.weights @ mf.U(model, rows).diagonal()
    both = rho.weights @ mf.U(model.reduce(), rho.points) @ rho.weights
    assert theory.approximation_gap(model, rho) == pytest.approx(own - both, rel=1e-10)  # two quadratures
    assert theory.approximation_gap(model.reduce(), rho) < own - both
    with pytest.raises(ValueError, match="finite d"):
        theory.approximation_gap(isotropic(math.inf, mf.activations.softplus), rho)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), atoms=st.integers(1, 12), neurons=st.integers(1, 40))
def test_greedy_neurons_keep_their_promise(seed, atoms, neurons):
    model, rho = waves(seed, 2), cloud(seed, atoms, 2)
    found = theory.quantise(model, rho, neurons, "greedy")
    assert found.shape == (neurons, 2)
    gap = theory.approximation_gap(model, rho)
    assert mf.risk(model, found) <= mf.risk(model, rho) + gap / neurons + 1e-12  # rounding of a risk near 10


def test_strata_are_unbiased_and_never_worse_than_independent_draws():
    """1500 quantisations; means of f at 5 nodes within 4.9 standard errors: a false alarm once in 2·10⁵."""
    model, rho, n = waves(3, 2), cloud(3, 30, 2), 6
    rng = np.random.default_rng(0)
    values = np.array(
        [
            model.features(theory.quantise(model, rho, n, "stratified", rng=rng)).mean(axis=0)
            for _ in range(1500)
        ]
    )
    truth = rho.weights @ model.features(rho.points)
    error = values.std(axis=0) / math.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - truth) < 4.9 * error).all()
    excess = np.square(values - truth) @ model.weights
    bound = theory.approximation_gap(model, rho) / n
    assert excess.mean() < bound + 4.9 * excess.std() / math.sqrt(len(values))
    assert excess.mean() < 0.9 * bound  # neighbours along the curve resemble each other


def test_on_a_line_strata_are_quantiles():
    model = waves(0, 1)
    rho = mf.Density(np.linspace(-1, 1, 401), np.full(400, 1 / 400))
    found = np.sort(theory.quantise(model, rho, 50, "stratified", rng=0)[:, 0])
    middle = np.linspace(-1, 1, 51)
    assert ((found >= middle[:-1]) & (found <= middle[1:])).all()


def test_seeds_repeat_draws_and_greedy_needs_none():
    model, rho = waves(0, 2), cloud(0, 9, 2)
    for method in ("iid", "stratified"):
        one, two = (theory.quantise(model, rho, 7, method, rng=3) for _ in range(2))
        assert np.array_equal(one, two)
    assert np.array_equal(*(theory.quantise(model, rho, 7, "greedy") for _ in range(2)))


def test_atoms_without_mass_are_not_drawn():
    model = waves(0, 1)
    rho = mf.Cloud([[0.0], [1.0], [2.0]], [0.5, 0.0, 0.5])
    for method in ("iid", "stratified", "greedy"):
        assert 1.0 not in theory.quantise(model, rho, 20, method, rng=0)


def test_path_norms_of_large_and_small_neurons_are_numbers():
    network = mf.Network(mf.activations.relu, output="trained")
    model = mf.Model(mf.data.Dataset([[1.0, 0.0]], [0.0]), network)
    for size in (1e-200, 1.0, 1e200):
        rows = [[2.0, 3 * size, 4 * size], [-2.0, 0.0, 5 * size]]
        assert theory.path_norm(model, rows, power=3) == pytest.approx(10 * size, rel=1e-14)
    assert theory.path_norm(model, [[0.0, 1.0, 2.0]]) == 0.0
    with pytest.raises(ValueError, match="measure must have a path norm that is a number"):
        theory.path_norm(model, [[1e200, 1e200, 0.0]])


def test_path_norms_are_those_of_the_definition():
    model = dataset(scale=2.0)
    rho = cloud(0, 4, 5)
    a, b, w = rho.points[:, 0], rho.points[:, 1], rho.points[:, 2:]
    one = np.abs(a) * (np.abs(w).sum(axis=1) + np.abs(b))
    assert theory.path_norm(model, rho, norm=1) == pytest.approx(2 * rho.weights @ one)
    assert theory.path_norm(model, rho, norm=1, power=2) == pytest.approx(2 * math.sqrt(rho.weights @ one**2))
    law = isotropic(8, mf.activations.relu)
    assert theory.path_norm(law, mf.Cloud([[0.7], [1.5]], [0.5, 0.5])) == pytest.approx(1.1)
    with pytest.raises(ValueError, match="norm must be 2 in reduced"):
        theory.path_norm(law, mf.Cloud([[0.7]]), norm=1)


def test_wrong_methods_and_numbers_are_named():
    with pytest.raises(ValueError, match="method"):
        theory.quantise(waves(0, 1), [0.0], 3, "herding")
    with pytest.raises(ValueError, match="neurons"):
        theory.quantise(waves(0, 1), [0.0], 0)
