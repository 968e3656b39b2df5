"""Attack: two thread runtimes in one process, ours beside that of numba, torch, scikit-learn, JAX or BLAS."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from .fuzz import child_environment
from .report import Report

LIMIT = 300.0
# What makes the other runtime start its threads.
OTHERS = {
    "torch": "import torch; torch.randn(500, 500) @ torch.randn(500, 500)",
    "numba": "import numba\n@numba.njit(parallel=True)\ndef f(n):\n s = 0.0\n for i in numba.prange(n):\n"
    "  s += i\n return s\nf(10**6)",
    "sklearn": "from sklearn.cluster import KMeans; import numpy; KMeans(3).fit(numpy.random.rand(2000, 4))",
    "jax": "import jax.numpy as jnp; (jnp.ones((500, 500)) @ jnp.ones((500, 500))).block_until_ready()",
    "numpy": "import numpy; numpy.random.rand(1500, 1500) @ numpy.random.rand(1500, 1500)",
    "threadpoolctl": "import threadpoolctl as t; t.threadpool_limits(1, user_api='openmp')",
}
_SCRIPT = """
import os, sys, hashlib
def other():
{body}
def ours():
    from tests.faults import threads
    return hashlib.sha256(b"".join(threads.bits_of(name) for name in threads.CALLS)).hexdigest()
parts = {order!r}
said = [ours() if part == "ours" else other() for part in parts]
if {fork!r}:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ours() in said else 1)
    assert os.waitpid(pid, 0)[1] == 0
print(*{{s for s in said if s}})
"""


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Every runtime that is installed, before, after and between; forks where the other bears them."""
    report, r, deadline = Report("runtimes"), Random(seed), time.monotonic() + seconds
    there = [name for name in OTHERS if importlib.util.find_spec(name)]
    alone = _run(report, "numpy", ["ours"], False, folder)
    while True:
        for name in there:
            order = r.choice([["ours", "other"], ["other", "ours"], ["ours", "other", "ours"]])
            found = _run(report, name, order, name != "jax", folder)
            if found is not None and found != alone:
                report.finding("silent", f"other bits beside {name}, in the order {order}")
            if time.monotonic() > deadline:
                return report


def _run(report: Report, name: str, order: list[str], fork: bool, folder: Path) -> str | None:
    body = "\n".join("    " + line for line in OTHERS[name].splitlines())
    script = _SCRIPT.format(body=body, order=order, fork=fork)
    report.calls += 1
    report.kills += 1
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            env=child_environment(),
            text=True,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        report.finding("lost", f"hang beside {name}, in the order {order}")
        return None
    report.outcomes[name] += 1
    if done.returncode:
        report.finding("lost", f"code {done.returncode} beside {name}, {order}: {done.stderr.strip()[-200:]}")
        return None
    return done.stdout.strip()
