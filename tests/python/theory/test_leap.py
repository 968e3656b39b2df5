"""Information exponent, leap and isoleap: published values, and all orders and many rotations."""

import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from mfcore.theory import _leap
from scipy import linalg, optimize


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


def searched(terms, rng, starts=12):
    """The isoleap by a search over rotations, of a target that depends on all of its directions.

    It is above k if there are m axes (m < P) to which no term adds 1 to k degrees: axes for which a sum of
    squares is zero. The search minimises it from many starts, by plain NumPy.
    """
    p, top = len(next(iter(terms))), max(map(sum, terms))
    nodes, weights = np.polynomial.hermite_e.hermegauss(top + 1)
    grid = np.array(list(itertools.product(nodes, repeat=p)))
    mass = np.prod(list(itertools.product(weights / weights.sum(), repeat=p)), axis=1)
    every = np.array([key for key in itertools.product(range(top + 1), repeat=p) if sum(key) <= top])
    scale = np.array([math.factorial(k) ** -0.5 for k in range(top + 1)])

    def products(z, keys):
        table = np.polynomial.hermite_e.hermevander(z, top) * scale
        return np.prod([table[:, j, keys[:, j]] for j in range(p)], axis=0)

    given, project = np.array(list(terms)), mass[:, None] * products(grid, every)
    values = np.array(list(terms.values())) / math.sqrt(sum(c * c for c in terms.values()))
    upper = np.triu_indices(p, 1)

    def added(angles, first, most):
        skew = np.zeros((p, p))
        skew[upper] = angles
        found = (products(grid @ linalg.expm(skew - skew.T).T, given) @ values) @ project
        degrees = every[:, first:].sum(axis=1)
        return found[(degrees >= 1) & (degrees <= most)]

    def stuck(first, most):
        for _ in range(starts if first else 1):
            start = rng.uniform(-np.pi, np.pi, len(upper[0]))
            small = {"xtol": 1e-10, "ftol": 1e-10, "gtol": 1e-10, "max_nfev": 80}
            least = optimize.least_squares(added, start, args=(first, most), **small)
            if np.abs(least.fun).max() < 1e-7:
                return True
        return False

    return next(k for k in itertools.count(1) if not any(stuck(m, k) for m in range(p)))


SEARCHED = [
    ({(1, 0): 1.0, (0, 1): 1.0, (1, 1): 1.0}, 2),
    ({(2, 0): 1.0, (0, 2): 1.0}, 2),
    ({(2, 0): 1.0, (0, 2): -0.7, (1, 2): 0.4}, 2),
    ({(1, 0): 1.0, (2, 0): 0.3, (1, 2): 1.0}, 2),
    ({(3, 0): 1.0, (1, 2): 1.0}, 3),
    ({(1, 0): 1.0, (0, 3): 1.0}, 3),
    ({(1, 0, 0): 1.0, (1, 1, 0): 1.0, (1, 1, 1): 1.0}, 1),
    ({(1, 0, 0): 1.0, (0, 1, 0): 1.0, (1, 1, 1): 1.0}, 2),
]


@pytest.mark.parametrize(("terms", "want"), SEARCHED)
def test_the_isoleap_is_what_a_search_over_rotations_finds(terms, want):
    rng = np.random.default_rng(3)
    tensor = _leap._tensor(terms)
    turned = _leap._rotated(tensor, np.linalg.qr(rng.normal(size=(tensor.ndim, tensor.ndim)))[0])
    known = {tuple(map(int, key)): float(turned[tuple(key)]) for key in np.argwhere(abs(turned) > 1e-12)}
    assert theory.isoleap(terms) == theory.isoleap(known) == want
    assert searched(known, rng) == want


def test_a_small_coefficient_counts_and_one_of_rounding_does_not():
    assert theory.isoleap({(1,): 1e-6, (3,): 1.0}) == theory.leap({(1,): 1e-6, (3,): 1.0}) == 1
    assert theory.isoleap({(1, 0): 1.0, (0, 3): 1e-6}) == 3
    assert theory.isoleap({(1,): 1e-6, (3,): 1.0}, tolerance=1e-5) == 3
    high = np.polynomial.hermite_e.herme2poly([0] * 20 + [math.factorial(20) ** -0.5])  # h_20
    law = mf.data.MultiIndex(9, np.polynomial.Polynomial(high), 1)
    for measure in (theory.information_exponent, theory.leap, theory.isoleap):
        assert measure(law) == 20


def test_functions_that_jump_have_the_exponent_of_their_exact_coefficients():
    def turned(z):
        return np.sign(z) - math.sqrt(2 / math.pi) * z  # E sgn(G)G = √(2/π)

    assert theory.information_exponent(turned) == 3
    assert theory.information_exponent(mf.data.MultiIndex(5, turned, 1)) == 3
    assert theory.leap(mf.data.MultiIndex(5, np.tanh, 1)) == 1
    with pytest.raises(ValueError, match=r"^link must have integrals of error below"):
        theory.information_exponent(lambda z: z * np.sign(np.sin(1e4 * z)))


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
