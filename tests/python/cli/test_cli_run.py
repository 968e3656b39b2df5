"""mfcore run and mfcore show: from a file to a result."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import mfcore as mf
import mfcore.cli._run
import numpy as np
import pytest
from command_line import run
from mfcore.cli import main
from problems import same

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "run.toml"


def test_a_run_is_mf_solve_with_the_arguments_of_the_file(folder, capsys):
    code, out, err = run(capsys, "run", "small.toml")
    assert (code, err) == (0, "")
    assert out.startswith("completed: reached t = 1\n")
    assert out.endswith("saved in small.npz\n")
    result, direct = mf.load("small.npz"), mf.solve(**mf.load_config("small.toml"))
    assert same(result, direct)
    assert result.meta["model"] == direct.meta["model"]
    assert result.meta["seed"] == direct.meta["seed"]


def test_a_file_may_have_steps_in_place_of_a_horizon(folder, capsys):
    text = Path("small.toml").read_text()
    Path("steps.toml").write_text(text.replace("horizon = 1.0", "steps = 100"))
    assert "steps" in Path("steps.toml").read_text()
    assert run(capsys, "run", "small.toml")[0] == run(capsys, "run", "steps.toml")[0] == 0
    assert same(mf.load("steps.npz"), mf.load("small.npz"))
    part = ["run", "steps.toml", "--set", "checkpoint=state", "--set", "max_seconds=0", "--force"]
    assert run(capsys, *part)[0] == 124
    resumed = ["run", "steps.toml", "--set", "checkpoint=state", "--resume", "--force"]
    code, _, err = run(capsys, *resumed, "--set", "steps=101")
    assert code == 2
    assert "horizon: 1.0 there" in err
    assert run(capsys, *resumed)[0] == 0
    assert same(mf.load("steps.npz"), mf.load("small.npz"))
    code, _, err = run(capsys, "run", "small.toml", "--set", "steps=3", "--force")
    assert (code, "one of the entries horizon, steps, epochs is needed" in err) == (2, True)


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
        (
            "observe=1",
            "small.toml: unknown entry 'observe'; a run has model, method, horizon, steps, ",
        ),
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
    t = mf.load("run.npz").t
    assert len(t) == len(set(t)) == 18  # of 27, as the first ones are less than a step apart


IN_A_PROCESS = "import sys; from mfcore.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(("option", "shown"), [("--progress", True), ("--no-progress", False), (None, False)])
def test_a_progress_bar_is_shown_where_it_is_asked_for(folder, capsys, monkeypatch, option, shown):
    asked = []
    real = mf.cli._run.solve
    monkeypatch.setattr(mf.cli._run, "solve", lambda **a: asked.append(a.pop("progress")) or real(**a))
    assert run(capsys, "run", "small.toml", *([option] if option else []))[0] == 0  # no terminal here
    assert asked == [shown]


def test_a_pipe_gets_the_table_and_no_progress_bar(folder):
    command = [sys.executable, "-c", IN_A_PROCESS, "run", "small.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("completed: ")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("sent", "name", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_ctrl_c_and_sigterm_save_what_there_is_and_say_where(folder, sent, name, code):
    changes = ["horizon=1e6", "method.step=1e-5", "save_at=[0.0]", "checkpoint=part.npz"]
    arguments = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-c", IN_A_PROCESS, "run", "small.toml", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not Path("part.npz").exists() and time.monotonic() < deadline:  # the run has begun
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out.startswith(f"interrupted: stopped by {name} at t = ")
    assert re.fullmatch(rf"mfcore: interrupted: stopped by {name} [^\n]*; saved in small.npz\n", err)
    result = mf.load("small.npz")
    assert result.status == "interrupted"
    assert result.final.shape == (20, 6)
    seconds = [*arguments, "--set", "max_seconds=0.2", "--resume", "--force"]
    assert main(["run", "small.toml", *seconds]) == 124  # out of time
    assert mf.load("small.npz").meta["steps"] > result.meta["steps"]  # the checkpoint was there, and led on


def test_a_command_leaves_sigterm_as_it_was(folder, capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert run(capsys, "run", "small.toml")[0] == 0
    assert signal.getsignal(signal.SIGTERM) is before
