"""Final risk against temperature: networks beside the Gibbs law ρ ∝ exp(−βΨ(·; ρ)) of the limit.

Points are means over the second half of runs of SGD; networks are above the line by a term of order 1/N.
"""

import argparse
from functools import partial

import mfcore as mf
import numpy as np


def model(temperature: float) -> mf.Model:
    """Two Gaussians of different variances, told apart by neurons that a ridge confines."""
    data, network = mf.data.IsotropicGaussians(d=20, delta=0.8), mf.Network(mf.activations.relu)
    return mf.Model(data, network, mf.init.Radial(1.0), ridge=0.05, temperature=temperature)


def risk(neurons: int, temperature: float, rng: int, horizon: float) -> float:
    """The mean risk over the second half of a run."""
    method = mf.SGD(neurons, step=0.01)
    run = mf.solve(model(temperature), method, horizon=horizon, save_at=101, rng=rng, threads=1)
    return float(run.risk[51:].mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--picture", default="temperature_sweep.png")
    options = parser.parse_args()
    temperatures = np.geomspace(2e-3, 2e-2, 2 if options.small else 10)
    grid = {"neurons": [50, 400], "temperature": temperatures, "rng": range(8)}
    found = mf.sweep(partial(risk, horizon=2.0 if options.small else 200.0), grid)["value"]
    (ax,) = mf.plots.new_axes()
    ax.plot(temperatures, [mf.gibbs(model(t)).risk for t in temperatures], "k-", label="Gibbs law")
    for mean, half in zip(found.mean("rng"), 1.96 * found.std("rng", ddof=1) / 8**0.5, strict=True):
        ax.errorbar(temperatures, mean, half, fmt="o", markersize=4, label=f"N = {mean.neurons:d}")
    ax.set(xlabel="temperature $1/β$", ylabel="risk $R$, mean and 95 % interval", xscale="log")
    ax.legend(frameon=False)
    ax.savefig(options.picture)
