"""A run is as long as its horizon, its steps or its epochs say."""

import mfcore as mf
import numpy as np
import pytest
from problems import isotropic
from small_runs import METHOD, MODEL, same

LIMIT = isotropic(d=6, activation=mf.activations.relu)
FINITE = MODEL.replace(data=mf.data.Dataset(*MODEL.data.draw(30, rng=1)))


@pytest.mark.parametrize(
    ("method", "step"),
    [
        (METHOD, 0.01),
        (mf.SGD(20, 0.01, replicas=2), 0.01),
        (mf.GD(20, 0.1), 0.1),
        (mf.Particles(20, method="rk4", step=0.3), 0.3),
        (mf.LayerWise(20, step=0.01), 0.01),
        (mf.JKO(0.05, count=15), 0.05),
        (mf.PDE(60, step=0.01), 0.01),
        (mf.Nonlinear(20, driver=mf.GD(40, 0.1)), 0.1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_run_of_so_many_steps_ends_at_so_many_times_the_step(method, step):
    model = MODEL if isinstance(method, mf.LayerWise) else LIMIT
    run = mf.solve(model, method, steps=7, rng=0)
    whole = mf.solve(model, method, horizon=7 * step, rng=0)
    assert run.t[-1] == pytest.approx(7 * step, rel=1e-15)
    assert np.array_equal(run.risk, whole.risk)
    assert run.meta.get("steps", 7) == 7


def test_steps_of_a_schedule_end_at_the_sum_of_their_sizes():
    method = mf.SGD(20, 0.01, schedule=lambda t: (1 + t) ** -0.5)
    run = mf.solve(MODEL, method, steps=50, rng=0)
    assert run.meta["steps"] == 50
    # The sum of 50 numbers in another order.
    assert run.meta["t"] == pytest.approx(sum(0.01 * (1 + 0.01 * k) ** -0.5 for k in range(50)), rel=1e-14)


@pytest.mark.parametrize(
    ("epochs", "batch", "steps"), [(1, 1, 30), (2, 7, 9), (0.5, 1, 15), (3, 10, 9), (1e-9, 1, 1)]
)
def test_an_epoch_is_a_pass_through_the_dataset(epochs, batch, steps):
    method = mf.SGD(20, 0.01, batch=batch)
    run = mf.solve(FINITE, method, epochs=epochs, rng=0)
    assert run.meta["steps"] == steps
    assert same(run, mf.solve(FINITE, method, steps=steps, rng=0))


def test_save_points_of_epochs_are_counted():
    run = mf.solve(FINITE, mf.SGD(20, 0.01, batch=10), epochs=4, save_at=5, rng=0)
    assert run.t == pytest.approx([0.0, 0.03, 0.06, 0.09, 0.12], rel=1e-15)


@pytest.mark.parametrize(
    ("model", "method", "length", "error", "message"),
    [
        (MODEL, METHOD, {}, TypeError, "solve needs one of horizon, steps and epochs, got none of them"),
        (MODEL, METHOD, {"horizon": 1.0, "steps": 3}, TypeError, "got horizon and steps"),
        (MODEL, METHOD, {"steps": 0}, ValueError, "steps must be >= 1, got 0"),
        (MODEL, METHOD, {"steps": 1.5}, ValueError, "steps must be an integer, got 1.5"),
        (
            MODEL,
            mf.Particles(20),
            {"steps": 3},
            ValueError,
            r"steps must be left out for a method that has no fixed step, got Particles\(.*give horizon=",
        ),
        (LIMIT, mf.Atoms(30), {"steps": 3}, ValueError, "steps must be left out"),
        (FINITE, METHOD, {"epochs": 0}, ValueError, "epochs must be > 0, got 0"),
        (MODEL, METHOD, {"epochs": 2}, ValueError, "epochs must be left out where samples are fresh"),
        (
            FINITE,
            mf.GD(20, 0.1),
            {"epochs": 2},
            ValueError,
            "must be left out for a method without batches",
        ),
    ],
)
def test_lengths_that_have_no_meaning_are_refused_in_words(model, method, length, error, message):
    with pytest.raises(error, match=message):
        mf.solve(model, method, **length, rng=0)
