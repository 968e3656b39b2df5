"""sin and cos: exact pairs of any size against characteristic functions with 700 digits."""

import math

import mfcore as mf
import mpmath as mp
import numpy as np
import pytest
from mfcore import _core
from mfcore.activations import cos, sin, tanh
from mfcore.theory import tangent_kernel
from numpy.polynomial.hermite_e import hermegauss

PLAIN, TWO_CLASSES = mf.data.Linear(np.zeros(3)), mf.data.IsotropicGaussians(3, 0.5)
RIGHT, FEW_DIGITS, TAILS = 1e-13, 1e-2, 1e-300  # of the sizes of terms; below 2e-308 numbers have few digits
waves = pytest.mark.parametrize("sigma", [sin, cos], ids=["sin", "cos"])


def network(sigma):
    return mf.Network(sigma, output="trained", bias="trained")


def row(rng, exponent):
    w = rng.normal(size=3)
    return np.array([1.5, rng.choice([0.0, 0.3, -0.2]), *(10.0**exponent * w / np.linalg.norm(w))])


def phase(sigma):
    return mp.pi / 2 if sigma is cos else mp.mpf(0)


def pair(sigma, one, two):
    """a a' E σσ' and its derivatives in a, b and w: sin u sin v = ½ cos(u − v) − ½ cos(u + v)."""
    with mp.workdps(700):  # sizes of 1e-320 are left of numbers of size one
        a, b, *w = map(mp.mpf, map(float, one))
        c, e, *v = map(mp.mpf, map(float, two))
        out = [mp.mpf(0)] * 5
        for s in (-1, 1):
            angle = b + phase(sigma) + s * (e + phase(sigma))
            both = [x + s * y for x, y in zip(w, v, strict=True)]
            damped = -s * c / 2 * mp.exp(-mp.fsum(x * x for x in both) / 2)
            terms = [mp.cos(angle), -a * mp.sin(angle), *(-a * mp.cos(angle) * x for x in both)]
            out = [x + damped * y for x, y in zip(out, terms, strict=True)]
        return np.array([float(x) for x in out])


def sizes(sigma, one, two):
    """The sizes of the terms of these: of sin near 0 that of its argument."""

    def orders(z):
        near = min(1.0, abs(z[1]) + 2 * np.abs(z[2:]).max())
        return (near, 1.0, near) if sigma is sin else (1.0, near, 1.0)

    (f, slope, bent), (g, other, _) = orders(one), orders(two)
    R, r = (np.abs(z[2:]).max() for z in (one, two))
    a = abs(one[0] * two[0])
    return np.array([abs(two[0]) * f * g, a * slope * g, *[a * (bent * R * g + slope * other * r)] * 3])


def assert_right(got, want, size, *rows):
    norms = [np.abs(z[2:]).max() for z in rows]
    close = RIGHT if min(norms) > 1e-307 else FEW_DIGITS
    assert (np.abs(got - want) <= close * size + TAILS * max(1.0, *norms)).all(), (got, want, size)


@waves
@pytest.mark.parametrize(
    "exponents",
    [
        (-320, 0),
        (-320, -320),
        (-158, -158),
        (-13, -5),
        (-1, 0),
        (0, 0),
        (0.5, 0.7),
        (1, 1),
        (2, 150),
        (150, 150),
    ],
)
def test_pairs_of_any_size_are_right(sigma, exponents):
    rng, model = np.random.default_rng(3), mf.Model(PLAIN, network(sigma))  # y = 0, V = 0
    for _ in range(3):
        one, two = (row(rng, k) for k in exponents)
        want, size = pair(sigma, one, two), sizes(sigma, one, two)
        U = mf.U(model, one[None], two[None])[0, 0]
        assert_right(U, one[0] * want[0], 1.5 * size[0], one, two)
        assert_right(mf.grad_psi(model, one[None], two[None])[0], want, size, one, two)


@waves
@pytest.mark.parametrize("R", [3.0, 1e3, 1e7, 1e150])
@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_of_long_neurons_that_are_nearly_parallel_are_right(sigma, R, sign):
    # |w − w'| stays near 1, of which the cosine of the angle says nothing
    one = np.array([1.0, 0.4, R, 0.0, 0.0])
    model = mf.Model(PLAIN, network(sigma))
    for gap in (0.0, 0.5, 2.0):
        two = np.array([1.0, -0.7, sign * R, gap, 0.0])
        want, size = pair(sigma, one, two), sizes(sigma, one, two)
        assert_right(mf.U(model, one[None], two[None])[0, 0], want[0], size[0], one, two)
        assert_right(mf.grad_psi(model, one[None], two[None])[0], want, size, one, two)


@waves
def test_neurons_in_their_own_field_get_the_sums_of_their_pairs(sigma):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(300, 5))  # several blocks of pairs, each visited once for both neurons
    model = mf.Model(PLAIN, network(sigma))
    value, grad = mf.psi(model, theta, theta), mf.grad_psi(model, theta, theta)
    U = mf.U(model, theta, theta)
    np.testing.assert_allclose(value, U.mean(axis=1), rtol=0, atol=1e-14)
    rows = [0, 143, 144, 299]
    want = [np.mean([pair(sigma, theta[i], z) for z in theta[::60]], axis=0) for i in rows]
    got = mf.grad_psi(model, theta[rows], theta[::60].copy())
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)
    np.testing.assert_allclose(mf.grad_psi(model, theta[rows], theta), grad[rows], rtol=0, atol=1e-13)


@waves
@pytest.mark.parametrize("exponent", [-320, -158, -5, 0, 1, 150])
def test_v_is_right_at_any_size_for_labels_of_two_classes(sigma, exponent):
    theta = row(np.random.default_rng(4), exponent)
    model, want, size = mf.Model(TWO_CLASSES, network(sigma)), mp.mpf(0), sizes(sigma, theta, theta)[0] ** 0.5
    with mp.workdps(700):
        for y, scale in ((1, mp.mpf("1.5")), (-1, mp.mpf("0.5"))):  # x | y ~ N(0, scale²)
            square = mp.fsum(mp.mpf(float(x)) ** 2 for x in theta[2:])
            mean = mp.sin(mp.mpf(theta[1]) + phase(sigma)) * mp.exp(-(scale**2) * square / 2)
            want -= y * mp.mpf(1.5) * mean / 2
    assert_right(mf.V(model, theta[None])[0], float(want), 1.5 * size, theta)


def test_pairs_of_sin_and_cos_and_with_other_activations_are_right():
    nodes, weights = hermegauss(120)
    g, h = np.meshgrid(nodes, nodes, indexing="ij")
    p = np.outer(weights, weights) / (2 * math.pi)
    w, v = np.array([0.7, 0.2]), np.array([0.5, -0.4])
    for other in (cos, tanh):
        got = _core.pair_matrix(
            mf.Network(sin)._core, w[None], v[None], 1, other_network=mf.Network(other)._core
        )[0, 0]
        want = (p * np.sin(w[0] * g + w[1] * h) * other(v[0] * g + v[1] * h)).sum()
        assert got == pytest.approx(want, abs=1e-12)  # quadrature's own error for tanh


def test_the_kernel_of_infinite_width_is_an_exponential():
    X = np.random.default_rng(1).normal(size=(40, 6))
    law = mf.init.Product(a=mf.init.Constant(1.0), w=mf.init.Normal(0.0, 0.5))
    q, squares = 0.25 * X @ X.T, 0.25 * (X**2).sum(1)
    e = np.exp(-0.5 * (squares[:, None] + squares))
    for sigma, value, slope in ((sin, np.sinh, np.cosh), (cos, np.cosh, np.sinh)):
        model = mf.Model(mf.data.Linear(np.zeros(6)), mf.Network(sigma, output="trained"), law)
        want = e * value(q) + X @ X.T * e * slope(q)
        np.testing.assert_allclose(tangent_kernel(model, X), want, rtol=1e-13, atol=1e-13)


@waves
def test_of_waves_that_no_rule_resolves_averages_are_no_numbers_and_damped_ones_are_nothing(sigma):
    at, far = np.array([0.3]), np.array([1e4])
    assert [float(x[0]) for x in _core.Smoother(sigma._core, math.inf).evaluate(at, far)] == [0, 0, 0]
    assert np.isnan(_core.Smoother(sigma._core, 3.0).evaluate(at, far)).all()
    S, _, _ = _core.Smoother(sigma._core, 3.0).evaluate(at, np.array([200.0]))
    assert S[0] == pytest.approx(sigma(0.3) * math.sin(200) / 200, abs=1e-14)  # E cos(R u), u uniform


def test_reductions_refuse_waves_that_no_rule_resolves():
    reduced = mf.Model(mf.data.IsotropicGaussians(3, 0.5), mf.Network(cos)).reduce()
    assert np.isfinite(mf.V(reduced, [[5.0]])).all()
    with pytest.raises(ValueError, match="must be of a size at which"):
        mf.V(reduced, [[1e4]])
