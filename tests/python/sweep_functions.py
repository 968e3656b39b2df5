"""Functions that other processes call in the tests of sweeps."""

import os

import mfcore as mf
import numpy as np


def final_risk(neurons, delta, rng):
    model = mf.Model(
        mf.data.IsotropicGaussians(4, delta), mf.Network(mf.activations.relu), mf.init.Radial(1.0)
    )
    return mf.solve(model, mf.SGD(neurons, step=0.05), horizon=0.2, rng=rng, threads=1).risk[-1]


def fails_at_two(x):
    if x == 2:
        raise RuntimeError("two is not allowed")
    return {"double": 2.0 * x, "powers": np.arange(x) * 1.0}


def dies_once(x, marker):
    if x == 1 and not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(9)
    return x


def dies(x):
    if x == 1:
        os._exit(9)
    return x
