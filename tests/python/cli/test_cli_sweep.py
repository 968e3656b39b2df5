"""The command `mfcore sweep`."""

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
    with pytest.raises(ValueError, match=r"a result of a sweep: mf.sweep reads it"):
        mf.load(next((file.parent / "here").iterdir()))
