"""What the results of a function rest on: its code and the values it reads, and nothing else."""

import functools
from pathlib import Path

import mfcore as mf
import numpy as np
import pytest
from edited import HELPERS, NIGHT, loaded

GRID = {"x": [1, 2]}


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
        (make(1j), make(2j), "d of <lambda>: '1j' there, '2j' given"),
        (make(range(3)), make(range(4)), r"'range\(0, 3\)' there, 'range\(0, 4\)' given"),
        (make({"a", 1}), make({"a", 2}), "given"),
        (make(Path("a")), make(Path("b")), "d of <lambda>: 'a' there, 'b' given"),
        (make(b"a"), make(b"b"), "1 bytes, SHA-256"),
        (functools.cache(make(1)), functools.cache(make(2)), "d of <lambda>: 1 there, 2 given"),
        (make(mf.activations.relu), make(mf.activations.tanh), "name: 'relu' there, 'tanh' given"),
        (Scaled(2.0).run, Scaled(3.0).run, "factor: 2.0 there, 3.0 given"),
    ]
    # What tells nothing but its address is taken for the same.
    for _ in range(2):
        opaque = np.array([object(), {}], dtype=object)
        mf.sweep(make(object()), GRID, workers=1, folder=tmp_path / "object")
        mf.sweep(make(opaque), GRID, workers=1, folder=tmp_path / "array")
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
