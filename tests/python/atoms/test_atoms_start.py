"""From initial laws to atoms: Gauss nodes, panels that follow the flow, points that fill space."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import problems
import pytest
from mfcore import _core
from mfcore.atoms import _panels
from mfcore.atoms._atoms import Atoms
from mfcore.atoms._panels import NODES, TAIL
from mfcore.atoms._starts import curve, filling, freedom, gauss
from mfcore.init._blocks import Chi, Point, Scalar, SpherePoint
from mfcore.reductions._init import ReducedInit
from mfcore.runs._solve import solve
from problems import STEP
from scipy import special

RELU = mf.activations.relu
TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def isotropic(d, activation=STEP, norm=0.8, **options):
    return problems.isotropic(d, activation, norm, **options)


LAWS = {
    "normal": (Scalar(mf.init.Normal(0.3, 2.0)), 0.3, 4.09),
    "uniform": (Scalar(mf.init.Uniform(-1.0, 2.0)), 0.5, 1.0),
    "chi 1": (Chi(1.0, 0.5), 0.5 * math.sqrt(2 / math.pi), 0.25),
    "chi 2": (Chi(2.0, 0.5), 0.5 * math.sqrt(math.pi / 2), 0.5),
    "chi 40": (Chi(40.0, 0.5), None, 10.0),
    "chi 2000": (Chi(2000.0, 0.1), None, 20.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_panels_integrate_a_law_to_rounding(name):
    block, mean, square = LAWS[name]
    law = ReducedInit([Point((1.0,)), block, Scalar(mf.init.Constant(2.0))])
    line = curve(law)
    mesh = _panels.start_mesh(line, lambda z: np.stack([z[:, 1], z[:, 1] ** 2], axis=1), 1e-13, 64)
    z = line.points(mesh.parameters)
    assert mesh.raw_masses.sum() == pytest.approx(1, abs=1e-12)  # log-densities of large d
    assert (z[:, [0, 2]] == [1.0, 2.0]).all()
    assert mesh.masses @ z[:, 1] ** 2 == pytest.approx(square, rel=1e-12)
    if mean is not None:
        assert mesh.masses @ z[:, 1] == pytest.approx(mean, rel=1e-12)


def test_panels_close_in_on_a_kink():
    line = curve(ReducedInit([Scalar(mf.init.Normal())]))
    mesh = _panels.start_mesh(line, lambda z: np.maximum(z - 0.3, 0), 1e-10, 64)
    exact = math.exp(-0.045) / math.sqrt(2 * math.pi) - 0.3 * special.ndtr(-0.3)
    assert mesh.masses @ np.maximum(line.points(mesh.parameters)[:, 0] - 0.3, 0) == pytest.approx(
        exact, abs=1e-9
    )
    assert 10 < len(mesh) < 40


def test_halving_and_uniting_panels_keep_polynomials():
    line = curve(ReducedInit([Scalar(mf.init.Uniform(0.0, 1.0))]))
    mesh = _panels.start_mesh(line, lambda z: z, 1e-10, 64)
    wave = np.stack([mesh.parameters**5, np.cos(mesh.parameters)], axis=1)
    finer, z = _panels.doubled(mesh, wave)
    np.testing.assert_allclose(z[:, 1], np.cos(finer.parameters), atol=1e-14)  # 16 nodes on 1/4
    never, always = np.zeros(len(finer), dtype=bool), np.full((len(finer), 2), 1e-13)
    back, again = _panels.refined(finer, z, never, always, mesh, 64)
    assert (back.level, back.index) == (mesh.level, mesh.index)
    np.testing.assert_allclose(again, wave, atol=1e-13)
    same, _ = _panels.refined(finer, z, never, 0 * always, mesh, 64)
    assert same.level == finer.level
    full, _ = _panels.refined(mesh, wave, ~never[: len(mesh)], 0 * always[: len(mesh)], mesh, len(mesh) + 1)
    assert len(full) == len(mesh) + 1


def test_gauss_nodes_carried_along_converge_spectrally():
    """R to 1e-9 with 16 nodes while the flow map is smooth (docs/mathematics.md, section 8)."""
    for d in (40, 320):
        reduced = isotropic(d).reduce()
        risks = [
            solve(reduced, Atoms(start=mf.Cloud(*reduced.initial.quadrature(n)), **TIGHT), horizon=2.0).risk
            for n in (4, 8, 16, 32)
        ]
        errors = [np.abs(r - risks[-1]).max() for r in risks[:-1]]
        assert errors[0] > 1e-9  # four are not enough
        assert errors[2] < 1e-9
        panels = solve(reduced, Atoms(**TIGHT), horizon=2.0)
        assert np.abs(panels.risk - risks[-1]).max() < 1e-10


def test_gauss_nodes_state_their_error():
    model = isotropic(40)
    best = solve(model, Atoms(**TIGHT), horizon=2.0)
    for count in (1, 3, 6, 12, 24):
        run = solve(model, Atoms(count), horizon=2.0)
        assert count - 4 < run.meta["atoms"] <= count  # the lightest are left out
        if count > 3:
            assert (np.abs(run.risk - best.risk) <= run.error + 1e-13).all()
    assert run.error.max() < 1e-5


def test_panels_follow_a_separatrix():
    """norm 0.1: some neurons escape, others do not move; the front between them steepens for ever."""
    model, times = isotropic(320, norm=0.1), [0.0, 1.0, 2.0]
    run = solve(model, Atoms(), horizon=2.0, save_at=times)
    fine = solve(model, Atoms(4096, rtol=1e-9, atol=1e-11), horizon=2.0, save_at=times)
    assert run.meta["atoms"] > 150
    assert (np.abs(run.risk - fine.risk) <= run.error + fine.error).all()
    assert run.error.max() < 1e-6
    assert fine.error.max() < 1e-7
    quantiles = 0.1 / math.sqrt(320) * np.sqrt(2 * special.gammaincinv(160, (np.arange(1000) + 0.5) / 1000))
    plain = solve(model, Atoms(start=mf.Cloud(quantiles)), horizon=2.0, save_at=times)
    assert np.abs(plain.risk - fine.risk).max() < 2e-3  # quantile atoms: 1/n
    radius = run.final.points[:, 0]
    assert radius.min() < 0.1 < 1.0 < radius.max()


def test_too_few_atoms_for_a_separatrix_say_so():
    model = isotropic(320, norm=0.1)
    best = solve(model, Atoms(), horizon=4.0, save_at=[4.0])
    run = solve(model, Atoms(96), horizon=4.0, save_at=[4.0])
    assert run.meta["atoms"] <= 96
    assert abs(run.risk[-1] - best.risk[-1]) < 10 * run.error[-1] + best.error[-1]
    assert run.error[-1] > best.error[-1]


def test_freedom_counts_what_is_random():
    one = ReducedInit([Point((0.0, 1.0)), Scalar(mf.init.Constant(1.0))])
    assert (freedom(one), curve(one)) == (0, None)
    sphere = ReducedInit([SpherePoint(1.0, 1, (5.0,))])
    assert (freedom(sphere), curve(sphere)) == (1, None)
    assert freedom(ReducedInit([Scalar(mf.init.Normal()), Chi(3.0, 1.0)])) == 2


def test_points_that_fill_space_have_the_moments_of_the_law():
    law = ReducedInit(
        [
            Scalar(mf.init.Normal(1.0, 0.5)),
            Scalar(mf.init.Uniform(0, 2)),
            SpherePoint(2.0, 1, (3.0,)),
            Chi(7.0, 0.3),
        ]
    )
    z, w = filling(law, 4096, 5)
    again, _ = filling(law, 1024, 5)
    assert np.array_equal(z[:1024], again)
    means = w @ np.concatenate([z, z**2], axis=1)
    # Independent draws would have standard errors of 1/64 of the standard deviations 0.5, ..., 1.
    np.testing.assert_allclose(means[[0, 1, 2, 5, 6, 7, 8, 9]], [1, 1, 0, 1.25, 4 / 3, 1, 3, 0.63], atol=2e-3)


class Halves:
    """A law by hand: two coordinates, each uniform on [0, 1]."""

    def sample(self, n, rng):
        return rng.random((n, 2))

    def quadrature(self, n):
        x, w = np.polynomial.legendre.leggauss(n)
        grid = np.stack(np.meshgrid((x + 1) / 2, (x + 1) / 2, indexing="ij"), axis=-1).reshape(-1, 2)
        return grid, np.multiply.outer(w, w).ravel() / 4


def test_a_law_by_hand_gives_a_tensor_of_gauss_nodes_or_draws():
    reduced = mf.ReducedModel(
        coordinates=["x", "y"],
        weights=[1.0],
        targets=[1.0],
        features=lambda z: z[:, :1] * z[:, 1:],
        gradients=lambda z: z[:, None, ::-1],
        initial=Halves(),
    )
    run = solve(reduced, Atoms(100), horizon=1.0, save_at=[0.0, 1.0])
    assert run.meta["atoms"] == 100
    assert run.risk[0] == pytest.approx(0.75**2, abs=1e-14)
    more = solve(reduced, Atoms(400), horizon=1.0, save_at=[0.0, 1.0])
    assert run.risk[1] == pytest.approx(more.risk[1], abs=1e-8)
    points, weights = gauss(reduced.initial, 3)
    assert (points.shape, weights.sum()) == ((9, 2), pytest.approx(1))


def test_two_random_coordinates_converge_with_their_stated_error():
    law = mf.data.MultiIndex(d=math.inf, link=[0.0, 1.0, 0.5], directions=1)
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.8))
    network = mf.Network(mf.activations.erf, output="trained", bias="trained")
    model = mf.Model(law, network, init)
    best = solve(model, Atoms(900), horizon=1.0, save_at=3)
    assert best.meta["atoms"] > 600
    run = solve(model, Atoms(100), horizon=1.0, save_at=3)
    assert run.meta["atoms"] == 100
    assert (np.abs(run.risk - best.risk) <= run.error + best.error).all()
    assert run.error.max() < 1e-3
    assert best.error.max() < 1e-6


def test_four_random_coordinates_are_filled():
    law = mf.data.AnisotropicGaussians(d=30, delta=0.5, s0=10)
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.8))
    network = mf.Network(RELU, output="trained", bias="trained")
    reduced = mf.Model(law, network, init).reduce(limit=True)
    assert reduced.coordinates == ("a", "b", "r1", "r2")
    run = solve(reduced, Atoms(1000), horizon=0.5, save_at=[0.0, 0.5], rng=0)
    best = solve(reduced, Atoms(8**4), horizon=0.5, save_at=[0.0, 0.5])
    assert run.meta["atoms"] == 1000
    # The difference to half of the points is an estimate, which luck can make too small: twice it.
    assert (np.abs(run.risk - best.risk) <= 2 * run.error + best.error).all()
    assert run.error.max() < 5e-3


def test_the_core_tells_the_last_coefficients_of_panels_and_what_is_tolerated_of_them():
    rng = np.random.default_rng(0)
    weight, walls = [0.5, 2.0, 1.0], [True, False]
    z = rng.normal(size=(3, NODES, 2)) + np.array([-3.0, 0.0, 3.0])[:, None, None] * [1.0, 0.0]
    z[2, :3, 0] = -1.0  # the last panel is cut by the wall, the first is behind it
    panels = _core.Panels(
        nodes=NODES, tail=TAIL.ravel().tolist(), weight=weight, rtol=1e-3, atol=1e-5, at_wall=100.0
    )
    tails, tolerated = panels.tails(z.reshape(-1, 2), walls)
    z[:, :, 0] = np.maximum(z[:, :, 0], 0.0)
    cut = [((panel[:, 0] == 0).any() and (panel[:, 0] > 0).any()) for panel in z]
    want = np.abs(np.einsum("mi,pic->pmc", TAIL, z)).sum(axis=1) * np.array(weight)[:, None]
    np.testing.assert_allclose(tails, want, rtol=1e-12, atol=1e-14)  # rounding of sums of 16 numbers
    allowed = (1e-5 + 1e-3 * np.abs(z).max(axis=1)) * np.where(cut, 100.0, 1.0)[:, None]
    np.testing.assert_allclose(tolerated, allowed, rtol=1e-14)
