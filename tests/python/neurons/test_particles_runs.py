"""Runs of particle flows: stops, restarts, save points, failures; the same bits whatever happens."""

from __future__ import annotations

import signal

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore._base.rng import seed_of
from mfcore.neurons._methods import GD, Particles
from mfcore.runs import _stiff as stiff
from mfcore.runs._ends import End, Ended, ended
from mfcore.runs._solve import resume, solve
from problems import erf_model, final, linear_model

ADAPTIVE = ("dopri5", "lsoda", "bdf", "radau")


def test_save_points_and_stops_of_dopri5_change_no_bit():
    model = erf_model()
    method = Particles(6, rtol=1e-5)
    whole = solve(model, method, horizon=2.0, save_at=[], rng=0)
    saved = solve(model, method, horizon=2.0, save_at=23, keep="all", rng=0)
    assert np.array_equal(whole.final, saved.final)
    assert whole.meta["evaluations"] == saved.meta["evaluations"]
    # A longer run passes the same states.
    longer = solve(model, method, horizon=5.0, save_at=[2.0], keep="all", rng=0)
    assert np.array_equal(longer.kept[2.0], whole.final)
    # Between steps the continuous extension is as good as the steps.
    best = solve(model, Particles(6, rtol=1e-12), horizon=2.0, save_at=23, keep="all", rng=0)
    assert max(np.abs(saved.kept[t] - best.kept[t]).max() for t in saved.t) < 2e-4  # 20 rtol


@pytest.mark.parametrize("method", [*ADAPTIVE, "rk4"])
def test_a_restored_run_goes_on_to_the_same_bits(method, monkeypatch):
    monkeypatch.setattr(stiff, "_RESTART", 7)  # so that short runs cross it
    model = erf_model(3, 2, sphere=True)
    particles = Particles(3, method=method, step=0.05 if method == "rk4" else None)
    whole = final(model, particles, 2.0)
    rung = particles.begin(model, seed_of(0), 1)
    for t in (0.05, 0.35, 0.4, 1.5):
        assert rung.advance(t, np.inf).reached
        state = {name: a.copy() for name, a in rung.state().items()}
        measure = rung.measure()
        rung = particles.begin(model, seed_of(0), 2)
        rung.restore(state)
        assert rung.t == pytest.approx(t, abs=1e-12)
        assert np.array_equal(rung.measure(), measure)
    assert rung.advance(2.0, np.inf).reached
    assert np.array_equal(rung.measure(), whole)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path):
    model, file = erf_model(), tmp_path / "run.npz"
    part = solve(model, Particles(6), horizon=1.0, save_at=4, rng=0, checkpoint=file, max_seconds=0)
    assert part.status == "out of time"
    whole, resumed = solve(model, Particles(6), horizon=1.0, save_at=4, rng=0), resume(file)
    assert np.array_equal(whole.final, resumed.final)
    assert np.array_equal(whole.risk, resumed.risk)


def test_the_order_of_particles_and_the_threads_do_not_matter():
    model = erf_model(40, 5)
    order = np.random.default_rng(1).permutation(40)
    shuffled = model.replace(init=mf.init.Points(model.init.theta[order]))
    one = final(model, Particles(40), 1.0, threads=1)
    assert np.array_equal(one, final(model, Particles(40), 1.0, threads=3))
    # Sums in another order move the steps by rounding, and the state by that times a power of the tolerance.
    np.testing.assert_allclose(one[order], final(shuffled, Particles(40), 1.0), atol=1e-12)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_flow_stops_where_it_is_at_rest(method):
    model = linear_model(3, 2, ridge=0.5)
    run = solve(model, Particles(3, method=method, tolerance=1e-4), horizon=1e6, save_at=[], rng=0)
    assert run.status == "stationary"
    assert "0.0001" in run.message
    assert run.meta["t"] < 100
    gradient = mf.grad_psi(model, run.final, run.final)
    assert np.sqrt(np.mean(gradient**2)) < 1e-4


def test_too_large_fixed_steps_diverge_with_their_number():
    method = Particles(3, method="rk4", step=50.0)
    run = solve(linear_model(3, 2), method, horizon=1e5, save_at=[], rng=0)
    assert run.status == "diverged"
    steps = run.meta["steps"]  # the risk may overflow before the neurons do
    assert f"step {steps + 1}" in run.message or f"t = {50 * steps}, inf" in run.message
    assert np.isfinite(run.final).all()


def test_a_solution_that_blows_up_leaves_its_last_finite_state():
    """z' = z^2 from z = 1 ends at t = 1."""
    network = mf.Network(mf.activations.linear)._core
    square = _core.System.calling(network, 1, 1, 0.0, (1.0, 1.0, 1.0), lambda z: -(z**2))
    flow = _core.Flow.dopri5(square, np.ones((1, 1)), rtol=1e-6, atol=1e-9)
    assert flow.advance(0.9) is _core.End.reached
    assert flow.values()[0] == pytest.approx(10.0, rel=1e-4)
    with np.errstate(all="ignore"):
        assert flow.advance(2.0) is _core.End.stuck
    assert flow.t == pytest.approx(1.0, abs=1e-5)
    assert np.isfinite(flow.values()).all()
    assert "lsoda" in ended(End.stuck, flow).message


def test_a_velocity_that_is_not_finite_at_the_start_is_divergence():
    network = mf.Network(mf.activations.linear)._core
    broken = _core.System.calling(network, 1, 1, 0.0, (1.0, 1.0, 1.0), lambda z: z * np.nan)
    for flow in (
        _core.Flow.dopri5(broken, np.ones((1, 1)), rtol=1e-6, atol=1e-9),
        _core.Flow.fixed(broken, np.ones((1, 1)), "rk4", 0.1),
    ):
        assert flow.advance(1.0) is _core.End.diverged
        assert (flow.t, flow.values().tolist()) == (0.0, [1.0])


def test_an_exception_of_the_gradient_passes_through():
    def gradient(z):
        raise RuntimeError("no gradient today")

    network = mf.Network(mf.activations.linear)._core
    system = _core.System.calling(network, 1, 1, 0.0, (1.0, 1.0, 1.0), gradient)
    with pytest.raises(RuntimeError, match="no gradient today"):
        _core.Flow.dopri5(system, np.ones((1, 1)), rtol=1e-6, atol=1e-9).advance(1.0)


@pytest.mark.parametrize("kind", ["dopri5", "rk4", "lsoda", "nodes", "long evaluation"])
def test_ctrl_c_returns_a_state_from_which_the_run_goes_on_to_the_same_bits(kind):
    def press(*_):
        raise KeyboardInterrupt

    model = erf_model(3, 2)
    method = Particles(3, rtol=1e-10, atol=1e-12)
    if kind == "rk4":
        method = Particles(3, method="rk4", step=1e-5)
    elif kind == "lsoda":
        method = Particles(3, method="lsoda", rtol=1e-10, atol=1e-12)
    elif kind == "nodes":
        method = Particles(3, method="euler", step=1e-5, expectation=mf.MonteCarlo(100, rng=0))
    elif kind == "long evaluation":
        method = Particles(3, method="euler", step=0.1, expectation=mf.MonteCarlo(2**40, rng=0))
    rung = method.begin(model, 0, 1)
    before = signal.signal(signal.SIGALRM, press)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        ended = rung.advance(1e9, np.inf)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended == Ended(End.interrupted)
    reached = rung.t
    assert np.isfinite(rung.measure()).all()
    if kind == "long evaluation":
        assert (reached, np.array_equal(rung.measure(), model.init.theta)) == (0.0, True)
        return
    target = reached + 0.001
    assert rung.advance(target, np.inf).reached
    whole = method.begin(model, 0, 1)
    assert whole.advance(target, np.inf).reached
    assert np.array_equal(rung.measure(), whole.measure())


def test_ctrl_c_ends_a_solve_with_its_partial_trajectory(tmp_path):
    def press(*_):
        raise KeyboardInterrupt

    method, file = Particles(6, method="rk4", step=1e-4), tmp_path / "run.npz"
    before = signal.signal(signal.SIGPROF, press)
    try:
        # Of the time that this process computes: on a busy machine too it has done steps by then.
        signal.setitimer(signal.ITIMER_PROF, 0.3)
        run = solve(erf_model(), method, horizon=1e6, save_at=[0.0, 1e6], rng=0, checkpoint=file)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert run.status == "interrupted"
    assert "Ctrl-C" in run.message
    assert run.t.tolist() == [0.0]
    assert 0 < run.meta["t"] < 1e6
    assert file.exists()


def test_a_time_limit_shorter_than_a_step_still_makes_progress():
    for method in (Particles(6), Particles(6, method="lsoda"), Particles(6, method="rk4", step=0.1)):
        rung, calls = method.begin(erf_model(), 0, 1), 0
        while not (ended := rung.advance(1.0, 0.0)).reached:
            assert ended == Ended(End.out_of_time)
            calls += 1
            assert calls < 500
        assert np.array_equal(rung.measure(), final(erf_model(), method, 1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neurons": 0}, "neurons must be >= 1, got 0"),
        ({"method": "rk45"}, "did you mean"),
        ({"method": "heun"}, "step must be given with method='heun'"),
        ({"step": 0.1}, "step must be left out with method='dopri5'"),
        ({"method": "rk4", "step": -1}, "step must be > 0, got -1"),
        ({"rtol": 0}, "rtol must be > 0, got 0"),
        ({"atol": -1}, "atol must be > 0, got -1"),
        ({"tolerance": 0}, "tolerance must be > 0, got 0"),
        ({"expectation": "exact"}, "expectation must be mf.Exact"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Particles(**{"neurons": 3, **arguments})


@pytest.mark.parametrize("method", ["dopri5", "lsoda", "rk4"])
def test_noise_is_refused_by_schemes_that_cannot_have_it(method):
    step = 0.1 if method == "rk4" else None
    with pytest.raises(ValueError, match=f"must be 'euler' or 'heun'.*got '{method}'"):
        solve(linear_model(2, 2, temperature=0.1), Particles(2, method=method, step=step), horizon=1.0)


def test_methods_survive_configuration_files(tmp_path):
    for method in (Particles(5), Particles(5, method="rk4", step=0.1, tolerance=1e-3), GD(3, 0.1)):
        mf.save_config(method, tmp_path / "method.toml")
        assert mf.load_config(tmp_path / "method.toml") == method
