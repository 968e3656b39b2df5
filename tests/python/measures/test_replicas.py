"""Functions of a measure take several networks at once, as `mf.solve` returns replicas."""

import mfcore as mf
import numpy as np
import pytest

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=4, delta=0.5),
    network=mf.Network(mf.activations.relu, output="trained"),
    init=mf.init.Gaussian(0.5),
    ridge=0.1,
)
RUN = mf.solve(MODEL, mf.SGD(6, 0.01, replicas=3), horizon=0.1, rng=0)
X = np.random.default_rng(0).normal(size=(7, 4))
THETA = np.random.default_rng(1).normal(size=(2, 5))


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: mf.risk(MODEL, rows),
        lambda rows: mf.free_energy(MODEL, rows),
        lambda rows: mf.dissipation(MODEL, rows),
        lambda rows: mf.predict(MODEL, rows, X),
        lambda rows: mf.psi(MODEL, THETA, rows),
        lambda rows: mf.grad_psi(MODEL, THETA, measure=rows),
        lambda rows: mf.grad_psi(MODEL, rows, rows),
    ],
    ids=["risk", "free_energy", "dissipation", "predict", "psi", "grad_psi", "grad_psi of itself"],
)
def test_a_stack_of_networks_gives_the_stack_of_results(function):
    assert np.array_equal(function(RUN.final), np.stack([function(rows) for rows in RUN.final]))


def test_the_stack_of_results_is_written_where_it_is_asked_for():
    out = np.empty((3, 7))
    assert mf.predict(MODEL, RUN.final, X, out=out) is out
    assert np.array_equal(out, mf.predict(MODEL, RUN.final, X))
    with pytest.raises(ValueError, match=r"out must have shape \(3, 7\), got \(7,\)"):
        mf.predict(MODEL, RUN.final, X, out=np.empty(7))


def test_as_many_points_as_networks_are_wanted():
    with pytest.raises(ValueError, match="theta must have 3 replicas, as measure, got 2"):
        mf.psi(MODEL, RUN.final[:2], RUN.final)


def test_a_run_of_replicas_predicts_for_each():
    assert np.array_equal(mf.predict(RUN, X), mf.predict(MODEL, RUN.final, X))
