"""Tangent kernels of infinitely many neurons with knots, w on a sphere, against other ways to average."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory

DATA = mf.data.IsotropicGaussians
KINKED = mf.activations.piecewise_linear([-0.4, 0.5, 1.5], [1.0, -2.5, 7.5])


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("bias", [None, 0.3])
def test_knots_on_the_sphere_are_those_of_the_gaussian_averaged_over_radii(d, bias):
    b = None if bias is None else mf.init.Constant(bias)
    network = mf.Network(KINKED, output="trained", bias="none" if b is None else "trained")
    X = np.random.default_rng(0).normal(size=(5, d))
    X[3], X[4] = -0.5 * X[2], 0.0

    def of(w):
        law = mf.init.Product(a=mf.init.Constant(1.0), b=b, w=w)
        return theory.tangent_kernel(mf.Model(DATA(d=d, delta=0.5), network, law), X)

    s, weights = np.polynomial.legendre.leggauss(60)
    radii, density = 4.5 * (s + 1), (4.5 * (s + 1)) ** (d - 1) * np.exp(-((4.5 * (s + 1)) ** 2) / 2)
    shares = weights * density / (weights @ density)
    mean = sum(p * of(mf.init.Sphere(0.8 * float(r))) for r, p in zip(radii, shares, strict=True))
    # As functions of the radius kernels have kinks, which 60 nodes integrate to 1e-3 (seen: 7e-4).
    want = of(mf.init.Normal(0.0, 0.8))
    np.testing.assert_allclose(mean, want, atol=2e-3 * abs(want).max())


def test_knots_on_the_circle_are_those_of_neurons_all_around_it():
    network = mf.Network(KINKED, output="trained", bias="trained")
    X = np.random.default_rng(0).normal(size=(5, 2))
    X[3], X[4] = -0.5 * X[2], 0.0
    law = mf.init.Product(a=mf.init.Constant(1.0), b=mf.init.Constant(0.3), w=mf.init.Sphere(1.1))
    model = mf.Model(DATA(d=2, delta=0.5), network, law)
    count = 40_000
    phi = 2 * math.pi * (np.arange(count) + 0.5) / count
    theta = np.column_stack([np.ones(count), np.full(count, 0.3), 1.1 * np.cos(phi), 1.1 * np.sin(phi)])
    want = theory.tangent_kernel(model, X, measure=theta)
    # A jump of slopes at one of 12 angles is off by half a share of at most 10² times the inputs.
    np.testing.assert_allclose(theory.tangent_kernel(model, X), want, atol=1e-3 * abs(want).max())


@pytest.mark.parametrize("d", [2, 3, 6, 50])
def test_a_rectifier_with_a_bias_of_zero_has_its_closed_form_on_the_sphere(d):
    X = np.random.default_rng(0).normal(size=(5, d)) / math.sqrt(d)
    X[3], X[4] = -X[2], X[1] * (1 + 1e-12) + 1e-9 * X[0]

    def of(bias, b):
        network = mf.Network(mf.activations.relu, output="trained", bias=bias)
        law = mf.init.Product(a=mf.init.Constant(1.0), b=b, w=mf.init.Sphere(1.3))
        model = mf.Model(DATA(d=d, delta=0.5), network, law)
        return theory.tangent_kernel(model, X, blocks=("a", "w"))

    # The tolerance of quadrature is 1e-10.
    np.testing.assert_allclose(of("trained", mf.init.Constant(0.0)), of("none", None), atol=1e-10)


def test_predictions_of_knots_on_the_sphere_are_those_of_many_neurons():
    network = mf.Network(KINKED, output="trained")
    X = np.random.default_rng(1).normal(size=(4, 5))
    law = mf.init.Product(a=mf.init.Constant(1.0), w=mf.init.Sphere(1.0))
    model = mf.Model(mf.data.Dataset(X, np.zeros(4)), network, law)
    start = mf.solve(model, mf.Linearized(math.inf), horizon=1e-9, save_at=[0.0])
    theta = law.sample(network, 5, 200_000, rng=0)
    spread = mf.predict(model, theta.reshape(100, 2000, -1), X).std(axis=0) / 10
    # Means over 2·10⁵ neurons: 5 standard errors at four inputs, odds of 2·10⁻⁶.
    assert (abs(mf.predict(start, X) - mf.predict(model, theta, X)) < 5 * spread).all()
