"""`mf.optimum` and `mf.certificate` on closed pairs."""

import mfcore as mf
import numpy as np
import pytest
from mfcore.reductions._of_laws import _with_pairs
from mfcore.reductions._pairs import pairs_of
from mfcore.stationary._fields import weighted_of
from mfcore.stationary._simplex import simplex_least_squares

RELU = mf.Network(mf.activations.relu)
MODEL = mf.Model(mf.data.Teacher(RELU, 3 * np.eye(2, 6)), RELU)
TEACHER = mf.Cloud([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
BOX = [(-4.0, 4.0), (-4.0, 4.0), (0.0, 4.0)]


def test_the_teacher_is_found_to_be_optimal():
    found = mf.certificate(MODEL, TEACHER)
    assert found.value <= 1e-14
    assert found.gap <= 1e-12
    assert found.gap + found.error >= found.value - found.lower_bound


def test_the_least_risk_of_a_teacher_is_zero():
    best = mf.optimum(MODEL, extent=BOX, tolerance=1e-3)
    assert best.risk <= best.gap + best.error <= 1e-3 + best.error
    assert best.risk == pytest.approx(mf.risk(MODEL, best.measure), abs=1e-12)


def test_a_certificate_bounds_what_is_left_to_gain():
    worse = mf.Cloud([[2.0, 0.5, 0.3], [0.2, 3.0, 0.0], [-1.0, 0.0, 1.0]])
    found = mf.certificate(MODEL, worse, extent=BOX)
    assert found.risk == pytest.approx(mf.risk(MODEL, worse), rel=1e-12)
    assert found.gap + found.error >= found.risk  # the least risk is 0


def test_weights_of_atoms_are_those_of_features():
    law = mf.data.MultiIndex(6, {(1, 0): 1.0, (0, 2): 0.4}, 2)
    model = mf.Model(law, mf.Network(mf.activations.erf))
    nodes, pairs = model.reduce(), _with_pairs(model, pairs_of(model, False))
    atoms = np.random.default_rng(0).uniform(0.3, 0.7, (5, 3))  # 32 nodes resolve them to 1e-9
    found = []
    for reduced in (nodes, pairs):
        fit = weighted_of(reduced, atoms)
        c = simplex_least_squares(fit.columns, fit.target, np.zeros(5))
        found.append(np.concatenate([c, [fit.half_risk(c)], fit.slopes(c).ravel()]))
    # The weights lose the condition of the least squares, which is the square of that of the columns.
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)


def test_with_noise_nodes_are_asked_for():
    with pytest.raises(ValueError, match="must have features at nodes"):
        mf.gibbs(MODEL.replace(temperature=0.1).reduce())
