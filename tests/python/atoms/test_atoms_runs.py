"""Runs of atoms: bits, checkpoints, ends, features on a box, neurons of full dimension, what is refused."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import problems
import pytest
from mfcore._base.rng import seed_of
from mfcore.atoms._atoms import Atoms
from mfcore.config import load_config, save_config
from mfcore.neurons._methods import Particles
from mfcore.runs._solve import resume, solve
from problems import STEP

RELU = mf.activations.relu


def isotropic(d=320, activation=STEP, norm=0.1, **options):
    return problems.isotropic(d, activation, norm, **options)


def two_radii(**options):
    law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
    return mf.Model(law, mf.Network(mf.activations.softplus), **options)


def trained(**options):
    law = mf.data.MultiIndex(d=math.inf, link=[0.0, 1.0, 0.5], directions=1)
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.8))
    network = mf.Network(mf.activations.erf, output="trained", bias="trained")
    return mf.Model(law, network, init, **options)


def flat(**options):
    """One coordinate, features by hand: Φ = z² and z, y = 1 and 0."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[0.5, 0.5],
        targets=[1.0, 0.0],
        features=lambda z: np.concatenate([z**2, z], axis=1),
        gradients=lambda z: np.stack([2 * z, np.ones_like(z)], axis=1),
        **options,
    )


CASES = {
    "panels": (isotropic(), Atoms(), 1.5),
    "a wall": (isotropic(40, RELU, 30.0), Atoms(rtol=1e-5, atol=1e-7), 10.0),
    "two coordinates": (trained(), Atoms(64), 2.0),
    "draws": (isotropic(40, temperature=1e-3), Atoms(500, method="heun", step=0.01), 1.5),
    "fixed steps": (isotropic(40, norm=0.8), Atoms(64, method="rk4", step=0.02), 1.5),
    "stiff": (trained(rates={"a": 1e2}), Atoms(9, method="lsoda"), 0.5),
    "by hand": (flat(), Atoms(start=mf.Cloud(np.linspace(-1, 2, 9))), 1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_save_points_and_threads_change_no_bit(name):
    model, method, horizon = CASES[name]
    plain = solve(model, method, horizon=horizon, save_at=[], rng=1, threads=1)
    seen = solve(model, method, horizon=horizon, save_at=np.linspace(0.1, 0.45, 7), rng=1, threads=2)
    assert plain.status == seen.status == "completed"
    assert plain.final == seen.final


@pytest.mark.parametrize("name", CASES)
def test_a_restored_run_goes_on_to_the_same_bits(name):
    model, method, horizon = CASES[name]
    seed = seed_of(3)
    whole, part = method.begin(model, seed, 1), method.begin(model, seed, 2)
    middle = 0.37 * horizon
    assert part.advance(middle, math.inf).reached
    again = method.begin(model, seed, 1)
    again.restore(part.state())
    assert again.t == part.t
    assert again.measure() == part.measure()
    assert again.risk() == part.risk()
    for rung in (whole, again):
        assert rung.advance(horizon, math.inf).reached
    assert whole.measure() == again.measure()
    assert whole.risk() == again.risk()
    assert whole.meta() == again.meta()


def test_a_run_without_time_is_resumed(tmp_path):
    file = tmp_path / "run.npz"
    model, method, horizon = CASES["panels"]
    options = {"horizon": horizon, "save_at": 4, "rng": 0}
    part = solve(model, method, checkpoint=file, max_seconds=0.0, **options)
    assert part.status == "out of time"
    run, whole = resume(file), solve(model, method, **options)
    assert run.status == "completed"
    assert run.final == whole.final
    np.testing.assert_array_equal(run.risk, whole.risk)
    np.testing.assert_array_equal(run.error, whole.error)


def test_runs_and_methods_are_stored(tmp_path):
    model = isotropic(40, norm=0.8)
    method = Atoms(start=mf.Cloud([0.5, 0.7], [0.25, 0.75]), rtol=1e-6)
    save_config({"model": model, "method": method}, tmp_path / "c.toml")
    stored = load_config(tmp_path / "c.toml")["method"]
    assert stored == method
    assert repr(stored) == repr(method)
    run = solve(model, method, horizon=1.0, save_at=3)
    run.save(tmp_path / "run.npz")
    back = mf.load(tmp_path / "run.npz")
    assert back.final == run.final
    assert back.meta["method"] == method
    assert {"r_mean", "r_std", "norm_mean", "norm_std"} >= set(run.observed) >= {"norm_mean", "norm_std"}


def test_a_run_that_comes_to_rest_says_so():
    run = solve(isotropic(40, norm=0.8, ridge=0.1), Atoms(tolerance=1e-5), horizon=1e4, rng=0)
    assert run.status == "stationary"
    assert "root mean square of the gradient fell below 1e-05" in run.message
    z = run.final
    gradient = mf.grad_psi(isotropic(40, norm=0.8, ridge=0.1).reduce(), z.points, z)[:, 0]
    assert math.sqrt(z.weights @ gradient**2) < 1.1e-5


def test_divergence_is_a_status():
    grows = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[1e3],
        features=lambda z: z**3,
        gradients=lambda z: 3 * z[:, None, :] ** 2,
    )
    start = mf.Cloud([[1.0]])
    run = solve(grows, Atoms(start=start, method="euler", step=0.1), horizon=1.0, save_at=11)
    assert run.status == "diverged"
    assert "Try a smaller step" in run.message
    assert np.isfinite(run.final.points).all()


def test_separable_features_agree_with_the_features_themselves(monkeypatch):
    from mfcore.atoms import _carried as carried

    reduced = two_radii().reduce()
    start = mf.Cloud(np.random.default_rng(0).uniform(0, 2, (30, 2)))
    options = {"horizon": 2.0, "save_at": [1.0, 2.0], "rng": 0}
    monkeypatch.setattr(carried, "_DEAR", math.inf)
    direct = solve(reduced, Atoms(start=start), **options)
    monkeypatch.setattr(carried, "_DEAR", 0)
    separable = solve(reduced, Atoms(start=start), **options)
    np.testing.assert_allclose(separable.final.points, direct.final.points, atol=1e-9)
    np.testing.assert_allclose(separable.risk, direct.risk, atol=1e-10)


def test_atoms_that_leave_their_box_get_another(monkeypatch):
    from mfcore.atoms import _carried as carried

    monkeypatch.setattr(carried, "_DEAR", 0)
    reduced = two_radii(rates={"w": 3.0}).reduce()
    start = mf.Cloud([[0.1, 0.2], [0.2, 0.1], [0.15, 0.15]])
    method = Atoms(start=start)
    rung = method.begin(reduced, 0, 1)
    first = rung._atoms._now.box
    assert rung.advance(30.0, math.inf).reached
    box = rung._atoms._now.box
    assert box[0, 1] > first[0, 1]
    again = method.begin(reduced, 0, 1)
    again.restore(rung.state())
    for one in (rung, again):
        assert one.advance(40.0, math.inf).reached
    assert rung.measure() == again.measure()
    monkeypatch.setattr(carried, "_DEAR", math.inf)
    direct = solve(reduced, method, horizon=40.0, save_at=[])
    np.testing.assert_allclose(rung.measure().points, direct.final.points, atol=1e-7)  # other steps


def test_wide_networks_of_full_dimension_agree():
    """d = 10: two networks of 500 neurons drawn from the same law."""
    model = isotropic(10, RELU, 1.5)
    times, N = [0.5, 1.0, 2.0], 500
    limit = solve(model, Atoms(), horizon=2.0, save_at=times, keep="all")
    assert limit.error.max() < 1e-6
    psi = mf.psi(model.reduce(), limit.kept[0.5].points, limit.kept[0.5])
    w = limit.kept[0.5].weights
    # Independent neurons have risks of standard deviation 2 sd(psi) / sqrt(N) (eq. (10.2)), which the
    # flow contracts from then on; 5 of them and a bias of O(1/N): odds 1e-6.
    sd = 2 * math.sqrt(w @ (psi - w @ psi) ** 2 / N)
    for seed in (0, 1):
        run = solve(model, Particles(N), horizon=2.0, save_at=times, rng=seed)
        assert (np.abs(run.risk - limit.risk) < 5 * sd + 3 / N).all()
        spread = limit.observed["norm_std"] / math.sqrt(N)
        assert (np.abs(run.observed["norm_mean"] - limit.observed["norm_mean"]) < 5 * spread).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count must be >= 1, got 0"),
        ({"count": 5, "start": mf.Cloud([1.0])}, "count must be left out with start, got 5"),
        ({"rtol": 0.0}, "rtol must be > 0"),
        ({"method": "dopry5"}, "did you mean 'dopri5'"),
        ({"method": "rk4"}, "step must be given with method='rk4'"),
        ({"step": 0.1}, "step must be left out with method='dopri5'"),
        ({"tolerance": -1.0}, "tolerance must be > 0, got -1"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Atoms(**arguments)


def test_a_start_must_be_a_cloud():
    with pytest.raises(TypeError, match=r"start must be an mf\.Cloud\(points, weights\), got"):
        Atoms(start=[[1.0]])


@pytest.mark.parametrize(
    ("model", "method", "message"),
    [
        (flat(), Atoms(), r"start must be an mf\.Cloud of atoms \(z\): the model has no initial law"),
        (
            trained(),
            Atoms(start=mf.Cloud([[1.0, 0.5]])),
            r"start must have points \(a, b, s1, r\), got rows of length 2",
        ),
        (isotropic(), Atoms(start=mf.Cloud([0.5, -0.25])), r"start must have r >= 0, got -0\.25 in row 1"),
        (
            isotropic(temperature=0.1),
            Atoms(),
            r"method must be 'euler' or 'heun', with a step, at temperature = 0\.1, got 'dopri5'",
        ),
        (
            isotropic(temperature=0.1),
            Atoms(method="euler", step=0.1, tolerance=1e-3),
            "tolerance must be left out at temperature",
        ),
        (
            flat(temperature=0.1, volume=(2.0,)),
            Atoms(start=mf.Cloud([1.0]), method="euler", step=0.1),
            "volume must be > 0 for coordinates >= 0, else 0, for atoms at temperature = 0.1, got 2 for z",
        ),
        (
            mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z),
            Atoms(start=mf.Cloud([1.0])),
            "gradients must be given for the atoms of a ReducedModel to move, got None",
        ),
    ],
)
def test_impossible_runs_are_refused(model, method, message):
    with pytest.raises(ValueError, match=message):
        solve(model, method, horizon=1.0)


def test_errors_of_features_by_hand_pass_through():
    def features(z):
        raise ZeroDivisionError("mine")

    broken = mf.ReducedModel(
        coordinates=["z"], weights=[1.0], targets=[1.0], features=features, gradients=lambda z: z[:, None, :]
    )
    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(broken, Atoms(start=mf.Cloud([1.0])), horizon=1.0)
