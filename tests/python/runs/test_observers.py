"""Observers see one network at a time, and a held-out set is measured on every rung."""

import mfcore as mf
import numpy as np
import pytest

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
)
TEST = MODEL.data.draw(200, rng=5)


def test_an_observer_gets_one_network_at_a_time_and_its_results_are_stacked():
    shapes = []

    def largest(theta):
        shapes.append(theta.shape)
        return np.abs(theta).max(axis=0)

    run = mf.solve(
        MODEL, mf.SGD(5, 0.1, replicas=3), horizon=0.2, save_at=2, rng=0, observe={"largest": largest}
    )
    assert set(shapes) == {(5, 6)}
    assert run.observed["largest"].shape == (2, 3, 6)
    assert np.array_equal(run.observed["largest"][-1], np.abs(run.final).max(axis=1))


def test_functions_of_measures_are_observers_for_any_number_of_replicas():
    observe = {
        "f": lambda theta: mf.predict(MODEL, theta, TEST[0][:4]),
        "R": lambda theta: mf.risk(MODEL, theta),
    }
    for replicas, lead in ((1, (2,)), (3, (2, 3))):
        run = mf.solve(
            MODEL, mf.SGD(5, 0.1, replicas=replicas), horizon=0.2, save_at=2, rng=0, observe=observe
        )
        assert run.observed["f"].shape == (*lead, 4)
        assert run.observed["R"] == pytest.approx(run.risk, rel=1e-12)


@pytest.mark.parametrize("replicas", [1, 3])
def test_an_observer_that_asks_gets_all_replicas_at_once(replicas):
    method = mf.SGD(5, 0.1, replicas=replicas)
    observe = {"shape": mf.all_replicas(lambda theta: theta.shape)}
    run = mf.solve(MODEL, method, horizon=0.2, save_at=[0.2], rng=0, observe=observe)
    assert run.observed["shape"].tolist() == [[replicas, 5, 6]]


@pytest.mark.parametrize(
    "method",
    [
        mf.SGD(9, 0.01),
        mf.SGD(9, 0.01, replicas=2),
        mf.GD(9, 0.1),
        mf.Particles(9),
        mf.Nonlinear(9),
        mf.PDE(40),
        mf.Atoms(),
        mf.JKO(0.1, count=20),
    ],
    ids=repr,
)
def test_the_risk_on_a_held_out_set_is_recorded_on_every_rung(method):
    X, y = TEST
    run = mf.solve(MODEL, method, horizon=0.2, save_at=3, rng=0, test=(X, y))
    f = mf.predict(run, X)
    assert run.observed["test_risk"].shape == run.risk.shape
    assert run.observed["test_risk"][-1] == pytest.approx(((y - f) ** 2).mean(axis=-1), rel=1e-12)


def test_a_held_out_set_may_be_a_dataset_and_is_remembered_by_checkpoints(tmp_path):
    data, file = mf.data.Dataset(*TEST), tmp_path / "run.npz"
    whole = mf.solve(MODEL, mf.SGD(9, 0.01), horizon=0.2, rng=0, test=data)
    mf.solve(MODEL, mf.SGD(9, 0.01), horizon=0.2, rng=0, test=data, checkpoint=file, max_seconds=0)
    run = mf.resume(file)
    assert np.array_equal(run.observed["test_risk"], whole.observed["test_risk"])


def test_held_out_sets_are_checked():
    for test, error in (
        ((TEST[0], TEST[1][:, None]), r"test y must have shape"),
        ((TEST[0][:, :3], TEST[1]), r"X must have shape \(N, 6\)"),
        ((TEST[0], TEST[1][:3]), "test y must have one label for each of the 200 rows"),
    ):
        with pytest.raises(ValueError, match=error):
            mf.solve(MODEL, mf.SGD(5, 0.1), horizon=1.0, test=test)
    with pytest.raises(TypeError, match=r"test must be a pair \(X, y\)"):
        mf.solve(MODEL, mf.SGD(5, 0.1), horizon=1.0, test=TEST[0])
    with pytest.raises(ValueError, match="must not use names that mfcore records itself, got 'test_risk'"):
        mf.solve(MODEL, mf.SGD(5, 0.1), horizon=1.0, observe={"test_risk": len})
