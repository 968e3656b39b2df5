"""Which runs may go on from a checkpoint: the same one, with a later horizon, on the same build."""

import mfcore as mf
import numpy as np
import pytest
from mfcore.runs import _checkpoint
from small_runs import METHOD, MODEL, OPTIONS, same, stopped


@pytest.mark.parametrize(
    ("given", "difference"),
    [
        ({"method": mf.SGD(neurons=20, step=0.02)}, "method.step: 0.01 there, 0.02 given"),
        ({"method": mf.SGD(neurons=21, step=0.01)}, "method.neurons: 20 there, 21 given"),
        ({"method": mf.SGD(neurons=20, step=0.01, batch=2)}, "method.batch: 1 there, 2 given"),
        ({"method": mf.SGD(neurons=20, step=0.01, precision="float32")}, "method.precision: 'float64' there"),
        ({"method": mf.GD(neurons=20, step=0.01)}, "method.kind: 'SGD' there, 'GD' given"),
        ({"method": mf.Particles(neurons=20)}, "method.kind: 'SGD' there, 'Particles' given"),
        ({"method": mf.PDE()}, "method.kind: 'SGD' there, 'PDE' given"),
        (
            {"method": mf.SGD(neurons=20, step=0.01, schedule=np.ones_like)},
            "method.schedule: nothing there, 'a Python object' given",
        ),
        ({"model": MODEL.replace(ridge=0.1)}, "model.ridge: 0.0 there, 0.1 given"),
        ({"model": MODEL.replace(rates={"a": 2.0})}, "model.rates.a: nothing there, 2.0 given"),
        (
            {"model": MODEL.replace(data=mf.data.IsotropicGaussians(d=6, delta=0.4))},
            "model.data.delta: 0.5 there, 0.4 given",
        ),
    ],
)
def test_another_model_or_method_is_refused_with_the_differences(tmp_path, given, difference):
    stopped(tmp_path / "run")
    before = (tmp_path / "run").read_bytes()
    name = next(iter(given))
    with pytest.raises(
        ValueError, match=f"{name} must be what the checkpoint .* was begun with; .*{difference}"
    ):
        mf.resume(tmp_path / "run", **given)
    assert (tmp_path / "run").read_bytes() == before
    assert mf.resume(tmp_path / "run", model=MODEL, method=METHOD).status == "completed"


@pytest.mark.parametrize("given", [mf.SGD, "SGD", 3, MODEL])
def test_what_is_no_method_is_refused_by_name(tmp_path, given):
    stopped(tmp_path / "run")
    with pytest.raises(TypeError, match=r"method must be a method such as mf.SGD\(…\), got"):
        mf.resume(tmp_path / "run", method=given)


def test_data_are_compared_by_their_bits(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(2, 30, 6)), np.arange(30.0)
    models = [MODEL.replace(data=mf.data.Dataset(x, y)) for x in X]
    stopped(tmp_path / "run", models[0])
    with pytest.raises(ValueError, match=r"model.data.X: 'numbers of shape \(30, 6\), SHA-256 .* there"):
        mf.resume(tmp_path / "run", model=models[1])
    assert mf.resume(tmp_path / "run", model=models[0]).status == "completed"


def test_beside_functions_everything_is_compared(tmp_path):
    def source(n, rng):
        X = rng.normal(size=(n, 4))
        return X, X[:, 0]

    model = MODEL.replace(data=mf.data.Stream(source, d=4))
    method = mf.SGD(neurons=20, step=0.01, schedule=np.ones_like)
    stopped(tmp_path / "run", model, method, risk=False)
    for given, difference in (
        ({"model": model.replace(ridge=0.5), "method": method}, "model.ridge: 0.0 there, 0.5 given"),
        ({"model": model, "method": METHOD}, "method.schedule: 'a Python object' there, nothing given"),
        (
            {
                "model": model.replace(data=mf.data.Stream(lambda n, rng: source(n, rng), d=5)),
                "method": method,
            },
            "model.data.d: 4 there, 5 given",
        ),
    ):
        with pytest.raises(ValueError, match=difference):
            mf.resume(tmp_path / "run", **given)
    other = model.replace(
        data=mf.data.Stream(lambda n, rng: source(n, rng), d=4)
    )  # the same, for all we know
    run = mf.resume(tmp_path / "run", model=other, method=method)
    assert same(run, mf.solve(model, method, **OPTIONS, risk=False))


def test_observers_are_those_of_the_run(tmp_path):
    stopped(tmp_path / "run")
    with pytest.raises(
        ValueError, match="observe must have the functions of the run, got x for a run without"
    ):
        mf.resume(tmp_path / "run", observe={"x": np.mean})
    with pytest.raises(ValueError, match="observe must have printable names"):
        mf.solve(MODEL, METHOD, **OPTIONS, observe={"a\0b": np.mean})


@pytest.mark.parametrize(
    "method",
    [
        METHOD,
        mf.SGD(20, step=0.01, replicas=2),
        mf.GD(20, 0.01),
        mf.Particles(20),
        mf.Particles(20, method="lsoda"),
        mf.Nonlinear(20, driver=mf.PDE(60)),
        mf.PDE(60),
        mf.Atoms(30),
        mf.JKO(0.05, count=15),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_later_horizon_gives_the_bits_of_a_run_that_had_it_from_the_start(tmp_path, method):
    model = MODEL.replace(network=mf.Network(mf.activations.relu))  # one coordinate, for the limit
    times = np.linspace(0, 2, 9)
    stopped(tmp_path / "run", model, method, save_at=times[:5], keep="all")
    run = mf.resume(tmp_path / "run", horizon=2.0, save_at=times[5:])
    whole = mf.solve(model, method, horizon=2.0, save_at=times, keep="all", rng=0)
    for name in ("t", "risk", "error"):
        assert np.array_equal(getattr(run, name), getattr(whole, name))
    for one, other in zip([run.final, *run.kept.values()], [whole.final, *whole.kept.values()], strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
    assert list(run.kept) == list(whole.kept) == times.tolist()
    assert run.meta["horizon"] == 2.0


def test_a_later_horizon_is_kept_and_its_save_points_follow_the_old_ones(tmp_path):
    stopped(tmp_path / "run")
    part = mf.resume(tmp_path / "run", horizon=3.0, save_at=3, max_seconds=0)
    assert part.status == "out of time"
    assert mf.resume(tmp_path / "run").t.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0]
    stopped(tmp_path / "run")
    for given, message in (
        ({"horizon": 1.0}, r"horizon must be > 1, got 1.0"),
        ({"horizon": 0.5}, r"horizon must be > 1, got 0.5"),
        ({"horizon": 2.0, "save_at": [1.0, 2.0]}, r"save_at must be > 1, the horizon so far, got 1"),
        ({"save_at": 3}, "save_at must come with a later horizon"),
    ):
        with pytest.raises(ValueError, match=message):
            mf.resume(tmp_path / "run", **given)


def test_another_build_is_refused_unless_it_is_allowed(tmp_path, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(_checkpoint, "build", lambda: "0.0.9, v2 (128 bits), gcc 1.0")
        stopped(tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"checkpoint must come from this build .* from 0.0.9, v2 .*allow_other_build"
    ):
        mf.resume(tmp_path / "run")
    run = mf.resume(tmp_path / "run", allow_other_build=True)
    assert same(run, mf.solve(MODEL, METHOD, **OPTIONS))


def test_a_run_says_which_builds_it_comes_from(tmp_path, monkeypatch):
    with monkeypatch.context() as context:
        for module in ("_checkpoint", "_run"):
            context.setattr(f"mfcore.runs.{module}.build", lambda: "an old one")
        stopped(tmp_path / "run")
    mf.resume(tmp_path / "run", allow_other_build=True, max_seconds=0)
    run = mf.resume(tmp_path / "run")
    assert run.meta["builds"] == ["an old one", _checkpoint.build()]
