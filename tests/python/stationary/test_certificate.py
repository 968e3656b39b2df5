"""Certificates: never below the true distance to the optimum, and what they say of finite networks."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore.reductions._project import Coordinates
from problems import STEP

ISOTROPIC = mf.Model(mf.data.IsotropicGaussians(40, 0.4), mf.Network(STEP))
BEST = 0.07288178  # R* of it, by test_optimum


def waves(ridge=0.0, temperature=0.0, noise=0.0):
    rng = np.random.default_rng(4)
    a, b, y = rng.normal(size=6), rng.uniform(0, 6, 6), rng.normal(size=6) * 1.5
    return mf.ReducedModel(
        coordinates=["z"],
        weights=np.full(6, 1 / 6),
        targets=y,
        ridge=ridge,
        temperature=temperature,
        noise=noise,
        features=lambda z: np.sin(z * a + b),
        gradients=lambda z: (a * np.cos(z * a + b))[..., None],
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), ridge=st.sampled_from([0.0, 0.3]))
def test_the_gap_is_never_below_the_true_one(seed, ridge):
    rng = np.random.default_rng(seed)
    model, box = waves(ridge), (-6, 6)
    best = mf.optimum(model, extent=box)
    n = int(rng.integers(1, 9))
    rho = mf.Cloud(rng.uniform(-6, 6, (n, 1)), rng.dirichlet(np.ones(n)))
    found = mf.certificate(model, rho, extent=box)
    value = mf.risk(model, rho) if ridge == 0 else mf.free_energy(model, rho)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.risk == pytest.approx(mf.risk(model, rho), rel=1e-12)
    assert found.gap >= value - best.value - 1e-8
    assert found.lower_bound <= best.value + 1e-12
    # The bound is 2(∫Ψdρ − Ψ(argmin)), or half of it with decay.
    levels = mf.psi(model, np.concatenate([rho.points[:, 0], found.argmin]), rho)
    want = (1 if ridge else 2) * (rho.weights @ levels[:-1] - levels[-1])
    assert found.gap == pytest.approx(want, abs=1e-9)


def test_a_well_that_one_of_two_searches_misses_is_in_the_error():
    """Two wells of width 1e-5: one at a point of the second grid alone, and a deeper one that both miss.

    Without the difference of the two searches the bound would be 98, above the true infimum.
    """
    end = np.arcsinh(10.0)  # grids of 4001 and of 6401 points, even in arcsinh z
    wells = np.sinh(-end + 2 * end * np.array([3201 / 6400, 0.50055]))
    depths, width = np.array([0.1, 0.3]), 1e-5

    def bump(z):
        return depths * np.exp(-(((z - wells) / width) ** 2))

    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[10.0],
        features=lambda z: bump(z).sum(axis=1, keepdims=True),
        gradients=lambda z: (-2 * (z - wells) / width**2 * bump(z)).sum(axis=1)[:, None, None],
    )
    found = mf.certificate(model, [5.0], extent=(-10, 10))
    best = mf.risk(model, wells[1:])
    assert best == pytest.approx(9.7**2)
    assert found.value == pytest.approx(100.0)
    assert found.value - found.gap > best  # the second search found the first well, and no more
    assert found.lower_bound <= best


def test_it_vanishes_at_the_optimum():
    best = mf.optimum(ISOTROPIC)
    assert best.risk == pytest.approx(BEST, abs=1e-7)
    found = mf.certificate(ISOTROPIC, best.measure)
    assert found.gap < 1e-8
    assert found.box == ((0.0, 1e5),)
    assert found.message == ""


def test_densities_are_taken_by_their_centres():
    rho = mf.Density([1.0, 1.5, 2.0], [0.5, 0.5])
    assert mf.certificate(ISOTROPIC, rho).gap == mf.certificate(ISOTROPIC.reduce(), rho.as_cloud()).gap


def test_neurons_are_judged_by_the_rotation_average_and_their_own_risk():
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    model = mf.Model(mf.data.IsotropicGaussians(320, 0.4), network)
    extent = [(-2.0, 2.0), (-2.0, 2.0), (0.0, 3.0)]
    theta = np.random.default_rng(0).normal(size=(5, 322)) / 10
    found = mf.certificate(model, theta, extent=extent)
    assert found.value == pytest.approx(mf.risk(model, theta), rel=1e-12)
    assert found.gap == pytest.approx(found.value - found.lower_bound)
    averaged = np.column_stack([theta[:, :2], np.linalg.norm(theta[:, 2:], axis=1)])
    same = mf.certificate(model.reduce(), averaged, extent=extent)
    assert found.lower_bound == same.lower_bound
    assert found.value > same.value  # averaging over rotations lowers a convex risk
    with_decay = mf.certificate(model.replace(ridge=0.2), theta, extent=extent)
    assert with_decay.value == pytest.approx(mf.free_energy(model.replace(ridge=0.2), theta), rel=1e-12)


def test_rows_are_projected_on_the_coordinates_of_every_reduction():
    rng = np.random.default_rng(1)
    plain = mf.Network(mf.activations.erf)
    full = mf.Network(mf.activations.erf, output="trained", bias="trained")
    linear = mf.data.Linear([0.6, 0.0, 0.8])
    rows = rng.normal(size=(4, 3))
    along = rows @ linear.w
    across = np.linalg.norm(rows - np.outer(along, linear.w), axis=1)
    got = Coordinates(plain, linear, ("s1", "r")).of(rows)
    np.testing.assert_allclose(got, np.column_stack([along, across]), rtol=1e-12)
    parts = mf.data.AnisotropicGaussians(24, 0.4, s0=12)
    theta = rng.normal(size=(4, 26))
    norms = [np.linalg.norm(theta[:, 2:14], axis=1), np.linalg.norm(theta[:, 14:], axis=1)]
    got = Coordinates(full, parts, ("a", "b", "r1", "r2")).of(theta)
    np.testing.assert_allclose(got, np.column_stack([theta[:, :2], *norms]), rtol=1e-12)
    small = mf.data.Dataset(np.eye(2), np.ones(2))
    np.testing.assert_array_equal(Coordinates(plain, small, ("w1", "w2")).of(rows[:, :2]), rows[:, :2])


def test_trained_neurons_are_near_the_optimum_and_the_certificate_says_how_near():
    model = ISOTROPIC.replace(init=mf.init.Radial(1.0))
    run = mf.solve(model, mf.Particles(50, rtol=1e-4), horizon=5.0, save_at=[0.0, 5.0], rng=0, keep="all")
    start, end = (mf.certificate(model, run.kept[t]) for t in run.t)
    for found, risk in zip((start, end), run.risk, strict=True):
        assert found.gap >= risk - BEST
        assert found.lower_bound <= BEST + 1e-8
    assert end.gap < 0.2 * start.gap


def test_a_potential_without_lower_bound_leaves_the_trivial_bound():
    model = mf.Model(mf.data.IsotropicGaussians(40, 0.4), mf.Network(mf.activations.relu))
    found = mf.certificate(model, [[0.0]])
    assert (found.lower_bound, found.gap) == (0.0, pytest.approx(1.0, rel=1e-15))  # a sum over nodes
    assert "no lower bound" in found.message
    inside = mf.certificate(waves(noise=3.0), [0.0])
    assert inside.lower_bound >= 3.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.1, 10))
def test_with_noise_the_gap_is_the_divergence_from_the_law_in_its_own_potential(seed, size):
    model = waves(ridge=0.5, temperature=0.1)
    best = mf.gibbs(model, extent=(-5, 5), cells=60)
    rng = np.random.default_rng(seed)
    mass = best.measure.mass * np.exp(size * rng.normal(size=60))
    rho = mf.Density(best.measure.edges, mass / mass.sum())
    found = mf.certificate(model, rho)
    energy = mf.free_energy(model, rho)
    exponent = -10 * mf.psi(model, rho.centers[0], rho)
    own = np.exp(exponent - exponent.max())
    assert found.gap == pytest.approx(
        0.1 * mf.kl(rho, mf.Density(rho.edges, own / own.sum())), rel=1e-9, abs=1e-13
    )
    assert found.value == pytest.approx(energy, abs=1e-11)
    assert found.gap >= energy - best.free_energy - 1e-12
    assert found.lower_bound <= best.free_energy + 1e-12
    assert found.risk == pytest.approx(mf.risk(model, rho), abs=1e-11)


def test_with_noise_the_stationary_law_has_no_gap():
    model = ISOTROPIC.replace(ridge=0.01, temperature=1e-3)
    law = mf.gibbs(model)
    found = mf.certificate(model, law.measure)
    assert abs(found.gap) < 1e-10
    assert found.value == pytest.approx(mf.free_energy(model, law.measure), rel=1e-12)
    # The cells' share, 4e-8, is in the error, and the lower bound is one of the continuum.
    assert found.error < 1e-6
    assert found.value - found.lower_bound <= found.gap + found.error
    assert found.lower_bound <= law.free_energy


def test_with_noise_points_still_bound_the_free_energy_from_below():
    model = ISOTROPIC.replace(ridge=0.01, temperature=1e-3)
    law = mf.gibbs(model)
    cloud = law.measure.as_cloud()
    near = mf.certificate(model, cloud)
    # D is at its maximum, so errors of f count twice: those of the cells, 1e-6.
    assert near.lower_bound == pytest.approx(law.free_energy, abs=1e-6)
    w = np.random.default_rng(1).normal(size=(30, 40)) / 4
    off = mf.certificate(model, w)
    assert off.lower_bound < law.free_energy
    assert (off.gap, off.value) == (math.inf, math.inf)
    assert off.risk == pytest.approx(mf.risk(model, w))
    assert "the free energy of points is infinite" in off.message


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"extent must be left out at temperature = 0\.1"):
        mf.certificate(waves(ridge=1.0, temperature=0.1), [0.0], extent=(0, 1))
    with pytest.raises(ValueError, match="data must have a symmetry, which leaves the limit few coordinates"):
        mf.certificate(mf.Model(mf.data.Dataset(np.eye(9), np.ones(9)), mf.Network(STEP)), np.zeros((2, 9)))
    with pytest.raises(ValueError, match="extent must have a pair"):
        mf.certificate(waves(), [0.0], extent=[(0, 1), (0, 1)])
