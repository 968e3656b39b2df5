"""Functions that grow like e^z: expectations whose mass is |w| deviations out, in closed form, or refused."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore.activations import custom, expression
from scipy.special import gammaln

# sigma(z) = sum of p e^{s z}
SIGMAS = {
    "exp": (expression("exp(z)"), [(1.0, 1.0)]),
    "sinh": (expression("sinh(z)"), [(0.5, 1.0), (-0.5, -1.0)]),
    "cosh": (expression("cosh(z)"), [(0.5, 1.0), (0.5, -1.0)]),
    "own exp, no curvature": (custom(np.exp, slope=np.exp, strip=3.0), [(1.0, 1.0)]),
    "own exp": (custom(np.exp, slope=np.exp, curvature=np.exp, strip=3.0), [(1.0, 1.0)]),
}
RULED = pytest.mark.parametrize(("sigma", "terms"), SIGMAS.values(), ids=SIGMAS)
LAW = mf.data.Linear(np.array([1.0, 0.0, 0.0]))


def model(sigma):
    return mf.Model(LAW, mf.Network(sigma, bias="trained"))


def pairs(terms, one, two):
    """U, its gradient in rows of one, and the largest term of U, from E e^{g} = e^{E g + Var g / 2}."""
    U, grad, size = 0.0, 0.0, 0.0
    for p, s in terms:
        for q, t in terms:
            w = s * one[:, None, 1:] + t * two[None, :, 1:]
            value = p * q * np.exp(s * one[:, None, 0] + t * two[None, :, 0] + (w**2).sum(-1) / 2)
            U, size = U + value, np.maximum(size, np.abs(value))
            grad = grad + value[..., None] * s * np.concatenate([np.ones_like(w[..., :1]), w], axis=-1)
    return U, grad, size


def targets(terms, theta):
    """V of y = x_1, and the largest term of it."""
    terms = [p * s * np.exp(s * theta[:, 0] + (theta[:, 1:] ** 2).sum(-1) / 2) for p, s in terms]
    return -sum(terms) * theta[:, 1], np.max(np.abs(terms), axis=0) * np.abs(theta[:, 1])


def rows(size):
    """Neurons of this size and a third of it, at correlations from −1 to 1."""
    cosines = np.array([1.0, 0.5, 0.1, -0.1, -0.5, -1.0])
    w = np.column_stack([cosines, np.sqrt(1 - cosines**2), np.zeros(6)])
    w = size * np.vstack([w, w[[1, 4]] / 3])
    return np.column_stack([np.linspace(-0.5, 0.5, len(w)), w])


@RULED
@pytest.mark.parametrize("size", [1e-3, 1.0, 2.6, 6.0, 10.0])
def test_expectations_are_those_in_closed_form(sigma, terms, size):
    theta, what = rows(size), model(sigma)
    U, grad, largest = pairs(terms, theta[:1], theta)
    V, scale = targets(terms, theta)
    # Exponents of up to 300 are rounded to 1e-14 of them, and 1e-10 is what quadrature states.
    assert (np.abs(mf.U(what, theta[:1], theta) - U) <= 1e-10 * largest).all()
    assert (np.abs(mf.V(what, theta) - V) <= 1e-10 * scale).all()
    plain = mf.Model(mf.data.Linear(np.zeros(3)), mf.Network(sigma, bias="trained"))
    for j in (1, 4, 7):
        got = mf.grad_psi(plain, theta[:1], theta[j : j + 1])
        assert (np.abs(got - grad[:, j]) <= 1e-10 * (1 + 2 * size) * largest[:, j, None]).all()
    few = theta[[0, 3]]
    risk = 1 + 2 * V[[0, 3]].mean() + pairs(terms, few, few)[0].mean()
    assert mf.risk(what, few) == pytest.approx(risk, rel=1e-10)


@RULED
def test_expectations_out_of_reach_are_refused(sigma, terms):
    theta = np.array([[0.0, 16.0, 0.0, 0.0], [0.0, 0.0, 30.0, 0.0]])
    for function in (mf.U, mf.psi, mf.grad_psi):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="theta must be of a size"):
            function(model(sigma), theta, theta)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="theta must be of a size"):
        mf.V(model(sigma), theta)


def on_sphere(d, R):
    """E e^{R u} = 0F1(d/2, R²/4); for d = inf e^{R²/2}."""
    if math.isinf(d):
        return math.exp(R**2 / 2)
    k = np.arange(2000)
    return np.exp(gammaln(d / 2) - gammaln(d / 2 + k) - gammaln(k + 1) + 2 * k * math.log(R / 2)).sum()


@RULED
@pytest.mark.parametrize("d", [3.0, 20.0, 60.0, 1000.0, math.inf])
def test_reductions_are_those_in_closed_form(sigma, terms, d):
    unit = 1.0 if math.isinf(d) else math.sqrt(d)
    for size in (0.01, 0.5, 1.0, 4.0, 8.0, 12.0):
        R, m = size * unit, np.array([-1.3, 0.7])
        mean = on_sphere(d, R)
        got = _core.Smoother(sigma._core, d).evaluate(m, np.full(2, R))[0]
        # The closed form sums logarithms of up to 1e4.
        want = mean * sum(p * np.exp(s * m) for p, s in terms)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * mean * np.exp(1.3))
    with np.errstate(over="ignore"):
        assert np.isnan(_core.Smoother(sigma._core, math.inf).evaluate([0.5], [30.0])[0]).all()


@RULED
@pytest.mark.parametrize("dims", [(19.0, 60.0), (60.0, 60.0), (90.0, 400.0)])
def test_reductions_of_two_radii_are_those_in_closed_form(sigma, terms, dims):
    nodes = np.array([[x, y] for x in (0.8, 1.2) for y in (0.9, 1.1)]) * np.sqrt(dims)
    core = _core.ReducedFeatures(sigma._core, has_a=False, has_b=True, dims=list(dims), nodes=nodes)
    for z in ([0.3, 1.0, 0.5], [0.3, 6.0, 6.0], [0.3, 3.0, 10.0]):
        mean = np.array([on_sphere(dims[0], z[1] * s) * on_sphere(dims[1], z[2] * t) for s, t in nodes])
        want = mean * sum(p * math.exp(s * z[0]) for p, s in terms)
        np.testing.assert_allclose(core.features(np.array([z]))[0], want, rtol=0, atol=1e-10 * mean.max())


@pytest.mark.parametrize("d", [5.0, 60.0, math.inf])
def test_reductions_of_functions_with_kinks_go_as_far_as_they_grow(d):
    own = custom(lambda z: np.exp(np.abs(z)), slope=lambda z: np.sign(z) * np.exp(np.abs(z)), kinks=[0.0])
    unit = 1.0 if math.isinf(d) else math.sqrt(d)
    for size in (1.0, 4.0, 8.0):
        got = _core.Smoother(own._core, d).evaluate([40.0 * unit], [size * unit])[0]
        # So far from the kink that it is e^z.
        want = math.exp(40 * unit) * on_sphere(d, size * unit)
        assert got == pytest.approx([want], rel=1e-10)


@RULED
def test_reductions_that_would_sum_over_nodes_are_refused(sigma, terms):
    law = mf.data.IsotropicGaussians(d=30, delta=0.5)
    with pytest.raises(ValueError, match=r"must grow like a power .*limit=True"):
        mf.Model(law, mf.Network(sigma)).reduce()
    value = mf.Model(law, mf.Network(sigma)).reduce(limit=True).features(np.array([[2.0]]))[0]
    # Two classes of deviations 1.5 and 0.5 around 0.
    want = [sum(p for p, _ in terms) * math.exp(2 * s**2) for s in (1.5, 0.5)]
    np.testing.assert_allclose(np.sort(value), np.sort(want), rtol=1e-12, atol=1e-12)
