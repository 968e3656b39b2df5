"""Files of runs: which files they may replace, what failures to write say, how a file describes its run."""

import contextlib
import os

import mfcore as mf
import pytest
from mfcore._base.archive import read_archive, write_archive
from problems import same

METHOD = mf.SGD(neurons=20, step=0.01)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained"),
    init=mf.init.Gaussian(std=0.5),
)


def failing(error):
    """A function that raises `error`."""

    def function(*_, **__):
        raise error

    return function


def raising(error):
    """An observer that raises `error` at its second call."""
    calls = iter([None, error])

    def function(_):
        if (now := next(calls)) is not None:
            raise now
        return 0.0

    return function


def test_a_checkpoint_is_checked_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(mf.SGD, "begin", lambda *_: pytest.fail("it started"))
    os.mkfifo(tmp_path / "pipe")
    for path, error, rule in (
        (tmp_path / "missing" / "run", FileNotFoundError, "in a folder that exists"),
        (tmp_path, ValueError, "a new or a regular file"),
        (tmp_path / "pipe", ValueError, "a new or a regular file"),
    ):
        with pytest.raises(error, match=f"checkpoint must be {rule}, got '{path}'"):
            mf.solve(MODEL, METHOD, horizon=1.0, rng=0, checkpoint=path)
    with monkeypatch.context() as context:
        context.setattr("tempfile.TemporaryFile", failing(PermissionError(13, "Permission denied")))
        with pytest.raises(PermissionError, match=r"checkpoint must be in a folder that can be written to"):
            mf.solve(MODEL, METHOD, horizon=1.0, rng=0, checkpoint=tmp_path / "run")
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_a_checkpoint_says_how_its_run_ended(tmp_path):
    options = {"horizon": 1.0, "save_at": 5, "rng": 0, "checkpoint": tmp_path / "run"}
    for change, status, message in (
        ({"max_seconds": 0}, "out of time", "max_seconds passed at t = 0 of 1"),
        (
            {"observe": {"x": raising(KeyboardInterrupt)}},
            "interrupted",
            "stopped by Ctrl-C at t = 0.25 of 1",
        ),
        ({"observe": {"x": raising(ZeroDivisionError)}}, "failed", "stopped by an error at t = 0.25 of 1"),
    ):
        with contextlib.suppress(ZeroDivisionError):
            mf.solve(MODEL, METHOD, **options, **change)
        stored = read_archive(tmp_path / "run", "plan")[1]["run"]
        assert (stored["status"], stored["message"]) == (status, message)
        (tmp_path / "run").unlink()


def test_a_linked_checkpoint_is_kept_where_the_link_leads(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    options = {"horizon": 1.0, "save_at": 5, "rng": 0}
    mf.solve(MODEL, METHOD, checkpoint=tmp_path / "run", max_seconds=0, **options)
    assert (tmp_path / "disk" / "run").is_file()
    assert same(mf.resume(tmp_path / "run"), mf.solve(MODEL, METHOD, **options))
    assert (tmp_path / "run").is_symlink()
    assert not list((tmp_path / "disk").iterdir())


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    run = mf.solve(MODEL, METHOD, horizon=0.1, save_at=2, rng=0)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for write in (run.save, lambda path: mf.save_config(run.meta["model"], path)):
        for name in ("pipe", "link", "."):
            with pytest.raises(ValueError, match="path must be a new or a regular file, got"):
                write(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "pipe"]


def test_writing_to_a_link_replaces_its_target(tmp_path):
    run = mf.solve(MODEL, METHOD, horizon=0.1, save_at=2, rng=0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    (tmp_path / "link").symlink_to("folder/old")
    for write, read in (
        (run.save, lambda path: mf.load(path).meta["model"]),
        (lambda path: mf.save_config(run.meta["model"], path), mf.load_config),
    ):
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert read(tmp_path / "folder" / "old") == run.meta["model"]
    assert len(list(tmp_path.rglob("*"))) == 3  # no partial file is left


def test_a_failure_to_write_names_the_file(tmp_path, monkeypatch):
    run = mf.solve(MODEL, METHOD, horizon=0.1, save_at=2, rng=0)
    monkeypatch.setattr("os.fsync", failing(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/run.npz'"):
        run.save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_kind_is_named_with_what_reads_it(tmp_path):
    run = mf.solve(MODEL, METHOD, horizon=0.1, save_at=2, rng=0, checkpoint=tmp_path / "part", max_seconds=0)
    run.save(tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"written by Trajectory.save, got '.*', a checkpoint: mf.resume reads it"
    ):
        mf.load(tmp_path / "part")
    write_archive(tmp_path / "ladder", {}, {"ladder": {}})
    with pytest.raises(ValueError, match=r"got '.*', a ladder: Ladder.load reads it"):
        mf.load(tmp_path / "ladder")
    with pytest.raises(ValueError, match=r"checkpoint must be .*, got '.*', a trajectory: mf.load reads it"):
        mf.resume(tmp_path / "run")


def test_names_that_no_file_can_have_are_refused():
    run = mf.solve(MODEL, METHOD, horizon=0.1, save_at=2, rng=0)
    for use in (
        run.save, mf.load, mf.load_config, lambda path: mf.save_config(MODEL, path),
        lambda path: mf.solve(MODEL, METHOD, horizon=0.1, checkpoint=path), mf.resume,
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be a file name without null characters, got 'a\\x00b'"):
            use("a\0b")
        with pytest.raises(TypeError, match="must be a file name, got 3"):
            use(3)
