"""Clouds, densities and what else stands for a measure."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore.measures._measure import Cloud, Density, as_measure, as_points


def random_density(seed, cells):
    rng = np.random.default_rng(seed)
    edges = tuple(np.cumsum(rng.uniform(0.1, 1, n + 1)) for n in cells)
    mass = rng.uniform(size=cells)
    return Density(edges, mass / mass.sum())


def test_a_cloud_has_equal_masses_unless_told_otherwise():
    cloud = Cloud([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    assert len(cloud) == 3
    assert cloud.weights.tolist() == [1 / 3] * 3
    assert repr(cloud) == "Cloud(points=<array 3×2>, weights=<array 3>)"


def test_a_cloud_looks_at_the_callers_arrays_and_never_writes_them():
    points, weights = np.ones((2, 3)), np.array([0.5, 0.5])
    cloud = Cloud(points, weights)
    assert np.shares_memory(cloud.points, points)
    assert np.shares_memory(cloud.weights, weights)
    assert points.flags.writeable
    assert weights.flags.writeable
    for array in (cloud.points, cloud.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_masses_are_kept_as_they_are_within_the_tolerance():
    weights = np.array([0.5, 0.5 + 9e-10])
    assert Cloud([[0.0], [1.0]], weights).weights.sum() == weights.sum()


def test_one_dimensional_points_lie_on_a_line():
    cloud = Cloud([0.5, 1.5, 2.5])
    assert cloud.points.tolist() == [[0.5], [1.5], [2.5]]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), cells=st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_a_density_is_its_masses_over_the_volumes_of_its_cells(seed, cells):
    rho = random_density(seed, tuple(cells))
    points, weights = [], []
    for index in np.ndindex(*cells):  # cell by cell
        low = [edge[i] for edge, i in zip(rho.edges, index, strict=True)]
        high = [edge[i + 1] for edge, i in zip(rho.edges, index, strict=True)]
        volume = math.prod(b - a for a, b in zip(low, high, strict=True))
        assert rho.density[index] * volume == pytest.approx(rho.mass[index], rel=1e-14)
        points.append([0.5 * (a + b) for a, b in zip(low, high, strict=True)])
        weights.append(rho.mass[index])
    cloud = rho.as_cloud()
    assert cloud.points.tolist() == points
    assert cloud.weights.tolist() == weights
    assert [len(c) for c in rho.centers] == cells


def test_a_density_on_a_line_needs_no_tuple():
    edges, mass = np.linspace(0, 2, 5), np.full(4, 0.25)
    rho = Density(edges, mass)
    assert rho == Density((edges,), mass) == Density([edges], mass) == Density(edges.tolist(), mass)
    assert rho.density.tolist() == [0.5] * 4
    assert repr(rho) == "Density(edges=<[0, 2]>, mass=<array 4>)"
    assert repr(random_density(0, (2, 3))).endswith("mass=<array 2×3>)")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Cloud([[1.0]], [0.5, 0.5]), ValueError, r"weights must have shape \(1,\), got \(2,\)"),
        (lambda: Cloud([[1.0], [2.0]], [1.5, -0.5]), ValueError, r"weights must be >= 0, got -0.5 at \[1\]"),
        (
            lambda: Cloud([[1.0], [2.0]], [0.5, 0.4]),
            ValueError,
            "weights must sum to 1 within 1e-09, got a sum of 0.9",
        ),
        (lambda: Cloud([[1.0], [2.0]], [1, 1e-8]), ValueError, "weights must sum to 1 within 1e-09"),
        (
            lambda: Cloud([[1.0], [2.0]], [math.nan, 1]),
            ValueError,
            r"weights must be finite, got nan at \[0\]",
        ),
        (lambda: Cloud([[math.inf]]), ValueError, r"points must be finite, got inf at \[0, 0\]"),
        (lambda: Cloud(np.zeros((0, 2))), ValueError, r"points must not be empty, got shape \(0, 2\)"),
        (lambda: Cloud(np.zeros((2, 2, 2))), ValueError, r"points must have shape \(N, D\), got \(2, 2, 2\)"),
        (lambda: Cloud(1.0), ValueError, r"points must have shape \(N, D\), got \(\)"),
        (
            lambda: Density([0, 1, 1], [0.5, 0.5]),
            ValueError,
            r"edges\[0\] must increase strictly, got 1.0 before 1.0",
        ),
        (
            lambda: Density([[0, 1], [2]], [[1.0]]),
            ValueError,
            r"edges\[1\] must have at least 2 entries, got 1",
        ),
        (lambda: Density([0, 1, 2], [1.0]), ValueError, r"mass must have shape \(2,\), got \(1,\)"),
        (
            lambda: Density([[0, 1], [0, 1, 2]], [[1.5, -0.5]]),
            ValueError,
            r"mass must be >= 0, got -0.5 at \[0, 1\]",
        ),
        (
            lambda: Density([0, 1, 2], [0.5, 0.4]),
            ValueError,
            "mass must sum to 1 within 1e-09, got a sum of 0.9",
        ),
        (lambda: Density([], []), ValueError, r"edges\[0\] must not be empty"),
        (lambda: Density("ab", [1.0]), TypeError, r"edges\[0\] must hold real numbers"),
    ],
)
def test_what_is_no_measure_is_refused_with_rule_and_value(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_everything_that_stands_for_a_measure_becomes_points_and_masses():
    rho = random_density(3, (2, 2))
    for measure, points, weights in (
        (np.ones((4, 2)), np.ones((4, 2)), [0.25] * 4),
        ([1.0, 2.0], [[1, 2]], [1]),
        (Cloud([[1.0, 2.0], [3.0, 4.0]], [0.25, 0.75]), [[1, 2], [3, 4]], [0.25, 0.75]),
        (rho, rho.as_cloud().points, rho.mass.ravel()),
    ):
        got_points, got_weights = as_measure(measure, "rho", 2)
        assert np.array_equal(got_points, points)
        assert np.array_equal(got_weights, weights)
    line, masses = as_measure([1.0, 2.0, 3.0], "rho", 1)
    assert line.shape == (3, 1)
    assert masses.tolist() == [1 / 3] * 3


def test_a_fitting_array_is_not_copied():
    theta = np.ones((4, 2))
    points, _ = as_measure(theta, "rho", 2)
    assert points is theta


@pytest.mark.parametrize(
    ("measure", "row", "message"),
    [
        (np.ones((4, 2)), 3, r"rho must have shape \(N, 3\) or \(3,\), got \(4, 2\)"),
        (np.ones(4), 3, r"rho must have shape \(N, 3\) or \(3,\), got \(4,\)"),
        (np.ones((4, 2)), 1, r"rho must have shape \(N, 1\) or \(N,\), got \(4, 2\)"),
        (2.0, 1, r"rho must have shape \(N, 1\) or \(N,\), got \(\)"),
        (Cloud(np.ones((4, 2))), 3, "rho must have points of length 3, got 2"),
        (Density([0, 1], [1.0]), 2, "rho must have points of length 2, got 1"),
    ],
)
def test_points_of_the_wrong_length_are_refused(measure, row, message):
    with pytest.raises(ValueError, match=message):
        as_measure(measure, "rho", row)


def test_points_without_a_known_row_are_taken_as_they_come():
    assert as_points([[1, 2]], "z").tolist() == [[1, 2]]
    assert as_points([1, 2], "z").tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "measure", [Cloud([[1.0, 2.0]]), random_density(1, (3,)), random_density(2, (2, 3))], ids=repr
)
def test_measures_compare_by_their_arrays_and_survive_copies(measure):
    for twin in (pickle.loads(pickle.dumps(measure)), copy.deepcopy(measure)):
        assert twin == measure
    assert measure != Cloud([[1.0, 3.0]])
    assert measure != "measure"
    with pytest.raises(TypeError, match="unhashable"):
        hash(measure)


def test_measures_that_differ_in_one_array_differ():
    cloud, rho = Cloud([[1.0], [2.0]]), Density([0, 1, 2], [0.5, 0.5])
    assert cloud != Cloud([[1.0], [2.0]], [0.25, 0.75])
    assert rho != Density([0, 1, 3], [0.5, 0.5])
    assert rho != Density([0, 1, 2], [0.25, 0.75])
    assert rho != Density([0, 1, 2, 3], [0.5, 0.5, 0])
    assert rho != Density([[0, 1, 2], [0, 1]], [[0.5], [0.5]])
