"""Kernels keep their scratch memory: pages are asked of the system once, not at every step or call."""

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
kinks = mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5]))
exact = mf.Model(mf.data.IsotropicGaussians(d=20, delta=0.5), kinks, mf.init.Gaussian(std=0.2))
w = theta[:, 1:].copy()
rule = mf.MonteCarlo(1000, rng=0)
flow = mf.steppers.Flow(model, theta.copy(), threads=1)
density = mf.Density(np.linspace(-6, 6, 2001), np.full(2000, 1 / 2000))
line = mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[0.0], ridge=1.0, temperature=0.5,
                       features=lambda z: np.zeros((len(z), 1)))

def gd(steps):
    mf.solve(model, mf.GD(300, step=0.01), horizon=0.01 * steps, rng=1, save_at=[0.0], threads=1)

CALLS = {
    "short_gd": lambda: mf.solve(model, mf.GD(300, step=0.01), horizon=0.02, rng=1, save_at=[0.0], threads=1),
    "flow_step": lambda: flow.step(1e-9),
    "flow_integrate": lambda: flow.integrate(1e-9),
    "flow_velocity": lambda: flow.velocity(),
    "grad_psi": lambda: mf.grad_psi(model, theta, theta, threads=1),
    "psi": lambda: mf.psi(model, theta, theta, threads=1),
    "risk": lambda: mf.risk(model, theta, threads=1),
    "V": lambda: mf.V(model, theta, threads=1),
    "U": lambda: mf.U(model, theta, threads=1),
    "estimate": lambda: mf.estimate(exact, w, samples=1000, rng=0, threads=1),
    "predict": lambda: mf.predict(model, theta, x, threads=1),
    "pull": lambda: mf.pull(network, theta, x, x[:, 0], threads=1),
    "tangent_kernel": lambda: mf.theory.tangent_kernel(model, x, measure=theta, threads=1),
    "exact_U": lambda: mf.U(exact, w, threads=1),
    "exact_grad_psi": lambda: mf.grad_psi(exact, w, w, threads=1),
    "draw": lambda: exact.data.draw(10_000, rng=0),
    "sample": lambda: exact.init.sample(kinks, 20, 10_000, rng=1),
    "pde": lambda: mf.solve(line, mf.PDE(start=density), horizon=1e-3, save_at=[], risk=False),
}

def repeated(calls):
    for _ in range(calls):
        CALLS["{work}"]()

def faults(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    {loop}(count)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults({few})
print(faults(11 * {few}) - faults({few}))
"""
CALLS = [line.split('"')[1] for line in SCRIPT.splitlines() if line.startswith('    "')]


def faults_of(loop: str, work: str, few: int) -> float:
    """Pages per step or call in a steady loop."""
    code = SCRIPT.replace("{loop}", loop).replace("{work}", work).replace("{few}", str(few))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) / (10 * few)


def test_a_step_takes_no_fresh_pages():
    # Activations and slopes of 300 neurons on 1000 samples are 4.8 MB: over 1000 pages a step where they are
    # allocated anew. What the system does with pages on its own is far below a tenth of that.
    assert faults_of("gd", "", 10) < 100


@pytest.mark.parametrize("work", CALLS)
def test_a_call_in_a_loop_takes_no_fresh_pages(work):
    # Results and scratch are 0.2 to 15 MB, 50 to 3700 pages. What Python itself allocates is a few; a whole
    # solution of a PDE on 2000 cells keeps some vectors of its own.
    assert faults_of("repeated", work, 5) < (100 if work == "pde" else 10)


# θ of 80 MB; activations of 32 samples and coefficients of 10,000 neurons are 5 MB, and threads have stacks.
COPIES = """
import resource
import numpy as np
import mfcore as mf

rng = np.random.default_rng(0)
theta = np.ones((10_000, 1000))
sgd = mf.steppers.SGD(mf.Network(mf.activations.relu), theta)
X, y = rng.standard_normal((100, 1000)), rng.standard_normal(100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sgd.run(X, y, 1e-3)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_run_on_the_caller_s_neurons_makes_no_copy_of_them():
    done = subprocess.run([sys.executable, "-c", COPIES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000  # kB
