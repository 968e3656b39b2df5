"""One-dimensional smoothing and the bivariate normal distribution, against quadrature and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from mfcore import _core, activations
from numpy.polynomial import HermiteE, Polynomial
from numpy.polynomial.legendre import leggauss
from problems import density
from scipy import special

NODES, WEIGHTS = leggauss(20)
HERMITE = [0.1, 0.2, 0.3, -0.4, 0.5]
HERMITE_E = HermiteE([c / math.sqrt(math.factorial(k)) for k, c in enumerate(HERMITE)])
POLYNOMIAL = Polynomial([0.3, -1, 0.5, 0.2])


# name: (activation, σ, σ', kinks)
CASES = {
    "relu": (activations.relu, lambda t: np.maximum(t, 0), lambda t: (t > 0) * 1.0, [0]),
    "step": (
        activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5]),
        lambda t: 10 * (np.clip(t, 0.5, 1.5) - 0.75),
        lambda t: 10.0 * ((t > 0.5) & (t < 1.5)),
        [0.5, 1.5],
    ),
    "erf": (activations.erf, special.erf, lambda t: 2 / math.sqrt(math.pi) * np.exp(-t * t), []),
    "gelu": (
        activations.gelu,
        lambda t: t * special.ndtr(t),
        lambda t: special.ndtr(t) + t * density(t),
        [],
    ),
    "tanh": (activations.tanh, np.tanh, lambda t: 1 - np.tanh(t) ** 2, []),
    "silu": (
        activations.silu,
        lambda t: t * special.expit(t),
        lambda t: special.expit(t) * (1 + t * special.expit(-t)),
        [],
    ),
    "sin": (activations.sin, np.sin, np.cos, []),
    "cos": (activations.cos, np.cos, lambda t: -np.sin(t), []),
    "sigmoid": (
        activations.sigmoid,
        special.expit,
        lambda t: special.expit(t) * special.expit(-t),
        [],
    ),
    "softplus": (activations.softplus, lambda t: np.logaddexp(0, t), special.expit, []),
    "linear": (activations.linear, lambda t: t, np.ones_like, []),
    "polynomial": (activations.polynomial(POLYNOMIAL.coef), POLYNOMIAL, POLYNOMIAL.deriv(), []),
    "hermite": (activations.hermite(HERMITE), HERMITE_E, HERMITE_E.deriv(), []),
}


def gauss_panels(splits, panels):
    """Nodes and weights for E f(G): 20 Gauss-Legendre points on every panel, `panels` between two splits."""
    edges = np.sort([-12, 12, *np.linspace(-8, 8, 9), *(t for t in splits if abs(t) < 12)])
    edges = np.append((edges[:-1, None] + np.diff(edges)[:, None] * np.arange(panels) / panels).ravel(), 12)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * NODES).ravel()
    return x, (half * WEIGHTS).ravel() * density(x)


def smooth(activation, m, R):
    return [float(x[0]) for x in _core.smooth(activation._core, np.array([m]), np.array([R]))]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("at", [(0.1, 1.0), (0.3, 0.5), (0.4, 3.0), (-1.0, 8.0), (0.25, 0.0), (0.2, 1e-9)])
def test_smoothing_and_slope_coefficients_agree_with_quadrature(name, at):
    activation, sigma, slope, kinks = CASES[name]
    m, R = at
    g, w = gauss_panels([(t - m) / R for t in kinks if R > 0], 8)
    T, T_m, T_R = smooth(activation, m, R)
    s = _core.slope_coefficients(activation._core, np.array([m]), np.array([R]), 13)[0]
    h = np.array([special.eval_hermitenorm(k, g) / math.sqrt(math.factorial(k)) for k in range(13)])
    value, want = w @ sigma(m + R * g), h @ (w * slope(m + R * g))
    scale = 1 + np.abs(want).max() + abs(value)  # polynomials reach 10^3
    assert abs(T - value) < 1e-12 * scale  # promised
    assert abs(T_m - want[0]) < 1e-12 * scale
    assert abs(T_R - want[1]) < 1e-12 * scale
    assert np.abs(s - want).max() < 1e-12 * scale


def test_smoothing_of_steep_tanh_keeps_twelve_digits():
    # T = 2Φ(m/R) - 1 + E[tanh - sign], the latter by panels around 0
    m, R = 3.0, 50.0
    x, w = leggauss(60)
    want = 2 * special.ndtr(m / R) - 1
    for k in range(40):
        t = k / 2 + (x + 1) / 4
        want += (w / 4) @ ((np.tanh(t) - 1) * (density((t - m) / R) - density((-t - m) / R)) / R)
    assert abs(smooth(activations.tanh, m, R)[0] - want) < 1e-12  # promised


def test_a_high_hermite_activation_smooths_to_zero_under_the_standard_normal():
    # E h_k(G) = 0 and E h_k'(G) h_{k-1}(G) = sqrt k, also at degree 30, where sums of powers would cancel
    degree = 30
    activation = activations.hermite([0.0] * degree + [1.0])
    s = _core.slope_coefficients(activation._core, np.zeros(1), np.ones(1), degree + 1)[0]
    assert smooth(activation, 0.0, 1.0)[0] == 0
    want = np.zeros(degree + 1)
    want[degree - 1] = math.sqrt(degree)
    np.testing.assert_allclose(s, want, atol=1e-13)  # rounding of products of 30 square roots


def test_a_kink_on_the_mean_gives_the_limits_of_small_smoothing():
    T, T_m, T_R = smooth(activations.relu, 0.0, 0.0)
    assert T == 0
    assert T_m == 0.5
    assert abs(T_R - 1 / math.sqrt(2 * math.pi)) < 1e-16


def bivariate_reference(h, k, rho):
    """P(u > h, v > k) = ∫_h^∞ φ(u) P(v > k | u) du, 20 digits, panels around the step at u = k/ρ."""

    def tail(x):
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    with mpmath.workdps(20):
        h, k, rho = map(mpmath.mpf, (h, k, rho))
        s = mpmath.sqrt((1 - rho) * (1 + rho))
        if s == 0:
            return tail(max(h, k)) if rho > 0 else max(mpmath.mpf(0), tail(h) - tail(-k))
        splits = [mpmath.mpf(x) for x in (-8, -5, -2, 0, 2, 5, 8)]
        splits += [(k + x * s) / rho for x in (-12, -6, -3, -1, 0, 1, 3, 6, 12) if rho]
        edges = [h, *sorted(x for x in splits if h < x < 14), max(mpmath.mpf(16), h + 3)]
        return mpmath.quad(lambda u: mpmath.npdf(u) * tail((k - rho * u) / s), edges)


def test_the_bivariate_normal_has_absolute_error_below_1e_15():
    hard = [(1 - 10.0**-e) * sign for e in (2, 6, 10, 15) for sign in (1, -1)]
    cases = [(h, k, r) for r in hard for h, k in ((0, 0), (1, 1), (1, -1), (-3, 3), (5, 5), (0.3, 0.301))]
    cases += [(6, -6, 0.5), (-7, -8, -0.9), (0, 1, 0), (0, -1, 0.3), (0, 0, 1), (0, 0, -1), (1, -1.5, -1)]
    cases += [(1, 1, 1), (1, 1 + 1e-12, 1 - 1e-15), (37, 37, 0.99), (0.0, -0.0, 0.999)]
    rng = np.random.default_rng(2)
    cases += list(zip(*(2 * rng.normal(size=(2, 20))), rng.uniform(-1, 1, 20), strict=True))
    got = _core.bivariate_normal(*np.array(cases, dtype=float).T)
    for case, p in zip(cases, got, strict=True):
        assert abs(p - bivariate_reference(*case)) < 1e-15, case  # a few roundings of numbers below 1


def test_the_bivariate_normal_is_symmetric_and_sums_to_one():
    rng = np.random.default_rng(4)
    h, k = 3 * rng.normal(size=(2, 200))
    rho = rng.uniform(-1, 1, 200)
    p = _core.bivariate_normal
    np.testing.assert_allclose(p(h, k, rho), p(k, h, rho), atol=4e-16)  # rounding
    total = p(h, k, rho) + p(-h, k, -rho) + p(h, -k, -rho) + p(-h, -k, rho)
    np.testing.assert_allclose(total, 1, atol=1e-15)


def test_misuse_names_the_argument():
    with pytest.raises(ValueError, match="R must be >= 0"):
        _core.smooth(activations.tanh._core, np.zeros(1), -np.ones(1))
    with pytest.raises(ValueError, match=r"rho must be in \[-1, 1\]"):
        _core.bivariate_normal(np.zeros(1), np.zeros(1), np.array([1.1]))
    with pytest.raises(ValueError, match="R must have 2 entries, got 3"):
        _core.smooth(activations.relu._core, np.zeros(2), np.zeros(3))
