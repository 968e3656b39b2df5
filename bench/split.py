"""One network on several processes of Open MPI: the CPU time of a rank beside that of the whole network.

CPU time, because it is what a rank costs whatever else the machine does. Ranks that wait for each other spin,
and on a crowded machine they wait for the other to get a core; so the bar is for the time beside exchanges.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import mfcore as mf
import numpy as np

N, QUICK, D, BATCH, STEPS = 1_000_000, 20_000, 20, 256, 6
BAR = 0.55  # of the CPU time of one rank beside its exchanges, for each of two
_START = "import importlib, sys; importlib.import_module(sys.argv[1]).rank(*map(int, sys.argv[2:]))"


@dataclass
class Cost:
    """CPU seconds of the cheapest step, on the busiest rank, beside exchanges and in them."""

    network: str
    seconds: float
    exchange: float
    test_risk: float


class Timed:
    """A communicator that adds up the CPU time of its exchanges."""

    def __init__(self, comm: Any) -> None:
        self._comm, self.seconds = comm, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def Allreduce(self, mine: np.ndarray, total: np.ndarray) -> None:
        before = time.process_time()
        self._comm.Allreduce(mine, total)
        self.seconds += time.process_time() - before


def main(quick: bool) -> list[Cost]:
    """Print the table; the rows."""
    if shutil.which("mpiexec") is None or importlib.util.find_spec("mpi4py") is None:
        print("not run: needs mpiexec and mfcore[mpi]")
        return []
    n = QUICK if quick else N
    whole = _measured(n, None)
    print(f"N={n}, d={D}, batch {BATCH}: CPU seconds of the cheapest step, busiest rank, one thread")
    print("| network | CPU s | in exchanges, waiting included | of one rank |\n|---|---|---|---|")
    rows = [Cost("one process, without comm", *whole)]
    for size in (1, 2):
        command = ["mpiexec", "-n", str(size), "--oversubscribe", "--allow-run-as-root", sys.executable]
        output = subprocess.run(
            [*command, "-c", _START, __name__, str(n)], check=True, capture_output=True, text=True
        ).stdout
        ranks = json.loads(output.splitlines()[-1])
        rows.append(Cost(f"{size} rank{'s'[: size - 1]}", *max(ranks)))
    for row in rows:
        share = row.seconds / rows[1].seconds
        print(f"| {row.network} | {row.seconds:.3g} | {row.exchange:.2g} | {share:.2f} |", flush=True)
    return rows


def good(rows: list[Cost], quick: bool) -> bool:
    """Whether results agree and, at full size, the bar is held."""
    if not rows:
        return True
    whole, one, two = rows
    agree = all(abs(row.test_risk - whole.test_risk) <= 1e-12 for row in (one, two))
    return agree and (quick or two.seconds <= BAR * one.seconds)


def rank(n: int) -> None:
    """What each process does: rank 0 prints the costs of all."""
    from mpi4py import MPI

    comm = Timed(MPI.COMM_WORLD)
    costs = comm.gather(_measured(n, comm))
    if costs is not None:
        print(json.dumps(costs))


def _measured(n: int, comm: Any) -> tuple[float, float, float]:
    """CPU seconds of the cheapest step beside exchanges and in them, and the risk on a few samples."""
    law = mf.data.IsotropicGaussians(d=D, delta=0.5)
    model = mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Radial(1.0))
    clocks = {
        "cpu": lambda _: time.process_time(),
        "exchange": lambda _: 0.0 if comm is None else comm.seconds,
    }
    warnings.simplefilter("ignore", UserWarning)  # tanh learns nothing of this law, and need not
    run = mf.solve(
        model,
        mf.SGD(n, 1 / STEPS, batch=BATCH, comm=comm),
        horizon=1.0,
        save_at=STEPS + 1,
        risk=False,
        observe=clocks,
        test=law.draw(16, rng=1),
        rng=0,
        threads=1,
    )
    spent, exchange = (np.diff(run.observed[name]) for name in ("cpu", "exchange"))
    beside = spent - exchange
    return float(beside.min()), float(exchange.min()), float(run.observed["test_risk"][-1])
