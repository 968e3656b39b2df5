"""Checkpoints: when they are written, and which files they may replace."""

import os
import threading
from itertools import pairwise

import mfcore as mf
import numpy as np
import pytest
from mfcore._base.archive import read_archive, write_archive
from mfcore.runs import _checkpoint, _run
from small_runs import METHOD, MODEL, OPTIONS, same, stopped


@pytest.fixture
def clock(monkeypatch):
    """A clock that runs fast: every look at it takes a second. It lists when checkpoints began and ended."""

    class Clock:
        now, cost, written = 0.0, 0.0, []

        def monotonic(self):
            self.now += 1.0
            return self.now

    fast, write = Clock(), _checkpoint.write_archive
    fast.written = []

    def watched(*arguments):
        begun = fast.now
        write(*arguments)
        fast.now += fast.cost
        fast.written.append((begun, fast.now))

    for module in (_checkpoint, _run):
        monkeypatch.setattr(module, "time", fast)
    monkeypatch.setattr(_checkpoint, "write_archive", watched)
    return fast


def test_checkpoints_are_written_however_close_the_save_points_are(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(_checkpoint, "SHARE", 0.0)
    mf.solve(MODEL, METHOD, horizon=10.0, save_at=401, rng=0, risk=False, checkpoint=tmp_path / "run")
    pauses = [begun - ended for (_, ended), (begun, _) in pairwise(clock.written)]
    assert len(pauses) > 50  # a save point takes three seconds on that clock
    assert max(pauses) <= _checkpoint.SECONDS + 5.0


def test_checkpoints_take_a_small_share_of_the_time(tmp_path, clock):
    clock.cost = 7.0
    mf.solve(MODEL, METHOD, horizon=10.0, save_at=401, rng=0, risk=False, checkpoint=tmp_path / "run")
    pauses = [begun - ended for (_, ended), (begun, _) in pairwise(clock.written)]
    assert len(pauses) > 3
    assert all(140.0 <= pause <= 20 * 8.0 + 15.0 for pause in pauses)  # 20 times what writing took, 7 to 8


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
