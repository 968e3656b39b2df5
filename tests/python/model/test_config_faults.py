"""Configuration files that are damaged, endless or nonsense: ValueErrors that name the place."""

import inspect

import mfcore as mf
import numpy as np
import pytest
from mfcore._base import registry


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "[" * 150 + "]" * 150, r"x\[0\]\[0\].*: nested more than 100 levels deep"),
        ("[" + ".".join(["a"] * 500) + "]", r"a\.a\.a.*: nested more than 100 levels deep"),
        ("[m]\n" + 'x = { kind = "Gaussian", std = ' + "9" * 5000 + " }", "digits"),
        ('[m]\nx = { kind = "MultiIndex", noise = 1e200 }', r"m\.x: "),
        ('[m]\nx = { kind = "Gaussian", std = "wide" }', r"m\.x: std must be a real number, got 'wide'"),
        ("[m]\nx = { kind = 3 }", r"m\.x: unknown kind 3"),
    ],
)
def test_damaged_files_are_value_errors_that_name_the_place(tmp_path, text, reason):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ValueError, match=f"run.toml: .*{reason}"):
        mf.load_config(tmp_path / "run.toml")


def test_a_value_that_contains_itself_is_refused(tmp_path):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match=r"x\[0\]\[0\].*: nested more than 100 levels deep"):
        mf.save_config({"x": endless}, tmp_path / "run.toml")


def test_random_tables_are_value_errors_that_name_the_place():
    rng = np.random.default_rng(0)
    numbers = [True, 0, -1, 3, 10**30, 10**400, 1e200, -1e200, np.nan, np.inf, 0.5]
    lists = [[], [1], [1, 2], [[1.0]], [["x"]], [{}], [np.nan] * 3]
    tables = [{}, {"a": 1}, {"kind": 3}, {"kind": "relu"}, {"kind": "Radial", "norm": 0.5}]
    tables += [{"kind": "Network", "activation": {"kind": "relu"}}]
    values = [*numbers, "", "relu", *lists, *tables]
    kinds = [(name, list(inspect.signature(c).parameters)) for name, c in sorted(registry._CLASSES.items())]
    made = 0
    for _ in range(3000):
        name, fields = kinds[rng.integers(len(kinds))]
        table = {field: values[rng.integers(len(values))] for field in fields if rng.random() < 0.7}
        try:
            registry.from_config({"kind": name, **table}, "here")
            made += 1
        except ValueError as error:
            message = str(error)
            assert message.startswith("here"), table
    assert 0 < made < 3000
