"""`mf.Linearized`: exact in time, tangent to the nonlinear flow, a rung like the others."""

import math

import mfcore as mf
import numpy as np
import pytest
import scipy.linalg
from mfcore import theory
from mfcore.lazy import _modes

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
NETWORKS = {
    "tanh": mf.Network(mf.activations.tanh, output="trained", bias="trained", scale=3.0),
    "tanh, fixed b": mf.Network(mf.activations.tanh, output="trained", bias="fixed", scale=3.0),
    "relu": mf.Network(mf.activations.relu, output="fixed"),
    "sphere": mf.Network(mf.activations.erf, output="trained", sphere=True, scale=0.5),
}


def law_of(network, paired=False):
    blocks = {"a": mf.init.Normal(0.2, 1.0), "b": mf.init.Uniform(-1, 1)}
    given = {block: blocks[block] for block in ("a", "b") if block in network.blocks(3)}
    law = mf.init.Product(**given, w=mf.init.Radial(1.2))
    return mf.init.Paired(law) if paired else law


def model_of(network, paired=False, **options):
    return mf.Model(mf.data.Dataset(X, Y), network, law_of(network, paired), **options)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_residuals_decay_by_the_exponential_of_the_kernel(network):
    rates = {"w": 0.7}
    model = model_of(network, rates=rates)
    run = mf.solve(model, mf.Linearized(40), horizon=3.0, save_at=4, rng=0, keep="all")
    start = run.final.start
    kernel = theory.tangent_kernel(model, X, measure=start)
    first = mf.predict(model, start, X) - Y
    for t, measure, risk in zip(run.t, run.kept.values(), run.risk, strict=True):
        r = scipy.linalg.expm(-t * kernel / 20) @ first
        np.testing.assert_allclose(mf.predict(model, measure, X) - Y, r, atol=1e-10)
        assert math.isclose(risk, np.mean(r**2), rel_tol=1e-10)
        assert mf.risk(model, measure) == risk
    assert (run.kept[0.0].theta == start).all()


@pytest.mark.parametrize("bias", ["trained", "fixed"])
@pytest.mark.parametrize("output", ["trained", "fixed"])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_trained_parameters_follow_the_flow_of_the_linear_network(ridge, output, bias):
    network = mf.Network(mf.activations.tanh, output=output, bias=bias, scale=3.0)
    model = model_of(network, ridge=ridge, rates=dict.fromkeys(network.trained, 0.5))
    run = mf.solve(model, mf.Linearized(10), horizon=1.0, rng=0)
    start, step = run.final.start, 1e-5
    jacobian = np.zeros((20, start.size))
    for k in range(start.size):
        change = np.zeros(start.size)
        change[k] = step
        up, down = (start + sign * change.reshape(start.shape) for sign in (1, -1))
        jacobian[:, k] = (mf.predict(model, up, X) - mf.predict(model, down, X)) / (2 * step)
    # θ̇ = −rate (N Jᵀ P (f₀ + J(θ − θ₀) − y) + λθ), an affine system solved by its exponential
    first = start.ravel()
    rate = 0.5 * np.ones_like(start)
    rate[:, 0] *= output == "trained"
    rate[:, 1] *= bias == "trained"
    rate = rate.ravel()
    matrix = -rate[:, None] * (10 * jacobian.T @ jacobian / 20 + ridge * np.eye(start.size))
    pull = -rate * 10 * (jacobian.T @ (mf.predict(model, start, X) - Y - jacobian @ first)) / 20
    system = np.block([[matrix, pull[:, None]], [np.zeros((1, start.size + 1))]])
    want = (scipy.linalg.expm(system) @ np.append(first, 1.0))[:-1]
    # differences are good to 1e-9
    np.testing.assert_allclose(run.final.theta.ravel(), want, atol=1e-7)
    assert (run.final.theta.ravel()[rate == 0] == first[rate == 0]).all()


@pytest.mark.parametrize("bias", ["none", "fixed"])
@pytest.mark.parametrize(("paired", "power"), [(False, 1), (True, 2)])
def test_a_large_scale_makes_the_nonlinear_flow_linear(paired, power, bias):
    """The gap is of order 1/α, and of order 1/α² for pairs, in which second derivatives cancel."""
    gaps = []
    for scale in (30.0, 300.0):
        network = mf.Network(mf.activations.tanh, output="trained", bias=bias, scale=scale)
        law, horizon = law_of(network, paired), 2.0 / scale**2
        start = law.sample(network, 3, 100, rng=0)
        shifted = mf.Model(mf.data.Dataset(X, Y), network)
        labels = Y + mf.predict(shifted, start, X)  # so that residuals begin as -Y at every scale
        model = mf.Model(mf.data.Dataset(X, labels), network, law)
        lazy = mf.solve(model, mf.Linearized(100), horizon=horizon, rng=0)
        full = mf.solve(model, mf.Particles(100, rtol=1e-12, atol=1e-14), horizon=horizon, rng=0)
        assert (lazy.final.start == start).all()
        gaps.append(np.abs(mf.predict(model, lazy.final, X) - mf.predict(model, full.final, X)).max())
    assert 0.8 < gaps[0] / gaps[1] / 10**power < 1.2  # up to the next order, 1/30


def test_a_start_whose_predictions_grow_with_the_scale_does_not_become_lazy():
    gaps = []
    for scale in (100.0, 1000.0):
        network = mf.Network(mf.activations.tanh, output="trained", scale=scale)
        model = mf.Model(mf.data.Dataset(X, Y), network, law_of(network))
        full, lazy = (
            mf.solve(model, method, horizon=2.0 / scale**2, rng=0)
            for method in (mf.Particles(100, rtol=1e-9), mf.Linearized(100))
        )
        moved = np.linalg.norm(full.final - lazy.final.start, axis=1).max()
        gaps.append(np.abs(mf.predict(model, lazy.final, X) - mf.predict(model, full.final, X)).max())
        assert moved > 0.1  # as far at both
    assert 9 < gaps[1] / gaps[0] < 11  # residuals are α times those of scale 1, but for the labels


@pytest.mark.parametrize("neurons", [100, math.inf])
def test_pairs_predict_zero_at_the_start(neurons):
    model = model_of(NETWORKS["tanh"], paired=True)
    run = mf.solve(model, mf.Linearized(neurons), horizon=1.0, save_at=[0.0], rng=0, keep="all")
    assert (mf.predict(model, run.kept[0.0], X) == 0).all()
    assert math.isclose(run.risk[0], np.mean(Y**2), rel_tol=1e-15)


def test_many_neurons_tend_to_infinitely_many():
    model = model_of(NETWORKS["tanh"])
    limit = mf.solve(model, mf.Linearized(math.inf), horizon=1.0, rng=0)
    inputs = np.random.default_rng(1).normal(size=(8, 3))
    want = mf.predict(model, limit.final, inputs)
    gaps = []
    for neurons in (400, 6400):
        runs = [mf.solve(model, mf.Linearized(neurons), horizon=1.0, rng=k) for k in range(12)]
        found = [mf.predict(model, run.final, inputs) for run in runs]
        gaps.append(np.sqrt(np.mean((np.array(found) - want) ** 2)))
    # 1/√N: the ratio is 4; its logarithm has standard deviation below 0.2 (12 runs each): 4 of them
    assert 4 * math.exp(-0.8) < gaps[0] / gaps[1] < 4 * math.exp(0.8)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_infinitely_many_neurons_follow_their_kernel(ridge):
    model = model_of(NETWORKS["relu"], ridge=ridge).replace(
        init=mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
    )
    run = mf.solve(model, mf.Linearized(math.inf), horizon=2.0)
    kernel = theory.tangent_kernel(model, X) / 20
    matrix = np.block([[-kernel - ridge * np.eye(20), (kernel @ Y)[:, None]], [np.zeros((1, 21))]])
    want = (scipy.linalg.expm(2 * matrix) @ np.append(np.zeros(20), 1.0))[:-1]
    np.testing.assert_allclose(mf.predict(model, run.final, X), want, atol=1e-12)
    assert not run.observed  # there are no neurons to observe


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_infinitely_many_draws_of_given_points_are_these_points(network):
    rows = law_of(network).sample(network, 3, 12, rng=0)
    model = model_of(network).replace(init=mf.init.Points(rows))
    few, limit = (mf.solve(model, mf.Linearized(n), horizon=0.5, save_at=3, rng=0) for n in (12, math.inf))
    np.testing.assert_allclose(limit.risk, few.risk, rtol=1e-12)
    inputs = np.random.default_rng(1).normal(size=(8, 3))
    found, want = (mf.predict(model, run.final, inputs) for run in (limit, few))
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)  # other sums


def test_ridge_ends_at_kernel_ridge_regression():
    model = model_of(NETWORKS["relu"], paired=True, ridge=0.3)
    run = mf.solve(model, mf.Linearized(math.inf), horizon=1e4)
    kernel = theory.tangent_kernel(model, X) / 20
    want = kernel @ np.linalg.solve(kernel + 0.3 * np.eye(20), Y)
    np.testing.assert_allclose(mf.predict(model, run.final, X), want, atol=1e-12)


def test_laws_without_nodes_are_sampled():
    model = mf.Model(mf.data.IsotropicGaussians(d=5, delta=0.5), NETWORKS["relu"], law_of(NETWORKS["relu"]))
    run = mf.solve(model, mf.Linearized(30, mf.MonteCarlo(100, rng=1)), horizon=1.0, rng=0)
    inputs, labels = model.data.draw(100, rng=1)
    same = mf.Model(mf.data.Dataset(inputs, labels), model.network, model.init)
    again = mf.solve(same, mf.Linearized(30), horizon=1.0, rng=0)
    np.testing.assert_allclose(run.final.theta, again.final.theta, rtol=1e-12)
    risk = mf.risk(model, run.final, expectation=mf.MonteCarlo(1000, rng=2))
    inputs, labels = model.data.draw(1000, rng=2)
    assert math.isclose(risk, np.mean((labels - mf.predict(model, run.final, inputs)) ** 2), rel_tol=1e-12)


def test_krylov_agrees_with_all_modes(monkeypatch):
    data = np.random.default_rng(0).normal(size=(600, 4))
    model = mf.Model(mf.data.Dataset(data[:, :3], data[:, 3]), NETWORKS["relu"], law_of(NETWORKS["relu"]))
    model = model.replace(ridge=0.01)
    exact = mf.solve(model, mf.Linearized(50), horizon=30.0, rng=0)
    monkeypatch.setattr(_modes, "MOST_EXACT", 100)
    krylov = mf.solve(model, mf.Linearized(50), horizon=30.0, rng=0)
    assert krylov.meta["modes"] <= 400
    np.testing.assert_allclose(krylov.final.theta, exact.final.theta, atol=1e-9)
    np.testing.assert_allclose(krylov.risk, exact.risk, rtol=1e-9)


def test_krylov_says_where_it_ends(monkeypatch):
    monkeypatch.setattr(_modes, "MOST_EXACT", 1)
    monkeypatch.setattr(_modes, "_KRYLOV", 3)
    run = mf.solve(model_of(NETWORKS["relu"]), mf.Linearized(50), horizon=30.0, rng=0)
    assert run.status == "diverged"
    assert "modes" in run.message


@pytest.mark.parametrize("neurons", [30, math.inf])
def test_threads_save_points_and_interruptions_change_no_bit(neurons, tmp_path):
    model, method = model_of(NETWORKS["tanh"]), mf.Linearized(neurons)
    one, two = (mf.solve(model, method, horizon=1.0, save_at=k, rng=0, threads=k) for k in (1, 3))
    file = tmp_path / "run.npz"
    part = mf.solve(model, method, horizon=1.0, rng=0, checkpoint=file, max_seconds=0)
    assert part.status == "out of time"
    resumed = mf.resume(file)
    assert one.final == two.final == resumed.final
    whole = mf.solve(model, method, horizon=1.0, rng=0)
    assert (whole.risk == resumed.risk).all()


@pytest.mark.parametrize("neurons", [30, math.inf])
def test_runs_and_methods_are_read_back(neurons, tmp_path):
    run = mf.solve(
        model_of(NETWORKS["tanh"]), mf.Linearized(neurons), horizon=1.0, save_at=2, rng=0, keep="all"
    )
    run.save(tmp_path / "run.npz")
    back = mf.load(tmp_path / "run.npz")
    assert back.final == run.final
    assert back.kept == run.kept
    assert back.meta["method"] == run.meta["method"]
    method = mf.Linearized(neurons, mf.MonteCarlo(10, seed=1))
    mf.save_config(method, tmp_path / "run.toml")
    assert mf.load_config(tmp_path / "run.toml") == method


def test_misuse_is_refused_in_words():
    model = model_of(NETWORKS["tanh"])
    for changed, words in (
        (model.replace(temperature=0.1), "temperature must be 0"),
        (model.replace(ridge=0.1, rates={"a": 2.0}), "ridge must be 0 .* with rates"),
        (model_of(NETWORKS["sphere"], ridge=0.1), "ridge must be 0 .* on the sphere"),
        (model.replace(data=mf.data.IsotropicGaussians(d=3, delta=0.5)), "expectation must be mf.MonteCarlo"),
    ):
        with pytest.raises(ValueError, match=words):
            mf.solve(changed, mf.Linearized(10), horizon=1.0)
    with pytest.raises(ValueError, match="ridge must be 0 for infinitely many neurons"):
        mf.solve(model.replace(ridge=0.1), mf.Linearized(math.inf), horizon=1.0)
    points = mf.init.Points([[1.0, 0.0, 1.0, 2.0, 3.0], [-1.0, 0.0, 1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="ridge must be 0 for infinitely many neurons"):
        mf.solve(model.replace(ridge=0.1, init=points), mf.Linearized(math.inf), horizon=1.0)
    with pytest.raises(ValueError, match="neurons must be"):
        mf.Linearized(0)
    with pytest.raises(TypeError, match="expectation must be"):
        mf.Linearized(10, 5)
    law = mf.Model(mf.data.IsotropicGaussians(d=3, delta=0.5), NETWORKS["relu"])
    theta = np.ones((2, 4))
    with pytest.raises(ValueError, match="without nodes"):
        mf.risk(law, mf.Tangent(theta, theta))


def test_measures_of_tangents_check_what_they_are_made_of():
    with pytest.raises(ValueError, match=r"theta must have shape \(1, 2\), got \(1, 3\)"):
        mf.Tangent([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="coefficients must be finite"):
        mf.TangentLimit([[1.0]], [np.inf])
