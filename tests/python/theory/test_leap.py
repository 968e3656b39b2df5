"""Information exponent, leap and isoleap: published values, and all orders and many rotations."""

import itertools

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from mfcore.theory import _leap


def sets(*keys):
    """Monomials with coordinates counted from 1, as the publication has them."""
    return [tuple(j - 1 for j in key) for key in keys]


PUBLISHED = [
    (sets((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), 1),
    (sets((1,), (2,), (2, 3, 4)), 2),
    (sets((1,), (1, 2, 3), (2, 3, 4, 5, 6, 7)), 4),
    (sets((1, 2, 3), (2, 3, 4)), 3),
    ({(5,): 1.0}, 5),
    ({(2, 0, 0): 1.0, (2, 4, 0): 1.0, (2, 4, 3): 1.0}, 4),
    ({(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): 1.0, (3, 0, 8): 1.0}, 2),
    ({(1, 0): 1.0, (0, 1): 1.0, (1, 1): 1.0}, 1),
]


@pytest.mark.parametrize(("target", "want"), PUBLISHED)
def test_leaps_are_the_published_ones(target, want):
    assert theory.leap(target) == want


def test_the_isoleap_is_the_published_one():
    assert theory.isoleap({(1, 0): 1.0, (0, 1): 1.0, (1, 1): 1.0}) == 2


KEYS = st.lists(st.tuples(*[st.integers(0, 3)] * 4).filter(any), min_size=1, max_size=5, unique=True)


@given(KEYS)
def test_the_leap_is_the_least_over_all_orders(keys):
    def largest(order):
        seen, most = np.zeros(4, dtype=bool), 0
        for key in map(np.array, order):
            most = max(most, key[~seen].sum())
            seen |= key > 0
        return most

    assert theory.leap(dict.fromkeys(keys, 1.0)) == min(map(largest, itertools.permutations(keys)))


SMALL = st.dictionaries(
    st.tuples(*[st.integers(0, 2)] * 3).filter(any), st.sampled_from([-1.0, 0.5, 2.0]), min_size=1, max_size=4
)


@given(SMALL, st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_no_axes_have_a_leap_above_the_isoleap_and_rotations_do_not_change_it(terms, seed):
    rng = np.random.default_rng(seed)
    iso, tensor = theory.isoleap(terms), _leap._tensor(terms)
    assert theory.leap(terms) <= iso
    for axes in (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(3)):
        rotated = _leap._rotated(tensor, axes)
        known = {tuple(map(int, key)): float(rotated[tuple(key)]) for key in np.argwhere(abs(rotated) > 1e-9)}
        assert theory.leap(known) <= iso
        assert theory.isoleap(known) == iso


def test_a_rotation_keeps_the_function():
    terms = {(2, 1): 0.7, (0, 3): -1.1, (1, 0): 0.4}
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    rotated, z = _leap._rotated(_leap._tensor(terms), axes), np.random.default_rng(1).normal(size=(50, 2))

    def value(tensor, points):
        table = _leap.hermite_table(points, 3)
        return np.einsum("ab,na,nb->n", tensor, table[:, 0], table[:, 1])

    assert np.abs(value(rotated, z) - value(_leap._tensor(terms), z @ axes.T)).max() < 1e-11


def test_laws_and_functions_are_understood():
    staircase = mf.data.Staircase(30, [(0,), (0, 1), (0, 1, 2)])
    assert theory.leap(staircase) == 1
    assert theory.leap(mf.data.MultiIndex(9, {(3, 0): 1.0, (3, 1): 1.0}, 2)) == 3
    assert theory.isoleap(mf.data.MultiIndex(9, {(3, 0): 1.0, (3, 1): 1.0}, 2)) == 3
    assert theory.information_exponent(mf.data.MultiIndex(9, [0.3, 0.0, 1.0], 1)) == 2
    assert theory.information_exponent({(2, 1): 1.0, (0, 4): 1.0}) == 3
    for k in range(1, 6):
        hermite = np.polynomial.hermite_e.HermiteE.basis(k)
        assert theory.information_exponent(hermite) == k
    assert theory.information_exponent(np.tanh) == 1
    assert theory.information_exponent(np.abs) == 2


def test_mistakes_name_argument_rule_and_value():
    with pytest.raises(ValueError, match=r"^link must depend on its argument"):
        theory.information_exponent([1.0, 0.0])
    with pytest.raises(ValueError, match=r"^target must have a term with a coordinate"):
        theory.leap([()])
    with pytest.raises(TypeError, match=r"^target must be a list of tuples, a dict or a data law, got 3"):
        theory.leap(3)
    with pytest.raises(ValueError, match=r"tuples of degrees must have one length"):
        theory.leap({(1,): 1.0, (1, 2): 1.0})
    with pytest.raises(ValueError, match=r"Gaussian inputs"):
        theory.isoleap(mf.data.Staircase(5, [(0,)]))
    with pytest.raises(ValueError, match=r"\(degree \+ 1\)\^P"):
        theory.isoleap({(1,) * 20: 1.0})


def test_a_link_of_rows_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^link must be a function of one number, .* got too many"):
        theory.information_exponent(lambda z: z[:, 0])
