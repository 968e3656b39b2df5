"""Zeros and ones of scikit-learn's digits: networks of several widths on 200 images, tested on the others.

Draws the share of test images that networks get wrong, mean and 95 % band over replicas. Needs scikit-learn.
A minute on two cores, seconds with --small; --picture PATH writes the picture.
"""

import argparse

import mfcore as mf
import numpy as np
from sklearn.datasets import load_digits

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--small", action="store_true")
arguments.add_argument("--picture", metavar="PATH")
given = arguments.parse_args()
widths, horizon = ((10, 40), 2.0) if given.small else ((10, 40, 160, 640), 20.0)

images, digits = map(np.asarray, load_digits(n_class=2, return_X_y=True))
order = np.random.default_rng(0).permutation(len(digits))
X, y = images[order] / 64, 2.0 * digits[order] - 1  # 64 pixels from 0 to 16; |x| is near 1
model = mf.Model(
    data=mf.data.Dataset(X[:200], y[:200]),
    network=mf.Network(mf.activations.relu, output="trained", bias="trained"),
    init=mf.init.Product(a=mf.init.Normal(0, 1), b=mf.init.Normal(0, 0.1), w=mf.init.Radial(1.0)),
)
runs = {
    f"N = {N}": mf.solve(
        model,
        mf.SGD(N, step=0.005, replicas=8),
        horizon=horizon,
        save_at=mf.log_times(0.1, horizon, 16),
        test=(X[200:], y[200:]),
        rng=0,
    )
    for N in widths
}
print({name: round(float(run.observed["test_error"][-1].mean()), 4) for name, run in runs.items()})
if given.picture:
    mf.plots.observable(runs, "test_error", log="x").savefig(given.picture)
