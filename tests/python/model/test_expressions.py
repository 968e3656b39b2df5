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
        ("abs(z, 1)", "text must be made of"),
        ("max(z)", "text must be made of"),
        ("max(sin(z), 0)", "so that its kinks are known; got sin"),
        ("abs(z**9 - z)", "polynomials of degree at most 8"),
        ("Piecewise((1, z > 0), (0, True))", "text must be continuous, but at z = 0 it jumps from 0 to 1"),
        ("Piecewise((z, z > 0))", r"Piecewise in text must end with \(formula, True\)"),
        ("Piecewise((z, 0 < z < 1), (0, True))", r"Piecewise in text must have pairs \(formula, condition\)"),
        ("sqrt(abs(z - 1))", "text must have finite slopes, but at z = 1 it has not"),
        ("1 / max(z - 1, 0)", "text must be real and finite"),
        ("+".join(f"abs(z-{k})" for k in range(20)), "text must have at most 100"),
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


def ramp(z):
    return np.maximum(z, 0)


@pytest.mark.parametrize(
    ("text", "value", "kinks"),
    [
        ("Piecewise((z, z > 0), (exp(z) - 1, True))", lambda z: np.where(z > 0, z, np.expm1(z)), [0]),
        ("max(tanh(z), 0)", lambda z: ramp(np.tanh(z)), [0]),
        ("max(z, 0)**2", lambda z: ramp(z) ** 2, [0]),
        ("abs(z)**2", lambda z: z * z, []),
        ("min(z**2, 1)", lambda z: np.minimum(z * z, 1), [-1, 1]),
        ("max(z**3 - z, 0, z - 1)", lambda z: np.maximum(ramp(z**3 - z), z - 1), [-1, 0, 1]),
        ("max(exp(z), 2)", lambda z: np.maximum(np.exp(z), 2), [np.log(2)]),
        ("z / (1 + abs(z))", lambda z: z / (1 + abs(z)), [0]),
    ],
)
def test_formulas_with_kinks_find_them_and_hold_between_them(way, text, value, kinks):
    sigma, h = expression(text), 1e-5
    np.testing.assert_allclose(sigma.kinks, kinks, rtol=1e-15)
    np.testing.assert_allclose(sigma(Z), value(Z), rtol=1e-14, atol=1e-14)
    off = Z + 0.0123  # more than h from all kinks
    for order, of in ((1, sigma), (2, sigma.derivative)):
        want = (of(off + h) - of(off - h)) / (2 * h)
        got = sigma.derivative(off) if order == 1 else sigma.second_derivative(off)
        np.testing.assert_allclose(got, want, atol=1e-8)  # h² times a third derivative, of at most 50
    orders = (sigma, sigma.derivative, sigma.second_derivative)
    assert not kinks or all(np.isnan(f(np.nan)) for f in orders)
    assert sigma.strip >= 1


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("max(z, 0)", mf.activations.piecewise_linear([0.0], [0.0], right_slope=1.0)),
        ("abs(z)", mf.activations.piecewise_linear([0.0], [0.0], left_slope=-1.0, right_slope=1.0)),
        ("min(max(z, -1), 1)", mf.activations.piecewise_linear([-1.0, 1.0], [-1.0, 1.0])),
        (
            "Piecewise((2*z, z >= 1), (1 + z, z >= 0.5), (1.5, True))",
            mf.activations.piecewise_linear([0.5, 1.0], [1.5, 2.0], right_slope=2.0),
        ),
    ],
)
def test_formulas_of_lines_are_piecewise_linear_with_their_closed_forms(text, same):
    sigma, theta = expression(text), np.random.default_rng(1).normal(size=(6, 4))
    assert sigma.pieces == same.pieces
    models = [mf.Model(mf.data.Linear(np.ones(3)), mf.Network(s, bias="trained")) for s in (sigma, same)]
    one, two = (mf.grad_psi(model, theta, theta) for model in models)
    assert np.array_equal(one, two)
    assert np.array_equal(*(mf.U(model, theta, theta) for model in models))
    assert pickle.loads(pickle.dumps(sigma)) == sigma


def test_averages_of_formulas_with_kinks_are_cut_at_them():
    # E (g₊)² = R²/2, E (g₊)⁴ = 3R⁴/2, and ∇_w E (g₊)² (h₊)² for h = g
    model = mf.Model(mf.data.Linear(np.zeros(2)), mf.Network(expression("max(z, 0)**2")))
    w = np.array([[0.6, 0.8], [1.8, -2.4]])
    assert mf.activations.gaussian_mean(expression("max(z, 0)**2"), 0.0, 3.0) == pytest.approx(4.5, rel=1e-12)
    np.testing.assert_allclose(np.diag(mf.U(model, w, w)), [1.5, 1.5 * 81], rtol=1e-11)  # slow quadrature


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
