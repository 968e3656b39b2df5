"""mfcore run and mfcore show: from a file to a result, and what keeps the two safe."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import mfcore as mf
import numpy as np
import pytest
from mfcore.cli import main
from mfcore.runs._trajectory import write_archive

CONFIG = """
horizon = 1.0
save_at = 5
rng = 3

[model]
kind = "Model"
data = { kind = "IsotropicGaussians", d = 6, delta = 0.5 }
network = { kind = "Network", activation = { kind = "relu" } }
init = { kind = "Gaussian", std = 0.3 }

[method]
kind = "SGD"
neurons = 20
step = 0.01
"""

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "run.toml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def same(run, other):
    return all(np.array_equal(getattr(run, name), getattr(other, name)) for name in ("t", "risk", "final"))


def test_a_run_is_mf_solve_with_the_arguments_of_the_file(folder, capsys):
    code, out, err = run(capsys, "run", "small.toml")
    assert (code, err) == (0, "")
    assert out.startswith("completed: reached t = 1\n")
    assert out.endswith("saved in small.npz\n")
    result, direct = mf.load("small.npz"), mf.solve(**mf.load_config("small.toml"))
    assert same(result, direct)
    assert result.meta["model"] == direct.meta["model"]
    assert result.meta["seed"] == direct.meta["seed"]


def test_entries_are_changed_by_set_before_they_are_read(folder, capsys):
    changes = [
        "model.data.d=9",
        "method.precision=float32",  # a bare word is a string
        "method.neurons = 12",
        "save_at=[0.5, 1.0]",
        "keep=all",
        "model.init={kind='Radial', norm=0.4}",
        "model.ridge=0.1",  # not in the file
    ]
    arguments = [word for change in changes for word in ("--set", change)]
    assert run(capsys, "run", "small.toml", "--out", "other.npz", *arguments)[0] == 0
    result = mf.load("other.npz")
    model, method = result.meta["model"], result.meta["method"]
    assert (model.d, model.ridge, model.init) == (9, 0.1, mf.init.Radial(0.4))
    assert (method.neurons, method.precision, method.step) == (12, "float32", 0.01)
    assert list(result.kept) == [0.5, 1.0]
    assert not Path("small.npz").exists()


def test_save_points_may_be_log_times(folder, capsys):
    times = 'save_at={kind="log_times", first=0.1, last=1.0, count=4}'
    assert run(capsys, "run", "small.toml", "--set", times, "--set", "keep=all")[0] == 0
    assert list(mf.load("small.npz").kept) == mf.log_times(0.1, 1.0, 4).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("horizn=2.0", "small.toml: unknown entry 'horizn'; did you mean 'horizon'?"),
        ("observe=1", "small.toml: unknown entry 'observe'; a run has model, method, horizon, save_at, "),
        ("modle.data.d=3", "small.toml: unknown entry 'modle'; did you mean 'model'?"),
        ("method.neuron=3", "small.toml: method: SGD has no field 'neuron'; did you mean 'neurons'?"),
        ("model.dta.d=3", "small.toml: model: Model has no field 'dta'; did you mean 'data'?"),
        ("model.data.detla=0.1", "must be one of 'd', 'delta', got 'detla'; did you mean 'delta'?"),
        ("method.kind=SDG", "small.toml: method: unknown kind 'SDG'; did you mean 'SGD'?"),
        ("horizon.x=1", "--set horizon.x=1: horizon is 1.0, not a table"),
        ("horizon", "--set must be KEY=VALUE, such as method.neurons=800, got 'horizon'"),
        ("method..step=1", "--set must be KEY=VALUE, such as method.neurons=800, got 'method..step=1'"),
        ("method.step=fast", "small.toml: method: step must be a real number, got 'fast'"),
        ("method.step=-1", "small.toml: method: step must be > 0, got -1"),
        ("horizon=-1", "small.toml: horizon must be > 0, got -1"),
        ("rng=-1", "small.toml: rng must be >= 0, got -1"),
        ("model.data.d=inf", "small.toml: "),
        ("save_at=2.5", "small.toml: save_at must be a list of times, or an integer how many, got 2.5"),
        (
            'save_at={kind="log_times", first=0.1, last=40.0, count=30}',
            "small.toml: save_at must be >= 0 and <= horizon = 1, got 1.1932 at [12]\n",
        ),
        ("keep=[0.3]", "small.toml: keep must name save points, got 0.3; the nearest is 0.25\n"),
        ("model.network.activation.kind=piecewise", "kind 'piecewise'; did you mean 'piecewise_linear'?"),
        ("method=3", 'small.toml: method must be a table with an entry such as kind = "SGD"'),
    ],
)
def test_a_mistake_is_one_line_with_the_closest_name_and_nothing_is_written(folder, capsys, change, message):
    code, out, err = run(capsys, "run", "small.toml", "--set", change)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"mfcore: error: [^\n]*\n", err)
    assert message in err
    assert [file.name for file in folder.iterdir()] == ["small.toml"]
    assert "Traceback" in run(capsys, "--debug", "run", "small.toml", "--set", change)[2]


def test_a_file_that_is_missing_broken_or_incomplete_is_named(folder, capsys):
    Path("broken.toml").write_text("horizon = = 1")
    Path("empty.toml").write_text("horizon = 1.0")
    for arguments, message in (
        (["run", "none.toml"], "CONFIG.toml must be a file, got 'none.toml'"),
        (["run", "broken.toml"], "broken.toml: not valid TOML"),
        (["run", "empty.toml"], "empty.toml: the entry 'model' is missing"),
        (["show", "none.npz"], "RESULT.npz must be a file, got 'none.npz'"),
        (["show", "small.toml"], "path must be a file written by mfcore, got 'small.toml'"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert message in err


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
    assert err.startswith("mfcore: diverged: the prediction was no longer finite")
    assert err.endswith("saved in small.npz\n")
    assert mf.load("small.npz").status == "diverged"


def test_a_checkpoint_is_resumed_when_asked_and_never_lost_by_accident(folder, capsys):
    part = ["run", "small.toml", "--set", "checkpoint=part.npz"]
    assert run(capsys, *part, "--resume")[::2] == (
        2,
        "mfcore: error: --resume needs the checkpoint of an unfinished run; 'part.npz' does not exist\n",
    )
    code, out, _ = run(capsys, *part, "--set", "max_seconds=0")
    assert code == 0  # the time limit was asked for
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
    assert run(capsys, *part, "--set", "max_seconds=0")[0] == 0
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
    assert run(capsys, *part, "--set", "max_seconds=0")[0] == 0
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


def test_show_prints_how_a_run_ended_and_ten_of_its_save_points(folder, capsys):
    arguments = ["--set", "save_at=101", "--set", "method.replicas=3", "--set", "keep=[0.0, 1.0]"]
    run(capsys, "run", "small.toml", *arguments)
    code, out, err = run(capsys, "show", "small.npz")
    assert (code, err) == (0, "")
    result = mf.load("small.npz")
    for part in (
        "completed: reached t = 1\n",
        "IsotropicGaussians(d=6",
        "replicas=3",
        "measures kept, t = 0, 1\n",
    ):
        assert part in out
    table = [line.split() for line in out.partition("\n\n")[2].splitlines()]
    assert table[0] == ["t", "risk", "±", "norm_mean", "norm_std"]
    assert len(table) == 11
    for row in table[1:]:
        k = int(np.abs(result.t - float(row[0])).argmin())
        error = result.risk[k].std(ddof=1) / np.sqrt(3)
        wanted = [result.risk[k].mean(), error, result.observed["norm_mean"][k].mean()]
        # Numbers are shown with 6 digits, errors (which here are those over replicas alone) with 2.
        for text, value, digits in zip(row[1:4], wanted, (5e-6, 0.05, 5e-6), strict=True):
            assert float(text) == pytest.approx(value, rel=digits)


def test_a_narrow_terminal_gets_fewer_columns_and_their_names(folder, capsys, monkeypatch):
    run(capsys, "run", "small.toml")
    monkeypatch.setenv("COLUMNS", "30")
    out = run(capsys, "show", "small.npz")[1]
    assert out.endswith("not shown: norm_std\n")
    assert all(len(line) <= 30 for line in out.partition("\n\n")[2].splitlines()[:-1])


def test_a_run_without_risk_or_save_points_is_shown_all_the_same(folder, capsys):
    assert run(capsys, "run", "small.toml", "--set", "risk=false")[0] == 0
    assert "risk " not in run(capsys, "show", "small.npz")[1].partition("\n\n")[2]
    assert run(capsys, "run", "small.toml", "--set", "save_at=[]", "--out", "none.npz")[0] == 0
    assert run(capsys, "show", "none.npz")[1].startswith("completed: ")


def test_show_draws_the_risk(folder, capsys):
    run(capsys, "run", "small.toml")
    code, out, _ = run(capsys, "show", "small.npz", "--plot", "risk.png", "--log", "y")
    assert (code, out.splitlines()[-1]) == (0, "drawn in risk.png")
    assert Path("risk.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--log", "z"], "--log must be one of '', 'x', 'y', 'xy', got 'z'"),
        (["--plot", "risk.xyz"], "--plot must end in one of "),
        (["--plot", "risk"], "--plot must end in one of "),
    ],
)
def test_show_checks_its_options_before_it_prints(folder, capsys, arguments, message):
    run(capsys, "run", "small.toml")
    code, out, err = run(capsys, "show", "small.npz", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_show_prints_the_seed_that_was_given(folder, capsys):
    run(capsys, "run", "small.toml")
    assert "\nseed 3, " in run(capsys, "show", "small.npz")[1]


def test_the_example_is_a_run(folder, capsys):
    small = ["method.neurons=10", "method.step=0.05", "horizon=4.0"]
    arguments = [word for change in small for word in ("--set", change)]
    assert run(capsys, "run", str(EXAMPLE), *arguments)[0] == 0
    assert len(mf.load("run.npz").t) == 27


IN_A_PROCESS = "import sys; from mfcore.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_pipe_gets_the_table_and_no_progress_bar(folder):
    command = [sys.executable, "-c", IN_A_PROCESS, "run", "small.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("completed: ")
    assert done.stderr == ""


def test_ctrl_c_saves_what_there_is_and_says_where(folder):
    changes = ["horizon=1e6", "method.step=1e-5", "save_at=[0.0]", "checkpoint=part.npz"]
    arguments = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-c", IN_A_PROCESS, "run", "small.toml", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not Path("part.npz").exists() and time.monotonic() < deadline:  # the run has begun
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("interrupted: stopped by Ctrl-C at t = ")
    assert re.fullmatch(r"mfcore: interrupted: stopped by Ctrl-C [^\n]*; saved in small.npz\n", err)
    result = mf.load("small.npz")
    assert result.status == "interrupted"
    assert result.final.shape == (20, 6)
