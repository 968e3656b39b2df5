"""Links: Hermite polynomials, Fourier monomials and callables against slow references."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import data
from mfcore.data import _links
from scipy.special import eval_hermitenorm, factorial

FOURIER = {(): 0.25, (0,): 1.0, (0, 1): -2.0, (0, 1, 2): 0.5}


def reference_label(terms, z):
    """One sample at a time, from the definition."""
    return sum(
        c * np.prod([eval_hermitenorm(k, t) / math.sqrt(factorial(k)) for k, t in zip(key, z, strict=True)])
        for key, c in terms.items()
    )


@settings(max_examples=20, deadline=None)
@given(
    d=st.integers(1, 40),
    p=st.integers(1, 5),
    coefficients=st.lists(st.floats(-2, 2), min_size=1, max_size=6),
    seed=st.integers(0, 100),
)
def test_projections_of_any_size_agree_with_numpy(d, p, coefficients, seed):
    p = min(p, d)
    rows = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0][:p]
    terms = {(k,) + (1,) * (p - 1): c for k, c in enumerate(coefficients)}
    law = data.MultiIndex(d, terms, rows)
    X, y = law.draw(9, rng=seed)
    expected = [reference_label(terms, rows @ x) for x in X]
    np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-11)  # degree 5 at |z| up to 5


def test_hermite_polynomials_are_orthonormal():
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    table = _links.hermite_table(nodes, 30)
    gram = (table.T * weights / math.sqrt(2 * math.pi)) @ table
    # The rule is exact to degree 79; what is left is rounding in weights that range over 30 decades.
    np.testing.assert_allclose(gram, np.eye(31), atol=1e-12)


def test_compiled_hermite_polynomials_agree_with_the_python_ones():
    z = np.linspace(-4, 4, 33)
    for k in range(13):
        law = data.MultiIndex(1, [0.0] * k + [1.0], 1)
        np.testing.assert_allclose(
            law._link(z[:, None]), _links.hermite_table(z, k)[:, k], rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize(
    ("link", "terms"),
    [
        (lambda z: z[:, 0] ** 2, {(0,): 1.0, (2,): math.sqrt(2)}),
        (lambda z: z[:, 0] * z[:, 1], {(1, 1): 1.0}),
        (lambda z: z[:, 0] * z[:, 1] * z[:, 2] + 2.0, {(0, 0, 0): 2.0, (1, 1, 1): 1.0}),
        (lambda z: z[:, 0] ** 10, None),
        (lambda z: 0 * z[:, 0], {}),
    ],
)
def test_polynomials_given_as_callables_are_recognised(link, terms):
    p = 1 if terms is None or not terms else len(next(iter(terms)))
    found = data.MultiIndex(6, link, p)._hermite
    assert found is not None
    if terms is not None:
        assert found.keys() == terms.keys()
        assert all(found[key] == pytest.approx(c, rel=1e-13) for key, c in terms.items())
    z = np.random.default_rng(0).normal(size=(50, p))
    rebuilt = data.MultiIndex(6, found, p)._link(z) if found else np.zeros(50)
    # 1e-12 of the L² norm (26 000 for z^10), times a few for points off the nodes.
    np.testing.assert_allclose(rebuilt, link(z), atol=1e-12 * max(1.0, np.abs(link(z)).max()), rtol=1e-10)


def test_a_function_may_be_a_polynomial_to_twelve_digits():
    found = data.MultiIndex(6, lambda z: np.sin(z[:, 0]), 1)._hermite
    # E sin(G) h_k(G) = ± e^{-1/2}/√k! for odd k; the terms beyond degree 30 have norm e^{-1/2}/√31! = 7e-18.
    for k in range(1, 20, 2):
        expected = (-1) ** ((k - 1) // 2) * math.exp(-0.5) / math.sqrt(math.factorial(k))
        assert found[(k,)] == pytest.approx(expected, abs=1e-14)
    assert data.MultiIndex(6, found, 1).target_power() == pytest.approx((1 - math.exp(-2)) / 2, rel=1e-13)


@pytest.mark.parametrize(
    "link",
    [
        lambda z: np.abs(z[:, 0]),
        lambda z: np.sin(3 * z[:, 0]),
        lambda z: z[:, 0] ** 31,
        lambda z: np.tanh(z[:, 0]),
        lambda z: np.exp(z[:, 0] ** 4),
    ],
)
def test_other_callables_are_not_taken_for_polynomials(link):
    law = data.MultiIndex(6, link, 1)
    assert law._parts() is None
    assert law.target_power() is None


def test_enumeration_recovers_fourier_coefficients_exactly():
    law = data.MultiIndex(6, FOURIER, 3, inputs="hypercube", noise=0.3)
    nodes = law._node_sampler
    assert law._nodes == nodes.size == 64
    X, y = nodes.draw(0, 0, 64)
    assert len({tuple(x) for x in X}) == 64
    for size in range(7):
        for key in itertools.combinations(range(6), size):
            assert (y * X[:, list(key)].prod(axis=1)).mean() == FOURIER.get(key, 0.0)


def test_a_link_of_one_direction_may_be_a_function_of_numbers():
    numbers = data.MultiIndex(4, np.tanh, 1, noise=0.1)
    rows = data.MultiIndex(4, lambda z: np.tanh(z[:, 0]), 1, noise=0.1)
    for mine, theirs in zip(numbers.draw(100, rng=0), rows.draw(100, rng=0), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert data.MultiIndex(4, np.square, 1).target_power() == pytest.approx(3)
    with pytest.raises(ValueError, match=r"link must map shape \(2, 2\) to \(2,\), got \(2, 1\)"):
        data.MultiIndex(4, lambda z: z[:, :1], 2)
