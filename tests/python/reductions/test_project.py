"""Reduced coordinates of neurons."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._project import projections
from problems import orthonormal

W = np.random.default_rng(1).normal(size=(3, 7, 10))  # replicas, neurons, inputs


def coordinates(law):
    return {name: function(W) for name, function in projections(law).items()}


def test_two_radii_are_those_of_the_subspace_and_its_complement():
    basis = orthonormal(10, 4)
    for law, inside in (
        (mf.data.AnisotropicGaussians(10, 0.5, s0=4), W[..., :4]),
        (mf.data.AnisotropicGaussians(10, 0.5, basis=basis), W @ basis),
    ):
        z = coordinates(law)
        assert list(z) == ["r1", "r2"]
        np.testing.assert_allclose(z["r1"], np.linalg.norm(inside, axis=-1), rtol=1e-14)
        np.testing.assert_allclose(z["r1"] ** 2 + z["r2"] ** 2, (W**2).sum(axis=-1), rtol=1e-13)


@pytest.mark.parametrize(
    ("law", "axes"),
    [
        (mf.data.MultiIndex(10, {(1, 1): 1.0}, 2), np.eye(10)[:2]),
        (mf.data.MultiIndex(10, {(1, 1): 1.0}, orthonormal(10, 2).T), orthonormal(10, 2).T),
        (mf.data.Staircase(10, [(0,), (0, 1), (0, 1, 2)]), np.eye(10)[:3]),
        (mf.data.Linear(np.full(10, 2.0)), np.full((1, 10), 1 / np.sqrt(10))),
    ],
)
def test_multi_index_coordinates_are_the_directions_and_the_rest(law, axes):
    z = coordinates(law)
    assert list(z) == [*(f"s{j + 1}" for j in range(len(axes))), "r"]
    for j, axis in enumerate(axes):
        np.testing.assert_allclose(z[f"s{j + 1}"], W @ axis, atol=1e-14)
    squares = sum(z[name] ** 2 for name in z)
    np.testing.assert_allclose(squares, (W**2).sum(axis=-1), rtol=1e-13)


def test_laws_without_directions_have_no_coordinates_but_the_norm():
    assert projections(mf.data.IsotropicGaussians(10, 0.5)) == {}
