"""Final risk against temperature: networks beside the Gibbs law ρ ∝ exp(−βΨ(·; ρ)) of the limit.

Points, means over the second half of runs, are above the line by terms of the orders of 1/N and of the step.
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
    run = mf.solve(model(temperature), mf.SGD(neurons, step=0.005), horizon=horizon, save_at=101, rng=rng)
    return float(run.risk[51:].mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--picture", default="temperature_sweep.png")
    options = parser.parse_args()
    temperatures = np.geomspace(2e-3, 2e-2, 2 if options.small else 10)
    grid = {"neurons": [50, 400], "temperature": temperatures, "rng": range(8)}
    found = mf.sweep(partial(risk, horizon=2.0 if options.small else 100.0), grid)["value"]
    (ax,) = mf.plots.new_axes()
    ax.plot(temperatures, [mf.gibbs(model(t)).risk for t in temperatures], "k-", label="Gibbs law")
    for shade, one in zip(mf.plots.COLORS, found, strict=False):
        half, name = 1.96 * one.std("rng", ddof=1) / 8**0.5, f"N = {one.neurons:d}"
        ax.errorbar(temperatures, one.mean("rng"), half, fmt="o", color=shade, label=name)
    ax.set(xlabel="temperature $1/β$", ylabel="risk $R$, mean and 95 % interval", xscale="log")
    ax.legend(frameon=False)
    ax.savefig(options.picture)
