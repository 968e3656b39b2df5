"""A function of the run so far ends a run, on every rung, and the run can go on from there."""

import _thread

import mfcore as mf
import numpy as np
import pytest
from problems import isotropic
from small_runs import METHOD, MODEL, OPTIONS, same

METHODS = [
    METHOD,
    mf.SGD(20, step=0.01, replicas=2),
    mf.LayerWise(20, step=0.01),
    mf.GD(20, 0.01),
    mf.Particles(20),
    mf.Particles(20, method="lsoda"),
    mf.Nonlinear(20, driver=mf.PDE(60)),
    mf.PDE(60),
    mf.Atoms(30),
    mf.JKO(0.05, count=15),
    mf.Linearized(20, expectation=mf.MonteCarlo(100, rng=0)),
]


def at(t):
    """A function that ends a run at time t."""
    return lambda run: run.t[-1] >= t


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_stopped_run_has_the_bits_of_the_whole_one_and_resumes_to_them(tmp_path, method):
    model = isotropic(d=6, activation=mf.activations.relu)
    if isinstance(method, mf.LayerWise | mf.Linearized):
        model = MODEL
    whole = mf.solve(model, method, **OPTIONS)
    file = tmp_path / "run"
    part = mf.solve(model, method, **OPTIONS, stop=at(0.4), checkpoint=file)
    assert (part.status, part.message) == ("stopped", "stop was met at t = 0.5 of 1")
    assert part.t.tolist() == whole.t[:3].tolist()
    assert part.meta["t"] == whole.t[2]
    assert np.array_equal(part.risk, whole.risk[:3])
    further = mf.resume(file, stop=at(0.7))
    assert further.status == "stopped"
    assert further.t[-1] == 0.75
    run = mf.resume(file)
    assert run.status == "completed"
    assert np.array_equal(run.risk, whole.risk)
    assert not isinstance(run.final, np.ndarray) or same(run, whole)


def test_the_function_is_given_the_run_so_far():
    seen = []

    def stop(run):
        seen.append(run)
        return False

    whole = mf.solve(
        MODEL, METHOD, **OPTIONS, stop=stop, keep="all", observe={"a": lambda theta: theta[:, 0]}
    )
    for k, run in enumerate(seen, start=1):
        assert run.status == "running"
        assert run.meta["t"] == run.t[-1] == whole.t[k - 1]
        for name in ("t", "risk", "error"):
            assert np.array_equal(getattr(run, name), getattr(whole, name)[:k])
        assert all(np.array_equal(run.observed[name], whole.observed[name][:k]) for name in whole.observed)
        assert np.array_equal(run.final, whole.kept[float(whole.t[k - 1])])
    assert len(seen) == len(whole.t)
    assert whole.status == "completed"


def test_a_run_may_be_stopped_at_its_first_and_at_its_last_save_point(tmp_path):
    first = mf.solve(MODEL, METHOD, **OPTIONS, stop=lambda run: True, checkpoint=tmp_path / "run")
    assert (first.status, first.t.tolist()) == ("stopped", [0.0])
    last = mf.solve(MODEL, METHOD, **OPTIONS, stop=at(1.0))
    assert (last.status, last.t[-1]) == ("stopped", 1.0)
    assert same(mf.resume(tmp_path / "run"), mf.solve(MODEL, METHOD, **OPTIONS))


def test_a_run_of_many_save_points_may_be_looked_at_at_each():
    run = mf.solve(MODEL, METHOD, horizon=1.0, save_at=101, rng=0, stop=lambda run: len(run.t) == 90)
    assert len(run.t) == 90
    assert len(run.observed["norm_mean"]) == 90
    assert same(run, mf.solve(MODEL, METHOD, horizon=run.t[-1], save_at=run.t, rng=0))


def test_an_error_in_the_function_keeps_what_was_computed_and_it_is_asked_again(tmp_path):
    def broken(run):
        if run.t[-1] == 0.5:
            raise RuntimeError("mine")
        return False

    with pytest.raises(RuntimeError, match="mine") as caught:
        mf.solve(MODEL, METHOD, **OPTIONS, stop=broken, checkpoint=tmp_path / "run")
    assert caught.value.__notes__ == ["This was stop at t = 0.5."]
    run = mf.resume(tmp_path / "run", stop=lambda run: run.t[-1] == 0.5)
    assert (run.status, run.t[-1]) == ("stopped", 0.5)
    assert same(mf.resume(tmp_path / "run"), mf.solve(MODEL, METHOD, **OPTIONS))


def test_ctrl_c_in_the_function_leaves_its_question_open(tmp_path):
    def interrupted(run):
        if run.t[-1] == 0.5:
            _thread.interrupt_main()
        return False

    part = mf.solve(MODEL, METHOD, **OPTIONS, stop=interrupted, checkpoint=tmp_path / "run")
    assert part.status == "interrupted"
    assert part.t[-1] == 0.5
    assert mf.resume(tmp_path / "run", stop=at(0.5)).meta["t"] == 0.5


def test_a_diverged_run_is_not_stopped():
    run = mf.solve(
        MODEL,
        mf.GD(20, 1e4),
        horizon=1e5,
        save_at=11,
        rng=0,
        stop=lambda run: run.risk[-1] > run.risk[0] * 1e9,
    )
    assert run.status == "diverged"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stop": 1e-3}, TypeError, r"stop must be a function of the trajectory so far, .*, got 0.001"),
        ({"stop": at(1), "save_at": []}, ValueError, "save_at must have times at which stop is asked"),
        ({"stop": lambda run: None}, TypeError, "stop must return True or False, got None at t = 0"),
        ({"stop": lambda run: run.t[-1]}, TypeError, "stop must return True or False, got 0.0 at t = 0"),
        (
            {"stop": lambda run: run.risk[-1] < 1, "method": mf.SGD(20, 0.01, replicas=3)},
            TypeError,
            r"stop must return one answer, got an array of shape \(3,\) at t = 0; for several replicas",
        ),
    ],
)
def test_what_is_no_answer_is_refused_in_words(options, error, message):
    method = options.pop("method", METHOD)
    with pytest.raises(error, match=message):
        mf.solve(MODEL, method, **{**OPTIONS, **options})


def test_answers_of_numpy_are_taken():
    for answer in (np.True_, np.array(True)):
        assert mf.solve(MODEL, METHOD, **OPTIONS, stop=lambda run, a=answer: a).status == "stopped"


def test_replicas_stop_together():
    method = mf.SGD(20, 0.01, replicas=3)
    run = mf.solve(MODEL, method, **OPTIONS, stop=lambda run: (run.t[-1] >= 0.5) & (run.risk[-1] > 0).all())
    assert run.t[-1] == 0.5
    assert run.final.shape == (3, 20, 7)
