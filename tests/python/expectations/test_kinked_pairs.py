"""Pairs of neurons with kinks that are not piecewise linear: the user's activations, and mixed ones."""

import math
from itertools import pairwise

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore.activations import custom
from scipy.integrate import quad
from scipy.special import ndtr

RELU = mf.activations.relu
BENT = mf.activations.piecewise_linear([-0.5, 1.0], [0.0, 2.0], right_slope=-1.0)
LAW = mf.data.IsotropicGaussians(3, 0.5)
ALPHA = 0.4


def elu(z):
    return np.where(z > 0, z, ALPHA * np.expm1(np.minimum(z, 0.0)))


def elu_slope(z):
    return np.where(z > 0, 1.0, ALPHA * np.exp(np.minimum(z, 0.0)))


ELU = custom(elu, slope=elu_slope, kinks=[0.0])


def of_user(ours):
    return custom(ours, slope=ours.derivative, kinks=ours.kinks)


def model(sigma, law=LAW, **options):
    return mf.Model(law, mf.Network(sigma, output="trained", bias="trained"), **options)


def neurons(scale):
    """Independent ones, and others that are nearly parallel to them, or opposite, or longer, or 0."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 3)) * scale
    near = [w * (1 + 10.0**-k * rng.normal(size=w.shape)) for k in (1, 4, 9)]
    w = np.concatenate([w, *near, -near[1], 2 * w[:1], 0 * w[:1]])
    return np.column_stack([rng.normal(size=(len(w), 2)), w])


@pytest.mark.parametrize("scale", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("ours", [RELU, BENT], ids=["relu", "bent"])
def test_piecewise_linear_functions_of_the_user_have_the_closed_forms(ours, scale):
    theta = neurons(scale)
    found = [
        (
            mf.U(m, theta, theta[:5]),
            mf.grad_psi(m, theta, theta),  # in their own field
            mf.grad_psi(m, theta[:4], theta),
            mf.psi(m, theta[:4], theta),
            mf.risk(m, theta, expectation=mf.Exact()),
        )
        for m in (model(of_user(ours)), model(ours))
    ]
    for own, closed in zip(*found, strict=True):
        # 16 nodes of a panel give 1e-15 of its integral; there are some dozens
        assert np.abs(own - closed).max() <= 1e-13 * (1 + np.abs(closed).max())


def inner_means(m, S):
    """E of elu(m + S z) and of its slope."""
    tail = ALPHA * math.exp(m + S * S / 2) * ndtr(-(m + S * S) / S)
    density = math.exp(-0.5 * (m / S) ** 2) / math.sqrt(2 * math.pi)
    return m * ndtr(m / S) + S * density + tail - ALPHA * ndtr(-m / S), ndtr(m / S) + tail


@pytest.mark.parametrize("angle", [1.2, 0.3, 1e-2, 1e-4])
@pytest.mark.parametrize(("sizes", "biases"), [((1.0, 1.0), (0.0, 0.0)), ((0.5, 2.0), (0.3, -0.7))])
def test_a_curved_function_with_a_kink_agrees_with_one_dimensional_integrals(sizes, biases, angle):
    (R1, R2), (m1, m2) = sizes, biases
    w1, w2 = R1 * np.array([1.0, 0.0]), R2 * np.array([math.cos(angle), math.sin(angle)])
    rho, s = math.cos(angle), math.sin(angle)

    def mean(f, knots=()):
        edges = sorted({-9.0, 9.0, *[u for u in (-m1 / R1, *knots) if abs(u) < 9]})
        return sum(
            quad(
                lambda u: f(u) * math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi),
                a,
                b,
                epsabs=1e-14,
                limit=200,
            )[0]
            for a, b in pairwise(edges)
        )

    def inner(u):
        return inner_means(m2 + R2 * rho * u, R2 * s)

    soft = [-m2 / (R2 * rho) + k * s for k in (-8, -3, 0, 3, 8)]
    k00 = mean(lambda u: float(elu(m1 + R1 * u)) * inner(u)[0], soft)
    k10 = mean(lambda u: float(elu_slope(m1 + R1 * u)) * inner(u)[0], soft)
    k11 = mean(lambda u: float(elu_slope(m1 + R1 * u)) * inner(u)[1], soft)
    bent = mean(lambda u: (m1 + R1 * u < 0) * ALPHA * math.exp(m1 + R1 * u) * inner(u)[0], soft)
    jump = (1 - ALPHA) * math.exp(-0.5 * (m1 / R1) ** 2) / math.sqrt(2 * math.pi) * inner(-m1 / R1)[0]
    k20 = R1 * bent + jump
    network = mf.Network(ELU, output="trained", bias="trained")._core
    one, two = (np.array([[1.0, m, *w]]) for m, w in ((m1, w1), (m2, w2)))
    value, grad = _core.pair_potential(network, one, two, np.ones(1), True, 1)
    want = np.array([k00, k10, *(k20 * w1 / R1 + k11 * w2)])
    # quad stops at 1e-14 in each of some intervals
    assert value[0] == pytest.approx(k00, abs=3e-13)
    assert grad[0] == pytest.approx(want, abs=3e-13)
    back = _core.pair_potential(network, two, one, np.ones(1), False, 1)[0]
    assert back[0] == pytest.approx(value[0], abs=3e-13)


@pytest.mark.parametrize("angle", [1.0, 0.1, 1e-5, 0.0])
def test_a_smooth_function_without_a_curvature_has_its_pairs(angle):
    sine = mf.Network(custom(np.sin, slope=np.cos))
    one, two = np.array([[1.5, 0.0]]), 0.7 * np.array([[math.cos(angle), math.sin(angle)]])
    m = mf.Model(mf.data.Linear([1.0, 0.0]), sine)
    want = math.exp(-(1.5**2 + 0.7**2) / 2) * math.sinh(1.5 * 0.7 * math.cos(angle))
    assert mf.U(m, one, two)[0, 0] == pytest.approx(want, abs=1e-14)


def test_a_smooth_network_and_a_teacher_with_kinks_have_their_correlation():
    teacher = mf.data.Teacher(mf.Network(RELU), [[0.6, 0.8]])
    m = mf.Model(teacher, mf.Network(mf.activations.tanh))
    for angle in (1.0, 0.2, 1e-3, 0.0):
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        w = np.array([[0.6, 0.8]]) @ turn
        rho, s = math.cos(angle), math.sin(angle)

        def weighted(u, rho=rho, s=s):
            x = rho * u
            mean = (
                max(x, 0.0)
                if s == 0
                else x * ndtr(x / s) + s * math.exp(-0.5 * (x / s) ** 2) / math.sqrt(2 * math.pi)
            )
            return math.tanh(u) * mean * math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)

        want = sum(quad(weighted, a, b, epsabs=1e-14)[0] for a, b in ((-9, -0.01), (-0.01, 0.01), (0.01, 9)))
        assert -mf.V(m, w)[0] == pytest.approx(want, abs=1e-12)


def test_a_long_run_of_exact_descent_is_that_of_the_built_in():
    start = mf.init.Gaussian(std=0.8)
    for method in (mf.GD(6, 0.05, expectation=mf.Exact()), mf.Particles(6, expectation=mf.Exact())):
        runs = [
            mf.solve(model(s, init=start), method, horizon=0.5, rng=1, risk=mf.Exact())
            for s in (of_user(RELU), RELU)
        ]
        # Particles: steps are chosen by errors that differ by rounding
        assert np.abs(runs[0].final - runs[1].final).max() < 1e-9
        assert np.abs(runs[0].risk - runs[1].risk).max() < 1e-9


def test_hessians_contain_what_kinks_add():
    theta = np.random.default_rng(3).normal(size=(3, 5))
    found = [mf.theory.stability(model(s), theta, tolerance=1e9) for s in (of_user(RELU), RELU)]
    # differences, at steps of 1e-5, of gradients that agree to 1e-14
    np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-8)
    np.testing.assert_allclose(found[0].spread, found[1].spread, atol=1e-8)


def test_kernels_at_infinite_width_take_kinks_of_the_user():
    X = np.random.default_rng(0).normal(size=(4, 3))
    start = mf.init.Product(a=mf.init.Normal(0.0, 1.0), b=mf.init.Constant(0.2), w=mf.init.Normal(0.0, 0.7))
    found = [mf.theory.tangent_kernel(model(s, init=start), X) for s in (of_user(RELU), RELU)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_threads_change_no_bit():
    theta = neurons(1.0)
    m = model(ELU)
    one, two = (mf.grad_psi(m, theta, theta, threads=k) for k in (1, 2))
    assert np.array_equal(one, two)


def test_functions_that_jump_are_refused_in_words_as_are_weights_that_are_too_large():
    step = custom(lambda z: 1.0 * (z > 0), slope=np.zeros_like, kinks=[0.0], check=False)
    at = neurons(1.0)
    with pytest.raises(ValueError, match="jumps at a kink"):
        mf.U(model(step), at, at, expectation=mf.Exact())
    huge = np.array([[1.0, 0.0, 1e9, 0.0, 0.0]])
    with pytest.raises(
        ValueError, match=r"theta must be of a size at which U is finite, got entries up to 1e\+09"
    ):
        mf.U(model(ELU), huge, huge, expectation=mf.Exact())
