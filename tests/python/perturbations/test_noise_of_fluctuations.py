"""`theory.fluctuations` with the noise of SGD and with Langevin noise: linear models by hand, and runs."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.perturbations._ensembles import FeatureField, drifted
from problems import waves

X = np.linspace(-1.5, 1.5, 4)[:, None]
Y = np.sin(X[:, 0]) + np.array([0.5, -0.5, 0.5, -0.5])  # far from the start: samples disagree


def tanh(data, **options):
    init = mf.init.Product(a=mf.init.Normal(0.3, 0.6), w=mf.init.Normal(0.5, 0.7))
    return mf.Model(data, mf.Network(mf.activations.tanh, output="trained"), init, **options)


def by_chance(n, rng):
    rows = rng.integers(len(X), size=n)
    return X[rows], Y[rows]


@pytest.mark.parametrize("batch", [1, 4])
def test_sgd_on_a_linear_model_has_the_moments_of_its_mean_weight(batch):
    """x ~ N(0, 1), y = x + noise of power τ²: e = w̄ − 1 has E e² ← (1 − 2h + h²(1 + 2/b)) E e² + h²τ²/b.

    To first order in h = κ/N, with m = e of the limit: (N E e² − N m²)' = −2(…) + κ[(2/b − 1)m² + τ²/b], and
    Var' = −2Var + (κ/b)(2m² + τ²), since x⁴ has mean 3.
    """
    model = mf.Model(
        mf.data.Linear([1.0], noise=0.3), mf.Network(mf.activations.linear), mf.init.Gaussian(std=1.0)
    )
    start, kappa, noise = mf.Cloud([[-0.5], [1.1]], [0.5, 0.5]), 3.0, 0.09
    t = np.array([0.0, 0.5, 1.0])
    found = theory.fluctuations(model, 1.0, t, start=start, sgd=kappa, batch=batch)
    m, decay = (0.3 - 1.0) * np.exp(-t), np.exp(-2 * t)
    late = kappa * noise / batch * (1 - decay) / 2
    output = 0.64 * decay + kappa / batch * 2 * m**2 * t + late
    offset = 0.64 * decay + kappa * (2 / batch - 1) * m**2 * t + late
    assert np.allclose(found.output, output, rtol=1e-5)  # Boole's rule on four panels, steps of f: 1e-9
    assert np.allclose(found.variance, 4 * m**2 * output, rtol=1e-5)
    assert np.allclose(found.offset, offset, rtol=1e-5)
    assert found.error.max() < 1e-3
    assert not found.sampling.any()


def test_four_hundred_runs_of_sgd_agree():
    """N = 200, h = 4/N, 3 times, output and risk: 4.9 standard errors each, and 6 % of bias, as terms of
    order 1/N are left. A false alarm is rarer than once in 10⁵. Without the noise's terms it fails.
    """
    times, n, runs, kappa = np.array([0.5, 1.0, 2.0]), 200, 400, 4.0
    model = tanh(mf.data.Stream(by_chance, d=1))
    known = tanh(mf.data.Dataset(X, Y))
    found = theory.fluctuations(known, 2.0, times, atoms=36, sgd=kappa)
    plain = theory.fluctuations(known, 2.0, times, atoms=36)
    start = mf.Cloud(*known.reduce().initial.quadrature(6))

    def f(rho):
        return mf.predict(known, rho, X)

    limit = mf.solve(known, mf.Atoms(start=start), horizon=2.0, save_at=times, observe={"f": f}).observed["f"]
    sgd = mf.SGD(n, step=kappa / n, replicas=runs)
    sample = mf.solve(
        model, sgd, horizon=2.0, save_at=times, risk=False, observe={"f": f}, rng=0, threads=1
    ).observed["f"]
    squares = n * np.square(sample - limit[:, None]).mean(axis=-1)
    offsets = n * (np.square(sample - Y).mean(axis=-1) - found.risk[:, None])
    for values, theirs in ((squares, found.output), (offsets, found.offset)):
        error = values.std(axis=1) / math.sqrt(runs)
        assert (np.abs(values.mean(axis=1) - theirs) < 4.9 * error + 0.06 * np.abs(found.output)).all()
    assert squares[-1].mean() > 2 * plain.output[-1]


def test_langevin_noise_adds_its_variance_to_a_linear_model():
    """w̄_N − w̄ has covariance e^{−2kt}C₀/N + (1 − e^{−2kt})/(βkN), k = Σ + λ: within 5 of the standard errors
    that the result states for 100 paths. False alarms: 10⁻⁴, as squares of normal numbers have longer tails.
    """
    law = mf.data.Dataset([[1.0], [-1.0]], [1.0, -1.0])
    model = mf.Model(
        law, mf.Network(mf.activations.linear), mf.init.Gaussian(std=0.5), ridge=0.2, temperature=0.4
    )
    t = np.array([0.0, 0.5, 1.5])
    found = theory.fluctuations(model, 1.5, t, atoms=100, rng=3)
    output = 0.25 * np.exp(-2.4 * t) + 0.4 / 1.2 * (1 - np.exp(-2.4 * t))
    assert (np.abs(found.output - output) < 5 * found.sampling[0]).all()
    assert (found.sampling[0] < 0.25 * output).all()
    assert "sampling" in repr(found)
    again = theory.fluctuations(model, 1.5, t, atoms=100, rng=3)
    assert (again.output == found.output).all()


def test_runs_of_langevin_dynamics_agree():
    """N = 100, 200 runs, 2 times: 5 standard errors of the runs and of the draws together, and 8 % of bias,
    as terms of order 1/N are left. False alarms: 10⁻⁵.
    """
    times, n, runs = np.array([0.5, 1.5]), 100, 200
    model = tanh(mf.data.Dataset(X, Y), temperature=0.1, ridge=0.3)
    found = theory.fluctuations(model, 1.5, times, atoms=80, rng=1)

    def f(rho):
        return mf.predict(model, rho, X)

    def run(neurons, seed):
        method = mf.Particles(neurons, method="heun", step=0.025)
        options = {"horizon": 1.5, "save_at": times, "risk": False, "threads": 1}
        return mf.solve(model, method, rng=seed, observe={"f": f}, **options).observed["f"]

    sample = np.array([run(n, k) for k in range(runs)])
    variance = n * sample.var(axis=0, ddof=1).mean(axis=-1)  # of f_N, less its bias of order 1/N
    each = n * np.square(sample - sample.mean(axis=0)).mean(axis=-1)
    error = np.hypot(each.std(axis=0) / math.sqrt(runs), found.sampling[0])
    assert (np.abs(variance - found.output) < 5 * error + 0.08 * found.output).all()


def test_a_radius_moves_as_the_norm_of_a_vector_under_noise():
    """Decay λ = 1: E r² = e^{−2t}r₀² + d/β(1 − e^{−2t}), 5 standard errors of 2000 paths: odds 10⁻⁶."""
    model = mf.ReducedModel(
        coordinates=["r"], weights=[1.0], targets=[0.0], volume=[2.0], nonnegative=[True],
        features=lambda z: 0 * z, gradients=lambda z: 0 * z[:, None, :], ridge=1.0, temperature=0.3,
    )  # fmt: skip
    field, theta = FeatureField(model), np.ones((1, 2000, 1))
    masses, rng = np.full((1, 2000), 1 / 2000), np.random.default_rng(0)
    for _ in range(20):
        theta = field.kicked(theta, 0.025, rng)
        theta = field.kicked(drifted(field, theta, masses, 0.05), 0.025, rng)
    mean = math.exp(-2) + 3 * 0.3 * (1 - math.exp(-2))
    squares = theta[0, :, 0] ** 2
    assert abs(squares.mean() - mean) < 5 * squares.std() / math.sqrt(2000)


def test_what_is_not_known_of_noise_is_refused():
    with pytest.raises(ValueError, match=r"model must be an mf\.Model for sgd > 0"):
        theory.fluctuations(waves(0, 1), 1.0, sgd=1.0)
    with pytest.raises(ValueError, match="temperature 0 for sgd > 0, got"):
        theory.fluctuations(tanh(mf.data.Dataset(X, Y), temperature=0.1), 1.0, sgd=1.0)
    with pytest.raises(ValueError, match="sgd must be"):
        theory.fluctuations(tanh(mf.data.Dataset(X, Y)), 1.0, sgd=-1.0)
