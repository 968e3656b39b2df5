"""Piecewise linear networks in low dimension: averages over |x| that are exact on both sides of every kink.

References integrate closed forms over s = |x| by Gauss–Legendre rules between all the kinks |t − b|/r of
a sum, s = k + (k' − k) x², with panels that shrink towards k: analytic pieces, to rounding. One is compared
with mpmath.
"""

import math
import pickle

import mfcore as mf
import mpmath
import numpy as np
import pytest
from mfcore import _core
from problems import STEP
from scipy import special

DIP = mf.activations.piecewise_linear(knots=[0.0, 0.5, 1.5], values=[-2.5, -4.0, 7.5], right_slope=0.3)
SIGMAS = {"relu": mf.activations.relu, "step": STEP, "dip": DIP}
DELTA = 0.5


def averages(sigma, d, m, R):
    """E σ(m + Ru) and its derivatives with respect to m and R, for a vector R > 0."""
    p = sigma.pieces
    S, S_m, S_R = p.offset + p.left_slope * m + 0 * R, p.left_slope + 0 * R, 0 * R
    at_zero = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / (2 * math.sqrt(math.pi))
    for t, jump in zip(p.knots, p.jumps, strict=True):
        tau = (t - m) / R
        inside = np.clip(1 - tau**2, 0, 1)
        half = 0.5 * special.betainc((d - 1) / 2, 0.5, inside) if d > 1 else 0.5 * (inside > 0)
        tail = np.where(tau < 0, 1 - half, half)
        moment = at_zero * inside ** ((d - 1) / 2) * (inside > 0)
        S, S_m, S_R = S + jump * ((m - t) * tail + R * moment), S_m + jump * tail, S_R + jump * moment
    return S, S_m, S_R


def split(d, kinks):
    """Nodes and weights of χ_d for functions analytic in √(s − k) between neighbouring kinks k."""
    end = math.sqrt(d) + 12
    kinks = sorted(k for k in kinks if 0 < k < end)
    x, w = special.roots_legendre(24)
    nodes, weights = [], []
    for low, high in zip([0.0, *kinks], [*kinks, end], strict=True):
        n = 3 + 3 * math.ceil(high - low)
        steps = np.concatenate([[0.0], 0.05 * 2.0 ** -np.arange(12.0, 0, -1), np.linspace(0.05, 1, n)])
        half = np.diff(steps)[:, None] / 2
        root = (steps[:-1, None] + half * (1 + x)).ravel()
        nodes.append(low + (high - low) * root**2)
        weights.append((half * w).ravel() * 2 * root * (high - low))
    s, ds = np.concatenate(nodes), np.concatenate(weights)
    log = (d - 1) * np.log(s) - s * s / 2 - (d / 2 - 1) * math.log(2) - math.lgamma(d / 2)
    return s, ds * np.exp(log)


def reference(sigma, d, z, points, weights):
    """V, Ψ, ∇Ψ at z = (a, b, r), U(z, first point), R of the measure: means over both classes."""
    V, U, psi, grad, risk = 0.0, 0.0, 0.0, np.zeros(3), 0.0
    for y, scale in ((1, 1 + DELTA), (-1, 1 - DELTA)):
        kinks = [abs(t - b) / (r * scale) for _, b, r in [z, *points] for t in sigma.pieces.knots]
        s, p = split(d, kinks)
        f = [a * averages(sigma, d, b, r * scale * s)[0] for a, b, r in points]
        total = weights @ np.array(f)
        S, S_m, S_R = averages(sigma, d, z[1], z[2] * scale * s)
        V -= 0.5 * y * p @ (z[0] * S)
        U += 0.5 * p @ (z[0] * S * f[0])
        psi += 0.5 * p @ ((total - y) * z[0] * S)
        grad += 0.5 * (p * (total - y)) @ np.stack([S, z[0] * S_m, z[0] * S_R * scale * s]).T
        risk += 0.5 * p @ (total - y) ** 2
    return V, U, psi, grad, risk


def network(sigma, d):
    law = mf.data.IsotropicGaussians(d, DELTA)
    return mf.Model(data=law, network=mf.Network(sigma, output="trained", bias="trained")).reduce()


def cases(rng, biased):
    """Atoms with kinks from 0.03 to 10, two of them nearly at the same place."""
    points = np.stack([rng.normal(size=5), biased * rng.normal(size=5), np.exp(rng.uniform(-1.5, 2.5, 5))], 1)
    z = points[0] * [0.7, 1.0, rng.choice([1.0, 1 + 1e-6, 1.003, 1.3])]
    return z, points, rng.dirichlet(np.ones(5))


def errors(sigma, d, count, seed=0):
    """Largest errors of (V, U, Ψ, ∇Ψ, R) over random measures, relative to features and their slopes."""
    rng = np.random.default_rng(seed)
    reduced = network(sigma, d)
    worst = np.zeros(5)
    for k in range(count):
        z, points, weights = cases(rng, k % 2)
        V, U, psi, grad, risk = reference(sigma, d, z, points, weights)
        rows = np.concatenate([z[None], points])
        root = np.sqrt(reduced.weights)
        size = max(1.0, np.linalg.norm(reduced.features(rows) * root, axis=1).max())
        slope = max(1.0, np.linalg.norm(reduced.gradients(z[None]) * root[:, None], axis=1).max())
        got = [
            reduced.V(z[None])[0] - V,
            reduced.U(z[None], points[:1])[0, 0] - U,
            reduced.psi(z[None], points, weights)[0] - psi,
            np.abs(reduced.grad_psi(z[None], points, weights)[0] - grad).max(),
            reduced.risk(points, weights) - risk,
        ]
        worst = np.maximum(worst, np.abs(got) / [size, size**2, size**2, size * slope, size**2])
    return worst


@pytest.mark.parametrize("d", [3, 4, 5, 6, 7, 8, 10, 16, 20, 23, 24, 40])
@pytest.mark.parametrize("name", SIGMAS)
def test_features_with_kinks_average_to_1e_12_in_three_dimensions_and_more(name, d):
    # What two projections leave out of a product decides at d = 3 (2.5e-13 in 60 measures), rounding above,
    # and from d = 24 on, where there are Gauss nodes, the rule (5e-13 at 24).
    assert errors(SIGMAS[name], d, 8).max() < 1e-12
    assert network(SIGMAS[name], d).node_error < 1e-12


@pytest.mark.parametrize(("d", "accuracy"), [(1, 1e-5), (2, 1e-8)])
def test_in_one_and_two_dimensions_gradients_are_as_smooth_as_their_jumps_allow(d, accuracy):
    worst = errors(STEP, d, 8)
    assert worst[0] < 1e-12  # V is an average of one feature: exact
    assert worst.max() < accuracy


@pytest.mark.parametrize("across", [1, 2, 4, 6, 12])
def test_v_of_a_multi_index_model_with_kinks_is_exact_in_low_dimension(across):
    law = mf.data.MultiIndex(across + 1, [0.0, 1.0], directions=1)
    reduced = mf.Model(data=law, network=mf.Network(STEP)).reduce()
    for s, r in ((0.8, 0.5), (-0.4, 1.3)):
        # Stein: E z σ(s z + r G) = s E σ'(R G), and σ' = 10 between the knots 1/2 and 3/2.
        tails = special.ndtr(-np.array([0.5, 1.5]) / math.hypot(s, r))
        # Panels of z are split at both ends of the range r/s; the norm across is a sum over nodes.
        assert reduced.V([[s, r]])[0] == pytest.approx(-s * 10 * (tails[0] - tails[1]), abs=1e-11)


@pytest.mark.parametrize("s0", [3, 5, 10])
def test_two_radii_of_one_size_average_kinks_to_1e_12(s0):
    law = mf.data.AnisotropicGaussians(s0 + 35, DELTA, s0=s0)
    reduced = mf.Model(data=law, network=mf.Network(STEP)).reduce()
    (s, p), (t, q) = _core.panels_chi(s0, 30), _core.chi_rule(35)
    grid = np.stack(np.meshgrid(s, t, indexing="ij"), -1).reshape(-1, 2)
    heavy = np.multiply.outer(p, q).ravel() > 1e-19
    z, fine, slope = np.array([[0.7, 1.1], [1.2, 0.8]]), 0.0, 0.0
    for scale in (1 + DELTA, 1 - DELTA):
        features = _core.ReducedFeatures(
            STEP._core, has_a=False, has_b=False, dims=[s0, 35.0], nodes=(grid * [scale, 1])[heavy]
        )
        weighted = features.features(z) * np.multiply.outer(p, q).ravel()[heavy] / 2
        fine = fine + weighted @ features.features(z).T
        slope = slope + np.einsum("nq,mqk->nmk", weighted, features.gradients(z))
    np.testing.assert_allclose(reduced.U(z, z), fine, atol=1e-12)
    mine = np.einsum("nq,mqk->nmk", reduced.features(z) * reduced.weights, reduced.gradients(z))
    np.testing.assert_allclose(mine, slope, atol=1e-11)  # slopes are 10 times the values


def test_the_reference_is_that_of_mpmath():
    d, a, b = 5, 0.9, 1.7  # r a and r b are 1 at the kinks

    def excess(x):  # E (x u − 1)₊ in five dimensions, the density of u being 3/4 (1 − u²)
        def primitive(u):
            return mpmath.mpf(3) / 4 * (x * (u**2 / 2 - u**4 / 4) - (u - u**3 / 3))

        return primitive(mpmath.mpf(1)) - primitive(1 / x)

    def density(s):
        return s**4 * mpmath.exp(-s * s / 2) * mpmath.sqrt(2 / mpmath.pi) / 3

    with mpmath.workdps(25):
        product = mpmath.quad(lambda s: excess(s / a) * excess(s / b) * density(s), [b, 2, 3, 4, 6, 9, 14])
    shifted = mf.activations.piecewise_linear([1.0], [0.0], right_slope=1.0)
    s, p = split(d, [a, b])
    both = [averages(shifted, d, 0.0, s / k)[0] for k in (a, b)]
    assert p @ (both[0] * both[1]) == pytest.approx(float(product), rel=1e-13)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_probabilities_of_panels_are_those_of_chi(d):
    panels = _core.ChiPanels(d)
    s, p = panels.rule
    assert len(s) == 20 * panels.panels
    assert (np.diff(s) > 0).all()
    for k in range(0, 7, 3):  # beyond, the mass past the last node matters
        want = math.exp(k / 2 * math.log(2) + math.lgamma((d + k) / 2) - math.lgamma(d / 2))
        assert p @ s**k == pytest.approx(want, rel=1e-12)


def test_gradients_of_projections_are_their_differences():
    reduced = network(DIP, 4)
    z, h, root = np.array([[0.8, 0.3, 1.1]]), 1e-6, np.sqrt(reduced.weights)
    for c, step in enumerate(np.eye(3) * h):
        difference = (reduced.features(z + step) - reduced.features(z - step)) / (2 * h)
        # Values of features count by √p: rounding 1e-15/h.
        np.testing.assert_allclose(reduced.gradients(z)[..., c] * root, difference * root, atol=1e-8)


@pytest.mark.parametrize("r", [0.0, 1e-300, 1e-3, 1e3, 1e8, 1e150])
def test_at_any_radius_means_are_gaussian_ones(r):
    reduced = network(STEP, 3)
    got = -reduced.V([[1.0, 0.0, r]])[0]
    if r < 0.01:
        assert got == pytest.approx(0, abs=1e-14)
        return
    t, R = np.array([0.5, 1.5]), r * np.array([[1.5], [0.5]])
    ramps = R * np.exp(-((t / R) ** 2) / 2) / math.sqrt(2 * math.pi) - t * special.ndtr(-t / R)
    # Ramps cancel, 10 r of them; what is left has size 10.
    want = 5 * np.diff(ramps[0] - ramps[1])[0] * -1
    assert got == pytest.approx(want, abs=1e-12 + 1e-15 * r)


def test_a_copy_of_projected_features_keeps_their_bits():
    reduced = network(STEP, 3)
    copy = pickle.loads(pickle.dumps(reduced._compiled))
    z = np.array([[1.0, 0.2, 0.9], [0.4, -0.3, 2.0]])
    np.testing.assert_array_equal(copy.features(z), reduced.features(z))


def test_a_number_of_nodes_asked_for_is_kept():
    law = mf.data.IsotropicGaussians(3, DELTA)
    model = mf.Model(data=law, network=mf.Network(STEP))
    s, _ = _core.gauss_chi(3, 30)
    assert 1 < len(model.reduce(nodes=30).weights) <= 2 * len(s)


@pytest.mark.parametrize("bad", [{"d": 0.5}, {"d": math.inf}, {"d": 3, "panels": -1}])
def test_misuse_of_panels_names_the_argument(bad):
    with pytest.raises(ValueError, match=r"panels must|d must"):
        _core.ChiPanels(**bad)
    chi = _core.ChiPanels(3)
    with pytest.raises(ValueError, match="whole groups"):
        _core.ReducedFeatures(
            STEP._core, has_a=False, has_b=False, dims=[3.0], nodes=chi.rule[0][:-1, None], panels=chi
        )
