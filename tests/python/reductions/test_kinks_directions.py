"""Piecewise linear networks beside one Gaussian direction: averages are split at the kink, at any radius.

With one direction x₁ a neuron is (s, r), w = s e₁ + r u, u uniform on the sphere across. References are
closed forms: V by Stein's identity, U that of two vectors at an angle, averaged over the angle across.
"""

import math
import pickle

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from problems import STEP
from scipy import special

RADII = (0.0, 1e-9, 1e-3, 0.05, 0.2, 1.0, 2.0)


def network(sigma, across, **options):
    law = mf.data.MultiIndex(across + 1, [0.0, 1.0], directions=1)
    return mf.Model(data=law, network=mf.Network(sigma, **options))


def some(r):
    """Neurons with kinks at different places, two of them nearly at the same one."""
    return np.array([[0.8, r], [-0.6, r], [0.81, 1.1 * r], [1.5, 2 * r]])


def exact(sigma, across, z):
    """U(z, z'), by closed forms in R³ with x₂ along the first neuron's part across."""
    model = network(sigma, max(across, 2))
    d = int(model.data.d)
    if across == 1:
        u, p = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    else:  # density (1 − u²)^{(across − 3)/2}, u = sin(π/2 sin x): closed forms have kinks at u = ±1
        x, w = special.roots_legendre(200)
        angle = math.pi / 2 * np.sin(math.pi / 2 * x)
        u = np.sin(angle)
        p = w * np.cos(math.pi / 2 * x) * np.cos(angle) ** (across - 2)
        p /= p.sum()
    other = np.zeros((len(z), len(u), d))
    other[:, :, 0] = z[:, :1]
    other[:, :, 1], other[:, :, 2] = z[:, 1:] * u, z[:, 1:] * np.sqrt(np.maximum(1 - u**2, 0))
    first = np.zeros((len(z), d))
    first[:, :2] = z
    return (mf.U(model, first, other.reshape(-1, d)).reshape(len(z), len(z), -1) * p).sum(axis=-1)


@pytest.mark.parametrize("across", [1, 2, 3, 6, 12, 19, 40, math.inf])
@pytest.mark.parametrize("r", RADII)
def test_v_beside_one_direction_is_exact_at_any_radius(across, r):
    z = some(r)
    # Stein: E x₁ σ(s x₁ + r G) = s E σ'(√(s² + r²) G), and σ' = 10 between the knots 1/2 and 3/2.
    tails = special.ndtr(-np.array([[0.5], [1.5]]) / np.hypot(*z.T))
    want = -z[:, 0] * 10 * (tails[0] - tails[1])
    # Features have size 4; across few dimensions averages vary with the norm over s/r at least.
    np.testing.assert_allclose(network(STEP, across).reduce().V(z), want, atol=4e-12)


@pytest.mark.parametrize(
    ("across", "bounds"),
    [  # relative to U, at RADII: measured, and three times that allowed
        (1, (1e-5, 1e-5, 9e-6, 6e-6, 7e-6, 1e-5, 9e-6)),
        (3, (1e-5, 1e-5, 9e-6, 7e-7, 4e-8, 6e-9, 2e-9)),
        (7, (1e-5, 1e-5, 9e-6, 3e-7, 3e-10, 1e-13, 1e-13)),
        (19, (1e-5, 1e-5, 9e-6, 2e-7, 5e-13, 1e-12, 1e-12)),
        (40, (1e-5, 1e-5, 9e-6, 2e-7, 5e-14, 5e-14, 5e-14)),
    ],
)
def test_u_of_steps_beside_one_direction_is_as_smooth_as_their_kinks_allow(across, bounds):
    reduced = network(STEP, across).reduce()
    for r, bound in zip(RADII, bounds, strict=True):
        z = some(r)
        U = exact(STEP, across, z)
        assert np.abs(reduced.U(z, z) - U).max() < 3 * bound * max(1.0, np.abs(U).max()), r


@pytest.mark.parametrize("across", [1, 3, 7, 19])
@pytest.mark.parametrize("sigma", [STEP, mf.activations.relu], ids=["step", "relu"])
def test_the_node_error_of_kinks_beside_a_direction_contains_the_true_one(sigma, across):
    reduced = network(sigma, across).reduce()
    for r in RADII:
        z = some(r)
        U = exact(sigma, across, z)
        # A unit of 1e-13 is rounding.
        assert np.abs(reduced.U(z, z) - U).max() <= reduced.node_error * max(1.0, np.abs(U).max()) + 1e-13


@pytest.mark.parametrize("across", [1, 2, 5, 20, math.inf])
@pytest.mark.parametrize("r", [0.01, 0.3, 1.5])
def test_gradients_beside_a_direction_are_differences(across, r):
    reduced = network(STEP, across, output="trained", bias="trained").reduce()
    z, h, root = np.array([[0.8, 0.3, -0.7, r]]), 1e-6, np.sqrt(reduced.weights)
    for c, step in enumerate(np.eye(4) * h):
        difference = (reduced.features(z + step) - reduced.features(z - step)) / (2 * h)
        # Second derivatives are 10/r at most; differences lose their change over h, and rounding 1e-15/h.
        np.testing.assert_allclose(
            reduced.gradients(z)[..., c] * root, difference * root, atol=2e-5 * c + 1e-8
        )


@pytest.mark.parametrize("kind", ["direction", "two radii"])
def test_stated_errors_contain_those_of_the_nodes(kind):
    if kind == "direction":
        model, points = network(STEP, 4), some(0.02)
    else:
        law = mf.data.AnisotropicGaussians(13, 0.5, s0=3)
        model, points = mf.Model(data=law, network=mf.Network(STEP)), np.array([[0.9, 0.01], [0.6, 0.01]])
    few, many = model.reduce(nodes=16), model.reduce()
    cloud = mf.Cloud(points)
    run = mf.solve(few, mf.Atoms(start=cloud), horizon=1e-6, save_at=[0.0])
    true = many.risk(cloud.points, cloud.weights)
    assert abs(run.risk[0] - true) > 1e-6  # sixteen nodes do not see such kinks
    assert abs(run.risk[0] - true) <= run.error[0]


def test_copies_of_features_along_a_direction_keep_their_bits():
    reduced = network(STEP, 3).reduce()
    copy = pickle.loads(pickle.dumps(reduced._compiled))
    np.testing.assert_array_equal(copy.features(some(0.3)), reduced.features(some(0.3)))


def test_probabilities_of_panels_are_those_of_a_normal_variable():
    z, p = _core.NormalPanels(8).rule
    assert len(z) == 160
    for k, want in ((0, 1), (2, 1), (4, 3)):  # beyond, the mass past the last node matters
        assert p @ z**k == pytest.approx(want, rel=1e-12)


def test_misuse_of_panels_of_a_direction_names_the_argument():
    with pytest.raises(ValueError, match="panels must be > 0, got 0"):
        _core.NormalPanels(0)
    along = _core.NormalPanels(8)
    rows = along.rule[0][:, None]
    for nodes, dims in ((rows[:-1], []), (np.hstack([rows, rows, rows]), [3.0])):
        with pytest.raises(ValueError, match="along must come with knots, one direction"):
            _core.ReducedFeatures(STEP._core, has_a=False, has_b=False, dims=dims, nodes=nodes, along=along)
