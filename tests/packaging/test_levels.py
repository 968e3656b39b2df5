"""Instruction-set levels differ in the last digits only."""

import json

import numpy as np

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


# First and last entry, sum, and sum of squares of each array, written down at level v3. An installation often
# has one level: by these numbers levels are compared across machines.
RECORDED = [
    (-0.025692877396543332, 0.11285896394876954, -15.608784280191468, 86.50234308297507),
    (0.011295691431578103, 0.10960652164549166, -11.813309406885026, 75.16564430147685),
    (0.0002724600842529962, 0.0013195184287440227, 1.2814719660009344, 0.1677669315462988),
    (-0.0009083290254372715, 0.0003522486170961061, 0.00641162360207137, 0.0033885145598868435),
]


def test_every_level_computes_what_is_written_down_to_rounding(level, python):
    done = python(SCRIPT, MFCORE_ISA=level)
    assert done.returncode == 0, done.stderr
    for values, recorded in zip(json.loads(done.stdout), RECORDED, strict=True):
        x = np.array(values).ravel()
        # 200 steps, or 300 samples, on numbers of size 1.
        np.testing.assert_allclose([x[0], x[-1]], recorded[:2], atol=1e-12, rtol=0)
        np.testing.assert_allclose([x.sum(), (x**2).sum()], recorded[2:], atol=1e-12 * x.size, rtol=0)
