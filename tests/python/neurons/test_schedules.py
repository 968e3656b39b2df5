"""A schedule is a function of arrays or of one number, and need not have values after the end of a run."""

import math

import mfcore as mf
import numpy as np
import pytest
from small_runs import MODEL, same

from .ranks import on_ranks

RUN = {"horizon": 2.0, "save_at": 5, "rng": 0}
KNOTS, SIZES = [0.5, 1.0, math.inf], [1.0, 0.5, 0.2]

PAIRS = {  # of arrays, of one number
    "a jump": (lambda t: np.where(t < 1, 1.0, 0.1), lambda t: 1.0 if t < 1 else 0.1),
    "a maximum": (lambda t: np.maximum(1 - t, 0.2), lambda t: max(1 - t, 0.2)),
    "math": (lambda t: np.sqrt(1 + t), lambda t: math.sqrt(1 + t)),
    "a list": (
        lambda t: np.array(SIZES)[np.searchsorted(KNOTS, t, side="right")],
        lambda t: next(size for knot, size in zip(KNOTS, SIZES, strict=True) if t < knot),
    ),
}


def solved(schedule, **options):
    return mf.solve(MODEL, mf.SGD(20, 0.01, schedule=schedule, **options), **RUN)


@pytest.mark.parametrize(("arrays", "number"), PAIRS.values(), ids=PAIRS)
def test_a_function_of_one_number_gives_the_bits_of_one_of_arrays(arrays, number):
    one, other = solved(arrays), solved(number)
    assert same(one, other)
    assert one.meta["steps"] == other.meta["steps"]


def test_a_constant_is_a_schedule():
    assert same(solved(lambda t: 0.5), solved(lambda t: np.full(np.shape(t), 0.5)))


def test_a_split_network_takes_functions_of_one_number():
    schedule = PAIRS["a jump"][1]

    def task(comm):
        return mf.solve(MODEL, mf.SGD(20, 0.1, batch=4, schedule=schedule, comm=comm), **RUN)

    runs = on_ranks(2, task)
    whole = mf.solve(MODEL, mf.SGD(20, 0.1, batch=4, schedule=schedule), **RUN)
    assert np.array_equal(runs[0].t, whole.t)
    np.testing.assert_allclose(runs[0].risk, whole.risk, rtol=0, atol=1e-12)  # sums in another order


@pytest.mark.parametrize(
    "schedule",
    [
        lambda t: 1 - t,
        lambda t: 1 - t if t < 1 else None,
        lambda t: math.sqrt(1 - t),
        lambda t: [1.0][int(t)],
    ],
    ids=["of arrays", "none later", "no root later", "a short list"],
)
def test_a_schedule_need_not_have_values_after_the_last_step(schedule):
    run = mf.solve(MODEL, mf.SGD(20, 0.01, schedule=schedule), steps=100, rng=0)
    assert (run.status, run.meta["steps"]) == ("completed", 100)
    again = mf.solve(MODEL, mf.SGD(20, 0.01, schedule=schedule), horizon=run.meta["t"], rng=0)
    assert same(run, again)


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        (lambda t: 1.0 if t < 0.05 else 0.0, ValueError, r"finite and > 0, got 0 at k·step = 0.05"),
        (
            lambda t: 1.0 if t < 0.05 else None,
            ValueError,
            r"must return one number, got None at 0.05",
        ),
        (lambda t: 1 / (0.05 - t) if t > 0.045 else 1.0, ZeroDivisionError, "division by zero"),
        (lambda t: math.nan, ValueError, r"finite and > 0, got nan at k·step = 0"),
    ],
)
def test_a_schedule_that_fails_before_the_end_is_refused_with_the_time(schedule, error, message):
    with pytest.raises(error, match=message):
        solved(schedule)


def test_steps_and_times_agree_over_many_chunks_of_steps():
    """Times are summed over 65536 steps at a time; a function of arrays and one of numbers end alike."""
    method = mf.SGD(2, 1e-5, schedule=lambda t: 0.5 + t)
    run = mf.solve(MODEL, method, steps=150_000, save_at=[], risk=False, rng=0)
    assert run.meta["steps"] == 150_000
    numbers = mf.SGD(2, 1e-5, schedule=lambda t: 0.5 + max(t, 0.0))
    assert numbers.time_after(150_000) == method.time_after(150_000)


@pytest.mark.parametrize("steps", [-1, 2.5, "many", 2**60])
def test_a_number_of_steps_that_is_none_is_refused_by_name(steps):
    with pytest.raises((TypeError, ValueError), match="steps"):
        mf.SGD(2, 0.1).time_after(steps)
