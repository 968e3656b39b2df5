"""Two radii in high dimension: nodes that share their quadrature against nodes taken one by one."""

import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from problems import STEP

ACTIVATIONS = [STEP, mf.activations.relu, mf.activations.softplus, mf.activations.erf]
DIMS = [(60, 260), (50, 50), (400, 90)]


def features(activation, dims, rows):
    return _core.ReducedFeatures(activation._core, has_a=False, has_b=True, dims=list(dims), nodes=rows)


def grid(dims, count=(11, 5)):
    """Norms of both parts, of two classes for the first one."""
    chi = [math.sqrt(d) + np.linspace(-3, 3, n) for d, n in zip(dims, count, strict=True)]
    first = np.concatenate([0.3 * chi[0], 1.7 * chi[0]])
    return np.array(list(itertools.product(first, chi[1])))


def one_by_one(activation, dims, rows, z, slopes):
    """The same nodes in sets without a structure that could be shared: no two have a norm in common."""
    k = z.shape[1]
    out = np.empty((len(z), len(rows), k) if slopes else (len(z), len(rows)))
    away = np.column_stack([np.linspace(50, 60, 12), np.linspace(50, 60, 12)])
    for q, row in enumerate(rows):
        core = features(activation, dims, np.vstack([row, away]))
        out[:, q] = (core.gradients if slopes else core.features)(z)[:, 0]
    return out


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=["step", "relu", "softplus", "erf"])
def test_shared_nodes_agree_with_nodes_one_by_one(activation, dims):
    rows = grid(dims)[::3]  # some nodes of the grid are missing
    rng = np.random.default_rng(2)
    z = np.column_stack([rng.uniform(-1, 1, 5), 10 ** rng.uniform(-2, 0.4, (5, 2))])
    z[0, 1], z[1, 2] = 0, 0
    shared = features(activation, dims, rows)
    for slopes in (False, True):
        want = one_by_one(activation, dims, rows, z, slopes)
        got = (shared.gradients if slopes else shared.features)(z)
        # Both rules are made for 2e-13 of features of size 10, their slopes in r for that times s of 30.
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=6e-11 if slopes else 2e-12)


def test_nodes_that_coincide_have_the_same_features():
    rows = np.tile([[7.0, 16.0], [8.0, 16.0], [7.0, 17.0]], (2, 1))
    values = features(STEP, (60, 260), rows).features(np.array([[0.2, 0.5, 0.7]]))[0]
    np.testing.assert_array_equal(values[:3], values[3:])
    assert len(set(values)) == 3


def test_at_both_radii_zero_slopes_are_one_sided():
    core = features(mf.activations.relu, (60, 260), np.array([[7.0, 16.0], [8.0, 15.0]]))
    (slopes,) = core.gradients(np.zeros((1, 3)))
    for i, d in enumerate((60, 260)):
        cone = _core.direction_moment(d, 0.0)
        np.testing.assert_allclose(slopes[:, 1 + i], cone * np.array([[7, 8], [16, 15]][i]), rtol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 7, 39, 40, 320, math.inf])
def test_values_alone_equal_values_with_slopes(d):
    rng = np.random.default_rng(4)
    z = np.column_stack([rng.uniform(-3, 3, 200), rng.uniform(0, 2, 200)])
    z[0] = [0.5, 0.0]  # on a knot
    row = [1.0] if d == math.inf else [math.sqrt(d)]
    alone = features(STEP, [d], np.array([row])).features(z)[:, 0]
    beside, _, _ = _core.Smoother(STEP._core, d).evaluate(z[:, 0], z[:, 1] * row[0])
    # Two tables of absolute error 1e-15, times R = 2 sqrt(d) and jumps of 10.
    np.testing.assert_allclose(alone, beside, rtol=1e-14, atol=1e-12)
