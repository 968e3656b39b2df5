"""A model joins what fits together, and nothing else."""

import copy
import math
import pickle
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from mfcore import activations, data, init, model, network
from mfcore.model import Model
from mfcore.network import Network

LAW = data.IsotropicGaussians(d=5, delta=0.5)
LIMIT = data.IsotropicGaussians(d=math.inf, delta=0.5)
NET = Network(activations.relu, output="trained")
START = init.Product(a=init.Uniform(-1, 1), w=init.Radial(0.8))


def test_a_model_knows_the_row_of_its_network():
    assert (Model(LAW, NET, START).d, Model(LAW, NET, START).row) == (5, 6)
    assert (Model(LIMIT, NET, START).d, Model(LIMIT, NET, START).row) == (math.inf, None)


def test_numbers_become_floats_and_mappings_are_copied():
    rates = {"a": 2}
    m = Model(LAW, NET, ridge=np.float32(0.5), temperature=1, rates=rates)
    rates["a"] = 99
    assert (m.ridge, m.temperature, m.rates) == (0.5, 1.0, {"a": 2.0})
    assert type(m.ridge) is type(m.temperature) is float
    assert m.init is None
    assert Model(LAW, NET, rates={}).rates is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"data": "gaussian"}, TypeError, "data must be a data law from mfcore.data, got 'gaussian'"),
        ({"network": activations.relu}, TypeError, "network must be an mf.Network, got "),
        ({"init": 0.1}, TypeError, "init must be an initial law from mfcore.init, got 0.1"),
        ({"init": init.Gaussian}, TypeError, r"init must be an initial law .*; call it: Gaussian\(\.\.\.\)"),
        ({"init": init.Radial(1)}, ValueError, "init must give a law of a"),
        (
            {"init": init.Points(np.ones((3, 5)))},
            ValueError,
            r"theta must have rows \[a, w…\] of length 6 for d = 5",
        ),
        ({"data": LIMIT, "init": init.Gaussian(0.1)}, ValueError, r"init must keep \|w\| finite at d = inf"),
        ({"ridge": -1}, ValueError, "ridge must be >= 0, got -1"),
        ({"temperature": math.inf}, ValueError, "temperature must be finite and >= 0, got inf"),
        ({"rates": 2.0}, TypeError, re.escape('rates must be a mapping such as {"a": 2.0}, got 2.0')),
        (
            {"rates": {"b": 1}},
            ValueError,
            r"rates must name trained blocks \(a, w\), got 'b', which does not exist",
        ),
        ({"rates": {"w": 0}}, ValueError, r"rates\['w'\] must be > 0, got 0"),
        (
            {"rates": {"a": 1}, "network": Network(activations.relu, output="fixed")},
            ValueError,
            r"rates must name trained blocks \(w\), got 'a', which is fixed in Network",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        Model(**{"data": LAW, "network": NET, "init": START, **changes})


def test_replace_changes_a_field_and_checks_again():
    m = Model(LAW, NET, START, ridge=0.1)
    other = m.replace(temperature=0.5)
    assert (m.temperature, other.temperature, other.ridge) == (0.0, 0.5, 0.1)
    with pytest.raises(ValueError, match="ridge must be >= 0, got -1"):
        m.replace(ridge=-1)
    with pytest.raises(
        TypeError, match=r"replace takes the fields of a model .*got 'rate'; did you mean 'rates'\?"
    ):
        m.replace(rate={"a": 1})


def test_models_compare_hash_and_pickle_by_value():
    m = Model(LAW, NET, START, ridge=0.1, rates={"a": 2.0})
    for twin in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), m.replace()):
        assert twin == m
        assert hash(twin) == hash(m)
    assert m != m.replace(rates={"a": 3.0})
    with pytest.raises(AttributeError, match="cannot assign to field"):
        m.ridge = 0.2


def test_the_repr_is_an_expression_and_the_text_a_table():
    m = Model(LAW, NET, START, temperature=0.25, rates={"a": 2.0})
    package = ModuleType("mf")
    package.activations = activations
    names = {**vars(activations), **vars(init), **vars(data), **vars(network), **vars(model), "mf": package}
    assert eval(repr(m), names) == m
    assert "ridge" not in repr(m)
    lines = str(m).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "data",
        "network",
        "init",
        "ridge",
        "temperature",
        "rates",
    ]
    assert lines[4].split() == ["ridge", "0.0"]


def test_reduce_hands_model_and_options_to_the_reductions(monkeypatch):
    reductions = ModuleType("mfcore.reductions._of_laws")
    reductions.build = lambda model, limit, nodes: (model, limit, nodes)
    monkeypatch.setitem(sys.modules, "mfcore.reductions._of_laws", reductions)
    m = Model(LAW, NET, START)
    assert m.reduce(nodes=7) == (m, False, 7)
