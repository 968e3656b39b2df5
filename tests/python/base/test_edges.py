"""Arguments near the largest and smallest floats are refused with a message that names the argument."""

import mfcore as mf
import numpy as np
import pytest

NET = mf.Network(mf.activations.relu)
LAW = mf.data.IsotropicGaussians(3, 0.5)
MODEL = mf.Model(LAW, NET, mf.init.Radial(0.5))
PLANE = mf.Model(mf.data.MultiIndex(4, [0.0, 1.0], 1), NET, mf.init.Radial(0.5))

REFUSED = {
    "noise of MultiIndex": lambda: mf.data.MultiIndex(3, [0.0, 1.0], 1, noise=1e200).target_power(),
    "noise of Linear": lambda: mf.data.Linear([1.0], noise=1e200).target_power(),
    "noise of ito": lambda: mf.conventions.ito(1e200),
    "w": lambda: mf.data.Linear([1e200, 1.0]).target_power(),
    "link": lambda: mf.data.MultiIndex(3, [0.0, 1e200], 1).target_power(),
    "y": lambda: mf.data.Dataset([[1.0]], [1e200]).target_power(),
    "y of no numbers": lambda: mf.data.Dataset([[1.0]], np.empty((3, 0), dtype=object)),
    "first": lambda: LAW.draw(2, first=2**63),
    "n": lambda: LAW.draw(10**30),
    "d": lambda: mf.data.IsotropicGaussians(10**30, 0.5),
    "steps": lambda: _stepper().run(1e-3, 2**63),
    "network": lambda: mf.init.Gaussian(1.0).sample(3.0, 2, 2),
    "rng": lambda: MODEL.reduce().initial.sample(3, rng=0.5),
    "coordinates": lambda: mf.ReducedModel(coordinates=None, weights=[1.0], targets=[0.0], features=abs),
    "edges": lambda: mf.steppers.FiniteVolume2D(PLANE, [0.0, 1.0, 2.0], np.full(2, 0.5)),
    "config of data": lambda: mf.data.from_config(3.0),
    "config of activations": lambda: mf.activations.from_config([[1]]),
    "ladders": lambda: mf.theory.rates_in_dimension(3.0),
    "z": lambda: MODEL.reduce().features([1, [2]]),
}


def _stepper():
    return mf.steppers.FiniteVolume1D(MODEL, np.linspace(0, 2, 9), np.full(8, 1 / 8))


@pytest.mark.parametrize("name", REFUSED)
def test_misuse_is_refused_in_words_that_begin_with_the_argument(name):
    with pytest.raises((ValueError, TypeError), match=f"^{name.split()[0]} must "):
        REFUSED[name]()
