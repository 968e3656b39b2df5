"""Activations of the user's: pointers, Python functions, what is checked, and where they run."""

import copy
import ctypes
import gc
import math
import pickle
import subprocess
import sys

import mfcore as mf
import numba
import numpy as np
import pytest
from mfcore import _core
from mfcore._base.described import described
from mfcore.activations import custom
from scipy import LowLevelCallable

NUMBERS = ctypes.POINTER(ctypes.c_double)
SPAN = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[NUMBERS] * 4, ctypes.c_void_p)
LAW = mf.data.MultiIndex(d=6, link={(1,): 1.0, (2,): 0.5}, directions=1)
FEW = mf.data.Dataset(*LAW.draw(20, rng=0))  # whose risk takes few calls
START = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Normal(0.0, 0.4))
Z = np.linspace(-3.0, 3.0, 301)


def tanh_slope(z):
    return 1 - np.tanh(z) ** 2


def tanh_curvature(z):
    return -2 * np.tanh(z) * tanh_slope(z)


TANH = custom(np.tanh, slope=tanh_slope, curvature=tanh_curvature, name="own tanh")


def spans(count=3, factor=1.0):
    """A ctypes pointer that gives `factor` times the sine and its derivatives, the first `count` of them."""

    def call(n, z, *rest):
        z = np.ctypeslib.as_array(z, (n,))
        for to, of in zip(rest[:count], (np.sin, np.cos, lambda x: -np.sin(x)), strict=False):
            if to:
                np.ctypeslib.as_array(to, (n,))[:] = factor * of(z)

    return SPAN(call)


def model(sigma, law=LAW, **options):
    return mf.Model(law, mf.Network(sigma, output="trained", **options), START)


# ---------------------------------------------------------------- what is accepted


def test_a_pointer_a_low_level_callable_and_python_functions_are_one_activation():
    pointer = spans()
    of_python = custom(np.sin, slope=np.cos, curvature=lambda z: -np.sin(z))
    for function in (pointer, LowLevelCallable(pointer)):
        sine = custom(function, name="sine")
        assert np.array_equal(sine(Z), of_python(Z))
        assert np.array_equal(sine.derivative(Z), of_python.derivative(Z))
        assert np.array_equal(sine.second_derivative(Z), of_python.second_derivative(Z))
        assert sine(0.5) == math.sin(0.5)
        assert sine(np.float32([0.5])).dtype == np.float32


def test_user_data_of_a_low_level_callable_arrive():
    data = ctypes.c_double(3.0)
    address = ctypes.cast(ctypes.pointer(data), ctypes.c_void_p)

    def call(n, z, value, slope, curvature, user):
        factor = ctypes.cast(user, NUMBERS)[0]
        for to, of in ((value, np.sin), (slope, np.cos)):
            if to:
                np.ctypeslib.as_array(to, (n,))[:] = factor * of(np.ctypeslib.as_array(z, (n,)))

    pointer = SPAN(call)
    assert custom(LowLevelCallable(pointer, address))(0.5) == 3.0 * math.sin(0.5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: custom(np.sin), "slope must be the derivative of function, as a function of arrays"),
        (lambda: custom("sin", slope=np.cos), "function must be callable"),
        (lambda: custom(spans(), slope=np.cos), "slope and curvature must be left out"),
        (lambda: custom(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(abs)), "function must be void f"),
        (lambda: custom(SPAN(0)), "null pointer"),
        (lambda: custom(spans(count=1)), "function must fill slope"),
        (lambda: custom(lambda z: 1 / z, slope=lambda z: -1 / z**2), "finite at z = 0"),
        (lambda: custom(np.sin, slope=np.cos, kinks=[1.0, 0.0]), "kinks must be strictly increasing"),
        (lambda: custom(np.sin, slope=np.cos, strip=-1.0), "strip must be"),
        (lambda: custom(np.sin, slope=np.cos, name=3), "name must be"),
        (lambda: custom(lambda z: z[:1], slope=np.cos), r"values of function must have \d+ entries, got"),
    ],
)
def test_what_is_no_activation_is_refused_in_words(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_wrong_derivatives_are_found_unless_they_are_not_checked():
    with pytest.raises(
        ValueError, match=r"slope must be the derivative of function: at z = .* it is .* give"
    ):
        custom(np.sin, slope=np.sin)
    with pytest.raises(ValueError, match=r"slope must be the derivative"):
        custom(np.tanh, slope=lambda z: 1.00001 * tanh_slope(z))
    with pytest.raises(ValueError, match=r"curvature must be the derivative of slope"):
        custom(np.sin, slope=np.cos, curvature=np.sin)
    assert custom(np.sin, slope=np.sin, check=False).derivative(1.0) == math.sin(1.0)


def test_errors_of_a_python_function_arrive_from_every_thread():
    calls = []

    def late(z):
        calls.append(len(z))
        if len(calls) > 400:
            raise LookupError("not here")
        return np.tanh(z)

    sigma = custom(late, slope=tanh_slope, check=False, strip=0.0)
    with pytest.raises(LookupError, match="not here"):
        mf.solve(model(sigma, FEW), mf.SGD(800, 1e-3), horizon=1.0, rng=0, threads=2)
    with pytest.raises(LookupError, match="not here"):
        mf.psi(model(sigma), np.ones((50, 7)), np.ones((50, 7)), expectation=mf.MonteCarlo(2000, rng=0))


# ---------------------------------------------------------------- where it runs


@pytest.mark.parametrize(
    "method",
    [
        mf.SGD(30, 0.01),
        mf.SGD(8, 0.01),  # few neurons, which ours have a loop of their own for
        mf.SGD(30, 0.01, batch=20),
        mf.GD(30, 0.05, expectation=mf.MonteCarlo(200, rng=0)),
        mf.Particles(30, expectation=mf.MonteCarlo(200, rng=0)),
    ],
    ids=["sgd", "few", "batches", "gd", "particles"],
)
def test_networks_move_as_with_our_own(method):
    ends = [mf.solve(model(sigma), method, horizon=0.5, rng=1).final for sigma in (TANH, mf.activations.tanh)]
    # Roundings of tanh, 5 in the last place, over some dozen steps of size 0.05 in all.
    assert np.abs(np.subtract(*ends)).max() < 1e-13


def test_a_step_of_a_stepper_and_predictions_are_those_of_our_own():
    X, y = LAW.draw(40, rng=0)
    start = np.random.default_rng(0).normal(size=(20, 7))
    ends = []
    for sigma in (TANH, mf.activations.tanh):
        theta, network = start.copy(), mf.Network(sigma, output="trained")
        mf.steppers.SGD(network, theta).step(X, y, 0.1)
        ends.append(np.concatenate([theta.ravel(), mf.predict(model(sigma), theta, X)]))
    assert np.abs(np.subtract(*ends)).max() < 1e-14


def test_threads_change_no_bit_of_a_python_function():
    one, two = (
        mf.solve(model(TANH, FEW), mf.SGD(900, 1e-3), horizon=0.03, rng=0, threads=k).final for k in (1, 2)
    )
    assert np.array_equal(one, two)


def test_single_precision_is_converted_span_by_span():
    ends = [
        mf.solve(model(sigma), mf.SGD(30, 0.01, precision="float32"), horizon=0.5, rng=1).final
        for sigma in (TANH, mf.activations.tanh)
    ]
    assert np.abs(np.subtract(*ends)).max() < 1e-5  # 2⁻²⁴ of numbers of size 1, over 50 steps


# ---------------------------------------------------------------- equality, files, pickles


def test_equality_is_of_functions_and_checkpoints_know_name_and_key():
    again = custom(np.tanh, slope=tanh_slope, curvature=tanh_curvature, name="own tanh")
    assert again == TANH
    assert hash(again) == hash(TANH)
    other = custom(np.tanh, slope=tanh_slope, curvature=tanh_curvature, name="own tanh", key="v2")
    assert other != TANH
    assert described(other, "σ") != described(TANH, "σ") == described(again, "σ")
    assert repr(other) == "mf.activations.custom(tanh, name='own tanh', key='v2')"


def test_functions_of_a_module_pickle_and_others_are_refused_in_words():
    assert pickle.loads(pickle.dumps(TANH)) == TANH == copy.deepcopy(TANH)
    assert pickle.loads(pickle.dumps(model(TANH))).network == mf.Network(TANH, output="trained")
    with pytest.raises(pickle.PicklingError, match="does not pickle: its function cannot be imported"):
        pickle.dumps(custom(spans()))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(custom(lambda z: np.sin(z), slope=np.cos))


def test_files_are_refused_in_words(tmp_path):
    with pytest.raises(TypeError, match="has no form in files"):
        mf.save_config(model(TANH), tmp_path / "model.toml")


def test_the_core_keeps_what_it_calls():
    core = custom(spans(), name="sine")._core  # of an activation that is gone, as its pointer is
    gc.collect()
    assert np.array_equal(_core.evaluate(core, Z), np.sin(Z))


def test_numba_makes_a_function_of_spans():
    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.void(numba.types.int64, *[pointer] * 4, numba.types.voidptr))
    def sine(n, z, value, slope, curvature, user):
        z, value, slope = numba.carray(z, n), numba.carray(value, n), numba.carray(slope, n)
        for i in range(n):
            value[i] = math.sin(z[i])
        if slope.ctypes.data != 0:
            for i in range(n):
                slope[i] = math.cos(z[i])

    sigma = custom(sine)
    assert np.abs(sigma(Z) - np.sin(Z)).max() < 1e-15
    assert sigma.label == "sine"
    with pytest.raises(ValueError, match="curvature"):
        sigma.second_derivative(0.0)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(sigma)
    with pytest.raises(ValueError, match="function must be void f"):
        custom(numba.cfunc("float64(float64)")(lambda z: z))


def test_a_process_ends_in_peace_while_python_functions_are_held():
    code = (
        "import mfcore as mf, numpy as np\n"
        "s = mf.activations.custom(np.sin, slope=np.cos)\n"
        "law = mf.data.Dataset(np.eye(5), np.ones(5))\n"
        "m = mf.Model(law, mf.Network(s), mf.init.Radial(1.0))\n"
        "kept = m.network._core; run = mf.solve(m, mf.SGD(900, 1e-3), horizon=0.01, rng=0, threads=2)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
