"""What goes wrong in the first hour is answered with what to do."""

import math

import mfcore as mf
import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(100, 4))
SMALL = mf.Model(
    data=mf.data.IsotropicGaussians(d=4, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
)


def test_a_column_of_labels_is_answered_with_ravel():
    with pytest.raises(ValueError, match=r"y must have shape .* got \(100, 1\); y\.ravel\(\)"):
        mf.data.Dataset(X, X[:, :1])


def test_one_hot_labels_are_answered_with_scalar_outputs():
    with pytest.raises(ValueError, match=r"y must have shape \(100,\), got \(100, 3\): outputs .* share w"):
        mf.data.Dataset(X, X[:, :3])


@pytest.mark.parametrize(
    "method",
    [mf.SGD(10, 0.1), mf.GD(10, 0.1), mf.Particles(10), mf.Nonlinear(10)],
    ids=lambda m: type(m).__name__,
)
def test_neurons_at_infinite_d_are_answered_with_the_rungs_that_run(method):
    model = SMALL.replace(data=mf.data.IsotropicGaussians(d=math.inf, delta=0.5))
    with pytest.raises(ValueError, match=r"got .*d=inf.*mf\.PDE, mf\.Atoms and mf\.JKO"):
        mf.solve(model, method, horizon=1.0)


@pytest.mark.parametrize("method", [mf.PDE(), mf.Atoms(), mf.JKO(tau=0.1)], ids=lambda m: type(m).__name__)
def test_a_dataset_with_a_rung_of_the_limit_is_answered_with_what_runs(method):
    model = SMALL.replace(data=mf.data.Dataset(X, X[:, 0]))
    with pytest.raises(ValueError, match=r"data must have a symmetry.*at most 3 parameters.*mf\.Nonlinear"):
        mf.solve(model, method, horizon=1.0)


def test_what_the_message_for_datasets_names_does_run():
    model = SMALL.replace(data=mf.data.Dataset(X, X[:, 0]))
    for method in (mf.SGD(5, 0.1), mf.GD(5, 0.1), mf.Particles(5), mf.Nonlinear(5, mf.Particles(100))):
        assert mf.solve(model, method, horizon=0.2, rng=0).status == "completed"
    line = SMALL.replace(data=mf.data.Dataset(X[:, :2], X[:, 0]), init=mf.init.Gaussian(0.3))
    assert mf.solve(line, mf.Atoms(16), horizon=0.2).status == "completed"


def test_an_unknown_observable_of_a_run_is_answered_with_those_there_are():
    run = mf.solve(SMALL, mf.SGD(5, 0.1), horizon=1.0, rng=0)
    with pytest.raises(KeyError, match="no observable 'norm_maen'; did you mean 'norm_mean'"):
        run.observed["norm_maen"]
    with pytest.raises(KeyError, match="no observable 'xyz'; it has norm_mean, norm_std"):
        run.observed["xyz"]


def test_atoms_of_a_given_start_state_an_error_also_for_stiff_solvers():
    start = mf.Cloud([[1.0], [2.0]])
    run = mf.solve(SMALL, mf.Atoms(start=start, method="lsoda"), horizon=1.0, save_at=[0.5, 1.0])
    fine = mf.solve(SMALL, mf.Atoms(start=start, rtol=1e-12, atol=1e-14), horizon=1.0, save_at=[0.5, 1.0])
    assert (run.error > 0).all()
    assert (np.abs(run.risk - fine.risk) <= run.error).all()
