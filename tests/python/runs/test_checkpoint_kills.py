"""Runs that are killed at random times and go on from their checkpoints: the same bits."""

import os
import subprocess
import sys
import time

import mfcore as mf
import numpy as np
import pytest

METHODS = {
    "SGD": (mf.SGD(neurons=100, step=1e-5), 0.5),
    "Particles": (mf.Particles(neurons=400), 30.0),
    "PDE": (mf.PDE(200), 30.0),
    "Atoms": (mf.Atoms(300), 30.0),
}
RUN = """
import sys
import mfcore as mf
import test_checkpoint_kills
from mfcore.runs import _checkpoint
_checkpoint.SECONDS, _checkpoint.SHARE = 0.01, 0.0
"""
SOLVE = "mf.solve(**test_checkpoint_kills.killed(sys.argv[1]), checkpoint=sys.argv[2])"
RESUME = "mf.resume(sys.argv[2])"


def killed(name):
    """The arguments of a run that takes about a second."""
    method, horizon = METHODS[name]
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=20, delta=0.5),
        network=mf.Network(mf.activations.relu),
        init=mf.init.Radial(0.5),
    )
    return {"model": model, "method": method, "horizon": horizon, "save_at": 200, "rng": 0, "threads": 1}


def equal(value, other):
    return np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other


def inode(path):
    """Which file is there: every checkpoint is a new one."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("name", METHODS)
def test_a_run_killed_again_and_again_ends_with_the_same_bits(tmp_path, name):
    path, kills = tmp_path / "run", 0
    rng = np.random.default_rng(1)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    for last in (SOLVE, RESUME):
        before = inode(path)
        command = [sys.executable, "-c", RUN + last, name, path]
        with subprocess.Popen(command, env=environment) as process:
            while process.poll() is None and inode(path) == before:
                time.sleep(0.001)
            try:
                process.wait(rng.uniform(0.0, 0.15))
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
        if not path.exists():  # it was quicker than we
            break
    assert kills > 0
    whole = mf.solve(**killed(name))
    if path.exists():
        run = mf.resume(path)
        assert run.status == whole.status
        for field in ("t", "risk", "error", "final"):
            assert equal(getattr(run, field), getattr(whole, field))
        assert all(np.array_equal(run.observed[key], values) for key, values in whole.observed.items())
    assert not list(tmp_path.iterdir())
