"""Instruction-set levels differ in the last digits only."""

import json

import numpy as np
from mfcore._core import _loader

SCRIPT = """
import json, mfcore as mf
model = mf.Model(
    data=mf.data.IsotropicGaussians(d=37, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained", bias="trained"),
    init=mf.init.Gaussian(std=0.2),
    ridge=0.1,
    temperature=0.01,
)
run = mf.solve(model, mf.SGD(neurons=53, step=1e-3), horizon=0.2, save_at=0, rng=0)
flow = mf.solve(
    model.replace(temperature=0.0),
    mf.Particles(neurons=53, method="rk4", step=0.05, expectation=mf.MonteCarlo(300, seed=1)),
    horizon=0.5, save_at=0, rng=0,
)
estimate = mf.estimate(model, run.final, samples=500, rng=0)
exact = mf.V(model, run.final)
print(json.dumps([x.tolist() for x in (run.final, flow.final, estimate.U, exact)]))
"""


def test_every_level_computes_the_same_to_rounding(python):
    results = []
    for level in _loader.usable_levels():
        done = python(SCRIPT, MFCORE_ISA=level)
        assert done.returncode == 0, done.stderr
        results.append([np.array(x) for x in json.loads(done.stdout)])
    for result in results[1:]:
        for first, other in zip(results[0], result, strict=True):
            # 200 steps, or 300 samples, on numbers of size 1.
            np.testing.assert_allclose(other, first, atol=1e-12)
