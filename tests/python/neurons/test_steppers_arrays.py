"""The caller's array stays where it is while a stepper is there to write in it."""

import copy
import pickle
import warnings

import mfcore as mf
import numpy as np
import pytest
from problems import shift

NETWORK = mf.Network(mf.activations.tanh)
SHIFT = shift()
STEPPERS = {
    "SGD": lambda: mf.steppers.SGD(NETWORK, np.full((4, 3), 0.5)),
    "Flow": lambda: mf.steppers.Flow(
        mf.Model(mf.data.Linear([1.0, 2.0, 0.0]), NETWORK), np.full((4, 3), 0.5)
    ),
    "FiniteVolume1D": lambda: mf.steppers.FiniteVolume1D(SHIFT, np.linspace(0, 1, 13), np.full(12, 1 / 12)),
}


def array_of(stepper):
    return stepper.mass if hasattr(stepper, "mass") else stepper.theta


@pytest.mark.parametrize("name", STEPPERS)
def test_it_cannot_be_resized(name):
    """A half of a step would go on in memory that is no longer the array's, and end the process."""
    stepper = STEPPERS[name]()
    array = array_of(stepper)
    if name == "SGD":
        stepper.forward(np.ones((2, 3)))
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize((2, 3), refcheck=False)
    if name == "SGD":
        stepper.backward(np.ones(2), 0.1)
    assert array.size == 12


@pytest.mark.parametrize("name", ["SGD", "Flow"])
def test_copies_hold_arrays_of_their_own(name):
    stepper = STEPPERS[name]()
    for other in (pickle.loads(pickle.dumps(stepper)), copy.deepcopy(stepper)):
        assert other.theta is not stepper.theta
        with pytest.raises(ValueError, match="cannot resize"):
            other.theta.resize((2, 3), refcheck=False)


def test_it_may_be_resized_when_the_stepper_is_gone():
    stepper = STEPPERS["SGD"]()
    theta = stepper.theta
    del stepper
    theta.resize((2, 3), refcheck=False)
    assert theta.shape == (2, 3)


def test_another_shape_of_the_same_memory_is_an_error_in_words():
    stepper = STEPPERS["SGD"]()
    with warnings.catch_warnings():  # of NumPy, which advises against it from 2.5 on
        warnings.simplefilter("ignore")
        stepper.theta.shape = (6, 2)
    with pytest.raises(ValueError, match="theta"):
        stepper.step(np.ones(3), 1.0, 0.1)


def test_the_memory_of_a_dataset_and_of_an_array_seen_through_a_view_cannot_be_resized():
    """Both are used without a copy."""
    X, y, theta = np.ones((6, 3)), np.ones(6), np.full((8, 3), 0.5)
    law = mf.data.Dataset(X, y)
    stepper = mf.steppers.SGD(NETWORK, theta[:4])
    for array in (X, y, theta):
        with pytest.raises(ValueError, match="cannot resize"):
            array.resize(2, refcheck=False)
    assert law.target_power() == 1
    stepper.step(np.ones(3), 1.0, 0.1)
