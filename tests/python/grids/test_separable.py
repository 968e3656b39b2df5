"""Features as products of functions of one coordinate: accuracy, sizes, refusals, and moving points."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.grids._separable import NotSeparableError, Separable
from problems import STEP

INF = math.inf
RELU, TANH, SOFTPLUS = mf.activations.relu, mf.activations.tanh, mf.activations.softplus
TWO = mf.data.AnisotropicGaussians(320, 0.5, s0=60)
SHARES = mf.data.AnisotropicGaussians(INF, 0.5, fraction=0.2)
SQUARE = [0.0, 0.0, 1.0]  # a link of degree 2


def reduced(law, activation, **network):
    return mf.Model(data=law, network=mf.Network(activation, **network)).reduce()


def by_hand(function, k=1, nodes=1, **options):
    names = [f"z{c}" for c in range(k)]
    weights = np.full(nodes, 1 / nodes)
    return mf.ReducedModel(
        coordinates=names, weights=weights, targets=np.ones(nodes), features=function, **options
    )


def spread(box, n, seed=11):
    """Uniform points of a box."""
    low, high = np.array(box, dtype=float).T
    return low + np.random.default_rng(seed).random((n, len(box))) * (high - low)


def deviation(model, features, points):
    """Largest deviation of √p Φ, and of its slopes, each relative to its largest entry."""
    root = np.sqrt(model.weights)
    want = model.features(points) * root
    values = np.abs(features.features(points) * root - want).max() / np.abs(want).max()
    if model.gradients.function is None:
        return values, 0.0
    slopes = model.gradients(points) * root[:, None]
    got = features.gradients(points) * root[:, None]
    return values, np.abs(got - slopes).max() / np.abs(slopes).max()


CASES = {
    **{
        f"isotropic d={d} {name}": (mf.data.IsotropicGaussians(d, 0.5), sigma, {}, [(0, 10)])
        for d in (10, 40, 320, INF)
        for name, sigma in (("step", STEP), ("softplus", SOFTPLUS))
    },
    "two radii at d=inf": (SHARES, STEP, {}, [(0, 3), (0, 3)]),
    "two radii at d=inf, smooth": (SHARES, SOFTPLUS, {}, [(0, 3), (0, 3)]),
    "one index": (mf.data.MultiIndex(320, SQUARE, 1), TANH, {}, [(-2, 2), (0, 2)]),
    "one index with output": (
        mf.data.MultiIndex(INF, SQUARE, 1),
        TANH,
        {"output": "trained"},
        [(-3, 3), (-2, 2), (0, 2)],
    ),
    "staircase": (mf.data.Staircase(INF, [(0,), (0, 1)]), TANH, {}, [(-2, 2), (-2, 2), (0, 2)]),
}


@pytest.mark.parametrize("case", CASES)
def test_features_on_a_box_agree_with_the_model_to_the_tolerance(case):
    law, activation, network, box = CASES[case]
    model = reduced(law, activation, **network)
    features = Separable.build(model, box, slopes=2e-9)
    assert features.error <= 1e-12
    values, slopes = deviation(model, features, spread(box, 200))
    # Other random points may be a little worse than those that were measured. A polynomial of degree 17 on a
    # panel of width h loses up to 2 · 17²/h in slopes: three or four digits on the narrowest panels.
    assert values <= 2e-12
    assert slopes <= 4e-9


@pytest.fixture(scope="module")
def two_radii():
    model = reduced(TWO, STEP)
    return model, Separable.build(model, [(0, 3), (0, 3)], slopes=2e-9)


def test_two_radii_take_a_few_dozen_functions_and_ten_thousand_points(two_radii):
    model, features = two_radii
    values, slopes = deviation(model, features, spread([(0, 3), (0, 3)], 300))
    assert values <= 2e-12
    assert slopes <= 4e-9
    # 50 × 38 functions, 132 of 288 combinations of nodes, 11064 points; a full table of 120 × 120 points has
    # ranks 37 × 32 at this tolerance.
    assert features.ranks[0] <= 54
    assert features.ranks[1] <= 42
    assert len(features.nodes) <= 150
    assert features.points <= 15_000
    np.testing.assert_allclose(features.nodes @ features.nodes.T, np.eye(len(features.nodes)), atol=1e-12)


def test_moving_atoms_need_no_nodes(two_radii):
    model, features = two_radii
    z, w = spread([(0, 3), (0, 3)], 500), np.random.default_rng(3).dirichlet(np.ones(500))
    core = features.compiled
    moments, outside = core.moments(z, w)
    f = w @ model.features(z)
    g, risk = core.residual(moments)
    value, gradient, _, _ = core.potential(g, z, order=1)
    # The features are accurate to 1e-12 of the largest √p Φ, 0.6, their slopes to 1e-9.
    assert outside == 0
    np.testing.assert_allclose((features.predictions(moments) - f) * np.sqrt(model.weights), 0, atol=2e-12)
    assert risk == pytest.approx(model.risk(z, w), abs=1e-11)
    np.testing.assert_allclose(value, model.psi(z, z, w), atol=1e-11)
    np.testing.assert_allclose(gradient, model.grad_psi(z, z, w), atol=1e-8)
    np.testing.assert_allclose(features.coefficients(f), g, atol=1e-10)


def test_a_linear_coordinate_needs_one_function():
    features = Separable.build(reduced(SHARES, SOFTPLUS, output="trained"), [(-3, 3), (0, 2), (0, 2)])
    assert features.ranks[0] == 1
    affine = by_hand(lambda z: z[:, :1] * np.cos(z[:, 1:]) + 2, k=2)
    assert Separable.build(affine, [(-1, 4), (0, 3)]).ranks == (2, 2)


def test_second_derivatives_of_one_coordinate():
    model = by_hand(lambda z: np.sin(3 * z))
    core = Separable.build(model, [(-2, 2)]).compiled
    z = spread([(-2, 2)], 50)
    g = core.residual(core.moments(z, None)[0])[0]
    scale = np.sin(3 * z).mean() - 1
    value, gradient, hessian, _ = core.potential(g, z, order=2)
    np.testing.assert_allclose(value, scale * np.sin(3 * z[:, 0]), atol=1e-12)
    np.testing.assert_allclose(gradient, 3 * scale * np.cos(3 * z), atol=1e-10)
    # Two derivatives of degree 17 magnify rounding by up to 17⁴/3 (2/h)².
    np.testing.assert_allclose(hessian[:, :, 0], -9 * scale * np.sin(3 * z), atol=1e-7)


KINKED = np.random.default_rng(0).standard_normal((17, 2))
REFUSED = {
    "kinks of finite data": (
        reduced(mf.data.Dataset(KINKED[:, :1], KINKED[:, 1]), RELU, bias="trained"),
        [(-2, 2), (-2, 2)],
    ),
    "a, b and two radii": (
        reduced(SHARES, STEP, output="trained", bias="trained"),
        [(-2, 2), (-2, 2), (0, 2), (0, 2)],
    ),
    "a jump": (by_hand(lambda z: np.sign(z - 0.3)), [(-1, 1)]),
    "noise": (by_hand(lambda z: np.cos(1e9 * z)), [(-1, 1)]),
    "five coordinates": (by_hand(lambda z: z[:, :1], k=5), [(0, 1)] * 5),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_smooth_enough_is_refused(case):
    model, box = REFUSED[case]
    with pytest.raises(NotSeparableError):
        Separable.build(model, box)


def test_kinks_are_found_out_with_a_limited_number_of_points():
    asked = []

    def kinked(z):
        asked.append(len(z))
        return np.maximum(z @ KINKED.T, 0)

    with pytest.raises(NotSeparableError, match="panels"):
        Separable.build(by_hand(kinked, k=2, nodes=17), [(-2, 2), (-2, 2)])
    assert sum(asked) <= 20_000


def test_a_cone_has_values_but_no_slopes():
    model = reduced(SHARES, RELU)
    box = [(0, 3), (0, 3)]
    features = Separable.build(model, box)
    z = spread(box, 200) * 10.0 ** -np.random.default_rng(0).uniform(0, 6, (200, 1))
    assert deviation(model, features, z)[0] <= 1e-11  # 256 random points do not see all of a corner
    with pytest.raises(NotSeparableError, match="slopes"):
        Separable.build(model, box, slopes=1e-9)


def test_a_single_kink_is_found_by_halving():
    features = Separable.build(by_hand(lambda z: np.abs(z - 0.3)), [(-1, 1)])
    z = np.linspace(-1, 1, 1001)
    # The panel with the kink is 1e-9 wide; no random point that measures the error falls into it.
    np.testing.assert_allclose(features.features(z)[:, 0], np.abs(z - 0.3), atol=1e-11)


def test_the_values_of_features_by_hand_are_enough():
    model = by_hand(lambda z: np.exp(-z[:, :1] * z[:, 1:]), k=2)
    box = [(0, 2), (-1, 1)]
    features = Separable.build(model, box)
    assert deviation(model, features, spread(box, 100))[0] <= 2e-12
    with pytest.raises(ValueError, match="gradients must be given"):
        Separable.build(model, box, slopes=1e-9)


def test_features_that_vanish_are_separable():
    features = Separable.build(by_hand(np.zeros_like), [(0, 1)])
    assert features.error == 0
    np.testing.assert_array_equal(features.features([[0.5]]), [[0.0]])


def test_a_larger_box_starts_from_what_is_known():
    model = reduced(SHARES, STEP)
    small = Separable.build(model, [(0, 2), (0, 2)])
    assert small.covers([[1.0, 2.0], [-5.0, 0.0]])  # a negative radius counts as 0
    assert not small.covers([[1.0, 2.1]])
    assert not small.covers([[math.nan, 1.0]])
    large, anew = (Separable.build(model, [(0, 3), (0, 2.5)], like=like) for like in (small, None))
    assert large.covers([[3.0, 2.1]])
    assert large.points < anew.points
    assert deviation(model, large, spread(large.box, 200))[0] <= 2e-12
    line = Separable.build(by_hand(np.sin), [(0, 2)])
    assert Separable.build(by_hand(np.sin), [(-1, 3)], like=line).error <= 1e-12


def test_boxes_that_make_no_sense_are_named():
    model = reduced(SHARES, STEP)
    with pytest.raises(ValueError, match="box must have shape"):
        Separable.build(model, [(0, 1)])
    with pytest.raises(ValueError, match="lowest < highest"):
        Separable.build(model, [(0, 1), (2, 2)])
    with pytest.raises(ValueError, match="tolerance must be > 0"):
        Separable.build(model, [(0, 1), (0, 1)], tolerance=0)


def test_points_outside_of_the_box_are_counted_and_never_extrapolated():
    features = Separable.build(reduced(SHARES, SOFTPLUS), [(0, 2), (0, 1)])
    core = features.compiled
    z = np.array([[1.0, 0.5], [2.1, 1.1], [math.nan, 0.5], [-0.1, -0.2], [0.0, 1.0]])
    g = np.ones(core.size)
    value, gradient, hessian, outside = core.potential(g, z, order=2)
    assert outside == 2
    np.testing.assert_array_equal(np.isnan(value), [False, True, True, False, False])
    assert np.isfinite(gradient[[0, 3, 4]]).all()
    assert np.isfinite(hessian[[0, 3, 4]]).all()
    at_zero = core.potential(g, np.zeros((1, 2)), order=1)
    assert (value[3], *gradient[3]) == (at_zero[0][0], *at_zero[1][0])
    moments, outside = core.moments(z)
    assert outside == 2
    assert np.isnan(moments).all()
    with pytest.raises(ValueError, match=r"z\[:, 1\] must be within \[0.0, 1.0\], got 1 values outside"):
        features.features([[1.0, 1.5]])


def test_a_form_says_what_it_is():
    features = Separable.build(by_hand(lambda z: np.hstack([z, z**2]), nodes=2), [(-1, 2)])
    assert repr(features).startswith("Separable(2 functions, 2 of 2 nodes, error=")
