"""A night's sweep, killed, resumed and edited: after the edit the folder is refused with what has changed."""

import argparse
import multiprocessing
import tempfile
from functools import partial
from pathlib import Path

import mfcore as mf

D = 20


def run(neurons: int, seed: int, horizon: float) -> mf.Trajectory:
    """One case: a network that tells two Gaussians of different variances apart."""
    model = mf.Model(mf.data.IsotropicGaussians(D, 0.8), mf.Network(mf.activations.relu), mf.init.Radial(0.3))
    return mf.solve(model, mf.SGD(neurons, step=0.005), horizon=horizon, save_at=41, rng=seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--picture", default="night_sweep.png")
    options = parser.parse_args()
    night, folder = partial(run, horizon=2.0 if options.small else 20.0), Path(tempfile.mkdtemp())
    cases = {"neurons": [5, 20, 500], "seed": range(2 if options.small else 16)}
    context, alone = multiprocessing.get_context("spawn"), {"folder": folder, "workers": 1}
    killed = context.Process(target=mf.sweep, args=(night, cases), kwargs=alone)
    killed.start()
    while killed.is_alive() and not any(folder.glob("*.npz")):
        killed.join(0.01)
    killed.kill()
    print(f"killed: {int(mf.load(folder)['failed'].sum())} cases are left")
    mf.sweep(night, cases, folder=folder)
    D = 40
    try:
        mf.sweep(night, cases, folder=folder)
    except ValueError as refused:
        print(refused)
    mf.plots.risk(mf.load(folder)).savefig(options.picture)
