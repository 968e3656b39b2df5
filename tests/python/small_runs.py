"""A small run that tests of checkpoints stop, resume and compare."""

import mfcore as mf
import numpy as np

METHOD = mf.SGD(neurons=20, step=0.01)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained"),
    init=mf.init.Gaussian(std=0.5),
)
OPTIONS = {"horizon": 1.0, "save_at": 5, "rng": 0}


def same(run, other):
    names = ("t", "risk", "error", "final")
    return all(np.array_equal(getattr(run, name), getattr(other, name)) for name in names)


def stopped(path, model=MODEL, method=METHOD, **options):
    """A run that is stopped at once, and leaves its checkpoint."""
    run = mf.solve(model, method, **{**OPTIONS, **options}, checkpoint=path, max_seconds=0)
    assert run.status == "out of time"
    return run
