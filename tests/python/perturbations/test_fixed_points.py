"""`theory.fixed_points`: what is found rests, and known fixed points are found."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from problems import SQUARES, STEP, erf_model, isotropic


def test_all_fixed_points_of_a_polynomial_are_found_and_sorted():
    """One atom: z/2 + (z² − 1)z + λz = 0 has the roots 0 and ±√(½ − λ)."""
    model = mf.ReducedModel(**SQUARES, ridge=0.1)
    found = theory.fixed_points(model, starts=np.linspace(-2, 2, 9)[:, None])
    places = sorted(p.measure.points[0, 0] for p in found)
    assert np.allclose(places, [-math.sqrt(0.4), 0.0, math.sqrt(0.4)], atol=1e-9)
    assert [p.risk for p in found] == sorted(p.risk for p in found)
    assert sum(p.starts for p in found) == 9
    assert found[-1].measure.points[0, 0] == pytest.approx(0.0, abs=1e-9)
    assert found[-1].stability.rate == pytest.approx(-0.9, abs=1e-8)
    # H = (z² − 1) + λ and K = ½(1 + 4z²) at z² = 0.4: a mean that is stable, and a spread that is not.
    assert found[0].stability.spread[0, 0] == pytest.approx(-0.5, abs=1e-8)
    assert found[0].stability.mean[0] == pytest.approx(0.8, abs=1e-8)


def test_two_atoms_find_the_pair_that_one_atom_splits_into():
    model = mf.ReducedModel(**SQUARES, ridge=0.1)
    found = theory.fixed_points(model, 2, starts=[[[-1.5], [0.8]], [[0.7], [-0.7]], [[0.1], [0.11]]])
    best = found[0]
    assert np.allclose(np.sort(best.measure.points[:, 0]), [-math.sqrt(0.9), math.sqrt(0.9)], atol=1e-8)
    assert best.starts >= 2  # the order of the atoms does not matter
    assert all(p.stability.residual < 1e-9 for p in found)


def test_the_atoms_of_the_isotropic_limit_are_found_from_its_initial_law():
    model = isotropic(math.inf, STEP, delta=0.2).reduce()
    found = theory.fixed_points(model, starts=[[0.2], [0.9], [1.4], [2.5], [6.0]])
    stable = [p for p in found if p.stability.stable]
    assert stable[0].measure.points[0, 0] == pytest.approx(1.4616, abs=1e-4)  # its printed digits
    assert stable[0] is found[0]


def test_neurons_of_a_model_rest_where_newton_ends():
    model = erf_model(ridge=0.05)
    found = theory.fixed_points(model, starts=6, rng=1)
    assert found
    for point in found:
        rows = point.measure.points
        assert np.abs(mf.grad_psi(model, rows, rows)).max() < 1e-8


def test_the_same_seed_finds_the_same_bits():
    model = erf_model(ridge=0.05)
    one, two = (theory.fixed_points(model, starts=3, rng=5) for _ in range(2))
    assert [p.measure for p in one] == [p.measure for p in two]


def test_wrong_arguments_are_named():
    model = mf.ReducedModel(**SQUARES)
    with pytest.raises(ValueError, match="starts must be given"):
        theory.fixed_points(model)
    with pytest.raises(ValueError, match="starts must have shape"):
        theory.fixed_points(model, 2, starts=[[0.0], [1.0]])
    with pytest.raises(ValueError, match="temperature 0 for atoms at rest"):
        theory.fixed_points(mf.ReducedModel(**SQUARES, temperature=0.1), starts=[[0.0]])
    with pytest.raises(ValueError, match="weights"):
        theory.fixed_points(model, 2, starts=[[[0.0], [1.0]]], weights=[0.5, 0.4])
