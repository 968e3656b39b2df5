"""Minimising movements as runs: what they start from, record and stop at, restarts, and what is refused."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.init._blocks import Scalar
from mfcore.measures._energy import free_energy
from mfcore.movements import _table as jko_table
from mfcore.movements._jko import JKO
from mfcore.reductions._init import ReducedInit
from problems import moments, waves

THREADS = 1


def linear(target=0.0, *, strength=1.0, **options):
    """Φ(z) = strength·z at one node, from N(0.7, 0.5²)."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[target],
        features=lambda z: strength * z,
        gradients=lambda z: strength * np.ones((len(z), 1, 1)),
        initial=ReducedInit([Scalar(mf.init.Normal(0.7, 0.5))]),
        **options,
    )


def solve(model, method, **options):
    return mf.solve(model, method, threads=THREADS, **{"save_at": 0, **options})


def test_labels_keep_their_mass_and_move_alone_where_nothing_couples_them():
    rng = np.random.default_rng(0)
    a = np.repeat([-1.0, 1.0], [30, 10])
    model = mf.ReducedModel(
        coordinates=["a", "w"],
        weights=[1.0],
        targets=[0.0],
        features=lambda z: 0 * z[:, :1],
        gradients=lambda z: np.zeros((len(z), 1, 2)),
        rates=[0.0, 1.0],
        temperature=0.2,
        ridge=1.0,
    )
    start = np.stack([a, 3 * a + rng.normal(size=40)], axis=1)
    run = solve(model, JKO(1.0, count=80, start=start), horizon=3.0, save_at=2, keep="all")
    for label, mass in ((-1.0, 0.75), (1.0, 0.25)):
        of = [cloud.points[:, 0] == label for cloud in run.kept.values()]
        clouds = list(run.kept.values())
        assert [abs(c.weights[rows].sum() - mass) < 1e-12 for c, rows in zip(clouds, of, strict=True)]
        means = [c.weights[rows] @ c.points[rows, 1] / mass for c, rows in zip(clouds, of, strict=True)]
        assert abs(means[1] - means[0] / 8) < 1e-10  # three factors 1/(1 + τλ)


def test_a_density_to_start_from_is_taken_by_its_quantiles():
    density = mf.Density([0.0, 1.0, 2.0, 4.0], [0.5, 0.0, 0.5])  # a gap
    noisy = linear(strength=0.0, temperature=0.1)
    quiet = linear(strength=0.0)
    for model in (noisy, quiet):
        measure = JKO(0.1, count=400, start=density).begin(model, 0, 1).measure()
        assert abs(moments(measure)[0] - 1.75) < 3 / 400  # one cell bridges the gap
    assert not ((measure.points > 1.0) & (measure.points < 2.0)).any()


def model_with(noise):
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=20, delta=0.5),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(0.5),
        temperature=noise,
        ridge=0.1,
    )


def test_the_free_energy_recorded_is_that_of_the_measure():
    flat = waves(3, 1, ridge=0.3, temperature=0.2)
    run = solve(flat, JKO(0.1, count=40, start=[0.3, 1.0]), horizon=0.5, save_at=[0.5])
    assert abs(run.observed["free_energy"][-1] - free_energy(flat, run.final)) < 1e-12
    radial = model_with(1e-2)
    run = solve(radial, JKO(0.1), horizon=0.5, save_at=[0.5])
    # There the entropy of a cell is relative to r^{d−1} at its centre, here to the cell's volume: order n⁻².
    assert abs(run.observed["free_energy"][-1] - free_energy(radial, run.final)) < 1e-4
    quiet = waves(3, 2, ridge=0.3)
    run = solve(quiet, JKO(0.1, start=np.eye(2)), horizon=0.5, save_at=[0.5])
    assert abs(run.observed["free_energy"][-1] - free_energy(quiet, run.final)) < 1e-12


@pytest.mark.parametrize("noise", [0.0, 1e-2])
def test_stops_and_restarts_change_no_bit(noise):
    method = JKO(0.1, count=31)
    whole = method.begin(model_with(noise), 0, THREADS)
    assert whole.advance(1.3, math.inf).reached
    parts = method.begin(model_with(noise), 0, THREADS)
    for t in (0.3, 0.7):  # odd steps: the companion is between two of its own
        parts.advance(t, math.inf)
        parts.risk()
        state = {name: array.copy() for name, array in parts.state().items()}
        parts = method.begin(model_with(noise), 0, THREADS)
        parts.restore(state)
    while not parts.advance(1.3, 0.0).reached:
        pass
    assert parts.t == whole.t == 13 * 0.1
    assert parts.measure() == whole.measure()
    assert parts.risk() == whole.risk()
    assert parts.meta() == whole.meta()
    assert parts.observed() == whole.observed()


def test_features_on_a_box_that_grows_are_those_of_the_model(monkeypatch):
    """They are separable to 1e-12, and steps are solved to 1e-9 of themselves."""
    law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
    model = mf.Model(law, mf.Network(mf.activations.softplus), rates={"w": 3.0}).reduce()
    method = JKO(0.5, start=np.array([[0.1, 0.2], [0.2, 0.1], [0.15, 0.15]]))
    rungs = {}
    for dear in (math.inf, 0):
        monkeypatch.setattr(jko_table, "_DEAR", dear)
        rungs[dear] = method.begin(model, 0, THREADS)
    first = rungs[0]._point.energy.field.box
    parts = method.begin(model, 0, THREADS)
    for t in (1.5, 6.0, 15.0):  # odd numbers of steps: the companion is between two of its own
        parts.advance(t, math.inf)
        state = parts.state()
        parts = method.begin(model, 0, THREADS)
        parts.restore(state)
        for rung in rungs.values():
            assert rung.advance(t, math.inf).reached
        assert parts.measure() == rungs[0].measure()
        assert parts.risk() == rungs[0].risk()
        np.testing.assert_allclose(rungs[0].measure().points, rungs[math.inf].measure().points, atol=1e-8)
        np.testing.assert_allclose(rungs[0].risk(), rungs[math.inf].risk(), atol=1e-10)
    assert parts.meta() == rungs[0].meta()
    assert rungs[0].meta()["unfinished"] == 0
    assert rungs[0]._point.energy.field.box[0, 1] > first[0, 1]
    fresh = method.begin(model, 0, THREADS)
    early = fresh.state()
    fresh.restore(state)  # another box, and back
    fresh.restore(early)
    assert fresh.advance(6.0, math.inf).reached
    again = method.begin(model, 0, THREADS)
    assert again.advance(6.0, math.inf).reached
    assert fresh.measure() == again.measure()


def test_checkpoints_resume(tmp_path):
    file, method = tmp_path / "run.npz", JKO(0.1, count=16, start=mf.Density([0.1, 0.5, 0.8], [0.4, 0.6]))
    options = {"horizon": 1.0, "save_at": 5}
    whole = solve(model_with(1e-2), method, **options)
    part = solve(model_with(1e-2), method, checkpoint=file, max_seconds=0, **options)
    assert part.status == "out of time"
    run = mf.resume(file, threads=THREADS)
    assert run.meta["method"] == method
    assert np.array_equal(run.risk, whole.risk)
    assert run.final == whole.final


def test_rates_are_the_metric():
    one = solve(linear(1.0, temperature=0.1, rates=[3.0]), JKO(0.1, count=20), horizon=0.5)
    other = solve(linear(1.0, temperature=0.1), JKO(0.1 * 3.0, count=20), horizon=1.5)
    assert np.allclose(one.final.edges[0], other.final.edges[0], rtol=1e-9)


def test_save_points_are_at_the_nearest_step():
    run = solve(linear(1.0), JKO(0.5, count=10), horizon=2.0, save_at=[0.2, 0.3, 1.1, 2.0])
    assert run.t.tolist() == [0.0, 0.5, 1.0, 2.0]


def test_a_run_ends_where_it_is_stationary():
    run = solve(linear(1.0, ridge=1.0), JKO(1.0, count=10, tolerance=1e-6), horizon=1e4)
    assert run.status == "stationary"
    assert run.meta["steps"] < 100
    assert np.allclose(run.final.points, 0.5, atol=1e-5)  # z̄ − 1 + λz = 0


def test_the_initial_law_without_noise_has_its_moments():
    for k, count in ((1, 64), (3, 64)):  # quantiles of one radius; Gauss nodes of three numbers
        law = (
            mf.data.MultiIndex(d=20, link=lambda z: z[:, 0], directions=np.eye(20)[: k - 1])
            if k > 1
            else None
        )
        model = mf.Model(
            data=law or mf.data.IsotropicGaussians(d=20, delta=0.5),
            network=mf.Network(mf.activations.relu),
            init=mf.init.Gaussian(0.3),
        )
        cloud = JKO(0.1, count=count).begin(model, 0, 1).measure()
        assert cloud.points.shape == (64, k)
        # Quantiles: order n⁻³. Gauss nodes are exact.
        assert abs(cloud.weights @ np.square(cloud.points).sum(axis=1) - 20 * 0.09) < 2e-4


def test_methods_are_values(tmp_path):
    method = JKO(0.1, count=50, start=[[1.0], [2.0]], tolerance=1e-8)
    text = "JKO(tau=0.1, count=50, start=Cloud(points=<array 2×1>, weights=<array 2>), tolerance=1e-08)"
    assert repr(method) == text
    assert method == JKO(0.1, count=50, start=mf.Cloud([[1.0], [2.0]]), tolerance=1e-8)
    mf.save_config({"method": method, "other": JKO(2.0)}, tmp_path / "run.toml")
    assert mf.load_config(tmp_path / "run.toml") == {"method": method, "other": JKO(2.0)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": 0.0}, "tau must be > 0, got 0.0"),
        ({"tau": math.nan}, "tau must be finite and > 0, got nan"),
        ({"count": 7}, "count must be >= 8, got 7"),
        ({"tolerance": -1.0}, "tolerance must be > 0, got -1.0"),
        ({"start": [[math.inf]]}, "start must be finite, got inf"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="^" + message):
        JKO(**{"tau": 0.1, **arguments})


def test_a_step_longer_than_the_run_is_refused():
    with pytest.raises(ValueError, match=r"tau must be <= horizon = 1, got 5"):
        solve(linear(), JKO(5.0), horizon=1.0)


def test_impossible_models_say_what_would_work():
    several = waves(0, 2, temperature=0.1)
    with pytest.raises(ValueError, match=r"temperature must be 0 for mf.JKO where several .* mf.Atoms"):
        JKO(0.1).begin(several, 0, 1)
    with pytest.raises(ValueError, match=r"start must be an mf.Cloud or mf.Density \(z0, z1\).* got None"):
        JKO(0.1).begin(waves(0, 2), 0, 1)
    with pytest.raises(ValueError, match=r"rates must be > 0 for some coordinate, got \[0.0\]"):
        JKO(0.1).begin(linear(rates=[0.0]), 0, 1)
    with pytest.raises(ValueError, match="points of length 2, got 1"):
        JKO(0.1, start=[1.0, 2.0]).begin(waves(0, 2), 0, 1)
    with pytest.raises(ValueError, match="start must have z0 >= 0, got -1"):
        JKO(0.1, start=[-1.0, 2.0]).begin(waves(0, 1, nonnegative=[True]), 0, 1)
    with pytest.raises(ValueError, match="volume must be > 0 for coordinates >= 0, else 0, got 2 for z"):
        JKO(0.1).begin(linear(volume=[2.0], temperature=0.1), 0, 1)
    unguided = mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[0.0], features=lambda z: z)
    with pytest.raises(ValueError, match="gradients must be given"):
        JKO(0.1, start=[1.0]).begin(unguided, 0, 1)
    sphere = mf.Model(
        data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Product(w=mf.init.Sphere(1.0)),
        temperature=0.1,
    )
    run = solve(sphere, JKO(0.1, count=8), horizon=0.1)  # one radius for all: noise spreads it
    assert run.final.edges[0][0] < 1 < run.final.edges[0][-1]


def test_features_that_overflow_end_the_run_with_a_status():
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[0.0],
        features=lambda z: np.full((len(z), 1), np.inf),
        gradients=lambda z: np.ones((len(z), 1, 1)),
    )
    run = solve(model, JKO(0.1, start=[1.0]), horizon=1.0, risk=False)
    assert run.status == "diverged"
    assert "not finite" in run.message
