"""mf.solve when something goes wrong: Ctrl-C anywhere, users' functions that raise, disks that fail."""

from __future__ import annotations

import json
import warnings

import mfcore as mf
import numpy as np
import pytest
from problems import same

METHOD = mf.SGD(neurons=20, step=0.01)


def model_of(data=None):
    return mf.Model(
        data=data or mf.data.IsotropicGaussians(d=6, delta=0.5),
        network=mf.Network(mf.activations.tanh, output="trained"),
        init=mf.init.Gaussian(std=0.5),
    )


def raising(error, at):
    """A function of one argument that raises `error` at its call number `at`, once."""
    calls = []

    def function(theta):
        calls.append(theta)
        if len(calls) == at:
            raise error
        return theta[0, 0]

    return function


def test_ctrl_c_in_an_observer_returns_the_save_points_before(tmp_path):
    whole = mf.solve(model_of(), METHOD, horizon=1.0, save_at=5, rng=0, observe={"x": lambda v: v[0, 0]})
    observe = {"x": raising(KeyboardInterrupt, 3)}
    run = mf.solve(
        model_of(), METHOD, horizon=1.0, save_at=5, rng=0, observe=observe, checkpoint=tmp_path / "run"
    )
    assert run.status == "interrupted"
    assert run.t.tolist() == [0.0, 0.25]
    assert "stopped by Ctrl-C at t = 0.5 of 1" in run.message
    assert len(run.risk) == len(run.observed["x"]) == 2
    resumed = mf.resume(tmp_path / "run", observe=observe)
    assert resumed.status == "completed"
    assert same(resumed, whole)
    assert np.array_equal(resumed.observed["x"], whole.observed["x"])


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_ctrl_c_in_a_stream_leaves_all_replicas_at_one_step(tmp_path, threads):
    calls = []

    def source(n, rng):
        calls.append(n)
        if len(calls) == 7:
            raise KeyboardInterrupt
        X = rng.normal(size=(n, 4))
        return X, X[:, 0]

    model, method = model_of(mf.data.Stream(source, d=4)), mf.SGD(20, step=1e-4, replicas=3)
    options = {"horizon": 1.0, "save_at": 2, "rng": 0, "risk": False}
    run = mf.solve(model, method, threads=threads, checkpoint=tmp_path / "run", **options)
    assert run.status == "interrupted"
    with pytest.raises(ValueError, match="model must be passed again"):
        mf.resume(tmp_path / "run")
    resumed = mf.resume(tmp_path / "run", model=model, threads=threads)
    whole = mf.solve(model, method, **options)
    assert resumed.status == whole.status == "completed"
    assert np.array_equal(resumed.final, whole.final)


def test_an_error_of_an_observer_is_raised_with_the_state_in_the_checkpoint(tmp_path):
    whole = mf.solve(model_of(), METHOD, horizon=1.0, save_at=5, rng=0)
    observe = {"ratio": raising(ZeroDivisionError("by nothing"), 4)}
    with pytest.raises(ZeroDivisionError) as caught:
        mf.solve(
            model_of(), METHOD, horizon=1.0, save_at=5, rng=0, observe=observe, checkpoint=tmp_path / "run"
        )
    assert caught.value.__notes__ == ["This was observe['ratio'] at t = 0.75."]
    resumed = mf.resume(tmp_path / "run", observe=observe)
    assert same(resumed, whole)
    assert len(resumed.observed["ratio"]) == 5


def test_observers_must_return_numbers_in_arrays_of_one_shape():
    shapes = iter(range(10))

    def growing(theta):
        return np.zeros(next(shapes))

    for function, error, message in (
        (lambda theta: None, TypeError, r"observe\['x'\] must return numbers, got None"),
        (lambda theta: "high", TypeError, r"observe\['x'\] must return numbers, got 'high'"),
        (growing, ValueError, r"must return arrays of one shape, got \(1,\) at t = 0.02 after \(0,\)"),
    ):
        with pytest.raises(error, match=message):
            mf.solve(model_of(), METHOD, horizon=1.0, rng=0, observe={"x": function})


def test_a_checkpoint_that_cannot_be_written_at_the_start_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mf.solve(model_of(), METHOD, horizon=1.0, rng=0, checkpoint=tmp_path / "missing" / "run")


def test_a_disk_that_fills_up_is_one_warning_and_no_loss(tmp_path, monkeypatch):
    written = []

    def write(path, *_):
        written.append(path)
        if len(written) > 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("mfcore.runs._checkpoint.write_archive", write)
    monkeypatch.setattr("mfcore.runs._checkpoint.SECONDS", 1e-3)
    method = mf.SGD(neurons=200, step=1e-9)
    options = {"horizon": 1.0, "save_at": [0.0], "rng": 0, "max_seconds": 0.5, "checkpoint": tmp_path / "run"}
    with pytest.warns(RuntimeWarning, match=r"could not be written: .*No space left") as caught:
        run = mf.solve(model_of(), method, **options)
    assert len([w for w in caught if w.category is RuntimeWarning]) == 1
    assert len(written) > 2  # it was tried again
    assert run.status == "out of time"
    assert run.t.tolist() == [0.0]
    assert run.meta["steps"] > 0


def test_replicas_fewer_than_threads_are_resumed_to_the_same_bits(tmp_path):
    model = model_of(mf.data.IsotropicGaussians(d=40, delta=0.5)).replace(temperature=0.01)
    options = {"horizon": 0.3, "save_at": 3, "rng": 3, "threads": 8}
    method = mf.SGD(neurons=60, step=1e-5, replicas=2)
    part = mf.solve(model, method, max_seconds=0.1, checkpoint=tmp_path / "run", **options)
    assert part.status == "out of time"
    assert same(mf.resume(tmp_path / "run"), mf.solve(model, method, **options))


def test_checkpoints_hold_datasets_as_arrays(tmp_path):
    rng = np.random.default_rng(0)
    model = model_of(mf.data.Dataset(rng.normal(size=(500, 6)), rng.normal(size=500)))
    options = {"horizon": 3.0, "save_at": 4, "rng": 0}
    mf.solve(model, METHOD, max_seconds=0, checkpoint=tmp_path / "run", **options)
    with np.load(tmp_path / "run") as file:
        assert len(str(file["info"])) < 3000
        assert json.loads(str(file["info"]))["model"]["data"]["kind"] == "Dataset"
        assert any(np.array_equal(file[name], model.data.X) for name in file.files)
    resumed = mf.resume(tmp_path / "run")
    assert resumed.meta["model"] == model
    assert same(resumed, mf.solve(model, METHOD, **options))
    resumed.save(tmp_path / "trajectory")
    assert mf.load(tmp_path / "trajectory").meta["model"] == model


def test_damaged_files_are_refused(tmp_path):
    run = mf.solve(model_of(), METHOD, horizon=0.1, save_at=2, rng=0)
    run.save(tmp_path / "whole")
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:500])
    np.save(tmp_path / "other.npy", np.zeros(3))
    for name in ("half", "other.npy"):
        with pytest.raises(ValueError, match="path must be a file written by mfcore"):
            mf.load(tmp_path / name)
    with pytest.raises(ValueError, match="checkpoint must be a file written by solve"):
        mf.resume(tmp_path / "whole")


def test_held_out_risks_do_not_depend_on_how_the_samples_are_held(monkeypatch):
    options = {"horizon": 0.1, "save_at": 2, "rng": 0, "risk": mf.MonteCarlo(1001, rng=1)}
    at_once = mf.solve(model_of(), METHOD, **options)
    monkeypatch.setattr("mfcore.runs._observe._HELD_NUMBERS", 700)  # 100 samples
    in_parts = mf.solve(model_of(), METHOD, **options)
    # 1001 terms of size 1 in another order.
    np.testing.assert_allclose(in_parts.risk, at_once.risk, rtol=1e-13)
    np.testing.assert_allclose(in_parts.error, at_once.error, rtol=1e-12)


def test_a_risk_from_one_sample_has_no_error_estimate():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the target is even in x")
        run = mf.solve(
            model_of(), METHOD, horizon=0.1, save_at=2, rng=0, risk=mf.MonteCarlo(1, rng=1), threads=1
        )
    assert np.isinf(run.error).all()
    assert run.meta["threads"] == 1


@pytest.mark.parametrize(
    ("method", "horizon", "message"),
    [
        (mf.SGD(5, step=2.0), 1.0, r"step must be <= horizon = 1, got 2"),
        (mf.GD(5, step=2.0), 1.0, r"step must be <= horizon = 1, got 2"),
        (mf.SGD(5, step=1e-300), 1.0, r"step must be at least horizon / 2\^53 = 1.11022e-16, got 1e-300"),
    ],
)
def test_steps_must_fit_the_horizon(method, horizon, message):
    with pytest.raises(ValueError, match=message):
        mf.solve(model_of(), method, horizon=horizon)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"horizon": np.inf}, ValueError, "horizon must be finite and > 0, got inf"),
        ({"save_at": [0.0, np.nan]}, ValueError, r"save_at must be finite, got nan at \[1\]"),
        ({"threads": -1}, ValueError, "threads must be >= 1, got -1"),
        ({"threads": 10**9}, ValueError, "threads must be <= 4096, got 1000000000"),
        ({"rng": "x"}, TypeError, "rng must be None, an int"),
        ({"progress": 2}, TypeError, "progress must be True or False, got 2"),
        ({"method": mf.SGD}, TypeError, "method must be a method such as mf.SGD"),
        (
            {"method": mf.SGD(5, 0.1, schedule=lambda s: "fast")},
            ValueError,
            "schedule must return one",
        ),
        ({"method": mf.SGD(5, 0.1, schedule=lambda s: s[:3] + 1)}, ValueError, "schedule must return one"),
        ({"checkpoint": 3}, TypeError, "checkpoint must be a file name, got 3"),
    ],
)
def test_nonsense_names_argument_rule_and_value(options, error, message):
    with pytest.raises(error, match=message):
        mf.solve(model_of(), **{"method": METHOD, "horizon": 1.0, **options})


def test_a_start_beyond_the_range_of_float32_is_refused():
    model = model_of().replace(init=mf.init.Gaussian(std=1e200))
    with pytest.raises(ValueError, match="start must be finite in the precision of the run"):
        mf.solve(model, mf.SGD(5, step=0.01, precision="float32"), horizon=1.0)
