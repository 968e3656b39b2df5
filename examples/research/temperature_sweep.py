"""Final risks against temperature beside the Gibbs law's; three minutes, seconds with --small."""

import argparse

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
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--small", action="store_true")
    arguments.add_argument("--picture", metavar="PATH")
    given = arguments.parse_args()
    count, horizon, seeds = (2, 2.0, 2) if given.small else (10, 100.0, 8)
    temperatures = np.geomspace(2e-3, 2e-2, count)
    cases = {"neurons": [50, 400], "temperature": temperatures, "horizon": [horizon], "rng": range(seeds)}
    found = mf.sweep(risk, cases)["value"].squeeze("horizon")
    mean, half = found.mean("rng"), 1.96 * found.std("rng", ddof=1) / seeds**0.5
    gibbs = [mf.gibbs(model(t)).risk for t in temperatures]
    print(mean.to_pandas().T.assign(gibbs=gibbs))
    if given.picture:
        (ax,) = mf.plots.new_axes()
        ax.plot(temperatures, gibbs, "k-", label="Gibbs law of the limit")
        for n, c, mark in zip((50, 400), mf.plots.COLORS, "os", strict=False):
            ax.errorbar(temperatures, mean.loc[n], half.loc[n], fmt=mark, color=c, label=f"N = {n}")
        ax.set(xlabel="temperature $1/β$", ylabel="risk $R$, mean and 95 % interval", xscale="log")
        ax.legend(frameon=False)
        ax.savefig(given.picture)
