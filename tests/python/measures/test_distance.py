"""Distances between measures against closed forms, linear programmes and the axioms of a metric."""

import math
import sys
import types

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore.measures._distance import _programme
from scipy import optimize, stats

powers = st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.3])


def cloud(rng, n, d=1):
    return mf.Cloud(rng.normal(size=(n, d)), rng.dirichlet(np.ones(n)))


def density(rng, n):
    mass = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    mass = mass / mass.sum() if mass.any() else np.full(n, 1 / n)
    return mf.Density(np.cumsum(rng.uniform(0.1, 1.0, n + 1)) - rng.normal(), mass)


def some(rng):
    n = int(rng.integers(1, 8))
    return [lambda: rng.normal(size=n), lambda: cloud(rng, n), lambda: density(rng, n)][rng.integers(3)]()


def programme(a, b, p):
    """W_p^p of two clouds as the textbook linear programme, one constraint at a time."""
    n, m = len(a), len(b)
    cost = np.array([[np.linalg.norm(x - y) ** p for y in b.points] for x in a.points])
    rows = []
    for i in range(n):
        rows.append(np.zeros((n, m)))
        rows[-1][i] = 1
    for j in range(m):
        rows.append(np.zeros((n, m)))
        rows[-1][:, j] = 1
    equations = np.array([r.ravel() for r in rows])
    masses = np.concatenate([a.weights, b.weights])
    return optimize.linprog(cost.ravel(), A_eq=equations[:-1], b_eq=masses[:-1]).fun


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=powers, d=st.sampled_from([1, 1, 2, 5]))
def test_points_of_any_weights_are_moved_as_cheaply_as_the_linear_programme_says(seed, p, d):
    rng = np.random.default_rng(seed)
    a, b = cloud(rng, int(rng.integers(1, 7)), d), cloud(rng, int(rng.integers(1, 7)), d)
    # The programme's solver is exact to 1e-9 or so; roots of small numbers lose digits.
    assert mf.distance(a, b, p) ** p == pytest.approx(programme(a, b, p), abs=1e-8, rel=1e-7)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=powers)
def test_on_a_line_it_is_a_metric_on_measures_of_every_kind(seed, p):
    rng = np.random.default_rng(seed)
    a, b, c = some(rng), some(rng), some(rng)
    assert mf.distance(a, a, p) < 1e-15 ** (1 / p)  # rounding of one coordinate, to the power 1/p at worst
    assert mf.distance(a, b, p) == mf.distance(b, a, p)
    assert mf.distance(a, c, p) <= mf.distance(a, b, p) + mf.distance(b, c, p) + 1e-12
    assert mf.distance(a, b, 1) <= mf.distance(a, b, p) + 1e-12  # Hölder


@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
def test_uniform_laws_have_their_closed_form(p):
    unit, double = mf.Density([0.0, 1.0], [1.0]), mf.Density([0.0, 2.0], [1.0])
    assert mf.distance(unit, double, p) == pytest.approx((1 / (p + 1)) ** (1 / p), rel=1e-14)
    assert mf.distance(unit, [0.5], p) == pytest.approx(0.5 * (1 / (p + 1)) ** (1 / p), rel=1e-14)
    shifted = mf.Density([3.0, 4.0], [1.0])
    assert mf.distance(unit, shifted, p) == pytest.approx(3.0, rel=1e-14)
    centred = mf.Density([-0.25, 1.25], [1.0])  # the difference of quantiles changes sign at 1/2
    assert mf.distance(unit, centred, p) == pytest.approx(0.25 * (1 / (p + 1)) ** (1 / p), rel=1e-14)


@pytest.mark.parametrize("p", [1.0, 1.3, 2.0, 5.5])
def test_densities_agree_with_the_integral_of_their_quantile_functions(p):
    rng = np.random.default_rng(5)
    a, b = density(rng, 6), density(rng, 4)

    def quantile(rho, s):
        there = rho.mass > 0  # an empty cell makes a jump: the value at one point of s does not matter
        top = np.cumsum(rho.mass)
        return np.interp(
            s, np.concatenate([[0], top[there]]), np.concatenate([rho.edges[0][:1], rho.edges[0][1:][there]])
        )

    if (a.mass > 0).all() and (b.mass > 0).all():
        s = (np.arange(400_000) + 0.5) / 400_000
        want = np.mean(np.abs(quantile(a, s) - quantile(b, s)) ** p) ** (1 / p)
        assert mf.distance(a, b, p) == pytest.approx(want, rel=1e-8)  # midpoint rule, 4e5 nodes
    full = mf.Density(a.edges[0], np.full(6, 1 / 6)), mf.Density(b.edges[0], np.full(4, 1 / 4))
    s = (np.arange(400_000) + 0.5) / 400_000
    want = np.mean(np.abs(quantile(full[0], s) - quantile(full[1], s)) ** p) ** (1 / p)
    assert mf.distance(*full, p) == pytest.approx(want, rel=1e-8)


def test_gaussian_laws_are_as_far_apart_as_their_means_and_deviations():
    edges = np.linspace(-12, 12, 6001)
    laws = []
    for mean, deviation in ((0.5, 1.0), (-1.0, 1.4)):
        mass = np.diff(stats.norm(mean, deviation).cdf(edges))
        laws.append(mf.Density(edges, mass / mass.sum()))
    # Cells of width 0.004 are an error of order 1e-6.
    assert mf.distance(*laws) == pytest.approx(math.hypot(1.5, 0.4), rel=1e-5)


def test_equal_points_are_sorted():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=50), rng.normal(size=(50, 1))
    want = np.mean(np.abs(np.sort(x) - np.sort(y[:, 0])) ** 3) ** (1 / 3)
    assert mf.distance(x, y, 3) == pytest.approx(want, rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=powers)
def test_how_a_measure_is_written_down_does_not_matter(seed, p):
    rng = np.random.default_rng(seed)
    a, b = cloud(rng, 5), density(rng, 4)
    order = np.repeat(rng.permutation(5), 2)
    twice = mf.Cloud(a.points[order], a.weights[order] / 2)
    fine = np.sort(np.concatenate([b.edges[0], b.centers[0]]))
    halves = mf.Density(fine, np.repeat(b.mass / 2, 2))
    # Rounding of cumulative masses, 1e-16, times distances up to 5 or so, to the power 1/p where they vanish.
    assert mf.distance(twice, halves, p) == pytest.approx(mf.distance(a, b, p), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=powers, d=st.sampled_from([2, 3]), equal=st.booleans())
def test_the_sliced_distance_is_a_smaller_metric(seed, p, d, equal):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.normal(size=(6, d)) if equal else cloud(rng, 6, d) for _ in range(3))

    def sliced(x, y):
        return mf.distance(x, y, p, method="sliced", directions=20)

    assert sliced(a, b) == sliced(b, a)
    assert sliced(a, b) <= mf.distance(a, b, p) + 1e-12
    assert sliced(a, c) <= sliced(a, b) + sliced(b, c) + 1e-12


def test_the_sliced_distance_of_a_translation_is_its_length_over_the_root_of_the_dimension():
    x = np.random.default_rng(0).normal(size=(40, 3))
    y = x + np.array([0.0, 3.0, 4.0])
    got = mf.distance(x, y, method="sliced", directions=20_000, rng=1)
    # E⟨u, v⟩² = |v|²/3, its standard error 25·√(4/45)/√20000 = 0.05 of 8.33; 5 of them are 2e-6 of odds.
    assert got**2 == pytest.approx(25 / 3, abs=0.27)
    assert mf.distance(x, y) == pytest.approx(5.0)
    assert got == mf.distance(x, y, method="sliced", directions=20_000, rng=1)


def test_a_density_of_two_coordinates_counts_as_points_at_its_centres():
    rho = mf.Density(([0, 1, 2], [0, 2]), [[0.25], [0.75]])
    assert mf.distance(rho, [[0.5, 1.0]], 1) == pytest.approx(0.75)


def test_assignment_and_linear_programme_agree():
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    nearly = np.full(30, 1 / 30) + 1e-12 * (np.arange(30) - 14.5)
    cost = np.linalg.norm(a[:, None] - b[None], axis=2)
    want = _programme(cost, nearly, nearly)
    assert mf.distance(a, b, 1) == pytest.approx(want, rel=1e-9)
    assert mf.distance(mf.Cloud(a, nearly), mf.Cloud(b, nearly), 1) == pytest.approx(want, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9))
def test_relative_entropy_is_a_sum_over_cells_and_not_negative(seed, n):
    rng = np.random.default_rng(seed)
    edges = np.cumsum(rng.uniform(0.1, 1, n + 1))
    a, b = (mf.Density(edges, rng.dirichlet(np.ones(n))) for _ in range(2))
    want = sum(x * math.log(x / y) for x, y in zip(a.mass, b.mass, strict=True))
    assert mf.kl(a, b) == pytest.approx(want, abs=1e-12)
    assert mf.kl(a, b) >= 0
    assert mf.kl(a, a) == 0


def test_relative_entropy_of_gaussians_and_of_laws_that_miss_mass():
    edges = np.linspace(-20, 20, 4001)
    laws = []
    for mean in (0.0, 1.0):
        mass = np.diff(stats.norm(mean, 2.0).cdf(edges))
        laws.append(mf.Density(edges, mass / mass.sum()))
    assert mf.kl(*laws) == pytest.approx(1 / 8, rel=1e-4)  # cells of width 0.01
    half = mf.Density([0.0, 1.0, 2.0], [0.5, 0.5])
    assert mf.kl(mf.Density([0.0, 1.0, 2.0], [0.0, 1.0]), half) == pytest.approx(math.log(2))
    assert mf.kl(half, mf.Density([0.0, 1.0, 2.0], [0.0, 1.0])) == math.inf


@pytest.mark.parametrize(
    ("error", "act", "message"),
    [
        (ValueError, lambda: mf.distance([0.0], [1.0], 0.5), "p must be >= 1, got 0.5"),
        (
            ValueError,
            lambda: mf.distance([0.0], [[1.0, 2.0]]),
            "b must have points of length 1 as a has, got 2",
        ),
        (ValueError, lambda: mf.distance([0.0], [1.0], method="slice"), "did you mean 'sliced'"),
        (
            ValueError,
            lambda: mf.distance(np.zeros((6000, 2)), np.zeros((5000, 2))),
            "'sliced' beyond .* 6000 × 5000",
        ),
        (
            ValueError,
            lambda: mf.kl(mf.Density([0, 1], [1.0]), mf.Density([0, 2], [1.0])),
            "b must be on the grid of a",
        ),
        (TypeError, lambda: mf.kl([0.0], mf.Density([0, 1], [1.0])), "a must be an mf.Density"),
    ],
)
def test_bad_input_is_named(error, act, message):
    with pytest.raises(error, match=message):
        act()


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-150, 1e120, 1e200, 1.5e308])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_distances_of_any_size_scale_with_the_points(size, p):
    # Subnormal numbers have few digits: 1e-320 has 11 bits.
    near = {"rel": 1e-3 if size < 1e-300 else 1e-12}
    assert mf.distance([0.0, size], [size / 4], p) == pytest.approx(
        mf.distance([0.0, 1.0], [0.25], p) * size, **near
    )
    plane = np.array([[0.0, 0.5], [1.0, 0.25], [0.5, 0.0]])
    for method in ("exact", "sliced"):
        one = mf.distance(plane, plane[:2] / 2, p, method=method)
        assert mf.distance(size / 2 * plane, size / 4 * plane[:2], p, method=method) == pytest.approx(
            one * (size / 2), **near
        )


@pytest.mark.parametrize("p", [100.0, 1e4, 1e200])
def test_large_powers_tend_to_the_largest_distance(p):
    # W_p = 3·2^(-1/p) for gaps 3 and less: half of the mass moves by 3, the rest by 1.
    assert mf.distance([0.0, 10.0], [3.0, 11.0], p) == pytest.approx(3 * 2 ** (-1 / p), rel=1e-12)


def test_a_distance_beyond_all_numbers_is_refused():
    with pytest.raises(ValueError, match="b must be at a distance"):
        mf.distance([1.7e308], [-1.7e308])


@pytest.mark.parametrize("size", [1e-9, 1e-5, 1e12])
def test_the_transport_of_unequal_masses_is_as_exact_at_any_size(size):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    assert mf.distance(size * a, size * b) == pytest.approx(size * mf.distance(a, b), rel=1e-7, abs=0)


def test_pot_and_scipy_find_the_same_distance_between_weighted_points(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = (mf.Cloud(rng.normal(size=(n, 3)), rng.dirichlet(np.ones(n))) for n in (30, 20))
    by_pot = mf.distance(a, b, p=1.5)
    assert "ot" in sys.modules
    monkeypatch.setitem(sys.modules, "ot", None)  # as where it is not installed
    assert mf.distance(a, b, p=1.5) == pytest.approx(
        by_pot, rel=1e-9
    )  # HiGHS stops at 1e-7 of the largest cost


def test_transport_by_pot_is_as_exact_at_any_size(monkeypatch):
    # A stand-in for POT, which takes costs below an absolute tolerance for zero.
    def emd2(a, b, cost, numItermax):
        return _programme(np.where(cost < 1e-15, 0.0, cost), a, b)

    monkeypatch.setitem(sys.modules, "ot", types.SimpleNamespace(emd2=emd2))
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    assert mf.distance(1e-9 * a, 1e-9 * b) == pytest.approx(1e-9 * mf.distance(a, b), rel=1e-7, abs=0)
