"""Files that mfcore run and mfcore show write: when they replace others, and what full disks leave."""

import errno
import os
import re
import sys
from pathlib import Path

import mfcore as mf
import pytest
from command_line import run
from mfcore.runs._trajectory import write_archive
from problems import same


def test_files_are_overwritten_by_force_only_and_that_is_known_before_the_run(folder, capsys, monkeypatch):
    Path("small.npz").write_text("precious")
    with monkeypatch.context() as context:
        context.setattr("mfcore.cli._run.solve", lambda **_: pytest.fail("it ran"))
        for out in ("small.npz", "nowhere/small.npz", "."):
            assert run(capsys, "run", "small.toml", "--out", out)[0] == 2
    assert Path("small.npz").read_text() == "precious"
    assert run(capsys, "run", "small.toml", "--force")[0] == 0
    assert mf.load("small.npz").status == "completed"
    Path("risk.png").write_text("precious")
    code, _, err = run(capsys, "show", "small.npz", "--plot", "risk.png")
    assert (code, err) == (
        2,
        "mfcore: error: --plot must be a new file, got 'risk.png': it exists; --force overwrites it\n",
    )
    assert Path("risk.png").read_text() == "precious"


def test_what_cannot_be_written_is_refused_before_the_run(folder, capsys, monkeypatch):
    monkeypatch.setattr(mf.SGD, "begin", lambda *_: pytest.fail("it started"))
    os.mkfifo("pipe")
    for arguments, message in (
        (
            ["--out", "pipe", "--force"],
            "--out must be a new or a regular file, got 'pipe': not a regular file",
        ),
        (["--out", "nowhere/x.npz"], "--out must be in a folder that exists, got 'nowhere/x.npz'"),
        (["--set", "checkpoint=."], "checkpoint must be a new or a regular file, got '.': a folder"),
        (["--set", "checkpoint=nowhere/x"], "checkpoint must be in a folder that exists, got 'nowhere/x'"),
    ):
        code, out, err = run(capsys, "run", "small.toml", *arguments)
        assert (code != 0, out, err) == (True, "", f"mfcore: error: {message}\n")


def test_a_result_that_the_disk_has_no_room_for_is_kept_elsewhere(folder, capsys, monkeypatch):
    (folder / "spare").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "spare"))
    failures = [OSError(errno.ENOSPC, "No space left on device")] * 2

    def write(path, *rest):
        if failures:
            raise failures.pop()
        write_archive(path, *rest)

    monkeypatch.setattr("mfcore.runs._trajectory.write_archive", write)
    code, out, err = run(capsys, "run", "small.toml")
    assert code == 1
    assert out.startswith("completed: reached t = 1\n")
    assert out.endswith("\nnot saved\n")
    assert re.fullmatch(
        r"mfcore: error: small.npz could not be written: No space left on device; nor could [^\n]*\n", err
    )
    failures.append(OSError(errno.ENOSPC, "No space left on device"))
    code, out, err = run(capsys, "run", "small.toml")
    line = (
        r"mfcore: error: small.npz could not be written: No space left on device; the result is now in (.*)\n"
    )
    saved = re.fullmatch(line, err)[1]
    assert code == 1
    assert out.endswith(f"\nsaved in {saved}\n")
    assert Path(saved).is_relative_to(folder / "spare")
    assert same(mf.load(saved), mf.solve(**mf.load_config("small.toml")))
    assert not Path("small.npz").exists()


def test_a_run_that_diverges_is_saved_and_has_failed(folder, capsys):
    # Three neurons, a step far beyond stability, which for ReLU and d = 6 is below 1.
    code, out, err = run(capsys, "run", "small.toml", "--set", "method.step=50.0", "--set", "horizon=1e5")
    assert code == 1
    assert out.startswith("diverged: ")
    assert err.startswith("mfcore: diverged: the ")  # risk is beyond its bound, or prediction not finite
    assert err.endswith("saved in small.npz\n")
    assert mf.load("small.npz").status == "diverged"


def test_a_checkpoint_is_resumed_when_asked_and_never_lost_by_accident(folder, capsys):
    part = ["run", "small.toml", "--set", "checkpoint=part.npz"]
    assert run(capsys, *part, "--resume")[::2] == (
        2,
        "mfcore: error: --resume needs the checkpoint of an unfinished run; 'part.npz' does not exist\n",
    )
    code, out, err = run(capsys, *part, "--set", "max_seconds=0")
    assert code == 124  # a script can tell that there is more to do
    assert err.startswith("mfcore: out of time: max_seconds passed at t = 0 of ")
    assert out.startswith("out of time: ")
    before = Path("part.npz").read_bytes()
    code, _, err = run(capsys, *part, "--out", "new.npz")
    assert (code, Path("part.npz").read_bytes()) == (2, before)
    assert "--resume goes on from it, --force starts again" in err
    assert run(capsys, *part, "--resume", "--out", "whole.npz")[0] == 0
    assert same(mf.load("whole.npz"), mf.solve(**mf.load_config("small.toml")))
    assert not Path("part.npz").exists()
    assert "none is named" in run(capsys, "run", "small.toml", "--resume", "--out", "x.npz")[2]


def test_a_checkpoint_is_resumed_only_as_the_run_that_the_file_describes(folder, capsys):
    part = ["run", "small.toml", "--set", "checkpoint=part.npz"]
    assert run(capsys, *part, "--set", "max_seconds=0")[0] == 124
    before = Path("part.npz").read_bytes()
    for change, difference in (
        ("method.step=0.005", "method.step: "),
        ("model.ridge=0.5", "model.ridge: 0.0 there, 0.5 given"),
        ("horizon=2.0", "horizon: "),
        ("save_at=[0.0]", "save_at: "),
        ('keep="all"', "keep: "),
        ("risk=false", "risk: True there, False given"),
        ("rng=1", "rng: "),
    ):
        code, _, err = run(capsys, *part, "--set", change, "--resume", "--out", "new.npz")
        assert (code, Path("part.npz").read_bytes()) == (2, before)
        assert "small.toml must be what the checkpoint 'part.npz' was begun with; " in err
        assert difference in err
    assert run(capsys, *part, "--set", "threads=1", "--resume", "--out", "new.npz")[0] == 0


def test_force_takes_the_place_of_a_checkpoint_and_of_no_other_file(folder, capsys):
    part = ["run", "small.toml", "--set", "checkpoint=part.npz", "--force"]
    assert run(capsys, *part, "--set", "max_seconds=0")[0] == 124
    before = Path("part.npz").read_bytes()
    assert run(capsys, *part, "--set", "horizon=-1.0")[0] == 2
    assert Path("part.npz").read_bytes() == before  # a run that never began takes nobody's place
    assert run(capsys, *part)[0] == 0
    assert not Path("part.npz").exists()
    Path("part.npz").write_text("thesis")
    code, _, err = run(capsys, *part)
    assert (code, Path("part.npz").read_text()) == (2, "thesis")
    assert "which is there and no checkpoint of mfcore" in err


def test_a_checkpoint_stays_until_the_result_is_saved(folder, capsys, monkeypatch):
    part = ["run", "small.toml", "--set", "checkpoint=part.npz"]
    with monkeypatch.context() as context:
        context.setattr(mf.Trajectory, "save", lambda *_: sys.exit(9))  # as if it were killed
        with pytest.raises(SystemExit):
            run(capsys, *part)
    assert not Path("small.npz").exists()
    assert run(capsys, *part, "--resume")[0] == 0
    assert same(mf.load("small.npz"), mf.solve(**mf.load_config("small.toml")))
    assert not Path("part.npz").exists()


def test_a_picture_that_cannot_be_finished_leaves_the_old_one(folder, capsys, monkeypatch):
    def full(self, file, **_):
        file.write(b"half a picture")
        raise OSError(errno.ENOSPC, "No space left on device")

    run(capsys, "run", "small.toml")
    Path("risk.png").write_bytes(b"old")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    code, _, err = run(capsys, "show", "small.npz", "--plot", "risk.png", "--force")
    assert code != 0
    assert "risk.png" in err
    assert "No space left on device" in err
    assert Path("risk.png").read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == ["risk.png", "small.npz", "small.toml"]
