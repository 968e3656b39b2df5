"""A film of |w|: neurons of a network (bars) over the density of the limit (line), from the start to the end.

A minute on two cores, seconds with --small; --picture PATH writes a GIF, or a page if PATH ends in .html.
"""

import argparse

import mfcore as mf

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--small", action="store_true")
arguments.add_argument("--picture", metavar="PATH")
given = arguments.parse_args()
neurons, cells, frames = (50, 60, 3) if given.small else (800, 300, 32)

model = mf.Model(
    data=mf.data.IsotropicGaussians(d=40, delta=0.8),
    network=mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])),
    init=mf.init.Radial(0.8),
)
times = mf.log_times(0.05, 1.0 if given.small else 20.0, frames)
horizon = float(times[-1])
network = mf.solve(model, mf.SGD(neurons, step=1e-4), horizon=horizon, save_at=times, keep="all", rng=0)
limit = mf.solve(model, mf.PDE(cells), horizon=horizon, save_at=times, keep="all")
print(f"risk at t = {horizon:g}: network {network.risk[-1]:.3f}, limit {limit.risk[-1]:.3f}")
if given.picture:
    mf.plots.animate({"SGD": network, "limit": limit}, given.picture, coordinate="norm", fps=8)
