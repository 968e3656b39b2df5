"""Hermite series, polynomials and pieces against NumPy, and the behaviour of the Python objects."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore import activations as act
from problems import BENT, STEP

SERIES = [act.polynomial([1.0, -2.0, 0.5, 3.0]), act.hermite([0.3, 1.0, -2.0, 0.5, 0.25])]
SMOOTH = [act.erf, act.tanh, act.sigmoid, act.softplus, act.gelu, act.silu, act.sin, act.cos, *SERIES]
ALL = [*SMOOTH, act.linear, act.relu, STEP, BENT]


# ---------------------------------------------------------------- series and pieces


@given(
    coefficients=st.lists(st.floats(-3, 3), min_size=1, max_size=90),
    z=st.lists(st.floats(-4, 4), min_size=1, max_size=20),
)
@settings(max_examples=60, deadline=None)
def test_hermite_agrees_with_numpy(coefficients, z):
    he = np.polynomial.hermite_e
    # numpy's polynomials are not normalised
    scaled = [c / math.sqrt(math.factorial(k)) for k, c in enumerate(coefficients)]
    sigma = act.hermite(coefficients)
    # |h_k(t)| <= exp(t²/4) <= 55; 90 of them, times k for the second derivative, each with its rounding
    size = 55 * sum(abs(c) * (1 + k) for k, c in enumerate(coefficients))
    for order, f in enumerate((sigma, sigma.derivative, sigma.second_derivative)):
        np.testing.assert_allclose(
            f(z), he.hermeval(z, he.hermeder(scaled, order)), rtol=0, atol=1e-13 * size
        )


def test_hermite_polynomials_are_orthonormal_under_the_normal_law():
    t, w = np.polynomial.hermite_e.hermegauss(60)
    h = np.array([act.hermite(row)(t) for row in np.eye(12)])
    np.testing.assert_allclose((h * w / math.sqrt(2 * math.pi)) @ h.T, np.eye(12), atol=1e-12)  # 60 roundings


@given(
    coefficients=st.lists(st.floats(-3, 3), min_size=1, max_size=12),
    z=st.lists(st.floats(-2, 2), min_size=1, max_size=20),
)
@settings(max_examples=60, deadline=None)
def test_polynomial_agrees_with_numpy(coefficients, z):
    sigma, reference = act.polynomial(coefficients), np.polynomial.Polynomial(coefficients)
    for order, f in enumerate((sigma, sigma.derivative, sigma.second_derivative)):
        expected = reference.deriv(order)(np.array(z)) if order else reference(np.array(z))
        # 12 terms of size at most 3·12²·2¹¹ = 1e6
        np.testing.assert_allclose(f(z), expected, rtol=0, atol=1e-9)


@st.composite
def _pieces(draw):
    # gaps of at least 2^-10 keep the slopes, and with them the rounding, bounded
    knots = sorted(draw(st.sets(st.integers(-2048, 2048), min_size=1, max_size=6)))
    number = st.integers(-64, 64).map(lambda k: k / 16)
    values = [draw(number) for _ in knots]
    return act.piecewise_linear([k / 1024 for k in knots], values, draw(number), draw(number))


def _piecewise_reference(s, z):
    inner = np.interp(z, s.knots, s.values)
    return (
        inner + s.left_slope * np.minimum(z - s.knots[0], 0) + s.right_slope * np.maximum(z - s.knots[-1], 0)
    )


@given(sigma=_pieces(), z=st.lists(st.floats(-5, 5), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_piecewise_linear_agrees_with_interpolation(sigma, z):
    z = np.array(z)
    # slopes reach 8·1024 = 1e4 and add up over 6 knots; arguments are rounded to 1e-15
    np.testing.assert_allclose(sigma(z), _piecewise_reference(sigma, z), atol=1e-10)
    p = sigma.pieces
    ramps = sum(j * np.maximum(z - k, 0) for j, k in zip(p.jumps, p.knots, strict=True))
    np.testing.assert_allclose(sigma(z), p.offset + p.left_slope * z + ramps, atol=1e-10)


def test_piecewise_linear_passes_through_its_knots_and_keeps_its_ends():
    assert STEP([0.5, 1.0, 1.5]).tolist() == [-2.5, 2.5, 7.5]
    assert STEP([-1e30, 0.0, 2.0, 1e30]).tolist() == [-2.5, -2.5, 7.5, 7.5]
    assert BENT.derivative([-9.0, 9.0]).tolist() == pytest.approx([-2.0, 0.75])
    corner = act.piecewise_linear([1.0], [2.0], right_slope=3.0)
    assert corner([0.0, 1.0, 2.0]).tolist() == [2, 2, 5]


def test_the_slope_at_a_knot_is_the_left_one():
    assert act.relu.derivative(0.0) == 0
    assert STEP.derivative([0.5, np.nextafter(0.5, 1), 1.5, 2.0]).tolist() == [0, 10, 10, 0]


def test_relu_and_linear_have_pieces_and_smooth_functions_have_none():
    assert act.relu.pieces == act.Pieces(0.0, 0.0, (0.0,), (1.0,))
    assert act.linear.pieces == act.Pieces(0.0, 1.0, (), ())
    assert STEP.pieces == act.Pieces(-2.5, 0.0, (0.5, 1.5), (10.0, -10.0))
    assert all(s.pieces is None for s in SMOOTH)


# ---------------------------------------------------------------- the objects


@pytest.mark.parametrize("sigma", ALL, ids=repr)
def test_activations_survive_configuration_pickle_and_copy(sigma):
    sigma(0.0)  # fills the cache, which must not travel
    for twin in (
        act.from_config(sigma._to_config()),
        pickle.loads(pickle.dumps(sigma)),
        copy.deepcopy(sigma),
    ):
        assert twin == sigma
        assert hash(twin) == hash(sigma)
        assert twin(0.3) == sigma(0.3)


def test_equality_and_hash_follow_the_arguments():
    assert act.piecewise_linear(np.array([0.5, 1.5]), (-2.5, 7.5)) == STEP
    assert act.piecewise_linear([0.5, 1.5], [-2.5, 7.5], right_slope=1) != STEP
    assert act.hermite([1, 2]) != act.polynomial([1, 2])
    assert act.get("tanh") is act.tanh
    assert len({*ALL, *ALL}) == len(ALL)


def test_activations_cannot_be_changed():
    with pytest.raises(AttributeError):
        STEP.left_slope = 1.0
    knots = np.array([0.0, 1.0])
    sigma = act.piecewise_linear(knots, [1.0, 2.0])
    knots[0] = 0.5
    assert sigma.knots == (0.0, 1.0)


def test_repr_is_what_one_types():
    assert repr(act.relu) == "mf.activations.relu"
    assert repr(STEP) == "mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])"
    assert repr(BENT).endswith("left_slope=-2.0, right_slope=0.75)")
    assert repr(act.hermite([0, 1])) == "mf.activations.hermite([0.0, 1.0])"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: act.get("tanhh"), "activation must be one of .*, got 'tanhh'; did you mean 'tanh'"),
        (
            lambda: act.piecewise_linear([1.5, 0.5], [0, 1]),
            r"knots must be strictly increasing, got \[1.5, 0.5\]",
        ),
        (lambda: act.piecewise_linear([1, 1], [0, 1]), "knots must be strictly increasing"),
        (lambda: act.piecewise_linear([0, 1], [1]), r"values must be as many as knots \(2\), got 1"),
        (lambda: act.piecewise_linear([], []), "knots must not be empty"),
        (lambda: act.piecewise_linear([0, math.nan], [0, 1]), "knots must be finite, got nan"),
        (lambda: act.piecewise_linear([0, 1], [0, math.inf]), "values must be finite, got inf"),
        (lambda: act.piecewise_linear([0], [0], left_slope=math.nan), "left_slope must be finite.*, got nan"),
        (lambda: act.piecewise_linear([0, 5e-324], [0, 1]), "knots must be far enough apart"),
        (lambda: act.piecewise_linear([[0, 1]], [0, 1]), r"knots must have shape \(any,\), got \(1, 2\)"),
        (lambda: act.hermite([]), "coefficients must not be empty"),
        (lambda: act.polynomial([1, math.nan]), "coefficients must be finite, got nan"),
        (lambda: act.from_config({"kind": "reluu"}), "kind must be one of .*; did you mean 'relu'"),
        (lambda: act.from_config({"kind": "relu", "knots": [0]}), "relu has no option 'knots'"),
        (
            lambda: act.from_config({"kind": "piecewise_linear", "knots": [0]}),
            "piecewise_linear needs values",
        ),
        (lambda: _core.Activation("tan"), "kind must name an activation, got tan"),
        (lambda: _core.Activation("relu"), r"knots of relu must be \[0\], got \[\]"),
        (lambda: _core.Activation("linear", knots=[1.0], jumps=[1.0]), "knots of linear must be empty"),
        (lambda: _core.Activation("hermite"), "coefficients must not be empty"),
        (
            lambda: _core.Activation("polynomial", coefficients=[math.inf]),
            "coefficients must be finite, got inf",
        ),
        (
            lambda: _core.Activation("piecewise_linear", knots=[1.0, 0.0], jumps=[1.0, 2.0]),
            r"knots must be strictly increasing, got \[1, 0\]",
        ),
        (
            lambda: _core.Activation("piecewise_linear", knots=[1.0], jumps=[1.0, 2.0]),
            r"jumps must be as many as knots, got \[1, 2\]",
        ),
    ],
)
def test_misuse_names_argument_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
