"""A split network under Open MPI: the gate `mpi` of .ci/run runs this, other gates where MPI is installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mfcore as mf
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("mpiexec") is None or importlib.util.find_spec("mpi4py") is None,
    reason="MPI is not installed here: Debian's openmpi-bin and libopenmpi-dev, and mfcore[mpi]",
)

PROGRAM = Path(__file__).with_name("mpi_program.py")
SECONDS = 300  # after which ranks that wait for each other are an error; a start takes 2 s on a free machine


def on_ranks(size, task, folder):
    """Output and exit code of a task on so many processes."""
    command = ["mpiexec", "-n", str(size), "--oversubscribe", "--allow-run-as-root"]
    command += [sys.executable, str(PROGRAM), task, str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    return done.stdout + done.stderr, done.returncode


@pytest.fixture(scope="module")
def whole():
    """The run of the program on one process, without MPI."""
    model = mf.Model(
        mf.data.IsotropicGaussians(d=10, delta=0.5),
        mf.Network(mf.activations.relu),
        mf.init.Radial(0.5),
        temperature=0.01,
    )
    method = mf.SGD(51, 0.1, batch=16, coupled=True)
    return mf.solve(model, method, horizon=1.0, save_at=3, rng=0, threads=1)


def same_as(whole, file):
    run = mf.load(file)
    # Sums of 51 numbers of size one in another order, over ten steps.
    np.testing.assert_allclose(run.final, whole.final, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.risk, whole.risk, rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_network_on_many_processes_moves_as_one(tmp_path, whole, size):
    output, code = on_ranks(size, "saved", tmp_path)
    assert code == 0, output
    same_as(whole, tmp_path / "run.npz")


def test_ctrl_c_on_one_process_ends_all_and_another_number_goes_on(tmp_path, whole):
    output, code = on_ranks(2, "stopped", tmp_path)
    assert code == 0, output
    assert "{('interrupted', 0.5)}" in output
    output, code = on_ranks(4, "resumed", tmp_path)
    assert code == 0, output
    same_as(whole, tmp_path / "run.npz")


def test_a_process_that_fails_ends_all_in_words(tmp_path):
    output, code = on_ranks(2, "failed", tmp_path)
    assert code != 0
    words = "rank 1 of 2 has failed, and so this one stops: ZeroDivisionError: division by zero"
    assert words in output


def test_a_process_that_is_killed_ends_all(tmp_path):
    output, code = on_ranks(2, "killed", tmp_path)
    assert code != 0, output
