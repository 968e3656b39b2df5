"""A folder of results: those of one function as it is now, read back without it, and never lost."""

import functools
import importlib.util
import itertools
import json
import subprocess
import sys
import types

import mfcore as mf
import numpy as np
import pytest
import xarray
from sweep_functions import fails_at_two

NIGHT = """
import helpers
D = 20
def scale(x):
    return 2 * x
class Law:
    width = 3
    def draw(self, x):
        return self.width * x
LAW = Law()
DATA = [0.5] * 100
def run(x, rng, power=2):
    '''Say what it does.'''
    d = 20  # the dimension
    half = lambda z: z / 2
    return half(scale(x) + d + D) + helpers.shift(x) + LAW.draw(x) ** power + sum(DATA)
"""
HELPERS = "def shift(x):\n    return x + 1\ndef unused(x):\n    return x\n"
GRID = {"x": [1, 2]}


def loaded(folder, night=NIGHT, helpers=HELPERS):
    """The function `run` of a module with this text, as a new process would import it."""
    modules = []
    for name, text in (("helpers", helpers), ("night", night)):
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        modules.append(importlib.util.module_from_spec(spec))
        sys.modules[name] = modules[-1]
        exec(compile(text, folder / f"{name}.py", "exec"), vars(modules[-1]))
    return modules[-1].run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("helpers", "night"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    mf.sweep(loaded(tmp_path), GRID, workers=1, folder=tmp_path / "store")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("d = 20  # the", "d = 80  # the", "line 3 of run: 'd = 20' is now 'd = 80'"),
        ("D = 20", "D = 80", "D: 20 there, 80 given"),
        ("return 2 * x", "return 3 * x", "line 2 of scale: 'return 2 * x' is now 'return 3 * x'"),
        ("z / 2", "z / 4", "line 4 of run: 'half = lambda z: z / 2' is now 'half = lambda z: z / 4'"),
        ("width = 3", "width = 4", "Law.width: 3 there, 4 given"),
        ("self.width * x", "self.width + x", "line 2 of Law.draw: "),
        ("power=2", "power=3", "default power of run: 2 there, 3 given"),
        ("[0.5] * 100", "[0.5] * 99 + [0.6]", "DATA: 'numbers of shape (100,), SHA-256 "),
        ("    half =", "    d += 1\n    half =", "line 4 of run: 'd += 1' is new"),
        ("import helpers\n", "import helpers\nhelpers.shift = lambda x: x\n", "helpers.shift"),
        ("scale(x) + ", "", "the code of scale is gone"),
        ("scale(x)", "abs(x)", "line 5 of run: "),
    ],
)
def test_a_second_run_after_an_edit_is_refused_with_what_has_changed(folder, old, new, said):
    edited = loaded(folder, NIGHT.replace(old, new))
    before = mf.load(folder / "store")
    with pytest.raises(ValueError, match="folder must be new or hold results of this sweep") as refused:
        mf.sweep(edited, GRID, workers=1, folder=folder / "store")
    assert said in str(refused.value)
    assert "fresh=True (--fresh) sets them aside and starts again" in str(refused.value)
    assert mf.load(folder / "store").identical(before)


def test_code_in_another_module_of_the_user_counts_as_far_as_it_is_used(folder):
    other = HELPERS.replace("x + 1", "x + 2")
    with pytest.raises(ValueError, match=r"line 2 of helpers.shift: 'return x \+ 1' is now 'return x \+ 2'"):
        mf.sweep(loaded(folder, helpers=other), GRID, workers=1, folder=folder / "store")
    same = HELPERS.replace("return x\n", "return 7\n")
    mf.sweep(loaded(folder, helpers=same), GRID, workers=1, folder=folder / "store")


def test_a_module_that_the_function_imports_itself_counts_whole(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def run(x):
        import shifts_of_test

        return shifts_of_test.shift(x)

    (tmp_path / "shifts_of_test.py").write_text("def shift(x):\n    return x + 1\n")
    mf.sweep(run, GRID, workers=1, folder=tmp_path / "store")
    (tmp_path / "shifts_of_test.py").write_text("def shift(x):\n    return x + 10\n")
    with pytest.raises(ValueError, match="of shifts_of_test: "):
        mf.sweep(run, GRID, workers=1, folder=tmp_path / "store")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # the dimension", ""),
        ("'''Say what it does.'''", "'''Say more.'''\n\n"),
        ("return half(scale(x) + d + D) +", "return half(\n        scale(x)\n        + d + D\n    ) +"),
        ("\ndef run", "\nTITLE = 3\n\n\n\ndef run"),
    ],
)
def test_comments_layout_and_what_the_function_does_not_use_may_change(folder, old, new):
    assert old in NIGHT
    calls = set((folder / "store").iterdir())
    mf.sweep(loaded(folder, NIGHT.replace(old, new)), GRID, workers=1, folder=folder / "store")
    assert set((folder / "store").iterdir()) == calls


def test_closures_defaults_and_arguments_given_before_count(tmp_path):
    def make(d, power=2):
        return lambda x: x**power + (d if isinstance(d, int) else 0)

    pairs = [
        (make(20), make(80), "d of <lambda>: 20 there, 80 given"),
        (functools.partial(divmod_of, y=2), functools.partial(divmod_of, y=3), "argument y of divmod_of: 2 "),
        (make(np.ones(50)), make(np.zeros(50)), r"d of <lambda>: 'float64 of shape \(50,\), SHA-256"),
        (make(DATA), make(OTHER), r"d of <lambda>.X: 'float64 of shape \(9, 2\), SHA-256"),
        (make(Odd(3)), make(Odd(4)), "d of <lambda>.size: 3 there, 4 given"),
        (make(mf.activations.relu), make(mf.activations.tanh), "name: 'relu' there, 'tanh' given"),
        (Scaled(2.0).run, Scaled(3.0).run, "factor: 2.0 there, 3.0 given"),
    ]
    for k, (first, second, said) in enumerate(pairs):
        for _ in range(2):
            mf.sweep(first, GRID, workers=1, folder=tmp_path / str(k))
        with pytest.raises(ValueError, match=said):
            mf.sweep(second, GRID, workers=1, folder=tmp_path / str(k))


DATA, OTHER = (mf.data.Dataset(np.full((9, 2), x), np.zeros(9)) for x in (1.0, 2.0))


class Odd:
    """An object that no file can hold."""

    def __init__(self, size):
        self.size, self.link = size, lambda z: z


def divmod_of(x, y):
    return x % y


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def run(self, x):
        return self.factor * x


def test_a_global_named_as_the_seed_of_the_sweep_is_another_value(tmp_path):
    spaces = [{"rng": 1}, {"rng": 2}]
    for space in spaces:
        exec("def run(x):\n    return x + rng\n", space)
    mf.sweep(spaces[0]["run"], GRID, workers=1, folder=tmp_path)
    with pytest.raises(ValueError, match=r"global rng: 1 there, 2 given"):
        mf.sweep(spaces[1]["run"], GRID, workers=1, folder=tmp_path)


def test_code_without_a_file_counts_by_its_instructions(tmp_path):
    names = [{}, {}]
    for space, d in zip(names, (20, 80), strict=True):
        exec(f"def run(x):\n    return x + {d}\n", space)
    mf.sweep(names[0]["run"], GRID, workers=1, folder=tmp_path)
    with pytest.raises(ValueError, match=r"instruction \d+ of run: 'LOAD_CONST 20' is now 'LOAD_CONST 80'"):
        mf.sweep(names[1]["run"], GRID, workers=1, folder=tmp_path)


def test_a_function_whose_file_has_changed_since_it_was_read_counts_by_what_runs(folder):
    old = loaded(folder)
    (folder / "night.py").write_text(NIGHT.replace("d = 20", "d = 80"))
    mf.sweep(old, GRID, workers=1, folder=folder / "store")
    mf.sweep(old, GRID, workers=1, folder=folder / "other")
    with pytest.raises(ValueError, match="folder must be new"):
        mf.sweep(loaded(folder, NIGHT.replace("d = 20", "d = 80")), GRID, workers=1, folder=folder / "other")


def test_values_that_the_runs_themselves_change_do_not_count(tmp_path):
    calls, counts = [], {"all": 0}

    def run(x):
        if x > 1:
            calls.append(x)
            counts["all"] += 1
            counts[str(x)] = 1
        return x

    for last in (3, 5, 5):
        mf.sweep(run, {"x": list(range(last))}, workers=1, folder=tmp_path)
    assert calls == [2, 3, 4]
    # Only what is empty or has failed was there before: nothing can be mistaken.
    mf.sweep(run, {"x": [1]}, workers=1, folder=tmp_path / "new")


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


def risks(step, seed, rates=()):
    """A run whose save points lie on multiples of its step, as those of SGD do."""
    t = step * np.unique(np.rint(np.linspace(0, 1, 6) / step))
    return mf.Trajectory(t, seed + t, 0 * t, {}, np.zeros((3, 2)), {}, "completed", "")


def test_times_are_one_series_where_they_agree_and_else_lie_over_the_axes_they_depend_on(tmp_path):
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
    assert len(list(itertools.chain(record["cases"]))) == 2
