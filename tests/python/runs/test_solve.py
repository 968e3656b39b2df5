"""Save points, records, endings, files and checkpoints of mf.solve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types

import mfcore as mf
import numpy as np
import pytest
import xarray
from mfcore._base.rng import derive


def model_of(d=6, **options):
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=d, delta=0.5),
        network=mf.Network(mf.activations.tanh, output="trained", bias="trained"),
        init=mf.init.Gaussian(std=0.5),
        **options,
    )


METHOD = mf.SGD(neurons=20, step=0.01)


def test_save_points_do_not_change_the_run():
    runs = [
        mf.solve(model_of(), METHOD, horizon=1.0, save_at=save_at, rng=0)
        for save_at in (None, 0, 1, 7, [], [0.5], [0.0, 0.333, 1.0])
    ]
    assert [len(run.t) for run in runs] == [51, 0, 1, 7, 0, 1, 3]
    assert all(np.array_equal(run.final, runs[0].final) for run in runs)
    assert runs[6].t.tolist() == [0.0, 33 * 0.01, 1.0]  # the nearest step
    assert runs[4].risk.shape == (0,)


def test_what_is_recorded_is_what_the_measure_says():
    model = model_of()
    run = mf.solve(
        model,
        METHOD,
        horizon=1.0,
        save_at=[0.0, 0.5, 1.0],
        keep="all",
        observe={"largest": lambda theta: np.abs(theta).max(), "means": lambda theta: theta.mean(axis=0)},
        risk=mf.MonteCarlo(500, rng=1),
        rng=0,
    )
    X, y = model.data.draw(500, rng=1)
    assert list(run.kept) == run.t.tolist()
    for k, theta in enumerate(run.kept.values()):
        f = np.tanh(X @ theta[:, 2:].T + theta[:, 1]) @ theta[:, 0] / 20
        assert run.risk[k] == pytest.approx(np.mean((y - f) ** 2), rel=1e-12)
        assert run.error[k] == pytest.approx(np.std((y - f) ** 2, ddof=1) / np.sqrt(500), rel=1e-12)
        assert run.observed["largest"][k] == np.abs(theta).max()
        assert np.array_equal(run.observed["means"][k], theta.mean(axis=0))
        assert run.observed["norm_mean"][k] == np.linalg.norm(theta[:, 2:], axis=1).mean()
        assert run.observed["a_std"][k] == theta[:, 0].std()
        assert run.observed["b_mean"][k] == theta[:, 1].mean()
    assert np.array_equal(run.final, run.kept[1.0])
    assert np.array_equal(run.kept[0.0], model.init.sample(model.network, 6, 20, rng=0))


def test_kept_measures_are_found_by_the_times_asked_for():
    method = mf.SGD(neurons=2, step=1e-5)
    run = mf.solve(model_of(), method, horizon=0.3, save_at=4, keep=[0.1, 0.3], rng=0)
    assert list(run.kept) == [0.1, 0.3]  # although steps and save points are 0.30000000000000004
    assert np.array_equal(run.kept[0.3], run.final)


def test_coordinates_of_the_symmetry_are_recorded():
    model = mf.Model(
        data=mf.data.Staircase(6, [(0,), (0, 1)]),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(1.0),
    )
    run = mf.solve(model, mf.SGD(9, step=0.01, replicas=3), horizon=0.1, save_at=[0.1], risk=False, rng=0)
    w = run.final
    assert np.array_equal(run.observed["s2_mean"][0], w[..., 1].mean(axis=-1))
    rest = np.linalg.norm(w[..., 2:], axis=-1)
    np.testing.assert_allclose(run.observed["r_std"][0], rest.std(axis=-1), rtol=1e-13)


def test_a_stationary_run_records_where_it_came_to_rest():
    model = mf.Model(
        data=mf.data.Linear(np.ones(2)),
        network=mf.Network(mf.activations.linear),
        init=mf.init.Points(np.zeros((1, 2))),
    )
    run = mf.solve(model, mf.GD(1, step=0.5, tolerance=1e-6), horizon=1e6, save_at=[0.0, 1e6], rng=0)
    assert run.status == "stationary"
    assert run.t[-1] == run.meta["t"] < 100
    assert run.risk[-1] < 1e-10
    with pytest.raises(ValueError, match="neurons must be 1, the number of given points, got 2"):
        mf.solve(model, mf.GD(2, step=0.5), horizon=1.0)


def test_names_that_are_recorded_anyway_are_refused():
    for name in ("t", "risk", "norm_mean"):
        with pytest.raises(ValueError, match=f"observe must not use names .* got '{name}'"):
            mf.solve(model_of(), METHOD, horizon=1.0, observe={name: np.mean})


def test_risks_are_exact_where_that_is_quick_and_can_be_left_out():
    relu = model_of().replace(network=mf.Network(mf.activations.relu), init=mf.init.Gaussian(std=0.5))
    run = mf.solve(relu, METHOD, horizon=0.1, save_at=2, rng=0, keep="all")
    assert run.meta["risk"] == "exact"
    assert run.risk[0] == mf.risk(relu, run.kept[0.0])
    assert (run.error == 0).all()
    none = mf.solve(relu, METHOD, horizon=0.1, save_at=2, rng=0, risk=False)
    assert none.risk is None
    assert none.error is None


@pytest.mark.parametrize(
    ("sigma", "neurons", "rule"),
    [
        (mf.activations.piecewise_linear([0.0], [0.0], 0.5, 1.0), 3000, "exact"),  # angles alone
        (mf.activations.gelu, 1200, "exact"),
        (mf.activations.gelu, 1500, "10000 held-out samples"),
        (mf.activations.expression("z*tanh(z)"), 30, "exact"),
        (mf.activations.expression("z*tanh(z)"), 60, "10000 held-out samples"),
        (mf.activations.custom(np.sin, slope=np.cos), 20, "10000 held-out samples"),  # no curvature
    ],
)
def test_risks_are_priced_by_what_serves_the_pairs(sigma, neurons, rule):
    model = model_of().replace(network=mf.Network(sigma), init=mf.init.Gaussian(std=0.1))
    run = mf.solve(model, mf.SGD(neurons, step=0.01), horizon=0.01, save_at=[0.0], rng=0)
    assert run.meta["risk"] == rule


def test_the_held_out_sample_is_the_same_for_every_run():
    model = model_of()
    rule = mf.MonteCarlo(10_000, seed=derive(0, 10_000))
    for seed in (0, 1):
        run = mf.solve(model, mf.SGD(300, step=0.01), horizon=0.01, save_at=[0.0], keep="all", rng=seed)
        assert run.meta["risk"] == "10000 held-out samples"
        expected = mf.risk(model, run.kept[0.0], expectation=rule)
        assert run.risk[0] == pytest.approx(expected, rel=1e-13)  # 10 000 terms in another order


def test_a_schedule_bends_the_clock():
    method = mf.SGD(neurons=5, step=1e-3, schedule=lambda s: (1 + 100 * s) ** -0.5)
    run = mf.solve(model_of(), method, horizon=0.1, save_at=[0.05, 0.1], rng=0)
    sizes = 1e-3 * (1 + 100 * 1e-3 * np.arange(100_000)) ** -0.5
    times = np.concatenate([[0], np.cumsum(sizes)])
    assert run.meta["steps"] == np.searchsorted(times, 0.1)  # the last of them shortened
    assert run.t[1] == 0.1
    assert run.t[0] == pytest.approx(times[np.abs(times - 0.05).argmin()], abs=1e-15)


def test_a_bad_schedule_is_named():
    method = mf.SGD(neurons=5, step=1e-3, schedule=lambda s: 1 - 50 * s)
    with pytest.raises(ValueError, match=r"schedule must be finite and > 0, got 0 at k·step = 0.02"):
        mf.solve(model_of(), method, horizon=0.1, rng=0)


def test_divergence_is_a_status_with_the_last_finite_state():
    run = mf.solve(
        model_of().replace(
            network=mf.Network(mf.activations.relu, output="trained"), init=mf.init.Gaussian(std=1.0)
        ),
        mf.SGD(neurons=20, step=5.0),
        horizon=5e4,
        save_at=3,
        rng=0,
    )
    assert run.status == "diverged"
    assert "Try a smaller step than 5" in run.message
    assert np.isfinite(run.final).all()
    assert run.t.tolist() == [0.0]


def test_max_seconds_ends_a_run_early():
    begun = time.monotonic()
    run = mf.solve(
        model_of(300), mf.SGD(neurons=500, step=1e-9), horizon=1.0, save_at=3, rng=0, max_seconds=2
    )
    assert run.status == "out of time"
    assert "max_seconds passed at t = " in run.message
    assert 0 < run.meta["steps"] < 10**9
    assert time.monotonic() - begun < 60  # it stopped at all: the whole run takes an hour


def test_ctrl_c_returns_what_there_is():
    # Of the time that this process computes: on a busy machine too it has done steps by then.
    signal.setitimer(signal.ITIMER_PROF, 0.5)
    before = signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        run = mf.solve(model_of(300), mf.SGD(neurons=500, step=1e-9), horizon=1.0, save_at=[0.0, 1.0], rng=0)
    finally:
        signal.signal(signal.SIGPROF, before)
    assert run.status == "interrupted"
    assert run.t.tolist() == [0.0]
    assert run.meta["steps"] > 0


def test_trajectories_survive_the_disk(tmp_path):
    run = mf.solve(
        model_of(), METHOD, horizon=0.5, save_at=3, keep=[0.25], observe={"x": lambda theta: theta[0]}, rng=0
    )
    run.save(tmp_path / "run.npz")
    back = mf.load(tmp_path / "run.npz")
    for name in ("t", "risk", "error", "final"):
        assert np.array_equal(getattr(back, name), getattr(run, name))
    assert np.array_equal(back.observed["x"], run.observed["x"])
    assert np.array_equal(back.kept[0.25], run.kept[0.25])
    assert (back.status, back.message) == (run.status, run.message)
    assert back.meta["model"] == run.meta["model"]
    assert back.meta["method"] == METHOD
    assert back.meta["seed"] == run.meta["seed"]
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_python_functions_are_stored_as_their_repr(tmp_path):
    method = mf.SGD(neurons=5, step=0.01, schedule=np.ones_like)
    mf.solve(model_of(), method, horizon=0.05, save_at=2, rng=0).save(tmp_path / "run.npz")
    assert "ones_like" in mf.load(tmp_path / "run.npz").meta["method"]


def test_to_xarray_labels_the_series():
    run = mf.solve(model_of(), mf.SGD(neurons=5, step=0.01, replicas=2), horizon=0.05, save_at=3, rng=0)
    data = run.to_xarray()
    assert isinstance(data, xarray.Dataset)
    assert data["risk"].dims == ("t", "replica")
    assert data["norm_mean"].dims == ("t", "replica")
    assert np.array_equal(data["t"], run.t)
    assert data.attrs["status"] == "completed"


SCRIPT = """
import sys, mfcore as mf
model = mf.Model(
    data=mf.data.IsotropicGaussians(d=40, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained"),
    init=mf.init.Gaussian(std=0.2),
    temperature=0.01,
)
method = mf.SGD(neurons=60, step=1e-5, replicas=2)
run = mf.solve(model, method, horizon=0.8, save_at=201, rng=3, checkpoint=sys.argv[1])
run.save(sys.argv[2])
"""


def test_a_killed_run_is_resumed_to_the_same_bits(tmp_path):
    checkpoint = tmp_path / "checkpoint.npz"
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    killed = subprocess.Popen([sys.executable, script, checkpoint, tmp_path / "never.npz"])
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "never.npz").exists(), "the run was over before it could be killed"
    resumed = mf.resume(checkpoint)
    subprocess.run([sys.executable, script, tmp_path / "other.npz", tmp_path / "whole.npz"], check=True)
    expected = mf.load(tmp_path / "whole.npz")
    assert resumed.status == "completed"
    assert not checkpoint.exists()
    for name in ("t", "risk", "final"):
        assert np.array_equal(getattr(resumed, name), getattr(expected, name))
    for name, values in expected.observed.items():
        assert np.array_equal(resumed.observed[name], values)


def test_a_checkpoint_asks_for_what_it_cannot_hold(tmp_path):
    method = mf.SGD(neurons=5, step=0.01, schedule=np.ones_like)
    file = tmp_path / "run.npz"
    observe = {"x": np.mean}
    mf.solve(model_of(), method, horizon=1.0, rng=0, checkpoint=file, max_seconds=0, observe=observe)
    with pytest.raises(ValueError, match="method must be passed again"):
        mf.resume(file, observe=observe)
    with pytest.raises(ValueError, match="observe must have the functions of the run, got none for x"):
        mf.resume(file, method=method)
    assert mf.resume(file, method=method, observe=observe).status == "completed"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"horizon": 0.0}, ValueError, r"horizon must be > 0, got 0.0"),
        ({"horizon": np.nan}, ValueError, r"horizon must be finite"),
        (
            {"horizon": 1.0, "save_at": [0.5, 0.2]},
            ValueError,
            r"save_at must increase, got 0.2 at \[1\] after 0.5",
        ),
        (
            {"horizon": 1.0, "save_at": [0.5, 2.0]},
            ValueError,
            r"save_at must be >= 0 and <= horizon = 1, got 2 at \[1\]$",
        ),
        ({"horizon": 1.0, "save_at": -1}, ValueError, r"save_at must be >= 0, got -1"),
        ({"horizon": 1.0, "keep": "none"}, ValueError, r"keep must be one of 'final', 'all'"),
        (
            {"horizon": 1.0, "keep": [0.123]},
            ValueError,
            r"keep must name save points, got 0.123; the nearest is 0.12$",
        ),
        (
            {"horizon": 1.0, "save_at": 2.5},
            ValueError,
            r"save_at must be a list of times, or an integer how many, got 2.5",
        ),
        ({"horizon": 1.0, "observe": {"x": 3}}, TypeError, r"observe must map names to functions"),
        ({"horizon": 1.0, "risk": "exact"}, TypeError, r"risk must be True, False"),
        ({"horizon": 1.0, "threads": 0}, ValueError, r"threads must be >= 1, got 0"),
        ({"horizon": 1.0, "max_seconds": -1}, ValueError, r"max_seconds must be >= 0, got -1"),
    ],
)
def test_misuse_names_argument_rule_and_value(options, error, message):
    with pytest.raises(error, match=message):
        mf.solve(model_of(), METHOD, **options)


def test_impossible_runs_say_what_would_work():
    infinite = mf.Model(
        data=mf.data.IsotropicGaussians(d=np.inf, delta=0.5),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(0.5),
    )
    with pytest.raises(ValueError, match="data must have finite d for neurons"):
        mf.solve(infinite, METHOD, horizon=1.0)
    with pytest.raises(TypeError, match=r"method must be a method such as mf.SGD"):
        mf.solve(model_of(), "SGD", horizon=1.0)
    with pytest.raises(ValueError, match="init must be an initial law"):
        mf.solve(model_of().replace(init=None), METHOD, horizon=1.0)
    with pytest.raises(ValueError, match=r"path must be a file written by"):
        mf.load(__file__)


def test_the_progress_bar_says_what_is_being_prepared_and_then_nothing(monkeypatch):
    said = []

    class Silent:
        n = 0

        def __init__(self, **options):
            assert options["total"] == 0.1

        def set_description(self, text):
            said.append(text)

        def update(self, more):
            self.n += more

        def close(self):
            said.append("closed")

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Silent))
    model = mf.Model(
        data=mf.data.AnisotropicGaussians(d=40, delta=0.5, s0=20),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(0.5),
    )
    mf.solve(model.reduce(limit=True), mf.PDE(cells=24), horizon=0.1, progress=True)
    assert said[0] == "preparing the start of the run"
    assert "preparing features of 2 coordinates as sums of products" in said
    assert said[-2:] == [None, "closed"]
