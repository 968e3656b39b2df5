"""The user's activations under quadrature: the strip that is measured, exact expectations, kinks."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore.activations import custom
from scipy.special import expit

LAW = mf.data.MultiIndex(d=6, link={(1,): 1.0, (2,): 0.5}, directions=1)
START = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Normal(0.0, 0.4))
OWN = mf.activations.tanh
TANH = custom(np.tanh, slope=OWN.derivative, curvature=OWN.second_derivative, name="own tanh")


def model(sigma, law=LAW):
    return mf.Model(law, mf.Network(sigma, output="trained"), START)


@pytest.mark.parametrize(
    ("name", "height"), [("tanh", math.pi / 2), ("sigmoid", math.pi), ("softplus", math.pi)]
)
def test_a_measured_strip_is_not_larger_than_the_true_one(name, height):
    ours = getattr(mf.activations, name)
    strip = custom(ours, slope=ours.derivative).strip
    assert 0.7 * height <= strip <= 1.01 * height  # steps of √2


def test_what_is_not_analytic_has_no_strip_and_is_refused_where_it_matters():
    bump = custom(
        lambda z: np.abs(z) ** 3, slope=lambda z: 3 * z * np.abs(z), curvature=lambda z: 6 * np.abs(z)
    )
    assert bump.strip == 0
    at = np.ones((1, 7))
    with pytest.raises(ValueError, match=r"custom takes the height of a strip, strip=.*MonteCarlo"):
        mf.V(model(bump), at, expectation=mf.Exact())
    with pytest.raises(ValueError, match="analytic"):
        model(bump).reduce()
    assert np.isfinite(mf.V(model(bump), at, expectation=mf.MonteCarlo(100, rng=0))).all()


@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])
def test_exact_expectations_are_those_of_our_own(scale):
    theta = np.random.default_rng(3).normal(size=(4, 7)) * scale / math.sqrt(6)
    theta[1] = 1.01 * theta[0]  # nearly parallel: not by the series
    own, ours = (model(sigma) for sigma in (TANH, mf.activations.tanh))
    for function in (mf.V, mf.grad_psi, mf.psi):
        arguments = (theta,) if function is mf.V else (theta, theta)
        got, expected = (function(m, *arguments, expectation=mf.Exact()) for m in (own, ours))
        assert np.abs(got - expected).max() < 1e-11 * max(1.0, scale)
    got, expected = (mf.U(m, theta, theta, expectation=mf.Exact()) for m in (own, ours))
    assert np.abs(got - expected).max() < 1e-11 * np.abs(theta[:, 0]).max() ** 2


def test_reductions_and_what_runs_on_them_are_those_of_our_own():
    law = mf.data.IsotropicGaussians(d=20, delta=0.5)
    own, ours = (mf.Model(law, mf.Network(s), mf.init.Gaussian(0.3)) for s in (TANH, mf.activations.sigmoid))
    pair = [own.replace(network=mf.Network(s)) for s in (TANH, mf.activations.tanh)]
    z = np.linspace(0.0, 20.0, 7)[:, None]
    got, expected = (m.reduce().features(z) for m in pair)
    assert np.abs(got - expected).max() < 1e-12
    sigmoid = custom(expit, slope=mf.activations.sigmoid.derivative)
    pair = [ours.replace(network=mf.Network(s)) for s in (sigmoid, mf.activations.sigmoid)]
    for method in (mf.Atoms(10), mf.PDE(cells=50)):
        risks = [mf.solve(m, method, horizon=0.2, rng=0).risk[-1] for m in pair]
        assert abs(risks[0] - risks[1]) < 1e-9  # the tolerance of adaptive steps


def test_kinks_that_are_stated_cut_the_quadrature():
    relu = mf.activations.relu
    shifted = mf.activations.piecewise_linear([-0.5, 1.0], [0.0, 2.0], right_slope=-1.0)
    m, R = np.array([-1.0, 0.2, 0.0, 3.0]), np.array([0.5, 1.0, 20.0, 0.0])
    for ours in (relu, shifted):
        own = custom(ours, slope=ours.derivative, kinks=ours.kinks)
        assert own.strip == 4.0
        for k in (0, 1, 2):
            got, expected = (_core.smooth(s._core, m, R)[k] for s in (own, ours))
            assert np.abs(got - expected)[: 4 if k < 2 else 3].max() < 1e-13 * 20
        for d in (2.0, 3.0, 40.0, math.inf):
            got, expected = (_core.Smoother(s._core, d).evaluate(m, R) for s in (own, ours))
            assert np.abs(np.subtract(got, expected)[:, :3]).max() < 1e-12 * 20


def test_without_a_curvature_second_derivatives_are_refused():
    sine = custom(np.sin, slope=np.cos)
    with pytest.raises(ValueError, match="curvature must be given"):
        sine.second_derivative(1.0)
