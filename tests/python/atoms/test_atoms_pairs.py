"""`mf.Atoms` on closed potentials of pairs: teachers, and links along a few directions."""

import math

import mfcore as mf
import numpy as np
import pytest

INIT = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
STUDENT = mf.Network(mf.activations.relu, output="trained")


def teacher(d, k=3):
    return mf.Model(mf.data.Teacher(mf.Network(mf.activations.relu), 3 * np.eye(k, d)), STUDENT, INIT)


def test_atoms_of_a_teacher_are_the_limit_of_networks():
    model = teacher(8, 2)
    times = [0.0, 0.5, 1.0]
    limit = mf.solve(model, mf.Atoms(256), horizon=1.0, save_at=times, rng=0)
    runs = [mf.solve(model, mf.Particles(400), horizon=1.0, save_at=times, rng=seed) for seed in range(6)]
    risks = np.stack([run.risk for run in runs])
    mean, error = risks.mean(axis=0), risks.std(axis=0, ddof=1) / math.sqrt(6)
    # Networks lie about 1/N above the limit: a hundredth of the first risk is allowed for that. Then 6
    # standard errors of six runs: odds of a false alarm 2e-3 for each time (t with 5 degrees of freedom).
    offset = limit.risk[0] / 100
    assert (np.abs(mean - limit.risk) < 6 * error + offset + limit.error).all()
    assert limit.risk[-1] < 0.5 * limit.risk[0]


def test_what_is_conserved_stays():
    model = teacher(8)
    run = mf.solve(model, mf.Atoms(64), horizon=2.0, save_at=[0.0, 2.0], keep="all")
    first, last = (cloud.points for cloud in run.kept.values())
    # |a|² − |w|² changes by the error of steps, and by δ² ~ 1e-5 of rows that come to rest.
    change = [z[:, 0] ** 2 - np.square(z[:, 1:]).sum(axis=1) for z in (first, last)]
    assert np.abs(change[1] - change[0]).max() < 1e-4


def test_a_ReLU_flow_along_one_direction_ends():
    law = mf.data.MultiIndex(math.inf, lambda z: 2 * np.cos(z[:, 0]), directions=1)
    run = mf.solve(mf.Model(law, STUDENT, INIT), mf.Atoms(32), horizon=10.0)
    assert run.status == "completed"
    # E y² − (E y)² − (E y h_2)² is what even functions that ReLU neurons with s = 0 make cannot reach.
    assert run.error[-1] < 0.01 * run.risk[-1]
    assert run.risk[-1] == pytest.approx(0.79915, abs=1e-3)


def test_the_number_of_threads_changes_no_bit():
    runs = [mf.solve(teacher(6), mf.Atoms(48), horizon=0.5, rng=0, threads=threads) for threads in (1, 3)]
    assert np.array_equal(runs[0].final.points, runs[1].final.points)
    assert np.array_equal(runs[0].risk, runs[1].risk)


@pytest.mark.parametrize("d", [3, 4, 5, 8])
def test_every_number_of_dimensions_across_runs(d):
    model = teacher(d)
    run = mf.solve(model, mf.Atoms(32), horizon=0.5, save_at=[0.0, 0.5])
    assert run.status == "completed"
    # What the rung says is the risk of its measure; two sums of the same numbers.
    assert run.risk[-1] == pytest.approx(mf.risk(model.reduce(), run.final), rel=1e-12)
    assert run.risk[-1] < run.risk[0]


def test_a_single_atom_moves_along_the_gradient():
    model = teacher(6)
    start = mf.Cloud([[1.0, 0.3, 0.2, 0.1, 0.8]])
    reduced = model.reduce()
    run = mf.solve(reduced, mf.Atoms(start=start), horizon=1e-5, save_at=[0.0, 1e-5])
    moved = (run.final.points - start.points) / 1e-5
    # Second order in t.
    np.testing.assert_allclose(moved, -reduced.grad_psi(start.points, start.points, np.ones(1)), atol=1e-3)


def test_a_teacher_stays_where_it_is():
    model = teacher(6)
    theta = np.array([[1.0, 3.0, 0, 0, 0], [1.0, 0, 3.0, 0, 0], [1.0, 0, 0, 3.0, 0]])
    run = mf.solve(model.reduce(), mf.Atoms(start=mf.Cloud(theta)), horizon=10.0)
    np.testing.assert_allclose(run.final.points, theta, rtol=0, atol=1e-12)
    assert run.risk.max() < 1e-13


def test_with_noise_the_error_is_that_of_draws():
    model = teacher(6).replace(temperature=1e-3)
    run = mf.solve(model, mf.Atoms(100, method="heun", step=0.05), horizon=0.5, rng=0)
    assert run.status == "completed"
    assert 0 < run.error[-1] < run.risk[-1]
