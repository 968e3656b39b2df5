"""Activations by formulas: what is read, derivatives, files, and the two ways they are evaluated."""

import pickle
import re
import resource
import sys
from random import Random

import mfcore as mf
import numpy as np
import pytest
from mfcore.activations import _expression, expression
from scipy.special import erf

Z = np.linspace(-3.0, 3.0, 61)


@pytest.fixture(params=["numba", "numpy"])
def way(request, monkeypatch):
    """Formulas compiled by numba, or as functions of arrays."""
    if request.param == "numpy":
        monkeypatch.setattr(_expression, "find_spec", lambda name: None)
    _expression._compiled.cache_clear()
    yield request.param
    _expression._compiled.cache_clear()


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        (
            "sin(z) * z",
            (np.sin(Z) * Z, np.sin(Z) + Z * np.cos(Z), 2 * np.cos(Z) - Z * np.sin(Z)),
        ),
        (
            "z * (1 + erf(z / sqrt(2))) / 2",
            tuple(
                f(Z)
                for f in (
                    mf.activations.gelu,
                    mf.activations.gelu.derivative,
                    mf.activations.gelu.second_derivative,
                )
            ),
        ),
        ("2 * z + pi", (2 * Z + np.pi, 2 + 0 * Z, 0 * Z)),
    ],
)
def test_a_formula_has_its_value_and_two_derivatives(way, text, functions):
    sigma = expression(text)
    got = (sigma(Z), sigma.derivative(Z), sigma.second_derivative(Z))
    for one, other in zip(got, functions, strict=True):
        assert np.abs(one - other).max() < 2e-15 * 10  # roundings of numbers up to 10


def test_it_runs_where_ours_do_and_exactly_too(way):
    law, start = mf.data.MultiIndex(d=5, link={(1,): 1.0}, directions=1), mf.init.Radial(1.0)
    pair = [mf.Model(law, mf.Network(s), start) for s in (expression("erf(z)"), mf.activations.erf)]
    ends = [mf.solve(m, mf.SGD(40, 0.01), horizon=0.5, rng=0).final for m in pair]
    assert np.abs(np.subtract(*ends)).max() < 1e-13  # roundings, over 50 steps
    theta = np.random.default_rng(0).normal(size=(5, 5))
    ends = [mf.psi(m, theta, theta, expectation=mf.Exact()) for m in pair]
    assert np.abs(np.subtract(*ends)).max() < 1e-12


def test_it_pickles_and_stands_in_files_by_its_text(tmp_path):
    sigma = expression("tanh(z)**3")
    assert repr(sigma) == "mf.activations.expression('tanh(z)**3')"
    assert pickle.loads(pickle.dumps(sigma)) == sigma != expression("tanh(z)")
    network = mf.Network(sigma, bias="trained")
    mf.save_config(network, tmp_path / "network.toml")
    assert mf.load_config(tmp_path / "network.toml") == network
    assert 0.9 < sigma.strip < 1.571  # tanh has poles at ±iπ/2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').getcwd()", "text must be made of z, pi, numbers"),
        ("z.real", "text must be made of"),
        ("sin(z, z)", "text must be made of"),
        ("abs(z)", "text must be made of"),
        ("x + 1", "text must be made of"),
        ("True * z", "text must be made of"),
        ("9**9**9", "powers in text must be at most 1000"),
        ("(((9**999)**999)**999)*z", "text must have whole numbers of at most 2048 bits"),
        ("((9**300*z)**300)**300", "text must have whole numbers of at most 2048 bits"),
        ("exp(log(z**2 + 9**300))**300", "text must have whole numbers of at most 2048 bits"),
        ("z*1e300*10**10", "text must have numbers, also in its derivatives, of at most"),
        ("+".join(["z"] * 51), "text must have at most 100 numbers, operations and calls, got 101"),
        ("log(-9) * z", "text must be real and finite"),
        ("z + 1 / 0", "text must be real and finite"),
        ("z +", "text must be a formula in z"),
        ("", "text must be a formula in z"),
        ("1 / z", "finite at z = 0"),
        (3, "text must be"),
    ],
)
def test_what_is_no_formula_is_refused_in_words(text, words):
    with pytest.raises((ValueError, TypeError), match=words):
        expression(text)


@pytest.mark.parametrize("text", ["2**1000 * z", "z * 9**100 / 9**99", "z + 10**30 - 10**30 / 3"])
def test_whole_numbers_that_no_machine_word_holds_are_floats(way, text):
    assert expression(text)(0.5) == pytest.approx(eval(text, {"z": 0.5}), rel=1e-15)


def generated(rng, depth):
    """A formula, most of them of extreme numbers."""
    kind = rng.random() if depth else 1.0
    if kind < 0.55:
        one, two = generated(rng, depth - 1), generated(rng, depth - 1)
        return f"({one}){rng.choice(['+', '-', '*', '/', '**', '**'])}({two})"
    if kind < 0.75:
        return f"{rng.choice(_expression._FUNCTIONS)}({generated(rng, depth - 1)})"
    return rng.choice(["z", "z", "pi", "2", "3", "9", "999", "1e308", "1e-308", "0.1", "9" * 400])


def test_generated_formulas_are_read_or_refused_in_little_memory(monkeypatch, tmp_path):
    # without bounds such formulas took more than 3.5 GB
    monkeypatch.setattr(_expression, "find_spec", lambda name: None)
    rng, read = Random(0), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(100):
        text = generated(rng, 1 + k % 5)
        (tmp_path / "s.toml").write_text(f'kind = "expression"\ntext = "{text}"\n')
        refused = ""
        try:
            read += mf.load_config(tmp_path / "s.toml") == expression(text)
        except (ValueError, TypeError) as error:
            refused = str(error)
        assert not refused or re.search(r"\btext\b|must be finite at z = 0", refused)
    assert read >= 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def test_without_sympy_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    _expression._compiled.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'mfcore\[symbolic\]'"):
        expression("z**2")


def test_values_of_a_formula_are_scipys():
    assert abs(expression("erf(z)")(0.7) - erf(0.7)) < 1e-15
