"""Activations against 40-digit references, at special arguments, and on arrays of any kind."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore import activations as act
from problems import BENT, STEP

CUBIC = act.polynomial([1.0, -2.0, 0.5, 3.0])
SERIES = act.hermite([0.3, 1.0, -2.0, 0.5, 0.25])
SMOOTH = [
    act.linear,
    act.erf,
    act.tanh,
    act.sigmoid,
    act.softplus,
    act.gelu,
    act.silu,
    act.sin,
    act.cos,
    CUBIC,
    SERIES,
]
ALL = [*SMOOTH, act.relu, STEP, BENT]


# ---------------------------------------------------------------- accuracy


def _references():
    """Value, slope and curvature with mpmath, in forms that do not cancel."""
    mp = mpmath

    def density(t):
        return mp.exp(-t * t / 2) / mp.sqrt(2 * mp.pi)

    def cdf(t):
        return mp.erfc(-t / mp.sqrt(2)) / 2

    def logistic(t):
        return 1 / (1 + mp.exp(-t))

    def tanh_slope(t):
        return 4 * logistic(2 * t) * logistic(-2 * t)

    def logistic_slope(t):
        return logistic(t) * logistic(-t)

    def bell(t):
        return 2 / mp.sqrt(mp.pi) * mp.exp(-t * t)

    return {
        "erf": (mp.erf, bell, lambda t: -2 * t * bell(t)),
        "tanh": (mp.tanh, tanh_slope, lambda t: -2 * mp.tanh(t) * tanh_slope(t)),
        "sigmoid": (logistic, logistic_slope, lambda t: -logistic_slope(t) * mp.tanh(t / 2)),
        "softplus": (lambda t: mp.log1p(mp.exp(-abs(t))) + max(t, 0), logistic, logistic_slope),
        "gelu": (
            lambda t: t * cdf(t),
            lambda t: cdf(t) + t * density(t),
            lambda t: density(t) * (2 - t * t),
        ),
        "silu": (
            lambda t: t * logistic(t),
            lambda t: logistic(t) + t * logistic_slope(t),
            lambda t: logistic_slope(t) * (2 - t * mp.tanh(t / 2)),
        ),
        "sin": (mp.sin, mp.cos, lambda t: -mp.sin(t)),
        "cos": (mp.cos, lambda t: -mp.sin(t), lambda t: -mp.cos(t)),
    }


REFERENCES = _references()


def _points(dtype, waves):
    rng = np.random.default_rng(7)
    whole = 720 if dtype == np.float64 else 90  # beyond it every exponential has left the normal numbers
    special = [
        0.0,
        1e-30,
        5e-324,
        0.17328,  # ln(2)/4: tanh takes the next power of two
        0.17329,
        0.34657,
        0.34658,
        0.8749999,
        0.875,
        1.0,
        5.95,
        6.0,
        26.6,
        37.6,
        88.0,
        354.59,
        354.61,
        745.0,
    ]
    if waves:
        special += [math.pi / 4, math.pi / 2, math.pi, 355.0, 4096.5, 1e4, 1e6, 1048577.0, 6e6, 1e15, 1e30]
    if dtype == np.float64:
        special += [1e-300, 2.0**-1074]
    points = np.concatenate(
        [
            np.linspace(-6, 6, 241),
            rng.uniform(-1.2, 1.2, 100),
            rng.uniform(-40, 40, 60),
            rng.uniform(-whole, whole, 40),
            rng.choice([-1, 1], 60) * 10 ** rng.uniform(-12, 2, 60),
            special,
            np.negative(special),
        ]
    )
    return points.astype(dtype)


def _errors(got, exact, dtype):
    """|got − exact| in units in the last place of `exact`, and absolute in units of the machine epsilon."""
    info = np.finfo(dtype)
    error = abs(mpmath.mpf(float(got)) - exact)
    unit = mpmath.ldexp(1, mpmath.frexp(exact)[1] - info.nmant - 1)
    return float(error / max(unit, float(info.smallest_subnormal))), float(
        error / mpmath.mpf(float(info.eps))
    )


# The bounds of network/activation.hpp, and finer ones for the derivatives. Largest errors met on millions of
# points: erf 1.3, tanh 3.7 (4.3 without fused multiply-adds), sigmoid 2.8, softplus 1.7, gelu 6.3; slopes up
# to 5.3, curvatures up to 8.8. Derivatives of gelu change sign, so their accuracy is absolute: 1.9 epsilon.
ULP = {
    "erf": (2, 3, 4),
    "tanh": (5, 7, 10),
    "sigmoid": (3, 6, 8),
    "softplus": (2, 3, 6),
    "gelu": (8, None, None),
    "silu": (5, None, None),
    "sin": (2, 2, 2),
    "cos": (2, 2, 2),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", ULP)
def test_smooth_activations_are_accurate_over_the_whole_line(name, order, dtype):
    flushed = (
        1e-304 if dtype == np.float64 else 1e-35
    )  # in the tails smaller results may become 0, as documented
    z = _points(dtype, name in ("sin", "cos"))
    got = _core.evaluate(act.get(name)._core, z, order)
    assert got.dtype == dtype
    worst_ulp = worst_absolute = 0.0
    with mpmath.workdps(40):
        for t, value in zip(z, got, strict=True):
            exact = REFERENCES[name][order](mpmath.mpf(float(t)))
            if abs(t) > 1 and abs(exact) < flushed:
                assert abs(value) <= 2 * flushed
                continue
            ulp, absolute = _errors(value, exact, dtype)
            worst_ulp, worst_absolute = max(worst_ulp, ulp), max(worst_absolute, absolute)
    if ULP[name][order] is None:
        assert worst_absolute < 3
    else:
        assert worst_ulp < ULP[name][order]


@pytest.mark.parametrize("sigma", SMOOTH, ids=repr)
def test_derivatives_agree_with_central_differences(sigma):
    z, h = np.linspace(-3, 3, 101), 1e-5
    for of, derivative in ((sigma, sigma.derivative), (sigma.derivative, sigma.second_derivative)):
        difference = (of(z + h) - of(z - h)) / (2 * h)
        # truncation h²/6 times a third derivative of at most 100, and rounding eps·|σ|/h with |σ| < 100
        np.testing.assert_allclose(derivative(z), difference, rtol=1e-9, atol=2e-8)


@pytest.mark.parametrize("sigma", [act.relu, STEP, BENT], ids=repr)
def test_derivatives_of_pieces_agree_with_central_differences_off_the_knots(sigma):
    z, h = np.linspace(-3, 3, 98), 1e-5  # no knot is within h of these points
    np.testing.assert_allclose(sigma.derivative(z), (sigma(z + h) - sigma(z - h)) / (2 * h), atol=1e-9)
    assert not sigma.second_derivative(z).any()


# ---------------------------------------------------------------- special arguments


@pytest.mark.parametrize(
    ("sigma", "at_minus_infinity", "at_infinity"),
    [
        (act.linear, -np.inf, np.inf),
        (act.relu, 0, np.inf),
        (act.erf, -1, 1),
        (act.tanh, -1, 1),
        (act.sigmoid, 0, 1),
        (act.softplus, 0, np.inf),
        (act.gelu, 0, np.inf),
        (act.silu, 0, np.inf),
        (STEP, -2.5, 7.5),
        (BENT, np.inf, np.inf),
        (CUBIC, -np.inf, np.inf),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinite_arguments_give_the_limits(sigma, at_minus_infinity, at_infinity, dtype):
    ends = np.array([-np.inf, np.inf], dtype)
    assert sigma(ends).tolist() == [at_minus_infinity, at_infinity]
    if sigma in (act.erf, act.tanh, act.sigmoid, act.softplus, act.gelu, act.silu):
        right = float(at_infinity == np.inf)
        assert sigma.derivative(ends).tolist() == [0, right]
        assert sigma.second_derivative(ends).tolist() == [0, 0]


@pytest.mark.parametrize("sigma", [*ALL, act.polynomial([1.0]), act.hermite([1.0, 2.0])], ids=repr)
def test_nan_stays_nan_and_stays_alone(sigma):
    z = np.linspace(-1, 1, 37)
    z[5] = np.nan
    for f in (sigma, sigma.derivative, sigma.second_derivative):
        assert np.flatnonzero(np.isnan(f(z))).tolist() == [5]


@pytest.mark.parametrize("sigma", [act.erf, act.tanh, act.sin], ids=repr)
def test_odd_functions_are_odd_to_the_bit(sigma):
    z = np.concatenate([np.linspace(0, 7, 1001), [5e-324, 1e-310, 1e300]])
    assert np.array_equal(sigma(-z), -sigma(z))
    assert np.signbit([sigma(-0.0), sigma(0.0)]).tolist() == [True, False]
    assert sigma(5e-324) == 5e-324


@pytest.mark.parametrize(
    ("sigma", "value", "slope", "curvature"),
    [
        (act.linear, 0, 1, 0),
        (act.relu, 0, 0, 0),
        (act.tanh, 0, 1, 0),
        (act.sigmoid, 0.5, 0.25, 0),
        (act.erf, 0, 2 / math.sqrt(math.pi), 0),
        (act.gelu, 0, 0.5, math.sqrt(2 / math.pi)),
        (act.softplus, math.log(2), 0.5, 0.25),
        (act.silu, 0, 0.5, 0.5),
        (act.sin, 0, 1, 0),
        (act.cos, 1, 0, -1),
    ],
    ids=repr,
)
def test_values_at_zero(sigma, value, slope, curvature):
    got = sigma(0.0), sigma.derivative(0.0), sigma.second_derivative(0.0)
    assert got == pytest.approx((value, slope, curvature), rel=4e-16, abs=1e-16)  # two roundings


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("sigma", ALL, ids=repr)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_an_entry_has_the_same_bits_wherever_it_stands(sigma, data):
    dtype = data.draw(st.sampled_from([np.float64, np.float32]))
    n = data.draw(st.integers(1, 70))  # whole vectors and every remainder, at every width
    z = np.array(data.draw(st.lists(st.floats(-50, 50, width=32), min_size=n, max_size=n)), dtype)
    for order in (0, 1, 2):
        whole = _core.evaluate(sigma._core, z, order)
        single = [_core.evaluate(sigma._core, z[i : i + 1], order) for i in range(n)]
        assert whole.tobytes() == b"".join(x.tobytes() for x in single)


@pytest.mark.parametrize("sigma", ALL, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_output_may_be_the_argument(sigma, dtype):
    z = np.linspace(-3, 3, 45).astype(dtype).reshape(5, 9)
    for order in (0, 1, 2):
        expected, place = _core.evaluate(sigma._core, z, order), z.copy()
        assert _core.evaluate(sigma._core, place, order, out=place) is place
        assert np.array_equal(place, expected)


@given(shape=st.lists(st.integers(0, 4), max_size=4).map(tuple))
@settings(max_examples=30, deadline=None)
def test_arrays_keep_their_shape_and_are_not_written(shape):
    z = np.random.default_rng(0).normal(size=shape)
    before = z.copy()
    out = act.tanh(z)
    assert np.shape(out) == shape
    assert np.array_equal(z, before)
    np.testing.assert_allclose(out, np.tanh(z), rtol=1e-15)


def test_views_and_other_number_types_are_accepted():
    z = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(act.tanh(z.T), act.tanh(z).T)
    assert np.array_equal(act.tanh(z[:, ::2]), act.tanh(z)[:, ::2])
    assert act.relu([-1, 2]).tolist() == [0, 2]
    assert act.relu([-1, 2]).dtype == np.float64
    assert act.relu(np.array([-1, 2], np.int32)).dtype == np.float64
    assert act.relu(np.array([-1, 2], np.float16)).dtype == np.float64
    assert act.relu(np.array([-1, 2], np.float32)).dtype == np.float32
    assert act.relu(np.array([-1, 2], ">f4")).tolist() == [0, 2]


@pytest.mark.parametrize("z", [2, 2.0, np.float64(2), np.float32(2), np.array(2)])
def test_a_scalar_gives_a_float(z):
    for f in (act.relu, act.relu.derivative, act.relu.second_derivative):
        assert type(f(z)) is float
    assert act.relu(z) == 2


@pytest.mark.parametrize("z", [1j, np.array([1j]), np.array([object()]), "one", None, True, ["a"]])
def test_what_is_not_a_real_number_is_refused(z):
    with pytest.raises(TypeError, match="z must hold real numbers, got dtype"):
        act.tanh(z)


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError, match="z must be a rectangular array"):
        act.tanh([[1.0], [1.0, 2.0]])


def test_an_unfit_output_is_refused():
    z = np.zeros(4)
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for out, message in (
        (np.zeros(5), r"out must have the shape of z, got \(5,\)"),
        (np.zeros(4, np.float32), "out must be C-contiguous"),
        (np.zeros(8)[::2], "out must be C-contiguous"),
        (frozen, "not writeable"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.evaluate(act.tanh._core, z, 0, out=out)
    with pytest.raises(ValueError, match="order must be 0, 1 or 2, got 3"):
        _core.evaluate(act.tanh._core, z, 3)
