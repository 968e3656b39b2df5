"""Kernels called from threads with a stack of 128 kB, which is what musl and some hosts give."""

import subprocess
import sys

# In a process of its own: what takes too much of the stack ends it.
PROGRAM = """
import threading
import warnings

import mfcore as mf
import numpy as np
import scipy.integrate, scipy.linalg, scipy.special  # imports are not ours, and take more

warnings.simplefilter("ignore")
d, failed = 10, []
law, mixed = mf.data.IsotropicGaussians(d, 0.5), mf.data.MultiIndex(d, [0.0, 1.0, 0.5], 1)
data = mf.data.Dataset(*law.draw(300, rng=0))
activations = mf.activations
SIGMAS = [activations.relu, activations.tanh, activations.polynomial([0.1, 0.5, 0.2])]
X = law.draw(300, rng=1)[0]
SMALL = {"horizon": 0.05, "save_at": [0.05], "rng": 0, "threads": 2}


def kernels():
    for sigma in SIGMAS:
        network = mf.Network(sigma, output="trained", bias="trained")
        theta = np.random.default_rng(0).normal(size=(200, d + 2))
        teacher = mf.data.Teacher(mf.Network(activations.relu), np.eye(d)[:2])
        for of in (law, mixed, data, teacher):
            model = mf.Model(of, network, mf.init.Gaussian(0.5), ridge=0.1)
            yield lambda: mf.grad_psi(model, theta, theta[:40])
            yield lambda: mf.risk(model, theta[:40])
            yield lambda: mf.U(model, theta[:40])
            yield lambda: mf.V(model, theta)
            yield lambda: mf.estimate(model, theta, samples=200, gradient=True, rng=0)
        yield lambda: mf.predict(model, theta, X)
        yield lambda: mf.theory.tangent_kernel(model, X, measure=theta)
        noisy = model.replace(temperature=0.1)
        for batch in (1, 4, 70):
            for precision in ("float64", "float32"):
                for of in (model, noisy):
                    yield lambda: mf.solve(of, mf.SGD(300, 0.01, batch, precision=precision), **SMALL)
        yield lambda: mf.solve(model, mf.Particles(20), **SMALL)
        yield lambda: mf.solve(noisy, mf.GD(20, 0.01), **SMALL)
        stepper = mf.steppers.SGD(network, theta.copy())
        yield lambda: stepper.run(X, np.ones(300), 1e-3)
        yield lambda: stepper.step(np.tile(X, (20, 1)), np.ones(6000), 1e-3)
        yield lambda: stepper.backward(-stepper.forward(X), 1e-3)
        plain = mf.Model(law, mf.Network(sigma), mf.init.Radial(0.5), ridge=0.1)
        yield lambda: plain.reduce()
        for method in (mf.PDE(cells=40), mf.Atoms(40), mf.JKO(0.05), mf.Nonlinear(20)):
            yield lambda: mf.solve(plain, method, **SMALL)
        yield lambda: mf.solve(plain.replace(temperature=0.1), mf.PDE(cells=40), **SMALL)
        edges, mass = np.linspace(0, 3, 41), np.full(40, 1 / 40)
        yield lambda: mf.steppers.FiniteVolume1D(plain, edges, mass).step(1e-6)
    yield lambda: mf.solve(mf.Model(data, network, mf.init.Gaussian(0.5)), mf.Linearized(20), **SMALL)
    yield lambda: mf.solve(mf.Model(law, network, mf.init.Gaussian(0.5)), mf.LayerWise(20, 0.01), **SMALL)
    relu = mf.Model(law, mf.Network(activations.relu), mf.init.Radial(0.5), ridge=0.1)
    yield lambda: mf.optimum(relu)


def caught(call):
    try:
        call()
    except Exception as error:
        failed.append(error)


threading.stack_size(131072)
for call in kernels():
    thread = threading.Thread(target=caught, args=(call,))
    thread.start()
    thread.join()
assert not failed, failed
"""


def test_every_kernel_runs_on_128_kilobytes():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
