"""Many runs: a sweep over two processes against one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mfcore as mf
import numpy as np

from .harness import Case

RUNS, STEPS, QUICK = 32, 1_000_000, 200  # steps of a run: a second, so that starting processes is little


def final_risk(neurons: int, delta: float, steps: int, rng: int, threads: int) -> float:
    """The risk that one network ends with."""
    law = mf.data.IsotropicGaussians(d=40, delta=delta)
    model = mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0))
    method = mf.SGD(neurons, step=1e-5)
    run = mf.solve(model, method, horizon=1e-5 * steps, save_at=2, rng=rng, threads=threads)
    return float(run.risk[-1])


def sweep(quick: bool) -> Iterator[Case]:
    """32 runs of one thread each; the processes are started within the time."""
    runs, steps = (2, QUICK) if quick else (RUNS, STEPS)
    grid = {"neurons": [400], "delta": np.linspace(0.2, 0.8, runs).tolist(), "steps": [steps]}

    def by(workers: int) -> Callable[[], np.ndarray]:
        return lambda: np.asarray(mf.sweep(final_risk, grid, workers=workers)["value"])

    yield Case(
        f"sweep of {runs} runs of SGD, N=400, d=40, on two processes",
        {"mfcore": by(2), "one process": by(1)},
        tolerance=0.0,  # the same numbers whoever computes them
        bars={"one process": 1.8},
        long=True,
    )


CASES = [sweep]
