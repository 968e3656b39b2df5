"""Exact expectations at |w| and |b| up to 1e150, against integrals with 20 digits along one neuron."""

import math

import mfcore as mf
import mpmath as mp
import numpy as np
import pytest
from mfcore import _core, activations
from mfcore.network import Network
from numpy.polynomial.legendre import leggauss
from scipy import special

mp.mp.dps = 20
SIGMA = {  # σ, σ', and the order at which σ(Rt) grows with R
    "tanh": (mp.tanh, lambda t: mp.sech(t) ** 2, 0),
    "sigmoid": (lambda t: 1 / (1 + mp.exp(-t)), lambda t: mp.sech(t / 2) ** 2 / 4, 0),
    "softplus": (lambda t: t + mp.log1p(mp.exp(-t)) if t > 0 else mp.log1p(mp.exp(t)), None, 1),
    "erf": (mp.erf, lambda t: 2 / mp.sqrt(mp.pi) * mp.exp(-t * t), 0),
    "gelu": (lambda t: t * mp.ncdf(t) if t < 40 else t, lambda t: mp.ncdf(t) + t * mp.npdf(t), 1),
    "silu": (
        lambda t: t / (1 + mp.exp(-t)),
        lambda t: (1 + t * mp.exp(-t) / (1 + mp.exp(-t))) / (1 + mp.exp(-t)),
        1,
    ),
    "relu": (lambda t: max(t, mp.mpf(0)), lambda t: mp.mpf(t > 0), 1),
}
each = pytest.mark.parametrize("name", SIGMA)
smooth = pytest.mark.parametrize("name", [name for name in SIGMA if name != "relu"])


def normal_mean(f, scale, shift):
    """E f(u) by panels that shrink towards where `shift` + `scale` u passes 0."""
    centre, steps = -shift / scale, [mp.mpf(k) / scale for k in (1, 4, 16, 64)]
    near = [centre, *(centre + s for s in steps), *(centre - s for s in steps)]
    edges = sorted({mp.mpf(e) for e in [*range(-12, 13, 2), *near] if -12 <= e <= 12})
    return mp.quad(lambda u: f(u) * mp.npdf(u), edges)


def local_mean(f, scale, shift):
    """E f(t, u), t = `shift` + `scale` u, of an f that has fallen off at |t| = 60: over t, where it lives."""
    return (
        mp.quad(
            lambda t: f(t, (t - shift) / scale) * mp.npdf((t - shift) / scale), [-60, -10, -3, 0, 3, 10, 60]
        )
        / scale
    )


def hermite(k, u):
    """He_k(u)/sqrt(k!)."""
    return mp.hermite(k, u / mp.sqrt(2)) / mp.sqrt(mp.mpf(2) ** k * mp.factorial(k))


def pair(name, theta, other):
    network = Network(getattr(activations, name), bias="trained")
    value, grad = _core.pair_potential(network._core, theta, other.copy(), np.ones(1), True, 1)
    return value[0], grad[0]


@each
@pytest.mark.parametrize("R", [1e-6, 3.0, 15.9, 16.1, 1e8, 1e16, 1e150])
@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_the_mean_square_of_one_neuron_is_right_at_any_width(name, R, bias):
    sigma = SIGMA[name][0]
    b = bias * R if R > 1 else bias
    value, _ = pair(name, np.array([[b, 0.6 * R, -0.8 * R]]), np.array([[b, 0.6 * R, -0.8 * R]]))
    size = (
        min(mp.mpf(R), 1) if bias == 0 and sigma(mp.mpf(0)) == 0 else 1
    )  # mp.quad has an absolute tolerance
    want = normal_mean(lambda u: (sigma(mp.mpf(b) + mp.mpf(R) * u) / size) ** 2, mp.mpf(R), mp.mpf(b))
    assert abs(value / size**2 - want) < 1e-12 * abs(want)  # promised
    U = mf.U(_model(name), [[b, 0.6 * R, -0.8 * R]])[0, 0]
    assert value == U


@smooth
@pytest.mark.parametrize("R", [17.0, 1e10])
@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_the_gradient_along_a_neuron_is_right_where_its_two_terms_cancel(name, R, bias):
    # dU(θ, θ')/dR at θ = θ' is E[u σ' σ], of size 1/R² for tanh, beside terms of size 1
    sigma, slope, order = SIGMA[name]
    slope = slope or (lambda t: 1 / (1 + mp.exp(-t)))
    theta = np.array([[bias * R, 0.6 * R, -0.8 * R]])
    _, grad = pair(name, theta, theta)

    m, R = mp.mpf(bias) * mp.mpf(R), mp.mpf(R)
    if order:
        want = normal_mean(lambda u: u * slope(m + R * u) * sigma(m + R * u), R, m)
        size = R
    else:  # in units that mp.quad, whose tolerance is absolute, can see
        want = local_mean(lambda t, u: R * u * slope(t) * sigma(t), R, m) / R
        size = local_mean(lambda t, u: abs(R * u * slope(t) * sigma(t)), R, m) / R
    assert abs(grad[1] * 0.6 - grad[2] * 0.8 - want) < 3e-12 * size  # w itself is of norm R to rounding
    assert abs(grad[1] * 0.8 + grad[2] * 0.6) < 1e-12 * size  # and nothing across


@each
def test_wide_pairs_tend_to_those_of_steps_and_ramps(name):
    # σ(Rt) → R^order (c0 + c1 t_+ or step): the angle form; corrections are 1/R², or 1/R next to a step
    order = SIGMA[name][2]
    angle = 0.4
    w = np.array([[0.0, 1.0, 0.0], [0.0, math.cos(angle), math.sin(angle)]])
    agree = mp.pi - angle
    ramp = (mp.sin(angle) + agree * mp.cos(angle)) / (2 * mp.pi)
    step = {"sigmoid": agree / (2 * mp.pi)}.get(name, 2 * (mp.pi / 2 - angle) / mp.pi)
    for R in (1e8, 1e16, 1e100, 1e150):
        value, grad = pair(name, R * w[:1], R * w[1:])
        want = ramp if order else step
        assert abs(value / R**order / R**order - want) < 1e-13
        across = grad[2] / R if order else grad[2] * R  # dU/dangle of the second's direction
        known = (
            agree * mp.sin(angle) / (2 * mp.pi) if order else (1 if name == "sigmoid" else 4) / (2 * mp.pi)
        )
        assert abs(across - known) < 1e-12 * known
        assert np.isfinite(grad).all()


FLOATS = {
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "softplus": lambda t: np.logaddexp(0, t),
    "erf": special.erf,
    "gelu": lambda t: t * special.ndtr(t),
    "silu": lambda t: t * special.expit(t),
}
NODES, WEIGHTS = leggauss(40)


def panels(scale, shift):
    """Nodes and weights for E f(u), panels growing away from where `shift` + `scale` u passes 0."""
    near = np.array([0, 0.3, 1, 2, 4, 8, 16, 40])
    edges = np.unique([*np.linspace(-9, 9, 19), *((near - shift) / scale), *((-near - shift) / scale)])
    edges = edges[(edges >= -9) & (edges <= 9)]
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half + half * NODES).ravel()
    return u, (half * WEIGHTS).ravel() * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)


@smooth
@pytest.mark.parametrize(("R", "angle"), [(17.0, 0.05), (40.0, 1e-3), (1e3, 1e-3), (1e5, 1e-5)])
def test_nearly_parallel_wide_pairs_agree_with_an_integral_over_both(name, R, angle):
    sigma, order = FLOATS[name], SIGMA[name][2]
    across, along = R * math.sin(angle), R * math.cos(angle)
    value, _ = pair(name, np.array([[0.3, R, 0.0]]), np.array([[-0.4, along, across]]))
    want = 0.0
    for u, w in zip(*panels(R, 0.3), strict=True):
        mean = -0.4 + along * u
        z, v = panels(across, mean)
        want += w * sigma(0.3 + R * u) * (v @ sigma(mean + across * z))
    assert abs(value - want) < 1e-12 * (R * R if order else 1)  # promised


@smooth
@pytest.mark.parametrize(("m", "R"), [(0.3, 16.5), (-40.0, 50.0), (3e4, 1e5), (1.0, 1e16), (-1e150, 1e150)])
def test_smoothing_and_its_coefficients_are_right_at_any_width(name, m, R):
    sigma, slope, order = SIGMA[name]
    slope = slope or (lambda t: 1 / (1 + mp.exp(-t)))
    T = _core.smooth(getattr(activations, name)._core, np.array([m]), np.array([R]))[0][0]
    s = _core.slope_coefficients(getattr(activations, name)._core, np.array([m]), np.array([R]), 7)[0]
    m, R = mp.mpf(m), mp.mpf(R)
    want = normal_mean(lambda u: sigma(m + R * u), R, m)
    assert abs(T - want) < 1e-13 * (R**order if order else 1)
    for k in (0, 1, 6):
        if order:
            want = normal_mean(lambda u, k=k: slope(m + R * u) * hermite(k, u), R, m)
        else:
            want = local_mean(lambda t, u, k=k: slope(t) * hermite(k, u), R, m)
        assert abs(s[k] - want) < 1e-13 * (1 if order else 1 / R)


@pytest.mark.parametrize("name", ["erf", "tanh", "gelu"])
@pytest.mark.parametrize("wide", [1.0, 50.0, 1e9])
def test_narrow_neurons_keep_their_digits_beside_wide_ones(name, wide):
    # g' = εu is small: U = ε E[u σ(R u)] σ'(0) + O(ε²), where a closed form would subtract numbers of size 1
    sigma, slope, _ = SIGMA[name]
    value, _ = pair(name, np.array([[0.0, wide, 0.0]]), np.array([[0.0, 1e-12, 0.0]]))
    want = 1e-12 * slope(mp.mpf(0)) * normal_mean(lambda u: u * sigma(wide * u), mp.mpf(wide), mp.mpf(0))
    second = 1e-24 * wide**2 if name == "gelu" else 0
    assert abs(value - want) < 2e-12 * abs(want) + second


def test_the_angle_of_nearly_parallel_neurons_is_not_taken_from_its_cosine():
    # 1 - U = (2/π) angle for steps; the cosine of 1e-9 is 1
    theta, other = np.array([[0.0, 1e150, 0.0]]), np.array([[0.0, 1e150, 1e141]])
    rounding = 16 * np.finfo(float).eps  # U is a sum of several terms of size one
    for name in ("tanh", "erf"):
        value, _ = pair(name, theta, other)
        assert abs((1 - value) - 2e-9 / math.pi) < rounding


def test_v_psi_risk_and_velocity_are_finite_at_any_width():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(5, 4))
    for name in SIGMA:
        model = _model(name, d=3)
        for R in (1e-150, 1e6, 1e50, 1e149):
            V, psi = mf.V(model, R * theta), mf.psi(model, R * theta, R * theta)
            grad, risk = mf.grad_psi(model, R * theta, R * theta), mf.risk(model, R * theta)
            assert all(np.isfinite(x).all() for x in (V, psi, grad, risk))
            assert np.isfinite(mf.steppers.Flow(model, R * theta).velocity()).all()


def _model(name, d=2):
    network = Network(getattr(activations, name), bias="trained")
    return mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.0), network, mf.init.Gaussian(std=1.0))
