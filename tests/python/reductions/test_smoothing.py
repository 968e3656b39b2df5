"""Averages over a direction: tails, S_d and its derivatives, quadrature rules."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core, activations
from problems import STEP
from scipy import special

INF = math.inf
DIP = activations.piecewise_linear(knots=[0.0, 0.5, 1.5], values=[-2.5, -4.0, 7.5], right_slope=0.3)
SMOOTH = {
    "tanh": activations.tanh,
    "sigmoid": activations.sigmoid,
    "erf": activations.erf,
    "softplus": activations.softplus,
    "gelu": activations.gelu,
    "silu": activations.silu,
    "sin": activations.sin,
    "cos": activations.cos,
    "hermite": activations.hermite([0.3, 1.0, -0.5, 0.2]),
}
dimensions = st.sampled_from([2, 3, 4, 5, 10, 19, 20, 39, 40, 41, 100, 320])


def reference(sigma, d, m, R):
    """S, S_m, S_R by fine Legendre panels in the angle, u = sin(angle), split at kinks: slow and obvious."""
    reach = 12.0 if d == INF else min(math.pi / 2, 12 / math.sqrt(d))
    edges = np.linspace(-reach, reach, 301)
    kinks = np.array([(t - m) / R for t in getattr(sigma, "knots", ())])
    if d != INF:
        kinks = np.arcsin(kinks[abs(kinks) < 1])
    edges = np.unique(np.concatenate([edges, kinks[abs(kinks) < reach]]))
    x, w = special.roots_legendre(16)
    half = np.diff(edges)[:, None] / 2
    angle = (edges[:-1, None] + half * (1 + x)).ravel()
    u, density = (angle, np.exp(-(angle**2) / 2)) if d == INF else (np.sin(angle), np.cos(angle) ** (d - 2))
    p = (half * w).ravel() * density
    p /= p.sum()
    values, slopes = sigma(m + R * u), sigma.derivative(m + R * u)
    return p @ values, p @ slopes, p @ (u * slopes)


def smooth(sigma, d, m, R):
    S, S_m, S_R = _core.Smoother(sigma._core, d).evaluate(np.atleast_1d(m) * 1.0, np.atleast_1d(R) * 1.0)
    return S, S_m, S_R


def refined(sigma, d, m, R):
    """S, its derivatives by m and R, and those of second order, by panels refined where m + R u is small."""
    reach = min(math.inf if d == INF else math.pi / 2, 12.0 if d == INF or d < 20 else 12 / math.sqrt(d))
    centre = -m / R if d == INF else math.asin(np.clip(-m / R, -1, 1))
    steps = np.concatenate([np.linspace(0, 60 / R, 60), np.geomspace(60 / R, max(2 * reach, 70 / R), 60)])
    edges = np.concatenate([np.linspace(-reach, reach, 301), centre + steps, centre - steps])
    edges = np.unique(np.clip(edges, -reach, reach))
    x, w = special.roots_legendre(20)
    half = np.diff(edges)[:, None] / 2
    angle = (edges[:-1, None] + half * (1 + x)).ravel()
    u, density = (angle, np.exp(-(angle**2) / 2)) if d == INF else (np.sin(angle), np.cos(angle) ** (d - 2))
    p = (half * w).ravel() * density
    p /= p.sum()
    z = m + R * u
    f, slope, bend = sigma(z), sigma.derivative(z), sigma.second_derivative(z)
    return [p @ f, p @ slope, p @ (u * slope), p @ bend, p @ (u * bend), p @ (u * u * bend)]


@pytest.mark.parametrize("kind", ["tanh", "sigmoid", "erf", "softplus", "gelu", "silu"])
@pytest.mark.parametrize("d", [2, 3, 5, 19, 40, 320, INF])
def test_averages_that_spread_far_are_exact(kind, d):
    """At spreads above 128 rules in u do not resolve σ: E tanh(.5 + 1e4 u) was 0 where it is 7e-5."""
    sigma, root = SMOOTH[kind], 1.0 if d == INF else math.sqrt(d)
    smoother = _core.Smoother(sigma._core, d)
    for spread in (8.5, 30.0, 300.0, 1e5):
        R = np.array([spread * root])
        inside = [0.4 * R[0], -0.85 * R[0]] if spread > 100 else []
        for m in (0.0, 0.3, -2.0, *inside, R[0] + 40):
            at = np.array([m])
            got = [float(v[0]) for v in (*smoother.evaluate(at, R), *smoother.curvature(at, R))]
            want = refined(sigma, d, m, R[0])
            size = max(R[0], abs(m)) if kind in ("softplus", "gelu", "silu") else 1.0
            assert got[0] == pytest.approx(want[0], abs=1e-13 * size)
            assert got[1:] == pytest.approx(want[1:], abs=1e-12)  # rounding of the reference


@pytest.mark.parametrize("kind", ["tanh", "erf"])
def test_odd_averages_that_spread_far_are_exactly_zero(kind):
    S, _, _ = smooth(SMOOTH[kind], 5, np.zeros(3), np.array([1e2, 1e4, 1e8]))
    assert not S.any()


@settings(max_examples=60, deadline=None)
@given(d=dimensions, share=st.floats(-0.999, 0.999))
def test_the_tail_is_the_incomplete_beta_function(d, share):
    tau = share * min(1.0, 8 / math.sqrt(d))
    inside = 0.5 * special.betainc(0.5, (d - 1) / 2, tau * tau)
    upper = 0.5 - inside if inside < 0.4 else 0.5 * special.betaincc(0.5, (d - 1) / 2, tau * tau)
    # Far tails are powers d/2 of rounded numbers.
    assert _core.direction_tail(d, abs(tau)) == pytest.approx(upper, rel=1e-13 * d)
    assert _core.direction_tail(d, -abs(tau)) == pytest.approx(1 - upper, rel=1e-14)


@pytest.mark.parametrize("tau", [-0.9, 0.0, 0.3, 0.99])
def test_tails_in_two_and_three_dimensions_are_elementary(tau):
    assert _core.direction_tail(2, tau) == pytest.approx(math.acos(tau) / math.pi, rel=1e-14)
    assert _core.direction_tail(3, tau) == pytest.approx((1 - tau) / 2, rel=1e-14)


@pytest.mark.parametrize("d", [1.0, 2.0, 3.0, 7.5, 40.0, 320.0])
def test_the_density_of_a_coordinate_of_a_direction_is_the_slope_of_its_tail(d):
    tau, h = np.linspace(-0.9, 0.9, 7) / math.sqrt(max(d, 1.5)), 1e-5
    slope = (_core.direction_tail(d, tau - h) - _core.direction_tail(d, tau + h)) / (2 * h)
    # Differences err by h² times a third derivative below d^1.5·100, and by rounding over h.
    np.testing.assert_allclose(_core.direction_density(d, tau), slope, atol=1e-8 * d**1.5 + 1e-10)


def test_the_tail_reaches_the_normal_one_in_high_dimension():
    d, x = 1e6, np.linspace(-5, 5, 41)
    # The difference is of order x^4/d times the density.
    np.testing.assert_allclose(_core.direction_tail(d, x / 1e3), special.ndtr(-x), atol=3e-7)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 19, 39, 40, 320, 1e6, INF])
def test_tabulated_tails_are_the_direct_ones(d):
    tau = np.linspace(-1.2, 1.2, 4001) * (1 if d < 100 else 12 if d == INF else 10 / math.sqrt(d))
    _, S_m, S_R = smooth(activations.relu, d, -tau, np.ones_like(tau))  # A and B themselves
    # Interpolation to rounding: both are at most 1.
    np.testing.assert_allclose(S_m, _core.direction_tail(d, tau), atol=3e-15, rtol=0)
    np.testing.assert_allclose(S_R, _core.direction_moment(d, tau), atol=3e-15, rtol=0)


@pytest.mark.parametrize("d", [2, 3, 4, 7, 40, 320, INF])
@pytest.mark.parametrize("sigma", [STEP, DIP], ids=["step", "dip"])
def test_piecewise_linear_averages_equal_adaptive_quadrature(sigma, d):
    unit = 1 if d == INF else math.sqrt(d)
    for m, R in [(0.3, 0.7 * unit), (-1.0, 2.0 * unit), (1.2, 0.05 * unit)]:
        # Rounding only: values are of order 10.
        np.testing.assert_allclose(np.ravel(smooth(sigma, d, m, R)), reference(sigma, d, m, R), atol=1e-13)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("d", [2, 3, 5, 11, 13, 40, 320, INF])
def test_smooth_averages_equal_adaptive_quadrature(name, d):
    sigma, unit = SMOOTH[name], 1 if d == INF else math.sqrt(d)
    for m, R in [(0.3, 0.4 * unit), (-0.7, 1.99 * unit), (0.1, 7.9 * unit)]:
        S, *slopes = reference(sigma, d, m, R)
        ours = np.ravel(smooth(sigma, d, m, R))
        # Node counts are chosen for 1e-13 in S and a little less in its derivatives.
        assert ours[0] == pytest.approx(S, abs=2e-13, rel=2e-13)
        np.testing.assert_allclose(ours[1:], slopes, atol=2e-12, rtol=2e-12)


def test_in_one_dimension_the_direction_is_a_sign():
    m, R = np.array([0.2, -0.4, 1.0]), np.array([0.5, 1.7, 0.0])
    for sigma in (STEP, DIP, *SMOOTH.values()):
        S, S_m, _ = smooth(sigma, 1, m, R)
        np.testing.assert_allclose(S, (sigma(m + R) + sigma(m - R)) / 2, atol=1e-14)
        np.testing.assert_allclose(S_m, (sigma.derivative(m + R) + sigma.derivative(m - R)) / 2, atol=1e-14)


@pytest.mark.parametrize("d", [1, 3, 40, INF])
def test_radius_zero_has_the_one_sided_limits(d):
    at_knot, beside = smooth(STEP, d, [0.5, 0.7], [0.0, 0.0]), smooth(STEP, d, [0.5, 0.7], [1e-9, 1e-9])
    for zero, small in zip(at_knot, beside, strict=True):
        np.testing.assert_allclose(zero, small, atol=1e-7)  # S itself moves by 10 R
    assert at_knot[2][0] == pytest.approx(10 * _core.direction_moment(d, 0.0))  # a cone


@settings(max_examples=60, deadline=None)
@given(d=st.sampled_from([2, 3, 5, 40, 320, INF]), m=st.floats(-2, 2), spread=st.floats(0.1, 3))
def test_derivatives_are_central_differences(d, m, spread):
    R, h = spread * (1 if d == INF else math.sqrt(d)), 1e-5
    for sigma in (DIP, activations.tanh):
        S_m, S_R = (v[0] for v in smooth(sigma, d, m, R)[1:])
        up, down = smooth(sigma, d, [m + h, m], [R, R + h])[0], smooth(sigma, d, [m - h, m], [R, R - h])[0]
        # Kinks at distance R of a knot make second differences of order h^(d-1)/2: weakest in the plane.
        np.testing.assert_allclose(
            (up - down) / (2 * h), [S_m, S_R], atol=0.2 if d == 2 else 1e-3 if d == 3 else 1e-7
        )


@pytest.mark.parametrize("d", [4, 10, 40, 320, INF])
def test_second_derivatives_are_differences_of_first_ones(d):
    m, h = np.array([0.2, -0.5, 1.1]), 1e-6
    R = np.array([0.6, 1.5, 2.0]) * (1 if d == INF else math.sqrt(d))
    for sigma in (DIP, activations.tanh):
        S_mm, S_mR, S_RR = _core.Smoother(sigma._core, d).curvature(m, R)
        up, down = smooth(sigma, d, m + h, R), smooth(sigma, d, m - h, R)
        np.testing.assert_allclose((up[1] - down[1]) / (2 * h), S_mm, atol=1e-7)
        np.testing.assert_allclose((up[2] - down[2]) / (2 * h), S_mR, atol=1e-7)
        out, back = smooth(sigma, d, m, R + h), smooth(sigma, d, m, R - h)
        np.testing.assert_allclose((out[2] - back[2]) / (2 * h), S_RR, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(m=st.floats(-3, 3), R=st.floats(0.01, 20))
def test_gaussian_averages_of_relu_and_erf_are_their_closed_forms(m, R):
    cdf, pdf = special.ndtr(m / R), math.exp(-((m / R) ** 2) / 2) / math.sqrt(2 * math.pi)
    T, T_m, T_R = (v[0] for v in smooth(activations.relu, INF, m, R))
    assert (T, T_m, T_R) == pytest.approx((m * cdf + R * pdf, cdf, pdf), abs=1e-14 * (1 + R))
    v = 1 + 2 * R * R
    T, T_m, T_R = (x[0] for x in smooth(activations.erf, INF, m, R))
    by_m = 2 / math.sqrt(math.pi * v) * math.exp(-m * m / v)
    assert (T, T_m, T_R) == pytest.approx(
        (special.erf(m / math.sqrt(v)), by_m, -2 * m * R / v * by_m), abs=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(d=dimensions, n=st.integers(1, 24))
def test_gegenbauer_rules_have_the_moments_of_a_direction(d, n):
    u, w = _core.gauss_gegenbauer(d, n)
    assert len(u) == n
    assert w.min() > 0
    for k in range(n):  # E u^{2k} = Gamma(k + 1/2) Gamma(d/2) / (Gamma(1/2) Gamma(k + d/2))
        want = math.exp(math.lgamma(k + 0.5) + math.lgamma(d / 2) - math.lgamma(0.5) - math.lgamma(k + d / 2))
        assert w @ u ** (2 * k) == pytest.approx(want, rel=1e-11)  # lgamma loses a few digits
        assert abs(w @ u ** (2 * k + 1)) < 1e-14


@settings(max_examples=60, deadline=None)
@given(d=st.integers(1, 400), n=st.integers(1, 12))
def test_chi_rules_have_the_even_moments(d, n):
    s, w = _core.gauss_chi(d, n)
    want = 1.0
    for k in range(2 * n):  # E s^{2k} = d (d + 2) ... (d + 2k - 2)
        assert w @ s ** (2 * k) == pytest.approx(want, rel=1e-11)
        want *= d + 2 * k


def test_rules_of_many_nodes_have_finite_weights_and_exact_moments():
    for n in (799, 2000):  # polynomials at the outermost nodes are beyond 1e308
        nodes, weights = _core.gauss_hermite(n)
        # sums of 2000 terms that rounding of each leaves at 1e-15
        np.testing.assert_allclose([weights @ nodes**k for k in (0, 2, 4, 8)], [1, 1, 3, 105], rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_hermite_and_legendre_rules_are_the_textbook_ones(n):
    for ours, theirs in [
        (_core.gauss_hermite(n), special.roots_hermitenorm(n)),
        (_core.gauss_legendre(n), special.roots_legendre(n)),
    ]:
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-13)
        np.testing.assert_allclose(ours[1], theirs[1] / theirs[1].sum(), rtol=1e-10)


@settings(max_examples=60, deadline=None)
@given(d=st.integers(1, 2000))
def test_the_automatic_chi_rule_averages_smooth_functions(d):
    s, w = _core.chi_rule(d)
    assert w.sum() == pytest.approx(1, abs=1e-14)
    for t in (0.1, 1.0):  # E exp(-t s^2 / d) = (1 + 2 t / d)^(-d/2)
        assert w @ np.exp(-t * s * s / d) == pytest.approx((1 + 2 * t / d) ** (-d / 2), abs=1e-12)


MISUSES = [
    lambda: _core.gauss_gegenbauer(0.5, 3),
    lambda: _core.gauss_chi(3, 0),
    lambda: _core.angle_rule(3, 0.0),
    lambda: _core.direction_tail(0.0, 0.1),
    lambda: _core.Smoother(activations.relu._core, 2.5),
    lambda: _core.compress(np.ones((2, 2)), 0.0),
]


@pytest.mark.parametrize("call", MISUSES)
def test_misuse_names_the_argument_and_the_rule(call):
    with pytest.raises(ValueError, match="must be"):
        call()
