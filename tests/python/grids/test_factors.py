"""Factors of tables of features on the cells of a grid, as the core's potential wants them."""

from __future__ import annotations

import numpy as np
from mfcore import _core

TOLERANCE = 1e-12


def smooth(n, m, q):
    """A table of exp(−(x + y − z)²) on pairs of cells."""
    x, y, z = np.linspace(0, 1, n), np.linspace(0, 2, m), np.linspace(-1, 1, q)
    return np.exp(-((x[:, None, None] + y[None, :, None] - z) ** 2)).reshape(n * m, q)


def product_of(first, second, core, nodes):
    return (np.einsum("ia,jb->ijab", first, second).reshape(len(first) * len(second), -1) @ core) @ nodes


def test_a_table_is_the_product_of_its_factors_which_are_orthonormal():
    table = smooth(30, 20, 40)
    first, second, core, nodes = _core.factors_of_table(table, 20, TOLERANCE / 3)
    assert max(first.shape[1], second.shape[1]) < 16  # of 20 and 30
    for columns in (first, second, nodes.T):
        np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=1e-13)
    # Three cuts at a third of the tolerance, relative to the largest singular value.
    missed = np.linalg.norm(product_of(first, second, core, nodes) - table, 2)
    assert missed < TOLERANCE * np.linalg.norm(table, 2) * np.sqrt(20)  # of an unfolding, so many slices


def test_factors_that_say_more_than_the_cells_need_become_fewer():
    rng = np.random.default_rng(0)
    given = _core.factors_of_table(smooth(60, 50, 40), 50, TOLERANCE / 3)
    first, second = given[0][::10], given[1][::10]  # what is left of the functions on few cells
    fewer = _core.fewer_factors(first, second, given[2], given[3], TOLERANCE / 3)
    assert fewer[0].shape[1] <= 6
    np.testing.assert_allclose(product_of(*fewer), product_of(first, second, *given[2:]), atol=1e-11)
    left, right = _core.column_span(rng.normal(size=(9, 3)) @ rng.normal(size=(3, 50)), TOLERANCE)
    assert left.shape == (9, 3)
    assert right.shape == (3, 50)


def test_a_table_of_one_coordinate_is_the_product_of_basis_turn_and_nodes():
    table = smooth(300, 1, 40)
    basis, turn, nodes = _core.factors_of_line(table, TOLERANCE)
    np.testing.assert_allclose(nodes @ nodes.T, np.eye(len(nodes)), atol=1e-13)
    assert np.abs(basis @ turn @ nodes - table).max() < 2 * TOLERANCE * np.abs(table).max()  # and rounding
