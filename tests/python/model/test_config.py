"""Configurations survive the trip through a TOML file, and mistakes in them are found by place."""

import math
import tomllib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mfcore import activations, data, init
from mfcore._base import registry
from mfcore.config import load_config, save_config
from mfcore.measures._measure import Cloud, Density
from mfcore.model import Model
from mfcore.network import Network
from problems import STEP

NET = Network(activations.relu)
FULL = Network(activations.hermite([0.0, 1.0, 0.3]), output="trained", bias="trained", sphere=True)

LAWS = [
    data.IsotropicGaussians(d=5, delta=0.5),
    data.IsotropicGaussians(d=math.inf, delta=0.1),
    data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.1875),
    data.AnisotropicGaussians(d=8, delta=0.5, s0=3),
    data.MultiIndex(6, [0.0, 2.0, 1.0 / 3.0], directions=1, noise=0.5),
    data.Staircase(6, {(0,): 1.0, (0, 1): 0.1}),
    data.Teacher(FULL, init.Gaussian(1.0).sample(FULL, 4, 3, rng=0)),
    data.Linear([1.0, 2.0, 1e-300], noise=0.25),
    data.Dataset(np.random.default_rng(0).normal(size=(7, 3)), np.arange(7.0)),
]
STARTS = [
    init.Gaussian(0.1),
    init.Product(a=init.Uniform(-1, 1), b=init.Normal(0.5, 2), w=init.Radial(0.8)),
    init.Product(a=init.Constant(1), w=init.Sphere(2.0)),
    init.Points(np.random.default_rng(1).normal(size=(5, 3))),
]
OTHERS = [
    NET,
    FULL,
    STEP,
    activations.tanh,
    Cloud([[1.0, 2.0], [0.1, 1e300]], [1 / 3, 2 / 3]),
    Density(([0.0, 0.1, 0.7], [0.0, 1.0]), [[0.3], [0.7]]),
]
MODELS = [
    Model(LAWS[1], NET),
    Model(LAWS[0], Network(STEP, output="trained"), STARTS[2], ridge=0.1, temperature=1 / 3, rates={"a": 2}),
]


@pytest.mark.parametrize("thing", [*LAWS, *STARTS, *OTHERS, *MODELS], ids=repr)
def test_every_object_comes_back_equal_alone_and_inside_a_mapping(thing, tmp_path):
    save_config(thing, tmp_path / "one.toml")
    assert load_config(tmp_path / "one.toml") == thing
    save_config({"name": "x", "deep": {"thing": thing}, "list": [thing, thing]}, str(tmp_path / "many.toml"))
    assert load_config(str(tmp_path / "many.toml")) == {
        "name": "x",
        "deep": {"thing": thing},
        "list": [thing, thing],
    }


PLAIN = st.recursive(
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(entries=st.dictionaries(st.sampled_from(["horizon", "save_at", "x y", "é"]), PLAIN))
def test_plain_values_come_back_exactly(entries, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "plain.toml"
    assume("'kind'" not in repr(entries))  # reserved: refused, by a test of its own
    save_config(entries, path)
    assert load_config(path) == entries


def test_numpy_values_become_plain_ones(tmp_path):
    path = tmp_path / "run.toml"
    values = {
        "times": np.array([0.1, 0.2]),
        "steps": np.int64(3),
        "rate": np.float32(0.5),
        "grid": (np.bool_(True), np.longdouble(1.5)),
        "wide": np.ones((2, 2), dtype=np.longdouble),
    }
    save_config(values, path)
    assert load_config(path) == {
        "times": [0.1, 0.2],
        "steps": 3,
        "rate": 0.5,
        "grid": [True, 1.5],
        "wide": [[1.0, 1.0], [1.0, 1.0]],
    }


def test_the_file_reads_like_the_model(tmp_path):
    save_config({"model": MODELS[1], "horizon": 10.0}, tmp_path / "run.toml")
    table = tomllib.loads((tmp_path / "run.toml").read_text())
    assert table["horizon"] == 10.0
    assert table["model"]["kind"] == "Model"
    assert table["model"]["data"] == {"kind": "IsotropicGaussians", "d": 5, "delta": 0.5}
    assert table["model"]["init"]["w"] == {"kind": "Sphere", "radius": 2.0}
    assert "b" not in table["model"]["init"]
    assert table["model"]["rates"] == {"a": 2.0}


GOOD = """
horizon = 10.0
[model]
kind = "Model"
ridge = 0.5
data = { kind = "IsotropicGaussians", d = inf, delta = 0.5 }
init = { kind = "Radial", norm = 0.8 }
[model.network]
kind = "Network"
activation = { kind = "relu" }
"""


def test_a_file_written_by_hand_needs_no_defaults(tmp_path):
    (tmp_path / "run.toml").write_text(GOOD)
    config = load_config(tmp_path / "run.toml")
    law = data.IsotropicGaussians(d=math.inf, delta=0.5)
    assert config == {"horizon": 10.0, "model": Model(law, NET, init.Radial(0.8), ridge=0.5)}


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('"Radial"', '"Radical"', "model.init: unknown kind 'Radical'; did you mean 'Radial'"),
        ('"Radial"', '"zzz"', "model.init: unknown kind 'zzz'; known kinds: Gaussian, .*Radial, Sphere$"),
        ('"Radial"', "3", "model.init: unknown kind 3"),
        ('"Radial"', '["Radial"]', "model.init: unknown kind "),
        ('"relu"', '"rellu"', "model.network.activation: unknown kind 'rellu'; did you mean 'relu'"),
        ("norm", "nrom", "model.init: Radial has no field 'nrom'; did you mean 'norm'"),
        ("norm", "zzz", "model.init: Radial has no field 'zzz'; it has norm"),
        (", norm = 0.8", "", "model.init: Radial needs the field 'norm'"),
        ("norm = 0.8", "norm = -1", "model.init: norm must be > 0, got -1"),
        ("norm = 0.8", 'norm = "1"', "model.init: norm must be a real number, got '1'"),
        ("ridge", "rigde", "model: Model has no field 'rigde'; did you mean 'ridge'"),
        ("ridge = 0.5", "ridge = -1", "model: ridge must be >= 0, got -1"),
        ("delta", "dleta", "model.data: .*'dleta'.*did you mean 'delta'"),
        (", delta = 0.5", "", "model.data: .*delta"),
        ("delta = 0.5", "delta = 2", "model.data: delta must be .* got 2"),
        ('"Network"', '"Radial"', "model.network: Radial has no field 'activation'"),
        ('{ kind = "relu" }', '"relu"', "model.network: activation must be .* got 'relu'"),
        ("horizon = 10.0", "horizon = ", r"not valid TOML: .*\(at line 2"),
    ],
)
def test_a_mistake_is_reported_with_file_and_place(right, wrong, message, tmp_path):
    path = tmp_path / "run.toml"
    assert right in GOOD
    path.write_text(GOOD.replace(right, wrong))
    with pytest.raises(ValueError, match=rf"run\.toml: {message}"):
        load_config(path)


def test_a_file_that_is_no_text_or_missing_says_so(tmp_path):
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"run\.toml: not a text file in UTF-8"):
        load_config(tmp_path / "run.toml")
    with pytest.raises(FileNotFoundError, match=r"absent\.toml"):
        load_config(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (
            {"f": print},
            TypeError,
            "f must be an object of mfcore or a plain value, got <built-in function print>",
        ),
        ({"run": {"save_at": None}}, ValueError, "run.save_at is None, which TOML cannot hold: leave it out"),
        ({"x": [1, {2: 3}]}, TypeError, r"x\[1\]: names of entries must be strings, got 2"),
        ({"x": {"kind": "Gaussian"}}, ValueError, "x: the name 'kind' is reserved for objects"),
        ({"x": np.array([1j])}, TypeError, r"x\[0\] must be an object of mfcore or a plain value, got 1j"),
        ([1, 2], TypeError, r"config must be an object of mfcore or a mapping .* got \[1, 2\]"),
        (3, TypeError, "config must be an object of mfcore or a mapping"),
    ],
)
def test_what_toml_cannot_hold_is_refused_by_place_and_nothing_is_written(config, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save_config(config, tmp_path / "run.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_law_given_by_a_callable_has_no_file(tmp_path):
    law = data.MultiIndex(4, lambda z: np.sin(z[:, 0]), directions=1)
    with pytest.raises((TypeError, ValueError), match=r"callable|lambda"):
        save_config({"law": law}, tmp_path / "run.toml")


def test_swapped_arguments_are_told_their_order(tmp_path):
    with pytest.raises(
        TypeError, match=r"path must be a file name, got .*; the order is save_config\(config, path\)"
    ):
        save_config(tmp_path / "run.toml", MODELS[0])
    with pytest.raises(TypeError, match="path must be a file name, got 3"):
        load_config(3)


def test_a_failed_save_keeps_the_older_file(tmp_path):
    path = tmp_path / "run.toml"
    save_config({"horizon": 1.0}, path)
    with pytest.raises(TypeError):
        save_config({"horizon": object()}, path)
    save_config({"horizon": 2.0}, path)
    assert load_config(path) == {"horizon": 2.0}
    assert [file.name for file in tmp_path.iterdir()] == ["run.toml"]


def test_a_new_frozen_dataclass_becomes_configurable_by_a_decorator(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))

    @registry.configurable
    @dataclass(frozen=True, kw_only=True)
    class Stepper:
        step: float
        start: Cloud | None = None
        tags: tuple[str, ...] = ()

    for stepper in (Stepper(step=0.1), Stepper(step=math.inf, start=Cloud([1.0, 2.0]))):
        save_config({"method": stepper}, tmp_path / "run.toml")
        back = load_config(tmp_path / "run.toml")["method"]
        assert (back.step, back.start) == (stepper.step, stepper.start)
        assert type(back) is Stepper
