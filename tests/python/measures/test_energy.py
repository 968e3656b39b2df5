"""Free energy and dissipation against closed forms, difference quotients and a slow flux scheme."""

import math

import mfcore as mf
import numpy as np
import pytest
from scipy import stats

LINEAR = mf.data.Linear([0.6, 0.0, 0.8], noise=0.3)


def well(ridge=2.0, temperature=0.5, **changes):
    """No data at all: one particle in the potential ridge z²/2."""
    arguments = {"coordinates": ["z"], "weights": [1.0], "targets": [0.0], "features": np.zeros_like}
    arguments["gradients"] = lambda z: np.zeros((len(z), 1, z.shape[1]))
    return mf.ReducedModel(**{**arguments, "ridge": ridge, "temperature": temperature, **changes})


def pull(y=3.0, **changes):
    """Φ(z) = z and one target: Ψ(z) = (∫z dρ − y) z."""
    gradients = lambda z: np.ones((len(z), 1, 1))  # noqa: E731
    return well(targets=[y], features=lambda z: z, gradients=gradients, **changes)


def cells(cdf, edges):
    mass = np.diff(cdf(edges))
    return mf.Density(edges, mass / mass.sum())


def test_without_noise_the_free_energy_is_half_the_risk_and_the_decay_of_trained_blocks():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(7, 4))
    for output, kept in (("fixed", theta[:, 1:]), ("trained", theta)):
        model = mf.Model(LINEAR, mf.Network(mf.activations.relu, output=output), ridge=0.7)
        want = mf.risk(model, theta) / 2 + 0.35 * np.square(kept).sum(axis=1).mean()
        assert mf.free_energy(model, theta) == pytest.approx(want, rel=1e-14)
    weights = rng.dirichlet(np.ones(7))
    want = mf.risk(model, mf.Cloud(theta, weights)) / 2 + 0.35 * weights @ np.square(theta).sum(axis=1)
    assert mf.free_energy(model, mf.Cloud(theta, weights)) == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("d", [1, 2, 5, 320])
def test_the_entropy_of_a_density_of_radii_is_that_of_the_law_in_full_dimension(d):
    model = mf.Model(mf.data.IsotropicGaussians(d, 0.0), mf.Network(mf.activations.linear), temperature=0.25)
    scale = 1.3
    radii = stats.chi(d, scale=scale)
    rho = cells(
        radii.cdf, np.linspace(*radii.ppf([1e-14, 1 - 1e-14]), 2001) if d > 1 else np.linspace(0, 10, 4001)
    )
    # Odd activations without bias learn nothing: R = 1 but for cells' error in ∫r² dρ, order width².
    want = 0.5 - 0.25 * d / 2 * math.log(2 * math.pi * math.e * scale**2)
    assert mf.free_energy(model, rho) == pytest.approx(want, abs=1e-5 * d)


def gaussian_energy(mean, variance, ridge, temperature):
    """F of N(mean, variance I) in R³ under LINEAR with the linear activation: eq. (10.11)."""
    risk = np.square(mean - LINEAR.w).sum() + 0.3**2
    entropy = -1.5 * math.log(2 * math.pi * math.e * variance)
    return risk / 2 + ridge / 2 * (np.square(mean).sum() + 3 * variance) + temperature * entropy


def gaussian_density(along, variance, n):
    """N(along·w, variance I) in the coordinates (⟨w, ·⟩, distance from that axis)."""
    s = np.linspace(along - 7 * math.sqrt(variance), along + 7 * math.sqrt(variance), n + 1)
    r = np.linspace(0, 7 * math.sqrt(variance), n + 1)
    masses = [
        np.diff(stats.norm(along, math.sqrt(variance)).cdf(s)),
        np.diff(stats.chi(2, scale=math.sqrt(variance)).cdf(r)),
    ]
    mass = np.multiply.outer(*masses)
    return mf.Density((s, r), mass / mass.sum())


def test_gaussian_laws_under_linear_regression_have_their_closed_form_energy_and_dissipation():
    ridge, temperature = 0.4, 0.2
    model = mf.Model(LINEAR, mf.Network(mf.activations.linear), ridge=ridge, temperature=temperature)
    along, variance = 0.3, 0.5
    exact = gaussian_energy(along * LINEAR.w, variance, ridge, temperature)
    # The exact rate of change of F along w̄' = −(w̄ − w*) − λw̄, C' = −2λC + 2/β.
    speed = 1 - (1 + ridge) * along
    falls = speed**2 + 3 * variance * (ridge - temperature / variance) ** 2
    errors = []
    for n in (24, 48):
        rho = gaussian_density(along, variance, n)
        errors.append((mf.free_energy(model, rho) - exact, mf.dissipation(model, rho) / falls - 1))
    assert np.abs(errors[1]).max() < 0.02
    # Both are of second order in the width of cells.
    assert np.abs(np.divide(*errors)) == pytest.approx([4, 4], rel=0.25)


@pytest.mark.parametrize(
    "network",
    [
        mf.Network(mf.activations.tanh, output="trained", bias="trained"),
        mf.Network(mf.activations.tanh, output="fixed"),
    ],
)
def test_the_energy_of_neurons_falls_as_fast_as_the_dissipation_says(network):
    rates = {"b": 3.0, "w": 0.5} if network.bias == "trained" else {"w": 0.5}
    init = mf.init.Product(a=mf.init.Uniform(-1, 1), b=mf.init.Normal(0, 1), w=mf.init.Normal(0, 1))
    if network.bias == "none":
        init = mf.init.Product(a=mf.init.Uniform(-1, 1), w=mf.init.Normal(0, 1))
    x = np.random.default_rng(1).normal(size=(20, 3))
    data = mf.data.Dataset(x, np.sin(x[:, 0]))
    model = mf.Model(data, network, init, ridge=0.1, rates=rates)
    h = 1e-3
    run = mf.solve(
        model,
        mf.Particles(9, rtol=1e-12, atol=1e-13),
        horizon=1.0,
        save_at=[0.5 - h, 0.5, 0.5 + h],
        keep="all",
        rng=0,
    )
    energies = [mf.free_energy(model, run.kept[t]) for t in run.t]
    # Central differences: h² F'''/6.
    falls = (energies[0] - energies[2]) / (2 * h)
    assert mf.dissipation(model, run.kept[run.t[1]]) == pytest.approx(falls, rel=1e-5)


def test_without_noise_and_decay_the_risk_falls_at_twice_the_dissipation():
    model = pull(ridge=0.0, temperature=0.0, rates=[2.0])
    z, weights, h = np.array([[0.5], [1.0], [-2.0]]), np.array([0.2, 0.3, 0.5]), 1e-6
    moved = z - h * 2.0 * mf.grad_psi(model, z, mf.Cloud(z, weights))
    falls = (mf.risk(model, mf.Cloud(z, weights)) - mf.risk(model, mf.Cloud(moved, weights))) / h
    # One-sided differences: h R''/2.
    assert falls == pytest.approx(2 * mf.dissipation(model, mf.Cloud(z, weights)), rel=1e-5)


def test_a_radius_at_the_wall_rests_only_if_it_would_go_through_it():
    for y, rests in ((-3.0, True), (3.0, False)):
        model = pull(y, ridge=0.0, temperature=0.0, nonnegative=[True])
        assert (mf.dissipation(model, [0.0]) == 0) == rests


def flux_falls(model, edges, mass):
    """−dF/dt of the scheme of eq. (7.8) for cells of one coordinate, face by face."""
    z, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    e = model.volume[0] + 1
    volume = (edges[1:] ** e - edges[:-1] ** e) / e
    beta, rate = 1 / model.temperature, model.rates[0]
    psi = mf.psi(model, z, mf.Density(edges, mass))
    flow = np.zeros(len(mass))
    for i in range(len(mass) - 1):
        delta = beta * (psi[i + 1] - psi[i]) - math.log(volume[i + 1] / volume[i])
        flux = (
            rate
            / (beta * width**2)
            * (delta / math.expm1(delta) * mass[i] + delta / math.expm1(-delta) * mass[i + 1])
        )
        flow[i] -= flux
        flow[i + 1] += flux
    h = 1e-7
    energies = [mf.free_energy(model, mf.Density(edges, mass + s * h * flow)) for s in (-1, 1)]
    return (energies[0] - energies[1]) / (2 * h)


@pytest.mark.parametrize("volume", [0.0, 1.0, 3.0])
def test_with_noise_the_dissipation_is_the_decrease_of_the_free_energy_of_the_discrete_scheme(volume):
    model = pull(volume=[volume], nonnegative=[True], rates=[0.7], ridge=0.5, temperature=0.3)
    edges = np.linspace(0, 3, 18)
    mass = np.random.default_rng(2).dirichlet(np.full(17, 5.0))
    # Central differences of a smooth function of order 1, h = 1e-7: rounding 1e-9.
    assert mf.dissipation(model, mf.Density(edges, mass)) == pytest.approx(
        flux_falls(model, edges, mass), rel=1e-6
    )


def test_the_discrete_gibbs_law_alone_dissipates_nothing():
    model = well(volume=[4.0], nonnegative=[True])
    edges = np.linspace(0, 4, 60)
    z = (edges[1:] + edges[:-1]) / 2
    gibbs = np.diff(edges**5) * np.exp(-2.0 * z**2)
    gibbs /= gibbs.sum()
    assert mf.dissipation(model, mf.Density(edges, gibbs)) < 1e-25
    assert mf.dissipation(model, mf.Density(edges, gibbs[::-1])) > 1e-3
    empty = np.where(np.arange(59) < 30, gibbs, 0)
    assert 0 < mf.dissipation(model, mf.Density(edges, empty / empty.sum())) < math.inf


def test_large_volumes_stay_in_range():
    model = well(volume=[1e6], nonnegative=[True])
    edges = np.linspace(400, 600, 101)
    value = mf.free_energy(model, mf.Density(edges, np.full(100, 0.01)))
    # ∫ r^1e6 over a cell is that from 0: what is below its left end is e^−3000 of it.
    volumes = (1e6 + 1) * np.log(edges[1:]) - math.log(1e6 + 1)
    want = np.mean(((edges[1:] + edges[:-1]) / 2) ** 2) + 0.5 * np.mean(math.log(0.01) - volumes)
    assert value == pytest.approx(want, rel=1e-13)


def test_a_model_takes_its_own_neurons_and_measures_of_its_reduction():
    model = mf.Model(mf.data.IsotropicGaussians(5, 0.5), mf.Network(mf.activations.relu), ridge=0.3)
    w = np.random.default_rng(3).normal(size=(1, 5))
    r = float(np.linalg.norm(w))
    # One neuron is not rotation invariant: its risk is larger than that of the sphere, its decay is the same.
    assert mf.free_energy(model, w) > mf.free_energy(model, [[r]])
    reduced = model.reduce()
    assert mf.free_energy(model, mf.Cloud([[r]])) == mf.free_energy(reduced, [r])
    rho = mf.Density([0.0, 1.0, 2.0], [0.25, 0.75])
    assert mf.free_energy(model, rho) == mf.free_energy(reduced, rho)
    assert mf.dissipation(model, [[r]]) == pytest.approx(float(mf.grad_psi(reduced, [r], [r])[0, 0]) ** 2)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: mf.free_energy(well(), [0.0]),
            "measure must be an mf.Density .* temperature = 0.5.* infinite",
        ),
        (
            lambda: mf.dissipation(well(), mf.Cloud([[0.0]])),
            "measure must be an mf.Density .* no log-density",
        ),
        (
            lambda: mf.free_energy(well(), mf.Density(([0, 1], [0, 1]), [[1.0]])),
            "density of 1 coordinates .*got 2",
        ),
        (
            lambda: mf.free_energy(well(volume=[2.0]), mf.Density([-1.0, 1.0], [1.0])),
            r"edges\[0\] must be >= 0 where the volume element is z\^2 dz, got -1",
        ),
        (
            lambda: mf.free_energy(mf.Model(LINEAR, mf.Network(mf.activations.relu)), np.zeros((2, 5))),
            r"neurons of length 3 or points of length 2 in the reduced coordinates \(s1, r\), got 5",
        ),
        (
            lambda: mf.free_energy(mf.Model(LINEAR, mf.Network(mf.activations.relu)), np.zeros(5)),
            r"neurons of length 3 or points of length 2 in the reduced coordinates \(s1, r\), got 5",
        ),
    ],
)
def test_bad_input_is_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"model must be an mf\.Model or mf\.ReducedModel, got 3"):
        mf.free_energy(3, [0.0])
