"""A folder of results: read back without its function, never lost, written to other formats."""

import json
import subprocess
import sys

import mfcore as mf
import numpy as np
import pytest
import xarray
from edited import NIGHT, loaded
from sweep_functions import fails_at_two

GRID = {"x": [1, 2]}


def test_fresh_sets_the_results_aside_and_starts_again(folder):
    edited = loaded(folder, NIGHT.replace("d = 20", "d = 80"))
    first = mf.load(folder / "store")
    (folder / "store" / "notes.txt").write_text("mine")
    second = mf.sweep(edited, GRID, workers=1, folder=folder / "store", fresh=True)
    assert not second["value"].equals(first["value"])
    assert mf.load(folder / "store").identical(second)
    assert mf.load(folder / "store" / "before-1").identical(first)
    assert (folder / "store" / "notes.txt").read_text() == "mine"
    mf.sweep(edited, GRID, workers=1, folder=folder / "store", fresh=True)
    assert mf.load(folder / "store" / "before-2").identical(second)


def test_results_without_a_record_are_refused_with_what_to_do_and_can_be_read(folder):
    whole = mf.load(folder / "store")
    (folder / "store" / "sweep.json").unlink()
    with pytest.raises(
        ValueError, match=r"no sweep.json, as an older version.*mf.load reads them; fresh=True"
    ):
        mf.sweep(loaded(folder), GRID, workers=1, folder=folder / "store")
    there = mf.load(folder / "store")
    assert sorted(there["value"].values) == sorted(whole["value"].values)
    assert sorted(there["x"].values) == [1, 2]


def test_a_result_from_another_folder_is_not_taken(folder):
    mf.sweep(fails_at_two, {"x": [1]}, workers=1, folder=folder / "other")
    for file in (folder / "other").glob("*.npz"):
        file.replace(folder / "store" / file.name)
    with pytest.raises(ValueError, match=r"folder must hold results of one sweep.*digest: "):
        mf.sweep(loaded(folder), GRID, workers=1, folder=folder / "store")


def test_load_reads_what_sweep_returned_also_of_failed_and_missing_cases(tmp_path):
    grid = {"x": [1, 2, 3]}
    with pytest.warns(UserWarning, match="1 of 3 cases failed"):
        result = mf.sweep(fails_at_two, grid, workers=1, folder=tmp_path)
    assert mf.load(tmp_path).identical(result)
    mf.sweep(fails_at_two, {"x": [5]}, workers=1, folder=tmp_path)
    more = mf.load(str(tmp_path))
    assert more["x"].values.tolist() == [1, 2, 3, 5]
    np.testing.assert_array_equal(more["double"], [2, np.nan, 6, 10])
    next(tmp_path.glob("*.failed.json")).unlink()
    assert mf.load(tmp_path).attrs["failures"] == "x=2: not done"


def test_load_reads_lists_of_cases_and_bisections(tmp_path):
    cases = [{"sigma": mf.activations.relu, "x": 1}, {"sigma": mf.activations.tanh, "x": 2}]
    result = mf.sweep(lambda sigma, x: float(sigma(x)), cases, workers=1, folder=tmp_path / "list")
    assert mf.load(tmp_path / "list").identical(result)
    search = mf.Bisection("x", 0.0, 3.0, lambda r: r > 2, 0.1, each={"sigma": [mf.activations.relu]})
    result = mf.sweep(lambda sigma, x: float(sigma(x)), search, workers=1, folder=tmp_path / "search")
    assert mf.load(tmp_path / "search").identical(result)
    assert result["bracket_low"] <= 2 <= result["bracket_high"]


def test_load_refuses_a_folder_without_results(tmp_path):
    with pytest.raises(
        ValueError, match=r"path must be a file of mfcore or a folder of mf\.sweep, got the folder"
    ):
        mf.load(tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(ValueError, match=r"folder must be a file written by mfcore, got .*sweep\.json"):
        mf.load(tmp_path)


def risks(step, seed):
    """A run whose save points lie on multiples of its step, as those of SGD do."""
    t = step * np.unique(np.rint(np.linspace(0, 1, 6) / step))
    return mf.Trajectory(t, seed + t, 0 * t, {}, np.zeros((3, 2)), {}, "completed", "")


def test_times_are_one_series_where_they_agree_and_else_lie_over_the_axes_they_depend_on():
    agree = mf.sweep(risks, {"step": [0.1, 0.05, 0.2], "seed": [0, 1]}, workers=1)
    assert agree["t"].dims == ("t",)  # 0.1·3 and 0.05·6 differ by rounding
    differ = mf.sweep(risks, {"step": [0.1, 0.15], "seed": [0, 1]}, workers=1)
    assert differ["t"].dims == ("step", "t")
    for result in (agree, differ):
        (line,) = result["risk"].mean("seed").sel(step=0.1).plot(x="t")
        np.testing.assert_allclose(line.get_xdata(), [0, 0.2, 0.4, 0.6, 0.8, 1.0], rtol=1e-9, atol=1e-12)


def test_a_run_that_ends_early_has_the_times_of_the_others():
    def run(x):
        t = np.arange(5.0)[: 3 if x else 5]
        return mf.Trajectory(t, t, 0 * t, {}, np.zeros((3, 2)), {}, "diverged", "")

    result = mf.sweep(run, {"x": [1, 0]}, workers=1)
    assert result["t"].values.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(result["risk"][0], [0, 1, 2, np.nan, np.nan])


def test_results_with_failed_cases_and_those_of_bisections_are_written_to_netcdf(tmp_path):
    with pytest.warns(UserWarning, match="2 of 4 cases failed"):
        result = mf.sweep(
            lambda x, y: 1 / (x - 2), {"x": [1, 2], "y": [0, 1]}, workers=1, folder=tmp_path / "store"
        )
    result.to_netcdf(tmp_path / "file.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "file.nc", engine="scipy") as there:
        assert there.attrs["failures"].splitlines()[1] == "x=2, y=1: ZeroDivisionError: division by zero"
        np.testing.assert_array_equal(there["failed"], [[False, False], [True, True]])
        np.testing.assert_array_equal(there["value"], result["value"])
    search = mf.Bisection("x", 0.0, 2.0, lambda r: r > 2, 1.0, each={"y": [0, 9]})
    result = mf.sweep(lambda x, y: x**2 + y, search, workers=1)
    result.to_netcdf(tmp_path / "search.nc", engine="scipy")


def test_a_sweep_that_was_killed_goes_on_with_the_same_numbers(tmp_path):
    script = (
        "import os, sys, mfcore as mf\n"
        "def run(x, rng):\n"
        "    if x == 2 and not os.path.exists('second'):\n"
        "        open('second', 'w').close()\n"
        "        os._exit(9)\n"
        "    return float(rng % 1000)\n"
        "mf.sweep(run, {'x': [1, 2, 3]}, workers=1, folder='night')\n"
    )
    (tmp_path / "night.py").write_text(script)
    ends = [subprocess.run([sys.executable, "night.py"], cwd=tmp_path).returncode for _ in range(2)]
    assert ends == [9, 0]
    alone = mf.sweep(lambda x, rng: float(rng % 1000), {"x": [1, 2, 3]}, workers=1)
    assert mf.load(tmp_path / "night").identical(alone)
    (tmp_path / "night.py").write_text(script.replace("% 1000", "% 900"))
    edited = subprocess.run([sys.executable, "night.py"], cwd=tmp_path, capture_output=True, text=True)
    assert edited.returncode == 1
    assert "line 5 of run: 'return float(rng % 1000)' is now 'return float(rng % 900)'" in edited.stderr


def test_a_record_says_in_plain_text_what_results_rest_on(folder):
    record = json.loads((folder / "store" / "sweep.json").read_text())
    assert record["values"]["D"] == {"D": 20}
    assert "    d = 20  # the dimension" in record["code"]["run"]["source"]
    assert record["axes"] == {"x": [1, 2]}
    assert len(record["cases"]) == 2
