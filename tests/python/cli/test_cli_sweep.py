"""The commands `mfcore sweep`, and `mfcore show` of its folder."""

import re

import mfcore as mf
import pytest
from command_line import CONFIG
from mfcore.cli import main

GRID = f"""{CONFIG}
[sweep]
"model.data.delta" = [0.2, 0.4]
"method.neurons" = [5, 10]
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path / "grid.toml"


def test_it_runs_all_combinations_and_keeps_each_in_a_folder(file, capsys):
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    assert "4 runs, in grid" in capsys.readouterr().out
    assert len(list((file.parent / "grid").glob("*.npz"))) == 4
    before = {path: path.stat().st_mtime_ns for path in (file.parent / "grid").iterdir()}
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    assert {path: path.stat().st_mtime_ns for path in (file.parent / "grid").iterdir()} == before
    assert "0.4" in capsys.readouterr().out


def test_a_run_that_cannot_be_is_named_and_the_exit_code_is_1(file, capsys):
    file.write_text(GRID.replace("[0.2, 0.4]", "[0.2, -1.0]"))
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 1
    said = capsys.readouterr()
    assert "model.data.delta=-1.0, method.neurons=5: ValueError: " in said.err
    assert "2 runs, in grid" in said.out


def test_what_a_run_warns_of_is_told_and_what_failed_is_listed_alone(file, capsys):
    file.write_text(GRID.replace('kind = "relu"', 'kind = "tanh"').replace("[0.2, 0.4]", "[0.2, -1.0]"))
    with pytest.warns(UserWarning, match="the target is even") as caught:
        assert main(["sweep", "grid.toml", "--workers", "1"]) == 1
    assert not [warning for warning in caught if "cases failed" in str(warning.message)]
    assert "failed: " in capsys.readouterr().err


def test_a_file_without_the_table_is_refused(file, capsys):
    file.write_text(GRID.partition("[sweep]")[0])
    assert main(["sweep", "grid.toml"]) == 2
    assert "the table [sweep] is missing" in capsys.readouterr().err


def test_what_it_keeps_is_what_python_reads(file):
    assert main(["sweep", "grid.toml", "--workers", "1", "--out", "here"]) == 0
    with pytest.raises(ValueError, match=r"a result of a sweep: mf.load of its folder reads it"):
        mf.load(next((file.parent / "here").glob("*.npz")))
    whole = mf.load(file.parent / "here")
    assert whole["risk"].dims == ("model.data.delta", "method.neurons", "t")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("d = 6", "d = 9", "model.data.d: 6 there, 9 given; fresh=True (--fresh) sets them aside"),
        ("step = 0.01", "step = 0.02", "method.step: 0.01 there, 0.02 given"),
        ("rng = 3", "rng = 4", "rng: 3 there, 4 given"),
        ('{ kind = "relu" }', '{ kind = "softplus" }', "activation.kind: 'relu' there, 'softplus' given"),
    ],
)
def test_an_edited_file_is_refused_with_what_has_changed_until_fresh(file, capsys, old, new, said):
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    file.write_text(GRID.replace(old, new))
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 2
    assert said in capsys.readouterr().err
    assert main(["sweep", "grid.toml", "--workers", "1", "--fresh"]) == 0
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    assert len(list((file.parent / "grid" / "before-1").glob("*.npz"))) == 4


def test_comments_threads_and_entries_that_every_case_sets_may_change(file, capsys):
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    text = "threads = 2  # of each run\n" + GRID.replace("delta = 0.5", "delta = 0.7")
    file.write_text(text.replace("[0.2, 0.4]", "[0.2, 0.4, 0.6]"))
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 0
    assert "6 runs, in grid" in capsys.readouterr().out


def test_show_describes_a_sweep(file, capsys):
    file.write_text(GRID.replace("[0.2, 0.4]", "[0.2, -1.0]"))
    assert main(["sweep", "grid.toml", "--workers", "1"]) == 1
    next(iter((file.parent / "grid").glob("*.npz"))).unlink()
    capsys.readouterr()
    assert main(["show", "grid", "--plot", "risk.png"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("run of grid.toml, 4 cases: 1 done, 2 failed, 1 not done")
    assert lines[1:3] == ["model.data.delta: 0.2, -1", "method.neurons: 5, 10"]
    assert re.fullmatch(r"rng 3, mfcore \S+, digest [0-9a-f]{16}", lines[3])
    assert any(line.startswith("values of ") and "model.data.d" in line for line in lines)
    assert any(
        line.startswith("failed: model.data.delta=-1.0, method.neurons=5: ValueError") for line in lines
    )
    assert any(line.endswith(": not done") for line in lines)
    assert (file.parent / "risk.png").stat().st_size > 1000


def test_show_reads_a_checkpoint(file, capsys):
    run = mf.solve(**mf.load_config(plain(file)), max_seconds=1e-9, checkpoint="run.checkpoint")
    assert run.status == "out of time"
    assert main(["show", "run.checkpoint"]) == 0
    assert capsys.readouterr().out.startswith("checkpoint of a run to t = 1, with which mf.resume goes on\n")


def plain(file):
    """The file without its table of lists."""
    (file.parent / "plain.toml").write_text(CONFIG)
    return file.parent / "plain.toml"
