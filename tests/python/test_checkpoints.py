"""Checkpoints: when they are written, which files they may replace, which runs may go on from them."""

import os
import threading
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore import _checkpoint
from mfcore._archive import read_archive, write_archive

METHOD = mf.SGD(neurons=20, step=0.01)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained"),
    init=mf.init.Gaussian(std=0.5),
)
OPTIONS = {"horizon": 1.0, "save_at": 5, "rng": 0}


def same(run, other):
    names = ("t", "risk", "error", "final")
    return all(np.array_equal(getattr(run, name), getattr(other, name)) for name in names)


def stopped(path, model=MODEL, method=METHOD, **options):
    """A run that is stopped at once, and leaves its checkpoint."""
    run = mf.solve(model, method, **{**OPTIONS, **options}, checkpoint=path, max_seconds=0)
    assert run.status == "out of time"
    return run


@pytest.mark.parametrize("count", [2, 400])
def test_checkpoints_are_written_however_close_the_save_points_are(tmp_path, monkeypatch, count):
    monkeypatch.setattr(_checkpoint, "SECONDS", 0.05)
    monkeypatch.setattr(_checkpoint, "SHARE", 0.0)
    ages, written = [], []
    write = _checkpoint.write_archive

    def watched(*arguments):
        now = time.monotonic()
        ages.append(now - written[-1] if written else 0.0)
        write(*arguments)
        written.append(now)

    monkeypatch.setattr(_checkpoint, "write_archive", watched)
    method = mf.SGD(neurons=20, step=1e-9)
    run = mf.solve(
        MODEL, method, horizon=1.0, save_at=np.linspace(0, 1e-2, count), rng=0, checkpoint=tmp_path / "run",
        max_seconds=1.0, risk=False,
    )  # fmt: skip
    assert run.status == "out of time"
    # 20 are due in that second; a crowded machine may give us a fifth of it.
    assert len(written) >= 4
    assert max(ages) < 1.0


def test_checkpoints_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "SECONDS", 0.0)
    spent = []
    write = _checkpoint.write_archive

    def slow(*arguments):
        begun = time.monotonic()
        write(*arguments)
        time.sleep(0.01)
        spent.append(time.monotonic() - begun)

    monkeypatch.setattr(_checkpoint, "write_archive", slow)
    begun = time.monotonic()
    run = mf.solve(
        MODEL, mf.SGD(neurons=20, step=1e-9), horizon=1.0, save_at=[0.0], rng=0, max_seconds=1.5,
        checkpoint=tmp_path / "run",
    )  # fmt: skip
    assert run.status == "out of time"
    assert len(spent) > 2
    # Beside the first and the last one each is followed by 20 times its own length: 1 / 21 of the time.
    assert sum(spent[1:-1]) < (time.monotonic() - begun) / 20


def test_a_file_that_is_there_is_refused_and_left_alone(tmp_path):
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("ten years")
    (tmp_path / "link").symlink_to(thesis)
    mf.solve(MODEL, METHOD, **OPTIONS).save(tmp_path / "result.npz")
    result = (tmp_path / "result.npz").read_bytes()
    for name in ("thesis.txt", "link", "result.npz"):
        with pytest.raises(ValueError, match=r"checkpoint must be a new file, got .*no checkpoint of mfcore"):
            mf.solve(MODEL, METHOD, **OPTIONS, checkpoint=tmp_path / name)
    assert thesis.read_text() == "ten years"
    assert (tmp_path / "result.npz").read_bytes() == result
    with pytest.raises(ValueError, match="checkpoint must be a file written by mfcore"):
        mf.resume(thesis)


def test_the_checkpoint_of_another_run_is_refused_with_what_to_do(tmp_path):
    stopped(tmp_path / "run")
    before = (tmp_path / "run").read_bytes()
    rule = (
        r"checkpoint must be a new file, got '.*', the checkpoint of a run max_seconds passed at t = 0 of 1: "
    )
    with pytest.raises(
        ValueError, match=rule + "mf.resume goes on with that; to give it up, remove the file"
    ):
        mf.solve(MODEL, METHOD, **OPTIONS, checkpoint=tmp_path / "run")
    assert (tmp_path / "run").read_bytes() == before


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_comes_in_during_a_run_is_left_alone(tmp_path, replaced):
    path = tmp_path / "run"

    def observer(_):
        if replaced:
            path.unlink(missing_ok=True)
        path.write_text("notes")
        return 0.0

    with pytest.warns(RuntimeWarning, match="another file has taken its place"):
        run = mf.solve(MODEL, METHOD, **OPTIONS, checkpoint=path, observe={"x": observer})
    assert run.status == "completed"
    assert path.read_text() == "notes"


def test_a_checkpoint_that_was_removed_is_written_again(tmp_path):
    path = tmp_path / "run"

    def observer(_):
        path.unlink()
        raise KeyboardInterrupt

    run = mf.solve(MODEL, METHOD, **OPTIONS, checkpoint=path, observe={"x": observer})
    assert run.status == "interrupted"
    assert same(mf.resume(path, observe={"x": lambda _: 0.0}), mf.solve(MODEL, METHOD, **OPTIONS))


def test_a_run_that_was_taken_over_leaves_the_file_to_the_other(tmp_path):
    path = tmp_path / "run"
    taken = []

    def observer(_):
        if not taken:
            taken.append(mf.resume(path, observe={"x": lambda _: 0.0}, max_seconds=0))
        return 0.0

    with pytest.warns(RuntimeWarning, match="another file has taken its place"):
        run = mf.solve(MODEL, METHOD, **OPTIONS, checkpoint=path, observe={"x": observer})
    other = mf.resume(path, observe={"x": lambda _: 0.0})
    assert run.status == other.status == "completed"
    assert same(run, other)


def test_of_many_runs_with_one_checkpoint_one_has_it(tmp_path):
    ended, refused = [], []
    begin = threading.Barrier(8)

    def run(seed):
        begin.wait()
        try:
            ended.append(stopped(tmp_path / "run", rng=seed))
        except (ValueError, FileExistsError) as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ended), len(refused)) == (1, 7)
    assert mf.resume(tmp_path / "run").meta["seed"] == ended[0].meta["seed"]
    assert not list(tmp_path.iterdir())


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
    "method", [METHOD, mf.GD(20, 0.01), mf.Particles(20), mf.SGD(20, step=0.01, replicas=2)]
)
def test_a_later_horizon_gives_the_bits_of_a_run_that_had_it_from_the_start(tmp_path, method):
    times = np.linspace(0, 2, 9)
    stopped(tmp_path / "run", method=method, save_at=times[:5], keep="all")
    run = mf.resume(tmp_path / "run", horizon=2.0, save_at=times[5:])
    whole = mf.solve(MODEL, method, horizon=2.0, save_at=times, keep="all", rng=0)
    assert same(run, whole)
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
            context.setattr(f"mfcore.{module}.build", lambda: "an old one")
        stopped(tmp_path / "run")
    mf.resume(tmp_path / "run", allow_other_build=True, max_seconds=0)
    run = mf.resume(tmp_path / "run")
    assert run.meta["builds"] == ["an old one", _checkpoint.build()]


def test_a_run_that_has_ended_by_itself_leaves_no_checkpoint(tmp_path):
    runs = [
        mf.solve(MODEL, mf.GD(20, 0.1, tolerance=1e9), **OPTIONS, checkpoint=tmp_path / "run"),
        mf.solve(
            MODEL.replace(network=mf.Network(mf.activations.relu, output="trained")),
            mf.SGD(20, step=100.0),
            horizon=1e6,
            rng=0,
            checkpoint=tmp_path / "run",
        ),
    ]
    assert [run.status for run in runs] == ["stationary", "diverged"]
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_stays_where_it_was_though_the_program_moves(tmp_path, monkeypatch):
    def move(_):
        os.chdir(tmp_path / "elsewhere")
        return 0.0

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    mf.solve(MODEL, METHOD, **OPTIONS, checkpoint="run", observe={"x": move})
    assert [file.name for file in tmp_path.rglob("*")] == ["elsewhere"]


def test_a_checkpoint_says_what_it_is(tmp_path):
    stopped(tmp_path / "run")
    with np.load(tmp_path / "run", allow_pickle=False) as file:
        assert file.files[0] == "info"
    arrays, info = read_archive(tmp_path / "run", "plan")
    assert info["build"] == _checkpoint.build()
    assert info["described"]["model.data.d"] == 6
    write_archive(tmp_path / "other", arrays, {**info, "model": 3})
    with pytest.raises(
        ValueError, match=r"checkpoint must be a file written by mfcore, got .*: model must be"
    ):
        mf.resume(tmp_path / "other")
