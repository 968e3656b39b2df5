"""Checks of arguments: what passes, what is refused and in which words."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore._base import check


class Exporter:
    """A foreign array: nothing but the DLPack protocol around a NumPy array."""

    def __init__(self, values, failure=None):
        self.values, self.failure = values, failure

    def __dlpack__(self, **kwargs):
        if self.failure is not None:
            raise self.failure
        return self.values.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


ONE_AND_A_HALF = [1.5, np.float32(1.5), np.longdouble(1.5), np.float16(1.5), np.array(1.5), Fraction(3, 2)]


@pytest.mark.parametrize("value", ONE_AND_A_HALF, ids=lambda v: type(v).__name__)
def test_every_kind_of_real_number_becomes_a_float(value):
    x = check.number(value, "step")
    assert type(x) is float
    assert x == 1.5


NOT_REAL = [True, np.True_, np.array(True), "1.5", np.array("1.5"), np.str_("1"), 1j, np.complex128(1), None]
NOT_REAL += [[1.0], np.ones(1), Decimal("1.5"), np.ma.masked, np.ma.array(1.0), np.array(1.0, dtype=object)]


@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
def test_what_is_not_one_real_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"^step must be a real number, got "):
        check.number(value, "step")
    with pytest.raises(TypeError, match=r"^cells must be an integer, got "):
        check.integer(value, "cells")


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (-0.1, {"above": 0}, "step must be > 0, got -0.1"),
        (0, {"above": 0}, "step must be > 0, got 0"),
        (np.float64(-0.1), {"at_least": 0}, "step must be >= 0, got -0.1"),
        (2, {"above": 0, "below": 1}, "step must be > 0 and < 1, got 2"),
        (2, {"at_least": 0, "at_most": 1}, "step must be >= 0 and <= 1, got 2"),
        (math.nan, {}, "step must be finite, got nan"),
        (math.nan, {"above": 0}, "step must be finite and > 0, got nan"),
        (math.nan, {"finite": False}, "step must be a number, got nan"),
        (math.inf, {"above": 0}, "step must be finite and > 0, got inf"),
        (-math.inf, {"above": 0, "finite": False}, "step must be > 0, got -inf"),
        (np.float32("nan"), {}, "step must be finite, got nan"),
        (-(10**400), {}, "step must be finite, got -1000"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_rule_and_value(value, bounds, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        check.number(value, "step", **bounds)


def test_infinities_pass_where_they_are_allowed():
    assert check.number(math.inf, "d", finite=False) == math.inf
    assert check.number(math.inf, "d", above=0, finite=False) == math.inf
    assert check.number(0, "x", at_least=0, at_most=0) == 0


@given(n=st.integers(-(2**80), 2**80))
def test_integers_of_any_size_pass_unchanged(n):
    assert check.integer(n, "seed") == n


def test_whole_floats_and_numpy_integers_are_integers():
    for value in (
        3,
        3.0,
        np.int8(3),
        np.uint64(3),
        np.float32(3),
        np.longdouble(3),
        np.array(3),
        Fraction(3),
    ):
        n = check.integer(value, "cells", at_least=3, at_most=3)
        assert type(n) is int
        assert n == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2.5, "cells must be an integer, got 2.5"),
        (math.inf, "cells must be an integer, got inf"),
        (math.nan, "cells must be an integer, got nan"),
        (0, "cells must be >= 1, got 0"),
        (12, "cells must be <= 9, got 12"),
    ],
)
def test_a_wrong_integer_is_refused_with_rule_and_value(value, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        check.integer(value, "cells", at_least=1, at_most=9)


def test_only_truth_values_are_boolean():
    assert check.boolean(np.True_, "sphere") is True
    for value in (1, "yes", None, np.array([True])):
        with pytest.raises(TypeError, match=r"^sphere must be True or False, got "):
            check.boolean(value, "sphere")


def test_a_misspelt_choice_names_the_closest_option():
    assert check.choice("one", "output", ["one", "fixed"]) == "one"
    with pytest.raises(
        ValueError, match=r"^output must be one of 'one', 'fixed', got 'Fixd'; did you mean 'fixed'\?$"
    ):
        check.choice("Fixd", "output", ["one", "fixed"])
    with pytest.raises(ValueError, match=r"^output must be one of 'one', 'fixed', got 7$"):
        check.choice(7, "output", ["one", "fixed"])


def test_a_class_in_place_of_an_object_is_told_to_be_called():
    check.instance(3, "n", int, "a count")
    with pytest.raises(TypeError, match=r"^n must be a count, got 'three'$"):
        check.instance("three", "n", int, "a count")
    with pytest.raises(TypeError, match=r"^n must be a fraction, got .*; call it: Fraction\(\.\.\.\)$"):
        check.instance(Fraction, "n", Fraction, "a fraction")


def test_a_long_value_is_quoted_on_one_short_line():
    class Chatty:
        def __repr__(self):
            return "line\n" * 1000

    for value in (list(range(10**5)), np.zeros((300, 300)), "x" * 10**5, Chatty(), 10**4000):
        text = check.shown(value)
        assert len(text) < 120
        assert "\n" not in text


LAYOUTS = {
    "lists": [[1, 2, 3], [4, 5, 6]],
    "tuples": ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
    "float32": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32),
    "float16": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float16),
    "long double": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.longdouble),
    "big-endian": np.array([[1, 2, 3], [4, 5, 6]], dtype=">f8"),
    "unsigned": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8),
    "Fortran order": np.asfortranarray([[1.0, 2, 3], [4, 5, 6]]),
    "strided": np.array([[1.0, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0]])[:, ::2],
    "reversed": np.array([[4.0, 5, 6], [1, 2, 3]])[::-1],
    "masked without masks": np.ma.array([[1.0, 2, 3], [4, 5, 6]]),
    "DLPack": Exporter(np.array([[1.0, 2, 3], [4, 5, 6]])),
    "DLPack float32": Exporter(np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_becomes_a_row_major_float64_array(layout):
    out = check.array(LAYOUTS[layout], "theta", shape=(None, 3))
    assert type(out) is np.ndarray
    assert out.dtype == np.float64
    assert out.dtype.isnative
    assert out.flags.carray
    assert out.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_an_array_that_fits_is_used_without_a_copy():
    theta = np.ones((4, 3))
    assert check.array(theta, "theta") is theta
    shared = check.array(Exporter(theta), "theta")
    assert np.shares_memory(shared, theta)


def test_an_unaligned_array_is_copied_into_place():
    packed = np.zeros(3, dtype=np.dtype([("tag", "i1"), ("value", "f8")]))
    packed["value"] = [1, 2, 3]
    out = check.array(packed["value"], "theta")
    assert out.flags.aligned
    assert out.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.int64])
def test_the_input_is_never_written_and_may_be_read_only(dtype):
    theta = np.arange(6, dtype=dtype).reshape(2, 3)
    theta.flags.writeable = False
    before = theta.tobytes()
    out = check.array(theta, "theta", shape=(2, 3))
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert theta.tobytes() == before
    assert not theta.flags.writeable


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([[1.0, math.nan]], ValueError, "theta must be finite, got nan at [0, 1]"),
        ([[1.0, 2.0], [-math.inf, 0]], ValueError, "theta must be finite, got -inf at [1, 0]"),
        (math.inf, ValueError, "theta must be finite, got inf"),
        ([1 + 2j], TypeError, "theta must hold real numbers, got dtype complex128"),
        ([True, False], TypeError, "theta must hold real numbers, got dtype bool"),
        (["1", "2"], TypeError, "theta must hold real numbers, got dtype <U1"),
        (None, TypeError, "theta must hold real numbers, got None"),
        ({1.0, 2.0}, TypeError, "theta must hold real numbers, got {1.0, 2.0}"),
        ([1.0, None], TypeError, "theta must hold real numbers, got None among its entries"),
        ([10**30, 1], TypeError, "theta must hold real numbers, got 1000000000000000000000000000000 among"),
        (
            np.array(["2020-01-01"], dtype="M8[D]"),
            TypeError,
            "theta must hold real numbers, got dtype datetime64",
        ),
        ([[1.0], [1.0, 2.0]], ValueError, "theta must be a rectangular array of numbers: "),
        ([], ValueError, "theta must not be empty, got shape (0,)"),
        (np.zeros((0, 3)), ValueError, "theta must not be empty, got shape (0, 3)"),
        (
            np.ma.array([1.0, 2.0], mask=[0, 1]),
            ValueError,
            "theta must not have masked entries, got 1 of them",
        ),
        (
            Exporter(np.ones(2), BufferError("it needs gradients")),
            TypeError,
            "theta must be an array that NumPy can share: it needs gradients",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_argument_rule_and_value(value, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        check.array(value, "theta")


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        (np.ones(3), (None, 3), "X must have shape (any, 3), got (3,)"),
        (np.ones((2, 4)), (None, 3), "X must have shape (any, 3), got (2, 4)"),
        (np.ones((2, 3, 1)), (2, 3), "X must have shape (2, 3), got (2, 3, 1)"),
        (1.0, (None,), "X must have shape (any,), got (); a single number goes in a list, [1.0]"),
        ([1.0, 2.0], (3,), "X must have shape (3,), got (2,)"),
    ],
)
def test_a_wrong_shape_is_refused_with_both_shapes(value, shape, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        check.array(value, "X", shape=shape)


def test_a_long_double_beyond_float64_is_not_finite():
    largest = np.finfo(np.longdouble).max  # that of float64 where the two are one type
    if largest > np.finfo(np.float64).max:
        with pytest.raises(ValueError, match=r"^theta must be finite, got 1\.\d+e\+4932 at \[1\]$"):
            check.array([np.longdouble(1), largest], "theta")
    else:
        assert check.array([largest], "theta").tolist() == [float(largest)]


def test_scalars_and_empty_arrays_pass_where_they_are_allowed():
    assert check.array(2, "c").shape == ()
    assert check.array(np.float32(2), "c", shape=()) == 2.0
    assert check.array([], "knots", empty=True).shape == (0,)
    assert check.array(np.zeros((0, 3)), "X", shape=(None, 3), empty=True).shape == (0, 3)


@pytest.mark.parametrize("size", [3, 3 * 4096])
def test_small_and_large_arrays_pass_and_fail_alike(size):
    good = np.full((size // 3, 3), 1e300)  # finite, their squares are not
    good.flags.writeable = False
    assert check.array(good, "x", shape=(None, 3)) is good
    assert check.finite(good)
    for bad in (math.nan, math.inf, -math.inf):
        wrong = np.zeros((size // 3, 3))
        wrong[0, 1] = bad
        assert not check.finite(wrong)
        with pytest.raises(ValueError, match=re.escape(f"x must be finite, got {bad} at [0, 1]")):
            check.array(wrong, "x")
    with pytest.raises(ValueError, match=r"x must have shape \(2, any\)"):
        check.array(np.ones((3, size)), "x", shape=(2, None))


@pytest.mark.parametrize("at", [0, 5000, 999_999])
def test_a_view_of_a_large_array_is_finite_where_it_is_looked_at(at):
    whole = np.ones((1000, 2000))
    whole[:, 1::2] = math.nan
    seen = whole[:, ::2]
    assert check.finite(seen)
    seen.flat[at] = math.inf
    assert not check.finite(seen)
    place = f"[{at // 1000}, {at % 1000}]"
    with pytest.raises(ValueError, match=re.escape(f"x must be finite, got inf at {place}")):
        check.array(seen, "x")


RAGGED = [1, [2]]
LINEAR = mf.Network(mf.activations.linear)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cov", lambda: mf.data.Linear([1.0, 2.0], cov=RAGGED)),
        ("directions", lambda: mf.data.MultiIndex(2, [0.0, 1.0], RAGGED)),
        ("edges", lambda: mf.Density([[0.0, 1.0], RAGGED], [1.0])),
        ("kinks", lambda: mf.activations.custom(np.sin, slope=np.cos, kinks=RAGGED)),
        ("cells", lambda: mf.gibbs(mf.Model(mf.data.Linear([1.0]), LINEAR, temperature=1.0), cells=RAGGED)),
        ("ridge", lambda: mf.Model(mf.data.Linear([1.0]), LINEAR, ridge=RAGGED)),
        ("temperature", lambda: mf.Model(mf.data.Linear([1.0]), LINEAR, temperature=RAGGED)),
    ],
)
def test_ragged_lists_are_refused_by_the_name_of_their_argument(name, call):
    with pytest.raises((TypeError, ValueError), match=f"^{name}"):
        call()
