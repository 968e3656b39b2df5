"""Errors of stationary laws, optima and certificates contain the truth: closed forms and brute force."""

import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._of_laws import features_of
from mfcore.stationary._compact import compact
from mfcore.stationary._newton import newton
from mfcore.stationary._panels import support_at
from problems import STEP
from scipy import special

ACTIVATIONS = [lambda u: np.maximum(u, 0), np.tanh, lambda u: np.clip(u, -0.5, 0.5), lambda u: np.sin(2 * u)]


def member(seed):
    """A model at random, Φ_q(z) = σ(a_q z + b_q) on a line or a radius in R^d, and where it has kinks."""
    rng = np.random.default_rng(seed)
    activation, d = ACTIVATIONS[rng.integers(4)], int(rng.choice([2, 5, 40, 320]))
    ridge, temperature = 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-4, -0.5)
    q = int(rng.integers(1, 8))
    a, b, y = rng.normal(size=q) * 2, rng.uniform(-2, 2, q), rng.normal(size=q)
    radial = bool(rng.random() < 0.5)
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=rng.dirichlet(np.ones(q)),
        targets=y,
        features=lambda z: activation(z * a + b),
        ridge=ridge,
        temperature=temperature,
        volume=[d - 1.0 if radial else 0.0],
        nonnegative=[radial],
    )
    return model, np.concatenate([(c - b) / a for c in (0.0, -0.5, 0.5)])


def by_brute_force(model, law, kinks):
    """F and R by 4000 panels of 6 nodes and more towards 0 and every kink, none of them chosen by results."""
    low, high = law.measure.edges[0][[0, -1]]
    width = high - low
    low, high = (
        (max(low - 0.6 * width, 0.0) if model.nonnegative[0] else low - 0.6 * width),
        high + 0.6 * width,
    )
    steps = np.geomspace(1e-7, 1, 80) * width
    edges = [np.linspace(low, high, 4001), low + steps]
    edges += [k + sign * steps for k in kinks if low < k < high for sign in (-1, 1)]
    edges = np.unique(np.concatenate([*edges, kinks]))
    edges = edges[(edges >= low) & (edges <= high)]
    x, w = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(edges)[:, None]
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    where = support_at(model, z[:, None], np.log((half * w).ravel()))
    found = newton(where, where.features.moments(law.f), 1e-30)
    risk = float(np.square(found.mean - where.features.target).sum()) + where.features.unreached
    return found.dual + found.gap, risk


def test_errors_contain_the_truth_for_98_of_100_models_at_random():
    # Seeds from 5000 on: constants were chosen on seeds below 1300. Of 2000 … 2099 one was wrong (rounding).
    # At 1 % other seeds would fail this test 9 times in 100; these are fixed.
    contained, errors = 0, []
    for seed in range(5000, 5050):
        model, kinks = member(seed)
        law = mf.gibbs(model)
        energy, risk = by_brute_force(model, law, kinks)
        contained += (
            abs(law.free_energy - energy) <= law.error
            and abs(law.risk - risk) <= law.risk_error
            and law.dual <= energy + 1e-15 * (1 + abs(energy))
        )
        errors.append((law.error, law.risk_error))
    assert contained >= 49
    assert np.max(errors) <= 1e-9
    assert np.quantile(errors, 0.9) <= 1e-10


@pytest.mark.parametrize("activation", [mf.activations.relu, STEP, mf.activations.tanh])
@pytest.mark.parametrize("d", [40, 320])
def test_radial_laws_of_real_models_agree_with_brute_force(d, activation):
    model = mf.Model(
        mf.data.IsotropicGaussians(d, 0.4), mf.Network(activation), ridge=0.02, temperature=0.2 / d
    ).reduce()
    law = mf.gibbs(model)
    energy, risk = by_brute_force(model, law, [])
    assert abs(law.free_energy - energy) <= law.error < 1e-10
    assert abs(law.risk - risk) <= law.risk_error < 1e-10
    assert law.dual <= energy


def test_a_kink_between_an_end_of_a_panel_and_its_first_node_is_seen():
    # 24 panels on (−3, 3) have an end at 0 and, 16 nodes each, their first node 0.0013 from it.
    kink = 4e-4
    model = mf.ReducedModel(
        coordinates=["z"], weights=[1.0], targets=[3.0], ridge=0.1, temperature=1.0,
        features=lambda z: 5 * np.maximum(z - kink, 0.0),
    )  # fmt: skip
    law = mf.gibbs(model, extent=(-3.0, 3.0))
    edges = np.concatenate([np.linspace(-3, kink, 200), np.linspace(kink, 3, 200)[1:]])
    x, w = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.diff(edges)[:, None]
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel()
    where = support_at(model, z[:, None], np.log((half * w).ravel()))
    found = newton(where, where.features.moments(law.f), 1e-30)
    assert abs(law.free_energy - found.dual - found.gap) <= law.error < 1e-10


def test_the_cells_change_the_measure_and_not_the_numbers():
    model = mf.Model(
        mf.data.IsotropicGaussians(320, 0.4), mf.Network(mf.activations.relu), ridge=0.02, temperature=1e-3
    )
    few, many = mf.gibbs(model, cells=50), mf.gibbs(model, cells=5000)
    assert few.free_energy == pytest.approx(many.free_energy, abs=few.error + many.error)
    assert abs(mf.free_energy(model, few.measure) - few.free_energy) > 1e-5 > few.error


def test_the_repr_does_not_show_a_gap_without_the_error():
    law = mf.gibbs(member(0)[0])
    assert f"error={law.error:.1e}, risk_error={law.risk_error:.1e}, gap={law.gap:.1e} without error" in repr(
        law
    )
    on_points = mf.gibbs(member(0)[0], points=[0.1, 0.2])
    assert on_points.error is None
    assert "error=unknown: on points given" in repr(on_points)


def test_two_coordinates_have_errors_too():
    # Linear regression in a plane: the law is Gaussian with covariance 1/(βλ).
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    model = mf.ReducedModel(
        coordinates=["a", "b"], weights=np.full(5, 0.2), targets=y, features=lambda z: z @ x.T,
        ridge=0.5, temperature=0.01,
    )  # fmt: skip
    mean = np.linalg.solve(x.T @ x / 5 + 0.5 * np.eye(2), x.T @ y / 5)
    risk = float(np.mean((y - x @ mean) ** 2))
    want = risk / 2 + 0.25 * mean @ mean - 0.01 * math.log(2 * math.pi * 0.02)
    law = mf.gibbs(model)
    assert abs(law.free_energy - want) <= law.error < 1e-9
    assert abs(law.risk - risk) <= law.risk_error < 1e-8


def test_a_smaller_model_has_the_same_potential_and_risk_to_its_stated_error():
    law = mf.data.MultiIndex(5, lambda z: np.maximum(z[:, 0], 0), 1)
    network = mf.Network(mf.activations.erf, output="trained")
    whole = mf.Model(law, network).reduce(nodes=24)
    small = compact(whole, [(-1.0, 1.0), (-1.5, 1.5), (0.0, 1.5)])
    assert len(small.model.weights) < len(whole.weights) / 2
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.uniform(-1, 1, 20), rng.uniform(-1.5, 1.5, 20), rng.uniform(0, 1.5, 20)])
    c = np.full(20, 0.05)
    size = np.sqrt(np.square(whole.features(z)) @ whole.weights).max()
    # Ten times: the error is the largest of 48 points, these are others.
    missed = 10 * (small.error + 1e-14) * size
    assert whole.risk(z, c) == pytest.approx(small.model.risk(z, c), abs=3 * missed)
    np.testing.assert_allclose(small.model.psi(z, z, c), whole.psi(z, z, c), atol=3 * missed)
    np.testing.assert_allclose(small.model.grad_psi(z, z, c), whole.grad_psi(z, z, c), atol=3e3 * missed)
    f = c @ whole.features(z)
    np.testing.assert_allclose(
        small.function(c @ small.model.features(z)) * whole.weights**0.5, f * whole.weights**0.5, atol=missed
    )
    targets = small.model.targets
    np.testing.assert_allclose(small.restricted(small.function(targets)), targets, atol=1e-12)


def test_requests_beyond_memory_are_refused_at_once():
    model = member(0)[0]
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"cells must fit in memory, .* got 1000000000000"):
        mf.gibbs(model, cells=10**12)
    assert time.process_time() - begin < 5  # an answer, not a search


def test_an_optimum_has_the_error_of_its_search_and_of_the_nodes():
    # The best relu network without bias is linear in |x|: R = 1 − (E y|x|)²/E|x|².
    d, delta = 40, 0.5
    best = mf.optimum(mf.Model(mf.data.IsotropicGaussians(d, delta), mf.Network(mf.activations.relu)))
    chi = math.sqrt(2) * math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2))
    exact = 1 - (delta * chi) ** 2 / ((1 + delta**2) * d)
    assert best.value - best.gap - best.error <= exact <= best.value + best.error
    assert best.error < 1e-8
    assert f"error={best.error:.1e}" in repr(best)


def test_the_nodes_of_the_data_are_part_of_the_error():
    rough = mf.Model(mf.data.IsotropicGaussians(40, 0.5), mf.Network(mf.activations.softplus), ridge=0.1)
    few, many = (rough.reduce(nodes=n) for n in (3, 60))
    assert few.node_error > 1e-9
    a, b = mf.optimum(few), mf.optimum(many)
    assert abs(a.value - b.value) <= a.gap + a.error + b.gap + b.error
    assert a.error > 100 * b.error


@pytest.mark.parametrize("seed", range(12))
def test_a_certificate_bounds_the_continuum_and_says_what_cells_leave_out(seed):
    model, _ = member(9000 + seed)
    law = mf.gibbs(model)
    rng = np.random.default_rng(seed)
    coarse = mf.gibbs(model, cells=200).measure
    mass = coarse.mass * np.exp(0.3 * rng.normal(size=200))
    found = mf.certificate(model, mf.Density(coarse.edges, mass / mass.sum()))
    assert found.lower_bound <= law.free_energy + law.error
    assert found.value - found.lower_bound <= found.gap + found.error * (1 + 1e-9) + 1e-15
    assert found.value - law.free_energy <= found.gap + found.error + law.error


KINKED = mf.Model(
    data=mf.data.MultiIndex(d=8, link=lambda z: z[:, 0] * z[:, 1], directions=2),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
    ridge=0.1,
    temperature=0.1,
)


def test_features_with_kinks_are_found_from_few_nodes_to_the_error_that_is_stated():
    reduced = features_of(KINKED)
    box = [(-2.0, 2.0), (-2.0, 2.0), (0.0, 2.0)]
    small = compact(reduced, box, tolerance=1e-3)
    assert len(reduced.weights) > 10_000 > len(small.model.weights)
    points = np.random.default_rng(1).uniform(*np.array(box).T, (50, 3))
    there = reduced.features(points) * np.sqrt(reduced.weights)
    here = small.model.features(points) / np.sqrt(len(small.rows)) @ small.rows
    relative = np.linalg.norm(there - here, axis=1) / np.linalg.norm(there, axis=1)
    assert relative.max() <= 3 * small.error  # the largest of 48 other points: a few times that at most
    assert small.error < 1e-2
    # Not a single feature is evaluated at more nodes than twice the rank, nor in whole groups of 80.
    owner = small.model.gradients.function.gradients.__self__
    assert len(owner.rows) <= 2 * len(small.rows)


def test_too_many_nodes_are_refused_before_anything_is_computed():
    def features(z):
        raise AssertionError("nothing may be evaluated")

    many = mf.ReducedModel(
        coordinates=("a", "b", "c"),
        weights=np.full(400_000, 1 / 400_000),
        targets=np.zeros(400_000),
        features=features,
        ridge=0.1,
        temperature=0.1,
    )
    with pytest.raises(
        ValueError, match=r"at most 394736 nodes of data .* got 400000: fewer by model.reduce"
    ):
        mf.gibbs(many, extent=[(-1, 1)] * 3)
