"""Threads that share a stepper: no step is lost."""

import copy
import pickle
import signal
import threading

import mfcore as mf
import numpy as np
import pytest
from problems import shift

THREADS, STEPS = 4, 200

# Linear in the state and the same step each time: the order of the steps does not matter, their number does.
SHIFT = shift()
MODEL = mf.Model(mf.data.Linear([1.0, -1.0]), mf.Network(mf.activations.linear))


def grid():
    mass = np.zeros(400)
    mass[100:110] = 0.1
    return mf.steppers.FiniteVolume1D(SHIFT, np.linspace(0, 2, 401), mass, threads=1)


def sgd():
    theta = np.random.default_rng(0).normal(size=(64, 2))
    return mf.steppers.SGD(mf.Network(mf.activations.linear), theta, temperature=0.1, rng=0, threads=1)


def flow():
    return mf.steppers.Flow(MODEL, np.random.default_rng(0).normal(size=(64, 2)), threads=1)


STEP = {
    grid: lambda s: s.run(1e-4, 20),
    sgd: lambda s: s.step([1.0, 2.0], 1.0, 1e-3),
    flow: lambda s: s.step(1e-3),
}


def state_of(stepper):
    array = stepper.mass if hasattr(stepper, "mass") else stepper.theta
    return array.tobytes(), getattr(stepper, "steps", getattr(stepper, "t", None))


@pytest.mark.parametrize("make", STEP, ids=lambda make: make.__name__)
def test_steps_of_four_threads_are_all_done(make):
    alone, shared = make(), make()
    for _ in range(THREADS * STEPS):
        STEP[make](alone)
    barrier = threading.Barrier(THREADS)

    def work():
        barrier.wait()
        for _ in range(STEPS):
            STEP[make](shared)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state_of(shared) == state_of(alone)


def test_a_step_inside_a_step_is_refused():
    stepper, refused = grid(), []

    def handler(*_):
        try:
            stepper.step(1e-4)
        except RuntimeError as error:
            refused.append(str(error))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            stepper.run(1e-9, 10**9)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert refused == ["a stepper must not be used inside its own step, as by a signal handler"]


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_of_a_stepper_have_locks_of_their_own(twin):
    stepper = sgd()
    other = twin(stepper)
    with stepper._turn:
        other.step([1.0, 2.0], 1.0, 1e-3)
    assert other.steps == 1
