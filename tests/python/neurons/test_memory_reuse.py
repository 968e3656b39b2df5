"""Kernels keep their scratch memory: pages are asked of the system once, not at every step."""

import subprocess
import sys

import pytest

# In a fresh process, where the C library has not yet learned to keep large blocks to itself.
SCRIPT = """
import resource
import numpy as np
import mfcore as mf

x = np.random.default_rng(0).standard_normal((1000, 20))
network = mf.Network(mf.activations.relu, bias="trained")
model = mf.Model(data=mf.data.Dataset(x, x[:, 0]), network=network, init=mf.init.Gaussian(std=0.2))
theta = model.init.sample(network, 20, 300, rng=1)

def gd(steps):
    mf.solve(model, mf.GD(300, step=0.01), horizon=0.01 * steps, rng=1, save_at=[0.0], threads=1)

def grad_psi(calls):
    for _ in range(calls):
        mf.grad_psi(model, theta, theta, threads=1)

def faults(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    {work}(count)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(10)
print(faults(110) - faults(10))
"""


@pytest.mark.parametrize("work", ["gd", "grad_psi"])
def test_a_step_takes_no_fresh_pages(work):
    code = SCRIPT.replace("{work}", work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Activations and slopes of 300 neurons on 1000 samples are 4.8 MB: over 1000 pages a step where they are
    # allocated anew. What the system does with pages on its own is far below a tenth of that.
    assert int(done.stdout) / 100 < 100
