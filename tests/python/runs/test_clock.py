"""Horizons that are no multiple of the step, and save points between steps: one rule for all rungs."""

import mfcore as mf
import numpy as np
import pytest

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
)
NOISY = MODEL.replace(temperature=0.01, ridge=0.1)
RUNGS = {
    "SGD": (MODEL, mf.SGD(10, 0.3)),
    "SGD, replicas": (MODEL, mf.SGD(10, 0.3, replicas=2)),
    "SGD, batches": (MODEL, mf.SGD(10, 0.3, batch=3)),
    "SGD, coupled": (NOISY, mf.SGD(10, 0.3, coupled=True)),
    "GD": (MODEL, mf.GD(10, 0.3)),
    "GD, noise": (NOISY, mf.GD(10, 0.3)),
    "Particles, rk4": (MODEL, mf.Particles(10, method="rk4", step=0.3)),
    "Particles, heun": (NOISY, mf.Particles(10, method="heun", step=0.3)),
    "Nonlinear": (MODEL, mf.Nonlinear(10, step=0.3)),
    "Nonlinear, noise": (NOISY, mf.Nonlinear(10, mf.Atoms(50, method="heun", step=0.3), step=0.3)),
    "Nonlinear, network": (MODEL, mf.Nonlinear(10, mf.GD(50, 0.3))),
    "Atoms": (MODEL, mf.Atoms(32, method="rk4", step=0.3)),
    "Atoms, noise": (NOISY, mf.Atoms(50, method="euler", step=0.3)),
    "JKO": (MODEL, mf.JKO(tau=0.3, count=20)),
    "PDE": (MODEL, mf.PDE(40)),
    "PDE, noise": (NOISY, mf.PDE(40, step=0.3)),
}
LATTICE = {name: rung for name, rung in RUNGS.items() if not name.startswith("PDE")}


def points(measure):
    return measure.points if isinstance(measure, mf.Cloud) else measure


@pytest.mark.parametrize("name", RUNGS)
def test_every_rung_ends_at_the_horizon(name):
    model, method = RUNGS[name]
    run = mf.solve(model, method, horizon=1.0, save_at=5, rng=0)
    assert run.status == "completed"
    assert run.meta["t"] == run.t[-1] == 1.0


@pytest.mark.parametrize("name", LATTICE)
def test_save_points_are_the_nearest_steps_each_once_and_the_message_says_so(name):
    model, method = LATTICE[name]
    run = mf.solve(model, method, horizon=1.0, save_at=[0.0, 0.25, 0.5, 0.75, 0.95, 1.0], rng=0)
    assert run.t == pytest.approx([0.0, 0.3, 0.6, 0.9, 1.0], rel=1e-12)
    assert (
        "reached t = 1 by a last step of 0.1; the 6 save points fall on 5 steps, at most 0.15 away"
        in run.message
    )


@pytest.mark.parametrize("name", LATTICE)
def test_the_shortened_step_changes_no_earlier_bit(name):
    model, method = LATTICE[name]
    short = mf.solve(model, method, horizon=1.0, save_at=[0.3, 0.9], keep="all", rng=0)
    long = mf.solve(model, method, horizon=3.0, save_at=[0.3, 0.9], keep="all", rng=0)
    for t in (0.3, 0.9):
        assert np.array_equal(points(short.kept[t]), points(long.kept[t]))


def test_the_shortened_step_is_a_step_of_that_length():
    whole = mf.solve(MODEL, mf.GD(10, 0.3), horizon=0.9, rng=0)
    run = mf.solve(MODEL, mf.GD(10, 0.3), horizon=1.0, rng=0)
    by_hand = whole.final - 0.1 * mf.grad_psi(MODEL, whole.final, whole.final)
    assert np.abs(run.final - by_hand).max() < 1e-14  # t = 1 − 3·0.3 to rounding


def test_the_last_step_of_sgd_is_that_of_a_schedule_with_this_last_step():
    sizes = lambda s: np.where(np.isclose(s, 0.9), 1 / 3, 1.0)  # noqa: E731
    run = mf.solve(MODEL, mf.SGD(10, 0.3), horizon=1.0, rng=0)
    other = mf.solve(MODEL, mf.SGD(10, 0.3, schedule=sizes), horizon=1.0, rng=0)
    assert np.abs(run.final - other.final).max() < 1e-14  # 0.3/3 is 1 − 0.9 to rounding


@pytest.mark.parametrize("horizon", [0.35, 0.59, 0.7, 0.85, 1.0, 1.15])
@pytest.mark.parametrize(
    "method", [mf.Atoms(32, method="heun", step=0.3), mf.JKO(tau=0.3, count=20)], ids=repr
)
def test_rungs_that_state_an_error_do_so_after_a_shortened_step(method, horizon):
    run = mf.solve(MODEL, method, horizon=horizon, save_at=[horizon])
    fine = mf.solve(MODEL, mf.Atoms(), horizon=horizon, save_at=[horizon])
    # An estimate: of two movements of which one is six times the other it is 1.6 times too small.
    factor = 2 if isinstance(method, mf.JKO) else 1
    assert abs(run.risk[0] - fine.risk[0]) <= factor * run.error[0] < 0.1


def test_a_schedule_ends_at_the_horizon_too():
    method = mf.SGD(10, 0.1, schedule=lambda s: (s + 0.1) ** -0.25)
    run = mf.solve(MODEL, method, horizon=1.0, save_at=[0.5, 1.0], rng=0)
    assert run.t[-1] == 1.0
    assert abs(run.t[0] - 0.5) < 0.1
    long = mf.solve(MODEL, method, horizon=2.0, save_at=[0.5, 2.0], rng=0)
    assert (run.t[0], run.risk[0]) == (long.t[0], long.risk[0])


def test_a_horizon_of_whole_steps_up_to_rounding_has_no_shortened_one():
    for steps in (3, 7, 10, 1000, 10_000):
        run = mf.solve(MODEL, mf.SGD(2, 0.1), horizon=0.1 * steps, save_at=[], rng=0)
        assert run.meta["steps"] == steps
        assert "last step" not in run.message


@pytest.mark.parametrize("name", ["SGD", "Particles, heun", "Atoms", "JKO", "Nonlinear"])
def test_a_run_is_resumed_over_the_shortened_step_and_to_a_later_horizon(name, tmp_path):
    model, method = RUNGS[name]
    once = mf.solve(model, method, horizon=1.0, save_at=4, rng=0)
    later = mf.solve(model, method, horizon=1.7, save_at=[*once.t[:3], 1.7], rng=0)
    for horizon, whole in ((None, once), (1.7, later)):
        file = tmp_path / f"{horizon}.npz"
        mf.solve(model, method, horizon=1.0, save_at=4, rng=0, checkpoint=file, max_seconds=0)
        run = mf.resume(file, horizon=horizon, save_at=None if horizon is None else [1.7])
        assert np.array_equal(points(run.final), points(whole.final))


def test_all_times_asked_for_are_kept_though_they_fall_on_one_step():
    run = mf.solve(MODEL, mf.GD(10, 0.3), horizon=0.9, save_at=[0.25, 0.35, 0.9], keep="all", rng=0)
    assert list(run.kept) == [0.25, 0.35, 0.9]
    assert np.array_equal(run.kept[0.25], run.kept[0.35])
