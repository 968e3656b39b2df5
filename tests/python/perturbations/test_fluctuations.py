"""`theory.fluctuations`: a linear model solved by hand, all draws enumerated, and independent runs."""

import math

import mfcore as mf
import numpy as np
import pytest
import scipy
from mfcore import theory
from mfcore.perturbations._ensembles import FeatureField, NeuronField, predictions
from mfcore.perturbations._moments import by_differences, by_variations
from problems import waves


def dataset(samples=8, init=None, **options):
    X = np.linspace(-1.75, 1.75, samples)[:, None]
    network = mf.Network(mf.activations.tanh, output="trained")
    init = init or mf.init.Product(a=mf.init.Normal(0.3, 0.6), w=mf.init.Normal(0.5, 0.7))
    return mf.Model(mf.data.Dataset(X, np.sin(X[:, 0])), network, init, **options)


def linear(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2))
    law = mf.data.Dataset(X, X @ [1.0, -0.5] + 0.3 * rng.normal(size=6))
    return mf.Model(law, mf.Network(mf.activations.linear), mf.init.Gaussian(std=0.8), ridge=ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_linear_model_has_the_moments_of_its_mean_weight(ridge):
    """w̄_N − w̄ is normal with covariance e^{−2(Σ+λ)t}C₀/N, and f_N − f its product with x."""
    model, times = linear(ridge), np.array([0.0, 0.5, 2.0])
    found = theory.fluctuations(model, 2.0, times, atoms=36)
    X, y = model.data.X, model.data.y
    sigma = X.T @ X / 6
    best = np.linalg.solve(sigma + ridge * np.eye(2), X.T @ y / 6)
    for k, t in enumerate(times):
        decay = scipy.linalg.expm(-(sigma + ridge * np.eye(2)) * t)
        spread = 0.64 * decay @ decay
        output = np.trace(sigma @ spread)
        slope = X.T @ (X @ (best - decay @ best) - y) / 6  # ½∇R at w̄(t), which starts at 0
        assert math.isclose(found.output[k], output, rel_tol=1e-7)  # steps: 1e-6, their error taken away
        assert math.isclose(found.variance[k], 4 * slope @ spread @ slope, rel_tol=1e-7)
        assert math.isclose(found.offset[k], output, rel_tol=1e-7)


def test_a_linear_model_on_normal_inputs_is_as_exact():
    """x ~ N(0, Σ), y = ⟨w*, x⟩ + noise: w̄ as above, the noise in the risk alone."""
    law = mf.data.Linear([1.0, -0.5], cov=np.diag([0.5, 1.5]), noise=0.3)
    model = mf.Model(law, mf.Network(mf.activations.linear), mf.init.Gaussian(std=0.8), ridge=0.1)
    found = theory.fluctuations(model, 1.0, [0.0, 1.0], atoms=36)
    sigma, target = np.array([0.5, 1.5]), np.array([1.0, -0.5])
    decay = np.exp(-(sigma + 0.1))
    best = sigma * target / (sigma + 0.1)
    gap = best * (1 - decay) - target
    assert math.isclose(found.output[1], 0.64 * sigma @ decay**2, rel_tol=1e-7)
    assert math.isclose(
        found.variance[1], 4 * 0.64 * (sigma * gap * decay) @ (sigma * gap * decay), rel_tol=1e-7
    )
    assert math.isclose(found.risk[1], sigma @ gap**2 + 0.09, rel_tol=1e-7)


def test_at_the_start_they_are_the_constants_of_independent_neurons():
    model = dataset()
    found = theory.fluctuations(model, 1e-9, [0.0], atoms=100)
    rho = mf.Cloud(*model.reduce().initial.quadrature(10))
    psi = mf.psi(model, rho.points, rho)
    spread = rho.weights @ psi**2 - (rho.weights @ psi) ** 2
    gap = theory.approximation_gap(model, rho)
    assert found.atoms == 100
    assert math.isclose(found.output[0], gap, rel_tol=1e-9)
    assert math.isclose(found.offset[0], gap, rel_tol=1e-6)  # rounding over ε²
    assert math.isclose(found.variance[0], 4 * spread, rel_tol=1e-9)


def wide(std=1.0, output="trained"):
    """Neurons aσ(wx) near the origin part: Gauss nodes of their law converge slowly."""
    X = np.linspace(-1.75, 1.75, 16)[:, None]
    network = mf.Network(mf.activations.tanh, output=output)
    a = mf.init.Normal(0.0, std) if output == "trained" else None
    init = mf.init.Product(a=a, w=mf.init.Normal(0.5, std))
    return mf.Model(mf.data.Dataset(X, np.sin(X[:, 0])), network, init)


@pytest.mark.parametrize("atoms", [49, 81, 144])
def test_what_gauss_nodes_leave_is_in_the_error(atoms):
    """Compared with 26² nodes, 16 steps: their change to 21² nodes is a tenth of what 12² leave."""
    model, times = wide(), np.array([0.0, 0.5, 2.0])
    found = theory.fluctuations(model, 2.0, times, atoms=atoms)
    points, masses = model.reduce().initial.quadrature(26)
    kept = masses > 1e-12
    field = NeuronField(model, model.data.X, model.data.y)
    f, totals, _ = by_variations(field, points[kept], masses[kept] / masses[kept].sum(), times, 16, None)
    risk = np.square(f - field.targets) @ field.weights
    output, variance, bias = totals[0]
    true = np.abs(
        np.array([found.risk, found.output, found.variance, found.offset])
        - [risk, output, variance, output + bias]
    ).max(axis=0)
    assert (true <= found.error).all()
    assert (found.error < 40 * true).all()
    assert found.atoms == atoms


def test_no_more_nodes_are_taken_than_needed_and_as_many_as_given():
    narrow = theory.fluctuations(wide(0.1), 1.0, 2, atoms=400)
    assert narrow.atoms < 200
    assert narrow.error.max() < 1e-6  # 1e-5 of the largest value by nodes, and the steps
    alone = theory.fluctuations(wide(4.0, output="one"), 1.0, 2, atoms=100)
    assert alone.atoms == 100
    assert alone.error.max() > 1e-6


@pytest.mark.parametrize("kind", ["neurons", "features"])
def test_all_draws_of_two_neurons_kinds_enumerated_have_these_limits(kind):
    """N draws from two points are k and N − k of them, k binomial: means over k are exact.

    Terms of order 1/N are removed by 2·(value at 2N) − (value at N), which leaves 1/N².
    """
    if kind == "neurons":
        model = dataset(ridge=0.05)
        points = np.array([[1.0, 0.4], [-0.3, 1.2]])
        field = NeuronField(model, model.data.X, model.data.y)
    else:
        model = waves(1, 1)
        points = np.array([[0.1], [0.5]])
        field = FeatureField(model)
    weights, times = np.array([0.4, 0.6]), np.array([0.0, 0.3, 0.6])
    found = theory.fluctuations(model, 0.6, times, start=mf.Cloud(points, weights))
    f = predictions(field, points, weights[None], times, 256)[0]
    risk = np.square(f - field.targets) @ field.weights

    def moments(n):
        k = np.arange(n + 1)
        chance = scipy.stats.binom.pmf(k, n, weights[0])
        runs = predictions(field, points, np.stack([k, n - k], axis=1) / n, times, 256)
        risks = np.square(runs - field.targets) @ field.weights
        mean = chance @ risks
        squares = chance @ (np.square(runs - f) @ field.weights)
        return n * np.array([squares, chance @ (risks - mean) ** 2, mean - risk])

    limit = 2 * moments(400) - moments(200)
    got = np.array([found.output, found.variance, found.offset])
    assert np.abs(got - limit).max() < 1e-3 * np.abs(limit).max()  # what 1/N² leaves here
    assert found.error.max() < 1e-2 * np.abs(got).max()


@pytest.mark.parametrize(
    ("network", "options"),
    [
        (mf.Network(mf.activations.tanh, output="trained", bias="trained"), {}),
        (mf.Network(mf.activations.softplus, bias="fixed", scale=2.0), {"rates": {"w": 0.5}}),
        (mf.Network(mf.activations.erf, output="trained"), {"ridge": 0.1, "rates": {"a": 2.0}}),
        (mf.Network(mf.activations.hermite([0.3, 1.0, 0.4]), output="trained"), {}),
    ],
    ids=["tanh a b w", "softplus b fixed", "erf a w", "polynomial"],
)
def test_variational_equations_give_what_differences_give(network, options):
    """Differences leave ε⁴ = 10⁻⁸ times higher derivatives, and rounding over ε²: 2e-5 of the offset (largest
    for the polynomial, whose atoms move far), 1e-6 of the rest.
    """
    X = np.random.default_rng(3).normal(size=(7, 2))
    model = mf.Model(mf.data.Dataset(X, np.sin(X[:, 0])), network, **options)
    rng = np.random.default_rng(4)
    points, masses = 0.7 * rng.normal(size=(6, model.row)), rng.dirichlet(np.full(6, 5.0))
    times, field = np.array([0.0, 0.4, 1.0]), NeuronField(model, X, model.data.y)
    one, _ = by_variations(field, points, masses, times, 256, None)[1:]
    f = predictions(field, points, masses[None], times, 256)[0]
    other, _ = by_differences(field, points, masses, times, 256, None, f)
    scale = np.abs(other[0]).max(axis=1, keepdims=True)
    assert (np.abs(one[0] - other[0]) < np.array([[1e-6], [1e-6], [2e-5]]) * scale).all()


def test_parts_of_the_sources_add_up(monkeypatch):
    """Sources in passes of two atoms: rounding, 1e-12."""
    model = dataset(ridge=0.05)
    points, masses = np.random.default_rng(0).normal(size=(5, 2)), np.full(5, 0.2)
    field, times = NeuronField(model, model.data.X, model.data.y), np.array([0.0, 1.0])
    whole = by_variations(field, points, masses, times, 32, None)
    monkeypatch.setattr("mfcore.perturbations._moments._HELD", 20)
    for one, other in zip(whole, by_variations(field, points, masses, times, 32, None), strict=True):
        assert np.allclose(one[..., :2, :], other[..., :2, :], atol=1e-12)


def test_clouds_side_by_side_move_as_runs_of_their_own():
    model = dataset(rates={"a": 2.0}, ridge=0.1)
    rows = np.random.default_rng(1).normal(size=(5, 2))
    run = mf.solve(model.replace(init=mf.init.Points(rows)), mf.Particles(5, rtol=1e-10), horizon=1.0)
    field = NeuronField(model, model.data.X, model.data.y)
    f = predictions(field, rows, np.full((1, 5), 0.2), np.array([1.0]), 200)[0, 0]
    assert np.allclose(f, mf.predict(model, run.final, model.data.X), atol=1e-8)
    reduced, cloud = waves(0, 2), mf.Cloud(rows, np.full(5, 0.2))
    limit = mf.solve(reduced, mf.Atoms(start=cloud, rtol=1e-10), horizon=1.0)
    f = predictions(FeatureField(reduced), rows, cloud.weights[None], np.array([1.0]), 2000)[0, 0]
    assert np.allclose(f, limit.final.weights @ reduced.features(limit.final.points), atol=1e-7)


def test_four_hundred_runs_of_finite_networks_agree():
    """N = 200, 400 starts, 4 times: 4.9 standard errors each; 5 % of bias are allowed, as terms of order 1/N
    are left. A false alarm is rarer than once in 10⁵.
    """
    model, times, n, runs = dataset(), [0.0, 0.5, 2.0, 8.0], 200, 400
    X = model.data.X
    found = theory.fluctuations(model, 8.0, times, atoms=100)
    start = mf.Cloud(*model.reduce().initial.quadrature(10))
    limit = mf.solve(
        model,
        mf.Atoms(start=start),
        horizon=8.0,
        save_at=times,
        observe={"f": lambda rho: mf.predict(model, rho, X)},
    ).observed["f"]
    sample = np.array(
        [
            mf.solve(
                model,
                mf.Particles(n),
                horizon=8.0,
                save_at=times,
                risk=False,
                rng=k,
                threads=1,
                observe={"f": lambda rho: mf.predict(model, rho, X)},
            ).observed["f"]
            for k in range(runs)
        ]
    )
    squares = n * np.square(sample - limit).mean(axis=-1)
    error = squares.std(axis=0) / math.sqrt(runs)
    assert (np.abs(squares.mean(axis=0) - found.output) < 4.9 * error + 0.05 * found.output).all()
    assert found.output[-1] < 0.1 * found.output[0]  # fluctuations die out as the risk does


def test_what_is_not_known_is_refused():
    sphere = mf.Network(mf.activations.tanh, sphere=True)
    model = mf.Model(dataset().data, sphere, mf.init.Product(w=mf.init.Sphere()), temperature=0.1)
    with pytest.raises(ValueError, match="temperature 0 for fluctuations on the sphere, got"):
        theory.fluctuations(model, 1.0)
    kinked = mf.Network(mf.activations.relu, output="trained")
    teacher = mf.data.Teacher(kinked, [[1.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match=r"activation must be smooth for fluctuations .*model\.reduce\(\)"):
        theory.fluctuations(mf.Model(teacher, kinked, mf.init.Gaussian(std=1.0)), 1.0)
    many = mf.data.Dataset(np.random.default_rng(0).normal(size=(10_000, 3)), np.zeros(10_000))
    with pytest.raises(
        ValueError, match="atoms must be fewer for fluctuations by differences, which take about"
    ):
        theory.fluctuations(mf.Model(many, kinked, mf.init.Gaussian(std=1.0)), 1.0)
    law = mf.data.IsotropicGaussians(d=4, delta=0.5)
    gaussian = mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0))
    with pytest.raises(ValueError, match=r"expectation must be mf\.MonteCarlo"):
        theory.fluctuations(gaussian, 1.0)
    paired = mf.init.Paired(mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0)))
    with pytest.raises(ValueError, match="independent neurons"):
        theory.fluctuations(dataset(init=paired), 1.0)
    with pytest.raises(ValueError, match="start must be given"):
        theory.fluctuations(waves(0, 1), 1.0)
