"""Runs of SGD whose neurons are handed out piece by piece: in memory once, and the same as from an array."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore.neurons import _sgd

FULL = mf.Network(mf.activations.tanh, output="trained", bias="trained")
LONG = 90_000  # of 52 entries: more than one piece, which is 2²¹ numbers


def model_of(d, init=None):
    law = mf.init.Product(a=mf.init.Normal(0.0, 1.0), b=mf.init.Constant(0.1), w=mf.init.Radial(1.0))
    return mf.Model(mf.data.IsotropicGaussians(d, 0.5), FULL, init or law)


def core_run(start, n, d, **options):
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    return _core.Sgd(FULL._core, [start], [sampler], [0], 0.01, neurons=n, threads=2, **options)


@pytest.mark.parametrize("single_precision", [False, True])
def test_neurons_handed_out_in_pieces_move_as_those_of_an_array(single_precision):
    n, d = LONG, 50
    rows = np.random.default_rng(0).normal(size=(n, d + 2))
    asked = []

    def hand_out(first, count):
        asked.append((first, count))
        return rows[first : first + count]

    runs = [core_run(start, n, d, single_precision=single_precision) for start in (rows, hand_out)]
    assert len(asked) > 1
    assert [first for first, _ in asked[1:]] == [first + count for first, count in asked[:-1]]
    for run in runs:
        run.advance(3)
    np.testing.assert_array_equal(runs[0].theta()[0], runs[1].theta()[0])


def test_a_run_that_diverges_in_its_first_blocks_begins_again_from_what_is_handed_out_again():
    n, d = 20, 3
    rows = np.random.default_rng(0).normal(size=(n, d + 2))
    sampler = mf.data.IsotropicGaussians(d, 0.5)._sampler
    network = mf.Network(mf.activations.polynomial([0, 0, 0, 1]), output="trained", bias="trained")
    ends = []
    for start in (rows, lambda first, count: rows[first : first + count]):
        run = _core.Sgd(network._core, [start], [sampler], [0], 0.5, neurons=n, threads=1)
        run.advance(10_000)
        assert run.diverged_at[0] >= 0
        ends.append((run.steps, run.diverged_at, run.theta()[0]))
    assert ends[0][:2] == ends[1][:2]
    np.testing.assert_array_equal(ends[0][2], ends[1][2])
    assert np.isfinite(ends[0][2]).all()


def test_a_function_that_hands_out_the_wrong_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="start must hand out as many rows as asked for"):
        core_run(lambda first, count: np.zeros((count - 1, 5)), 4, 3)
    with pytest.raises(ValueError, match="start must have 5 columns for this network and law, got 4"):
        core_run(lambda first, count: np.zeros((count, 4)), 4, 3)


def test_an_error_of_the_initial_law_comes_before_the_run():
    model = model_of(3, mf.init.Paired(mf.init.Gaussian(1.0)))
    with pytest.raises(ValueError, match="count must be even for neurons in pairs"):
        mf.solve(model, mf.SGD(7, step=0.1), horizon=1.0)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_run_predicts_what_its_neurons_do(precision):
    d = 20
    model = model_of(d)
    rung = mf.SGD(300, step=0.01, batch=2, replicas=2, precision=precision).begin(model, 1, 2)
    rung.advance(0.05, math.inf)  # in the midst of a block
    X = np.random.default_rng(1).normal(size=(70, d))
    predicted, theta = rung.predict(X), rung.measure()
    for f, rows in zip(predicted, theta, strict=True):
        # 300 terms of order 1 over 300; float32 keeps seven digits of each.
        tolerance = 1e-13 if precision == "float64" else 1e-5
        np.testing.assert_allclose(f, mf.predict(model, rows, X), rtol=0, atol=tolerance)


def test_a_run_copies_its_neurons_once(monkeypatch):
    copies = []
    measure = _sgd.SgdRung.measure
    monkeypatch.setattr(_sgd.SgdRung, "measure", lambda self: copies.append(1) or measure(self))
    run = mf.solve(model_of(4), mf.SGD(10, step=0.01), horizon=1.0, save_at=[], risk=False, rng=0)
    assert run.status == "completed"
    assert len(copies) == 1  # Trajectory.final
