"""Students of 50 to 5000 neurons learn a ReLU teacher of three neurons, and their limit N = ∞.

Draws the risk over t with 95 % bands over replicas, beside the limit, and the final risk against N.
Steps of SGD are shorter where N is larger, since both add to the risk: h and 1/N, each in proportion.
Minutes on two cores, seconds with --small; --picture PATH writes the picture.
"""

import argparse

import mfcore as mf
import numpy as np

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--small", action="store_true")
arguments.add_argument("--picture", metavar="PATH")
given = arguments.parse_args()
d, horizon, atoms = (6, 1.0, 60) if given.small else (20, 10.0, 500)
widths = (20, 100) if given.small else (50, 200, 1000, 5000)

relu = mf.Network(mf.activations.relu)
model = mf.Model(
    data=mf.data.Teacher(relu, 3 * np.eye(3, d)),
    network=mf.Network(mf.activations.relu, output="trained"),
    init=mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Radial(1.0)),
)
times = mf.log_times(0.05, horizon, 12)
students = {}
for N in widths:
    method = mf.SGD(N, step=min(0.002, 0.2 / N), replicas=4)
    students[f"N = {N}"] = mf.solve(model, method, horizon=horizon, save_at=times, rng=0)
limit = mf.solve(model, mf.Atoms(count=atoms), horizon=horizon, save_at=times, rng=0)

left, right = mf.plots.new_axes(2)
mf.plots.risk(students, reference={"N = ∞": limit}, ax=left, log="xy")
mf.plots.final_risk(students, ax=right)
print({name: round(float(run.risk[-1].mean()), 4) for name, run in students.items()}, limit.risk[-1])
if given.picture:
    left.savefig(given.picture)
