"""Run by mpiexec from test_split_mpi.py: one task on every rank, rank 0 prints what the test compares."""

import os
import signal
import sys

import mfcore as mf
from mpi4py import MPI

COMM = MPI.COMM_WORLD
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=10, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
    temperature=0.01,
)
OPTIONS = {"horizon": 1.0, "save_at": 3, "rng": 0, "threads": 1}


def method(comm=COMM):
    return mf.SGD(51, 0.1, batch=16, coupled=True, comm=comm)


def on_the_last(act):
    """An observer that acts at t = 0.5, on the last rank alone."""
    calls = []

    def observer(_):
        calls.append(0)
        if len(calls) == 2 and COMM.Get_rank() == COMM.Get_size() - 1:
            act()
        return 0.0

    return {"act": observer}


def saved(folder):
    run = mf.gather(mf.solve(MODEL, method(), **OPTIONS), COMM)
    if run is not None:
        run.save(f"{folder}/run.npz")


def stopped(folder):
    interrupt = on_the_last(lambda: os.kill(os.getpid(), signal.SIGINT))
    file = f"{folder}/state.npz"
    run = mf.solve(MODEL, method(), observe=interrupt, checkpoint=file, **OPTIONS)
    statuses = COMM.gather((run.status, run.meta["t"]))
    if statuses:
        print(set(statuses))


def resumed(folder):
    run = mf.resume(f"{folder}/state.npz", method=method(), observe={"act": lambda _: 0.0})
    run = mf.gather(run, COMM)
    if run is not None:
        run.save(f"{folder}/run.npz")


def failed(_):
    mf.solve(MODEL, method(), observe=on_the_last(lambda: 1 / 0), **OPTIONS)


def killed(_):
    mf.solve(MODEL, method(), observe=on_the_last(lambda: os.kill(os.getpid(), signal.SIGKILL)), **OPTIONS)


if __name__ == "__main__":
    {task.__name__: task for task in (saved, stopped, resumed, failed, killed)}[sys.argv[1]](sys.argv[2])
