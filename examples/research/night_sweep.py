"""A night's sweep, killed, resumed, edited and then refused; half a minute, seconds with --small."""

import argparse
import multiprocessing
import tempfile
from pathlib import Path

import mfcore as mf

D = 20


def run(neurons: int, seed: int, horizon: float) -> mf.Trajectory:
    """One case: a network that tells two Gaussians of different variances apart."""
    model = mf.Model(mf.data.IsotropicGaussians(D, 0.8), mf.Network(mf.activations.relu), mf.init.Radial(0.3))
    return mf.solve(model, mf.SGD(neurons, step=0.005), horizon=horizon, save_at=41, rng=seed)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--small", action="store_true")
    arguments.add_argument("--picture", metavar="PATH")
    given, folder = arguments.parse_args(), Path(tempfile.mkdtemp())
    seeds, horizon = (2, 2.0) if given.small else (16, 20.0)
    cases = {"neurons": [5, 20, 500], "seed": range(seeds), "horizon": [horizon]}
    alone = {"folder": folder, "workers": 1}
    killed = multiprocessing.get_context("spawn").Process(target=mf.sweep, args=(run, cases), kwargs=alone)
    killed.start()
    while killed.is_alive() and not any(folder.glob("*.npz")):
        killed.join(0.01)
    killed.kill()
    print(f"killed: {int(mf.load(folder)['failed'].sum())} cases are left")
    mf.sweep(run, cases, folder=folder)
    D = 40
    try:
        mf.sweep(run, cases, folder=folder)
    except ValueError as refused:
        print(refused)
    if given.picture:
        mf.plots.risk(mf.load(folder)).savefig(given.picture)
