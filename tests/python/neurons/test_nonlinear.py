"""Neurons in the field of the limit: characteristics, frozen directions, noise and what ends a run."""

from __future__ import annotations

import dataclasses

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore._base.rng import seed_of
from mfcore.atoms._atoms import Atoms
from mfcore.neurons._independent import Nonlinear
from mfcore.neurons._methods import GD, Particles
from mfcore.runs._ends import End, Ended
from mfcore.runs._solve import solve
from problems import orthonormal
from scipy import integrate


@dataclasses.dataclass(frozen=True)
class Stand:
    """A rung of the limit that anybody can check: Gauss nodes of ρ₀, moved by Runge–Kutta steps of 1/50."""

    count: int = 3
    nodes: int | None = None
    as_density: bool = False
    ends_at: float = np.inf
    end: End = End.reached

    def begin(self, model, seed, threads):
        return StandRung(self, model.reduce(nodes=self.nodes))


class StandRung:
    def __init__(self, method, reduced):
        self.method, self.reduced, self.steps, self.t = method, reduced, 0, 0.0
        self.z, self.weights = reduced.initial.quadrature(method.count)
        self.restored = 0

    def velocity(self, _, z):
        z = z.reshape(-1, len(self.reduced.coordinates))
        return velocity(self.reduced, z, z, self.weights).ravel()

    def moved(self, h):
        return rk4(self.velocity, self.z.ravel(), h).reshape(self.z.shape) if h > 0 else self.z.copy()

    def advance(self, t, seconds):
        while (self.steps + 1) / 50 <= min(t, self.method.ends_at):
            self.z, self.steps = self.moved(1 / 50), self.steps + 1
        self.t = min(t, self.method.ends_at)
        return Ended(self.method.end, "it had enough") if t > self.method.ends_at else Ended(End.reached)

    def measure(self):
        z = self.moved(self.t - self.steps / 50)
        if not self.method.as_density:
            return mf.Cloud(z, self.weights)
        # Cells around the atoms, too narrow to matter.
        order = np.argsort(z[:, 0])
        edges = np.ravel([z[order, 0] - 1e-9, z[order, 0] + 1e-9], order="F")
        mass = np.zeros(len(edges) - 1)
        mass[::2] = self.weights[order]
        return mf.Density(edges, mass)

    def state(self):
        return {"at": np.array([self.steps, self.t]), "z": self.z.copy()}

    def restore(self, state):
        self.steps, self.t = int(state["at"][0]), float(state["at"][1])
        self.z, self.restored = np.array(state["z"]), self.restored + 1

    def risk(self):
        return self.reduced.risk(self.measure().points, self.weights), 0.0

    def observed(self):
        return {}

    def meta(self):
        return {"steps": self.steps}


def velocity(reduced, z, atoms, weights):
    gradient = reduced.grad_psi(z, atoms, weights) + reduced.ridge * np.array(reduced.decays) * z
    return -np.array(reduced.rates) * gradient


def rk4(v, y, h):
    a = v(0, y)
    b = v(0, y + h / 2 * a)
    c = v(0, y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + v(0, y + h * c))


def characteristics(rung, z0, t):
    """Points z0 carried by the atoms' own flow, all in one differential equation of high accuracy."""
    reduced, m = rung.reduced, len(rung.z)

    def v(_, y):
        z = y.reshape(-1, len(reduced.coordinates))
        return velocity(reduced, z, z[:m], rung.weights).ravel()

    y0 = np.concatenate([rung.z, z0]).ravel()
    end = integrate.solve_ivp(v, (0, t), y0, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    return end.reshape(-1, len(reduced.coordinates))[m:]


BUMP = mf.activations.hermite([0.3, 0.5, 0.8])
FULL = mf.Network(mf.activations.erf, output="trained", bias="trained")
BASIS, ROWS = orthonormal(8, 3), orthonormal(8, 2, seed=1).T
# A law and a network, and the parts of w: those seen by norm, and axes along which w is free to turn.
CASES = {
    "isotropic": (mf.data.IsotropicGaussians(8, 0.5), mf.Network(mf.activations.relu), [np.eye(8)], []),
    "isotropic, a fixed": (
        mf.data.IsotropicGaussians(8, 0.5),
        mf.Network(mf.activations.relu, output="fixed", bias="trained"),
        [np.eye(8)],
        [],
    ),
    "anisotropic": (
        mf.data.AnisotropicGaussians(8, 0.5, s0=3),
        mf.Network(mf.activations.relu),
        [np.eye(8)[:3], np.eye(8)[3:]],
        [],
    ),
    "anisotropic, basis": (
        mf.data.AnisotropicGaussians(8, 0.5, basis=BASIS),
        mf.Network(mf.activations.relu),
        [BASIS.T, np.linalg.svd(BASIS.T)[2][3:]],
        [],
    ),
    "the whole space stretched": (
        mf.data.AnisotropicGaussians(8, 0.5, s0=8),
        mf.Network(mf.activations.relu),
        [np.eye(8)],
        [],
    ),
    "multi-index": (mf.data.MultiIndex(8, {(1,): 1.0, (2,): 0.5}, 1), FULL, [np.eye(8)[1:]], np.eye(8)[:1]),
    "multi-index, rows": (
        mf.data.MultiIndex(8, {(1, 0): 1.0, (1, 1): 0.5}, ROWS),
        mf.Network(mf.activations.erf, output="trained"),
        [np.linalg.svd(ROWS)[2][2:]],
        ROWS,
    ),
    "linear": (mf.data.Linear(np.arange(1.0, 5)), FULL, [], []),
}


def reduced_coordinates(theta, outer, radial, axes):
    w = theta[:, outer:]
    norms = [np.linalg.norm(w @ part.T, axis=1) for part in radial]
    return np.column_stack([theta[:, :outer], *[w @ e for e in axes], *norms])


@pytest.mark.parametrize("name", list(CASES))
def test_without_noise_directions_are_frozen_and_the_rest_follows_the_characteristics(name):
    law, network, radial, axes = CASES[name]
    if name == "linear":
        axes = law.w[None] / np.linalg.norm(law.w)
        radial = [np.linalg.svd(axes)[2][1:]]
    model = mf.Model(law, network, mf.init.Gaussian(0.5), ridge=0.1, rates={"w": 1.5})
    driver = Stand(count=2, nodes=3)  # few nodes: another problem, but as good
    run = solve(model, Nonlinear(5, driver), horizon=0.6, save_at=[0.0], keep="all", rng=0, threads=1)
    assert run.status == "completed"
    theta0, theta = run.kept[0.0], run.final
    outer = network.row(0)
    z0 = reduced_coordinates(theta0, outer, radial, axes)
    expected = characteristics(driver.begin(model, 0, 0), z0, 0.6)
    # A few steps of relative error 1e-6, and 1e-8 of the stand-in's own steps.
    z = reduced_coordinates(theta, outer, radial, axes)
    np.testing.assert_allclose(z, expected, atol=5e-6)
    assert np.abs(z - z0).max() > 0.01
    for part in radial:
        before, after = theta0[:, outer:] @ part.T, theta[:, outer:] @ part.T
        before /= np.linalg.norm(before, axis=1, keepdims=True)
        after /= np.linalg.norm(after, axis=1, keepdims=True)
        np.testing.assert_allclose(after, before, atol=1e-14)  # rounding


def isotropic_model(**options):
    law = mf.data.IsotropicGaussians(8, 0.5)
    return mf.Model(law, mf.Network(mf.activations.relu), mf.init.Gaussian(0.5), **options)


def final(model, method, horizon=0.6, **options):
    return solve(model, method, horizon=horizon, save_at=[], risk=False, rng=0, **options).final


def test_steps_have_order_four_and_chosen_ones_the_tolerance():
    model, driver = isotropic_model(), Stand(nodes=8)
    best = final(model, Nonlinear(5, driver, rtol=1e-12, atol=1e-14))
    errors = [np.abs(final(model, Nonlinear(5, driver, step=h)) - best).max() for h in (0.3, 0.15)]
    assert 10 < errors[0] / errors[1] < 26  # 16 at the limit
    assert np.abs(final(model, Nonlinear(5, driver, rtol=1e-4)) - best).max() < 1e-4


class Switch(StandRung):
    """The field of one atom until t = 0.3, of another one from then on."""

    def begin(self, model, seed, threads):
        return self

    def advance(self, t, seconds):
        self.t = t
        return Ended(End.reached)

    def measure(self):
        return mf.Cloud([[0.5 if self.t < 0.3 else 4.0]])


def test_a_refused_step_takes_the_driver_back():
    model = isotropic_model()
    driver = Switch(Stand(), model.reduce(nodes=8))
    run = solve(model, Nonlinear(5, driver), horizon=0.6, save_at=[0.0], keep=[0.0], rng=0)
    z = np.linalg.norm(run.kept[0.0], axis=1)
    for atom in (0.5, 4.0):
        law = np.array([[atom]]), np.ones(1)
        v = lambda _, r, law=law: velocity(driver.reduced, r[:, None], *law)[:, 0]  # noqa: E731
        z = integrate.solve_ivp(v, (0, 0.3), z, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    assert run.meta["rejected"] > 0
    assert driver.restored > 0
    np.testing.assert_allclose(np.linalg.norm(run.final, axis=1), z, atol=2e-5)  # a dozen steps of 1e-6


def test_a_density_is_summed_over_its_cells():
    model = isotropic_model()
    one, other = (final(model, Nonlinear(5, Stand(nodes=8, as_density=flag))) for flag in (False, True))
    np.testing.assert_allclose(one, other, atol=1e-8)  # the cells are 2e-9 wide


def test_neurons_at_the_end_of_a_radius_stay_there():
    """Decay at constant speed: with a = −1 the potential is a cone, and w shrinks to 0 in finite time."""
    theta = np.array([[1.0, 0.3, 0.4], [1.0, 0.0, 0.0], [-1.0, 0.3, 0.4]])
    network = mf.Network(mf.activations.relu, output="fixed")
    model = mf.Model(mf.data.IsotropicGaussians(2, 0.9), network, mf.init.Points(theta))
    atoms = Atoms(start=mf.Cloud([[0.0, 1.0]]))  # no output weight: V alone moves the neurons
    run = solve(model, Nonlinear(3, atoms), horizon=8.0, rng=0)
    speed = 0.9 / np.sqrt(2 * np.pi)  # −∂V/∂r = a·(E relu(1.9 g) − E relu(0.1 g))/2
    expected = theta * np.array([1 + 8 * speed / 0.5, 1.0, 0.0])[:, None]
    expected[:, 0] = theta[:, 0]
    np.testing.assert_allclose(run.final, expected, atol=1e-4)  # |x| on nodes, in low dimension
    assert np.array_equal(run.final[1:, 1:], np.zeros((2, 2)))


def test_noise_has_the_moments_of_the_exact_law():
    """For a linear activation: the mean feels the field, the rest is an Ornstein–Uhlenbeck process."""
    n, d, ridge, temperature, h, steps = 2000, 4, 0.5, 0.25, 0.05, 20
    law = mf.data.Linear([1.0, -2.0, 0.5, 1.0])
    model = mf.Model(
        law,
        mf.Network(mf.activations.linear),
        mf.init.Gaussian(0.3),
        ridge=ridge,
        temperature=temperature,
    )
    # For linear neurons the mean of the law does not feel the noise: the stand-in, without any, is exact.
    run = solve(
        model, Nonlinear(n, Stand(nodes=4), step=h), horizon=h * steps, save_at=[0.0], keep=[0.0], rng=0
    )
    keep, k = 1 - ridge * h, np.arange(steps)[:, None]
    mean = law.w / (1 + ridge) * (1 - np.exp(-(1 + ridge) * k * h))
    forced = (keep ** (steps - 1 - k) * h * (law.w - mean)).sum(axis=0)
    start = run.kept[0.0]
    noise = 2 * h * temperature * (1 - keep ** (2 * steps)) / (1 - keep**2)
    rest = run.final - forced - keep**steps * start  # what the increments made
    # 5 standard errors each, of N(0, noise): false alarm below 1e-5 over 4 means and a variance.
    assert np.abs(rest.mean(axis=0)).max() < 5 * np.sqrt(noise / n)
    assert abs(np.mean(rest**2) / noise - 1) < 5 * np.sqrt(2 / (n * d))


@pytest.mark.parametrize("driver", [None, GD(3, 0.1), Particles(3, method="heun", step=0.1)])
def test_increments_are_those_of_every_rung(driver):
    """Without force, what is left is the noise at its address."""
    d, h, temperature = 3, 0.1, 0.2
    network = mf.Network(mf.activations.relu, output="fixed", bias="trained")
    init = mf.init.Product(a=mf.init.Constant(0.0), b=mf.init.Normal(0, 1), w=mf.init.Normal(0, 1))
    model = mf.Model(
        mf.data.IsotropicGaussians(d, 0.5), network, init, temperature=temperature, rates={"b": 4.0}
    )
    driver = driver or Atoms(100, method="euler", step=h)
    step = None if isinstance(driver, GD | Particles) else h
    run = solve(model, Nonlinear(4, driver, step=step), horizon=2 * h, save_at=[0.0], keep=[0.0], rng=5)
    g = sum(_core.normals(seed_of(5), "langevin", k, 0, 4 * 5).reshape(4, 5) for k in (0, 1))
    scale = np.sqrt(2 * h * temperature) * np.array([0, 2, 1, 1, 1])
    np.testing.assert_allclose(run.final, run.kept[0.0] + scale * g, atol=1e-14)
    twin = solve(model, GD(4, h), horizon=2 * h, save_at=[], risk=False, rng=5).final
    np.testing.assert_allclose(run.final, twin, atol=1e-14)
