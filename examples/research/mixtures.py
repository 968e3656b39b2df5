"""Four Gaussian clouds with the labels of XOR: SGD at three widths against its limit N = ∞.

Left: the risk over t; right: the share of test labels that f gets wrong, for networks (mean of four) and
for the limit, which moves in (a, s1, s2, r): the output weight, w along both means, and |w| across them.
The limit has the right signs at once, while |f| is small; networks have to outgrow the noise of their start.
About a minute on two cores, seconds with --small; --picture PATH writes the picture.
"""

import argparse

import mfcore as mf

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--small", action="store_true")
arguments.add_argument("--picture", metavar="PATH")
given = arguments.parse_args()
d, horizon, widths, atoms = (30, 2.0, (20, 100), 60) if given.small else (200, 10.0, (20, 100, 1000), 200)
model = mf.Model(
    data=mf.data.GaussianMixture([[2, 0], [-2, 0], [0, 2], [0, -2]], 0.25, labels=[1, 1, -1, -1], d=d),
    network=mf.Network(mf.activations.relu, output="trained"),
    init=mf.init.Product(a=mf.init.Uniform(-1, 1), w=mf.init.Radial(1.0)),
)
X, y = model.data.draw(5000, rng=1)
test, reduced = (X, y), model.reduce(limit=True)  # |x| across the means as at d = ∞: nodes are places along
runs: dict[str, mf.Trajectory] = {}
for N in widths:
    sgd = mf.SGD(N, 0.002, replicas=4)
    runs[f"N = {N}"] = mf.solve(model, sgd, horizon=horizon, save_at=26, test=test, rng=0)
test = X[:, :2], y
runs["N = ∞"] = mf.solve(reduced, mf.Atoms(count=atoms), horizon=horizon, save_at=26, test=test, rng=0)

left, right = mf.plots.new_axes(2)
mf.plots.risk(runs, ax=left)
mf.plots.observable(runs, "test_error", ax=right)
for name, run in runs.items():
    print(f"{name}: risk {run.risk[-1].mean():.3f}, test error {run.observed['test_error'][-1].mean():.4f}")
if given.picture:
    left.savefig(given.picture)
