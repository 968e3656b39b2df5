"""A network's scale α: every function and rung is that of a neuron α·σ*, and scale 1 changes no bit."""

import math

import mfcore as mf
import numpy as np
import pytest

ALPHA = 3.7
SIGMA = mf.activations.piecewise_linear(knots=[-0.5, 0.5], values=[-0.3, 1.0])


def times(sigma, alpha):
    """α·σ as an activation of its own."""
    return mf.activations.piecewise_linear(knots=sigma.knots, values=[alpha * v for v in (-0.3, 1.0)])


LAWS = {
    "isotropic": mf.data.IsotropicGaussians(d=6, delta=0.5),
    "multi-index": mf.data.MultiIndex(6, [0.0, 1.0, 0.5], directions=1, noise=0.3),
    "teacher": mf.data.Teacher(mf.Network(mf.activations.relu), np.eye(6)[:2]),
    "dataset": mf.data.Dataset(np.random.default_rng(0).normal(size=(12, 6)), np.arange(12.0)),
}


def pair(law, **options):
    """The model with scale α, and the same model with the activation α·σ."""
    given = {"ridge": 0.2, "rates": {"w": 0.7}} | options
    init = mf.init.Product(b=mf.init.Normal(0.0, 0.3), w=mf.init.Radial(0.8))
    scaled = mf.Network(SIGMA, bias="trained", scale=ALPHA)
    plain = mf.Network(times(SIGMA, ALPHA), bias="trained")
    return tuple(mf.Model(law, net, init, **given) for net in (scaled, plain))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_functions_are_those_of_the_activation_times_the_scale(law):
    one, two = pair(law)
    theta, other = one.init.sample(one.network, 6, 5, 0), one.init.sample(one.network, 6, 4, 1)
    for function in (mf.V, mf.U):
        np.testing.assert_allclose(function(one, theta), function(two, theta), rtol=1e-12, atol=1e-13)
    for function in (mf.psi, mf.grad_psi):
        np.testing.assert_allclose(
            function(one, theta, other), function(two, theta, other), rtol=1e-12, atol=1e-13
        )
    assert math.isclose(mf.risk(one, theta), mf.risk(two, theta), rel_tol=1e-12)
    X = np.random.default_rng(1).normal(size=(7, 6))
    np.testing.assert_allclose(mf.predict(one, theta, X), mf.predict(two, theta, X), rtol=1e-13)
    estimates = [mf.estimate(m, theta, samples=100, gradient=True, rng=0) for m in (one, two)]
    for name in ("V", "U", "grad_V", "V_error", "U_error", "grad_V_error"):
        np.testing.assert_allclose(*(getattr(e, name) for e in estimates), rtol=1e-11, atol=1e-12)


METHODS = {
    "SGD": mf.SGD(8, step=0.01),
    "SGD, batches": mf.SGD(8, step=0.01, batch=3),
    "GD": mf.GD(8, step=0.05),
    "Particles": mf.Particles(8, method="rk4", step=0.05),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_networks_move_as_with_the_activation_times_the_scale(law, method):
    runs = [mf.solve(model, method, horizon=0.5, rng=0) for model in pair(law)]
    # rounding of 1e-16, grown over up to 50 steps
    np.testing.assert_allclose(runs[0].final, runs[1].final, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(runs[0].risk, runs[1].risk, rtol=1e-11)


@pytest.mark.parametrize("method", [mf.SGD(8, step=0.01), mf.GD(8, step=0.01)], ids=["SGD", "GD"])
def test_noise_is_that_of_the_model_at_any_scale(method):
    runs = [
        mf.solve(model, method, horizon=0.3, rng=0) for model in pair(LAWS["isotropic"], temperature=0.05)
    ]
    np.testing.assert_allclose(runs[0].final, runs[1].final, rtol=1e-9, atol=1e-9)


def test_the_limits_rungs_move_as_with_the_activation_times_the_scale():
    law = mf.data.IsotropicGaussians(d=40, delta=0.5)
    init = mf.init.Radial(0.8)
    models = [
        mf.Model(law, net, init) for net in (mf.Network(SIGMA, scale=2.0), mf.Network(times(SIGMA, 2.0)))
    ]
    for method in (mf.PDE(100), mf.Atoms(), mf.JKO(0.05)):
        runs = [mf.solve(model, method, horizon=0.2) for model in models]
        np.testing.assert_allclose(runs[0].risk, runs[1].risk, rtol=1e-9)
    X = np.random.default_rng(0).normal(size=(5, 40))
    np.testing.assert_allclose(*(mf.predict(run, X) for run in runs), rtol=1e-9)
    optima = [mf.optimum(model) for model in models]
    assert abs(optima[0].risk - optima[1].risk) < 1e-8  # both certified to 1e-8 or better


def test_a_stepper_takes_the_steps_of_the_activation_times_the_scale():
    rng = np.random.default_rng(0)
    theta, X, y = rng.normal(size=(9, 5)), rng.normal(size=(200, 4)), rng.normal(size=200)
    networks = [
        mf.Network(SIGMA, bias="trained", scale=ALPHA),
        mf.Network(times(SIGMA, ALPHA), bias="trained"),
    ]
    rows = []
    for network in networks:
        own = theta.copy()
        stepper = mf.steppers.SGD(network, own, ridge=0.1, rates={"b": 2.0}, temperature=0.01, rng=0)
        stepper.step(X[:7], y[:7], 0.01)
        stepper.run(X, y, 0.001)
        rows.append(np.column_stack([own, stepper.predict(X[: len(own)])]))
    np.testing.assert_allclose(*rows, rtol=1e-10, atol=1e-11)


def test_a_teacher_of_some_scale_gives_labels_times_it():
    theta = np.eye(3)[:2]
    plain, scaled = (mf.data.Teacher(mf.Network(mf.activations.tanh, scale=s), theta) for s in (1.0, ALPHA))
    np.testing.assert_allclose(scaled.draw(5, 0)[1], ALPHA * plain.draw(5, 0)[1], rtol=1e-15)
    net = mf.Network(mf.activations.tanh)
    np.testing.assert_allclose(
        mf.V(mf.Model(scaled, net), theta), ALPHA * mf.V(mf.Model(plain, net), theta), rtol=1e-14
    )
    assert math.isclose(
        mf.risk(mf.Model(scaled, net), 0 * theta), ALPHA**2 * mf.risk(mf.Model(plain, net), 0 * theta)
    )


def test_a_scale_of_two_is_exact_in_floating_point():
    # Labels over 2 and rates times 4 round nothing: the same bits as σ with values twice as large.
    law = LAWS["isotropic"]
    init = mf.init.Radial(0.8)
    nets = mf.Network(SIGMA, scale=2.0), mf.Network(times(SIGMA, 2.0))
    one, two = (mf.solve(mf.Model(law, net, init), mf.SGD(50, step=0.01), horizon=1.0, rng=0) for net in nets)
    assert np.array_equal(one.final, two.final)


def test_the_scale_is_part_of_configurations(tmp_path):
    model = mf.Model(LAWS["isotropic"], mf.Network(mf.activations.relu, scale=2.5), mf.init.Radial(1.0))
    mf.save_config({"model": model}, tmp_path / "model.toml")
    assert mf.load_config(tmp_path / "model.toml")["model"] == model


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e200, "big"])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    with pytest.raises((ValueError, TypeError), match="scale must be"):
        mf.Network(mf.activations.relu, scale=scale)


def test_paired_neurons_predict_zero_to_the_bit():
    law = mf.init.Paired(
        mf.init.Product(a=mf.init.Normal(1.0, 2.0), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(1.0))
    )
    net = mf.Network(mf.activations.tanh, output="trained", bias="trained", scale=100.0)
    X = np.random.default_rng(0).normal(size=(50, 7))
    data = mf.data.Dataset(X, np.ones(50))
    for neurons in (2, 6, 10, 34, 400):
        theta = law.sample(net, 7, neurons, 0)
        assert (mf.predict(mf.Model(data, net), theta, X) == 0).all()
        assert mf.risk(mf.Model(data, net), theta) == 1.0
        assert np.array_equal(theta, law.sample(net, 7, 400, 0)[:neurons])


def test_the_limit_of_pairs_has_the_symmetric_law():
    a = mf.init.Uniform(0.5, 1.0)
    law = mf.init.Paired(mf.init.Product(a=a, w=mf.init.Radial(1.0)))
    net = mf.Network(mf.activations.relu, output="trained")
    model = mf.Model(mf.data.MultiIndex(math.inf, [0.0, 1.0], directions=1), net, law)
    points, weights = model.reduce().initial.quadrature(6)
    assert abs(weights @ points[:, 0]) < 1e-15
    assert math.isclose(weights @ points[:, 0] ** 2, a.second_moment, rel_tol=1e-13)
    start = mf.solve(model, mf.Atoms(), horizon=0.01, save_at=[0.0]).risk[0]
    assert math.isclose(start, 1.0, rel_tol=1e-12)


@pytest.mark.parametrize("law", [mf.init.Constant(1.5), mf.init.Normal(1.0, 0.5), mf.init.Uniform(-1.0, 3.0)])
def test_a_symmetric_law_has_the_distribution_function_of_both_signs(law):
    both = mf.init.Symmetric(law)
    x = np.linspace(-4.03, 4.01, 31)
    flipped = 1 - law.cdf(-x)  # no x of these is a jump
    np.testing.assert_allclose(both.cdf(x), 0.5 * (law.cdf(x) + flipped), atol=1e-15)
    u = np.array([0.01, 0.3, 0.49, 0.51, 0.8])
    np.testing.assert_array_less(u - 1e-12, both.cdf(both.quantile(u)))
    nodes, weights = both.quadrature(8)
    assert abs(weights @ nodes) < 1e-15
    assert math.isclose(weights @ nodes**2, law.second_moment, rel_tol=1e-12)


def test_misuse_of_pairs_is_refused_with_words():
    law = mf.init.Paired(mf.init.Product(a=mf.init.Constant(1.0), w=mf.init.Radial(1.0)))
    with pytest.raises(ValueError, match="count must be even"):
        law.sample(mf.Network(mf.activations.relu, output="trained"), 3, 5)
    with pytest.raises(ValueError, match="output weight"):
        mf.Model(LAWS["isotropic"], mf.Network(mf.activations.relu), mf.init.Paired(mf.init.Gaussian(1.0)))
    with pytest.raises(TypeError, match="law must be"):
        mf.init.Paired(mf.init.Points([[1.0, 2.0]]))


def test_signs_of_a_symmetric_law_are_drawn_one_by_one():
    law = mf.init.Product(a=mf.init.Symmetric(mf.init.Constant(2.0)), w=mf.init.Radial(1.0))
    a = law.sample(mf.Network(mf.activations.relu, output="trained"), 2, 4000, 0)[:, 0]
    assert set(a) == {-2.0, 2.0}
    # means of 4000 and of 3999 products of independent signs: off by 4.4 / sqrt(4000) with odds 1e-5
    assert abs(a.mean() / 2) < 4.4 / math.sqrt(4000)
    assert abs((a[1:] * a[:-1]).mean() / 4) < 4.4 / math.sqrt(3999)
