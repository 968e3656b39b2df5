"""Functions of models on measures in reduced coordinates, and on arguments too large for floats."""

import math
import pickle

import mfcore as mf
import numpy as np
import pytest

CIRCLE = mf.Model(
    mf.data.IsotropicGaussians(2, 0.5), mf.Network(mf.activations.relu, output="trained"), ridge=0.3
)
LINE = mf.Model(
    mf.data.Linear([0.6, 0.0, 0.8], noise=0.1), mf.Network(mf.activations.erf, output="fixed"), ridge=0.3
)
CLOUD = mf.Cloud([[0.5, 1.0], [-1.0, 2.0]], [0.25, 0.75])  # of (a, r)
PLANE = mf.Cloud([[1.0, 0.5, 0.3], [2.0, -1.0, 2.0]], [0.25, 0.75])  # of (a, s1, r)
THETA = np.random.default_rng(0).normal(size=(5, 3))


def around(cloud, n=2000):
    """Neurons [a, w] of the plane with |w| = r, in n directions each."""
    angle = 2 * np.pi * np.arange(n) / n
    rows = [np.stack([np.full(n, a), r * np.cos(angle), r * np.sin(angle)], axis=1) for a, r in cloud.points]
    return mf.Cloud(np.concatenate(rows), np.repeat(cloud.weights / n, n))


def test_a_measure_in_reduced_coordinates_is_spread_over_all_directions():
    full = around(CLOUD)
    # Kinks of the third derivative leave the sum over angles an error like n⁻⁴, beside 1e-12 of the nodes.
    assert mf.risk(CIRCLE, CLOUD) == pytest.approx(mf.risk(CIRCLE, full), rel=1e-10)
    np.testing.assert_allclose(mf.psi(CIRCLE, THETA, CLOUD), mf.psi(CIRCLE, THETA, full), rtol=1e-10)
    # Those of the second derivative, like n⁻³.
    np.testing.assert_allclose(mf.grad_psi(CIRCLE, THETA, CLOUD), mf.grad_psi(CIRCLE, THETA, full), atol=1e-8)


@pytest.mark.parametrize("model", [CIRCLE, LINE])
def test_points_in_reduced_coordinates_are_those_of_the_reduction(model):
    measure = CLOUD if model is CIRCLE else PLANE
    reduced, z = model.reduce(), measure.points
    assert mf.risk(model, measure) == mf.risk(reduced, measure)
    assert mf.risk(model, measure.points) == mf.risk(reduced, measure.points)
    for function in (mf.psi, mf.grad_psi):
        assert np.array_equal(function(model, z, measure), function(reduced, z, measure))
    out = np.empty(2)
    assert mf.psi(model, z, measure, out=out) is out


def test_the_final_density_of_a_run_has_its_risk():
    model = mf.Model(
        mf.data.IsotropicGaussians(20, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(0.5)
    )
    for data in (model.data, mf.data.IsotropicGaussians(math.inf, 0.5)):
        run = mf.solve(model.replace(data=data), mf.PDE(40, error=False), horizon=0.1)
        # A sum over cells in another order.
        assert mf.risk(model.replace(data=data), run.final) == pytest.approx(run.risk[-1], rel=1e-12)


def test_the_gradient_at_neurons_is_the_slope_of_psi_in_every_trained_entry():
    theta = np.random.default_rng(1).normal(size=(5, 4))
    gradient = mf.grad_psi(LINE, theta, PLANE)
    assert (gradient[:, 0] == 0).all()  # a is fixed
    h = 1e-5
    for j in range(1, 4):
        ends = [mf.psi(LINE, theta + sign * h * np.eye(4)[j], PLANE) for sign in (1, -1)]
        # Central differences: h² times third derivatives of order 1, and 1e-16 / h of rounding.
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), gradient[:, j], atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mf.risk(LINE, mf.Cloud(np.ones((2, 5)))),
            r"measure must hold neurons of length 4 or points of length 3 in the reduced coordinates "
            r"\(a, s1, r\), got 5",
        ),
        (lambda: mf.psi(LINE, np.ones((2, 5)), PLANE), "theta must hold neurons of length 4 or points of"),
        (lambda: mf.risk(CIRCLE, mf.Density([0, 1], [1.0])), r"a density of 2 coordinates \(a, r\), got 1"),
        (
            lambda: mf.risk(CIRCLE, CLOUD, expectation=mf.Exact()),
            "expectation must be left out",
        ),
    ],
)
def test_what_is_of_no_length_that_fits_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, t: mf.V(m, t), r"theta must be of a size at which V is finite, got entries up to 1e\+200"),
        (lambda m, t: mf.U(m, 0 * t + 1, t), "other must be of a size at which U is finite"),
        (lambda m, t: mf.psi(m, t, t / t), "theta must be of a size at which Ψ is finite"),
        (lambda m, t: mf.grad_psi(m, t / t, t), "measure must be of a size at which ∇Ψ is finite"),
        (lambda m, t: mf.risk(m, t), "measure must be of a size at which the risk is finite"),
        (lambda m, t: mf.predict(m, t, [[1e200, 1.0]]), "must be of a size at which f is finite"),
    ],
)
def test_what_leaves_the_range_of_floats_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call(CIRCLE, np.full((1, 3), 1e200))


def test_features_by_hand_may_overflow_too():
    cube = mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z**3)
    assert mf.V(cube, [1e100]) == pytest.approx(-1e300)
    with pytest.raises(ValueError, match=r"theta must be of a size at which V is finite, got .* 1e\+200"):
        mf.V(cube, [1e200])


def test_what_a_model_keeps_between_calls_changes_no_result_and_stays_out_of_copies():
    model = mf.Model(CIRCLE.data, CIRCLE.network, ridge=0.3)
    calls = [
        lambda m, rule: mf.grad_psi(m, THETA, THETA, expectation=rule, threads=1),
        lambda m, rule: mf.V(m, THETA, expectation=rule, threads=2),
    ]
    rules = [None, mf.MonteCarlo(50, rng=0), mf.MonteCarlo(50, rng=1), mf.Exact(), None]
    for rule in rules * 2:
        for call in calls:
            assert np.array_equal(call(model, rule), call(CIRCLE.replace(), rule))
    assert mf.risk(model, CLOUD) == mf.risk(model, CLOUD) == mf.risk(CIRCLE.replace(), CLOUD)
    for copy in (pickle.loads(pickle.dumps(model)), model.replace(ridge=0.1)):
        assert set(vars(copy)) == {"data", "network", "init", "ridge", "temperature", "rates"}
    assert len(model._kept) == 2


TRAINED = mf.Model(
    mf.data.IsotropicGaussians(d=6, delta=0.5),
    mf.Network(mf.activations.relu, output="trained"),
    mf.init.Gaussian(1.0),
)
ROWS = np.random.default_rng(3).normal(size=(9, 7))
INPUTS = ROWS[:4, :6]


def test_points_measures_and_inputs_may_be_named_in_any_order():
    cloud = mf.Cloud(ROWS)
    for function in (mf.psi, mf.grad_psi):
        named = function(TRAINED, measure=cloud, theta=ROWS[:2])
        assert np.array_equal(named, function(TRAINED, ROWS[:2], cloud))
    f = mf.predict(TRAINED, ROWS, INPUTS)
    assert np.array_equal(mf.predict(X=INPUTS, measure=ROWS, model=TRAINED), f)


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        (
            mf.predict,
            (TRAINED, INPUTS, ROWS),
            ValueError,
            r"measure must have shape \(N, 7\) and X shape \(n, 6\), got \(4, 6\) and \(9, 7\); the order is",
        ),
        (
            mf.predict,
            (TRAINED, INPUTS, ROWS[None]),
            ValueError,
            r"got \(4, 6\) and \(1, 9, 7\); the order is",
        ),
        (
            mf.predict,
            (TRAINED, INPUTS, mf.Cloud(ROWS)),
            TypeError,
            "X must be inputs, .* the order is predict",
        ),
        (mf.predict, (ROWS, INPUTS), TypeError, "model must be an mf.Model, an mf.ReducedModel or a run"),
        (mf.psi, (TRAINED, mf.Cloud(ROWS), ROWS), TypeError, r"theta must be an array .* psi\(model, theta"),
        (mf.grad_psi, (TRAINED, mf.Cloud(ROWS), ROWS), TypeError, "theta must be an array of neurons or poi"),
        (mf.V, (TRAINED, mf.Cloud(ROWS)), TypeError, "theta must be an array of neurons or points, got a"),
        (mf.U, (TRAINED, ROWS, mf.Cloud(ROWS)), TypeError, "other must be an array of neurons or points"),
        (
            mf.psi,
            (TRAINED, INPUTS, ROWS),
            ValueError,
            r"theta must have shape \(N, 7\) or \(7,\), got \(4, 6\)",
        ),
    ],
)
def test_arguments_in_each_others_place_are_refused_by_name(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)
