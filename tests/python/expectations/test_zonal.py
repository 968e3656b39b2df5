"""Exact expectations over inputs on the sphere of radius √d, by zonal kernels."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.expectations._legendre import Legendre, even_moments
from numpy.polynomial.legendre import legval
from scipy import integrate

SIGMA = mf.activations.polynomial([0.1, 1.0, 0.3, -0.2, 0.1])
TWO = {(1, 0): 1.0, (2, 1): 0.5, (0, 0): 0.2, (0, 3): 0.3}


def law(d, link, p=1, **more):
    return mf.data.MultiIndex(d, link, directions=p, inputs="sphere", **more)


CASES = {
    "polynomial": (law(5, [0.3, 1.0, 0.5, 0.2]), mf.Network(SIGMA, output="trained", bias="trained")),
    "two directions": (law(7, TWO, 2, noise=0.3), mf.Network(SIGMA, sphere=True)),
    "relu": (law(7, TWO, 2, noise=0.3), mf.Network(mf.activations.relu, output="trained")),
    "tanh": (
        law(7, TWO, 2),
        mf.Network(mf.activations.tanh, output="trained", bias="trained", sphere=True),
    ),
    "circle": (law(2, np.cos), mf.Network(mf.activations.sigmoid, sphere=True, scale=3.0)),
    "link": (law(30, np.tanh), mf.Network(mf.activations.gelu, output="trained", sphere=True)),
}


def neurons(model, n=6, seed=0):
    network, d = model.network, int(model.d)
    theta = np.random.default_rng(seed).normal(size=(n, network.row(d))) * 0.7
    w = theta[:, network.row(0) :]
    w /= np.linalg.norm(w, axis=1, keepdims=True) if network.sphere else math.sqrt(d)
    return theta


@pytest.mark.parametrize("name", CASES)
def test_exact_averages_are_those_of_many_samples(name):
    model = mf.Model(*CASES[name])
    theta, n = neurons(model), 50_000
    rule = mf.MonteCarlo(n, rng=1)
    X, y = model.data.draw(n, 2)
    # 6 neurons and 6² pairs at six standard errors: a false alarm in 10⁷ runs; seed 1
    six = 6 / math.sqrt(n)
    each = [mf.predict(model, theta[k : k + 1], X) for k in range(len(theta))]
    for k, s in enumerate(each):
        v = mf.V(model, theta[k : k + 1]) - mf.V(model, theta[k : k + 1], expectation=rule)
        assert abs(v[0]) <= six * (y * s).std()
        for j, other in enumerate(each):
            u = mf.U(model, theta[k : k + 1], theta[j : j + 1])
            assert abs(u[0, 0] - (s * other).mean()) <= six * (s * other).std()
    risk = mf.risk(model, theta) - mf.risk(model, theta, expectation=rule)
    assert abs(risk) <= six * ((y - np.mean(each, axis=0)) ** 2).std()


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_differences_of_the_potential(name):
    model = mf.Model(*CASES[name])
    theta, step = neurons(model), 1e-5
    grad = mf.grad_psi(model, theta, theta[:3])
    at = model.network.row(0)
    rng = np.random.default_rng(3)
    move = rng.normal(size=theta.shape)
    if model.network.sphere:  # along the sphere
        w = theta[:, at:]
        move[:, at:] -= (move[:, at:] * w).sum(axis=1, keepdims=True) * w
    there = [mf.psi(model, theta + sign * step * move, theta[:3]) for sign in (1, -1)]
    # central differences of step 1e-5: 1e-10 of truncation and 1e-16/1e-5 of rounding
    assert (grad * move).sum(axis=1) == pytest.approx((there[0] - there[1]) / (2 * step), abs=2e-8)


def test_legendre_polynomials_in_three_dimensions_are_the_classical_ones():
    t = np.linspace(-1, 1, 11)
    rule = Legendre.of(3, 8)
    for k, (p, slope) in enumerate(rule.with_slopes(t, 8)):
        unit = [0.0] * k + [1.0]
        assert p == pytest.approx(legval(t, unit), abs=1e-14)
        assert slope == pytest.approx(legval(t, np.polynomial.legendre.legder(unit)), abs=1e-12)
    table = rule.weighted / rule.weights[:, None]
    assert table.T @ rule.weighted == pytest.approx(np.eye(8), abs=1e-13)


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
def test_moments_of_the_kink_are_those_of_quadrature(d):
    def density(u):
        return (1 - u * u) ** ((d - 3) / 2)

    edge = min(1.0, 20 / math.sqrt(d))
    mass = 2 * integrate.quad(lambda a: math.cos(a) ** (d - 2), 0, math.asin(edge))[0]
    for k, p in enumerate(range(0, 6, 2)):

        def integrand(a, p=p):
            u = math.sin(a)
            value = list(Legendre.of(d, 6).polynomials(np.array([u]), 6))[p][0]
            return math.cos(a) ** (d - 2) * u * value

        mean = 2 * integrate.quad(integrand, 0, math.asin(edge), epsabs=1e-13)[0] / mass
        multiplicity = [1, (d + 2) * (d - 1) / 2, math.comb(d + 3, 4) - math.comb(d + 1, 2)][k]
        found = even_moments(d, 6)[p]
        # quad's error of 1e-13 times √m_k, which is below 2·10⁵
        assert found == pytest.approx(math.sqrt(d * multiplicity) * mean, abs=1e-7)
    assert not even_moments(d, 6)[1::2].any()


def test_a_perfect_fit_has_no_risk_and_weights_of_zero_have_a_gradient():
    target = law(6, [0.0, 1.0])
    model = mf.Model(target, mf.Network(mf.activations.linear))
    assert mf.risk(model, np.eye(1, 6)) == pytest.approx(0, abs=1e-15)
    # ∇Ψ(0; δ_v) = E (⟨v, x⟩ − x₁)x = v − e₁
    v = np.array([[0.3, 0.0, 0.0, 0.5, 0.0, 0.0]])
    assert mf.grad_psi(model, np.zeros((1, 6)), v) == pytest.approx(v - np.eye(1, 6), abs=1e-15)


def test_networks_and_the_reduced_limit_have_one_field():
    """Spherical neurons with random directions across, against the reduction of the same model."""
    model = mf.Model(law(8, [0.0, 0.3, 0.5]), mf.Network(SIGMA, sphere=True), mf.init.Sphere(1.0))
    theta = model.init.sample(model.network, 8, 4, rng=0)
    reduced = model.reduce()
    # V depends on s alone; nodes of the reduction are exact to 1e-10 for polynomials
    there = mf.V(reduced, theta[:, :1])
    assert mf.V(model, theta) == pytest.approx(there, abs=1e-9)


def test_gd_and_particles_run_on_the_sphere_without_samples():
    model = mf.Model(law(6, [0.0, 0.0, 1.0]), mf.Network(SIGMA, sphere=True), mf.init.Sphere(1.0))
    flow = mf.solve(model, mf.Particles(12), horizon=2.0, rng=0)
    steps = mf.solve(model, mf.GD(12, step=1e-3), horizon=2.0, rng=0)
    assert flow.meta["risk"] == "exact"
    assert np.linalg.norm(flow.final, axis=1) == pytest.approx(np.ones(12), abs=1e-12)
    assert np.diff(flow.risk).max() <= 0
    # one step of Euler is off by h² times the curvature: of order h over the whole run
    assert steps.risk[-1] == pytest.approx(flow.risk[-1], abs=5e-3)


@pytest.mark.parametrize(
    ("data", "network", "match"),
    [
        (law(5, [0.0, 1.0]), mf.Network(mf.activations.tanh), "sphere=True"),
        (law(5, [0.0, 1.0]), mf.Network(mf.activations.relu, bias="trained", sphere=True), "share"),
        (law(5, np.sign), mf.Network(mf.activations.linear), "not smooth enough"),
        (law(5, lambda z: np.tanh(z[:, 0] * z[:, 1]), 2), mf.Network(mf.activations.linear), "several"),
    ],
)
def test_what_has_no_exact_form_is_refused_with_its_reason(data, network, match):
    model = mf.Model(data, network)
    with pytest.raises(ValueError, match=rf"mf\.MonteCarlo.*{match}"):
        mf.V(model, np.ones((1, network.row(5))))


def test_long_weights_are_refused_where_their_series_is_longer_than_ours():
    model = mf.Model(law(1000, [0.0, 1.0]), mf.Network(mf.activations.tanh, sphere=True))
    with pytest.raises(ValueError, match=r"beyond degree .* at \|w\| up to 31"):
        mf.V(model, np.ones((1, 1000)))
