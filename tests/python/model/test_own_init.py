"""A law of one number that a user has written serves networks of any width, and the limit."""

import math
from dataclasses import dataclass

import mfcore as mf
import numpy as np
import pytest
from scipy import special


@dataclass(frozen=True)
class Laplace(mf.init.ScalarLaw):
    """The law of density exp(−|x|/scale) / (2 scale)."""

    scale: float

    @property
    def mean(self):
        return 0.0

    @property
    def std(self):
        return math.sqrt(2) * self.scale

    def cdf(self, x):
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(np.asarray(x) < 0, tail, 1 - tail)

    def quantile(self, u):
        with np.errstate(divide="ignore"):  # the ends, 0 and 1, are at infinity
            far = np.log(2 * np.minimum(u, 1 - np.asarray(u)))
        return self.scale * np.where(np.asarray(u) < 0.5, far, -far)

    def quadrature(self, n):
        x, w = special.roots_laguerre(max(n // 2, 1))  # on each half line
        nodes = self.scale * np.concatenate([-x[::-1], x])
        return nodes, 0.5 * np.concatenate([w[::-1], w])


@dataclass(frozen=True)
class Halves(mf.init.InitialLaw):
    """A law of the whole row: its product depends on the network."""

    scale: float

    def parts(self, network):
        law = Laplace(self.scale)
        stored = {name: law for name in ("a", "b") if getattr(network, f"has_{name}")}
        return mf.init.Product(**stored, w=mf.init.Sphere(self.scale))


NETWORK = mf.Network(mf.activations.relu, output="trained")
MODEL = mf.Model(
    mf.data.IsotropicGaussians(d=40, delta=0.5),
    NETWORK,
    mf.init.Product(a=Laplace(0.5), w=mf.init.Sphere(1.0)),
)


def test_neurons_are_addresses_and_follow_the_law():
    law = MODEL.init
    whole = law.sample(NETWORK, 40, 20_000, rng=0, threads=2)
    assert np.array_equal(whole[7:9], law.sample(NETWORK, 40, 2, rng=0, first=7))
    assert np.array_equal(whole, law.sample(NETWORK, 40, 20_000, rng=0, threads=1))
    # Kolmogorov's distance of n draws exceeds 2.3/√n at odds of 2 exp(−2·2.3²) = 5e-5.
    u = np.sort(Laplace(0.5).cdf(whole[:, 0]))
    assert np.abs(u - (np.arange(20_000) + 0.5) / 20_000).max() < 2.3 / math.sqrt(20_000)


def test_atoms_and_cells_have_the_same_limit():
    atoms = mf.solve(MODEL, mf.Atoms(), horizon=1.0, save_at=3)
    cells = mf.solve(MODEL, mf.PDE(), horizon=1.0, save_at=3)
    assert atoms.error.max() < 1e-5
    assert (np.abs(cells.risk - atoms.risk) <= cells.error + atoms.error).all()


def test_networks_are_about_the_limit():
    """E R of N neurons at the start is R(ρ₀) + E U(θ, θ)/N, as f is 0: five standard errors, odds of 1e-6."""
    limit = MODEL.reduce()
    rho = mf.Cloud(*limit.initial.quadrature(40))
    rows = MODEL.init.sample(NETWORK, 40, 40_000, rng=1)
    risks = np.array([mf.risk(MODEL, part) for part in np.split(rows, 100)])
    # U(θ, θ) = a²τ²/2 at |w| = 1, with the mean τ² = (1.5² + 0.5²)/2 of the classes and E a² = 2·0.5².
    excess = 2 * 0.5**2 * 1.25 / 2 / 400
    expected = mf.risk(limit, rho) + excess
    assert abs(risks.mean() - expected) < 5 * risks.std(ddof=1) / 10


def test_it_serves_at_infinite_dimension_and_with_a_law_of_the_whole_row():
    data = mf.data.MultiIndex(math.inf, [0.0, 1.0], directions=1)
    network = mf.Network(mf.activations.erf, output="trained", bias="trained")
    whole = mf.Model(data, network, Halves(0.5))
    blocks = mf.init.Product(a=Laplace(0.5), b=Laplace(0.5), w=mf.init.Sphere(0.5))
    runs = [
        mf.solve(model, mf.Atoms(100), horizon=0.5, save_at=2)
        for model in (whole, whole.replace(init=blocks))
    ]
    assert runs[0].status == "completed"
    assert np.array_equal(runs[0].risk, runs[1].risk)


def test_the_support_of_an_unbounded_law_leaves_out_the_far_tails():
    (low, high), _ = mf.ReducedInit([Laplace(0.5), 1.0]).support()
    assert (low, high) == pytest.approx((-0.5 * math.log(0.5e12), 0.5 * math.log(0.5e12)), rel=1e-4)
    assert mf.ReducedInit([mf.init.Uniform(0, 2)]).support() == [(0.0, 2.0)]


def test_a_file_cannot_hold_it_and_says_so(tmp_path):
    with pytest.raises(TypeError, match=r"init\.a must be an object of mfcore or a plain value, got Laplace"):
        mf.save_config(MODEL, tmp_path / "model.toml")
    file = tmp_path / "run.npz"
    mf.solve(MODEL, mf.SGD(20, 0.1), horizon=1.0, rng=0, checkpoint=file, max_seconds=0)
    with pytest.raises(ValueError, match="model must be passed again"):
        mf.resume(file)
    run = mf.resume(file, model=MODEL)
    assert np.array_equal(run.final, mf.solve(MODEL, mf.SGD(20, 0.1), horizon=1.0, rng=0).final)
