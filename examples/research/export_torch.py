"""A network that mfcore has trained goes on in PyTorch, with Adam, and comes back for its exact risk.

Left, SGD of mfcore over t; right, Adam of PyTorch over its steps, from where SGD has ended. Needs PyTorch.
Seconds on two cores, fewer with --small; --picture PATH writes the picture.
"""

import argparse
from importlib import import_module

import mfcore as mf
import numpy as np

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--small", action="store_true")
arguments.add_argument("--picture", metavar="PATH")
given = arguments.parse_args()
neurons, horizon, steps = (20, 0.5, 40) if given.small else (200, 3.0, 2000)

torch = import_module("torch")
model = mf.Model(
    data=mf.data.Teacher(mf.Network(mf.activations.relu), 3 * np.eye(3, 10)),
    network=mf.Network(mf.activations.relu, output="trained"),
    init=mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Radial(1.0)),
)
run = mf.solve(model, mf.SGD(neurons, step=0.002), horizon=horizon, save_at=31, rng=0)
module = mf.to_torch(run)
adam = torch.optim.Adam(module.parameters(), lr=1e-3)
risks = [mf.risk(model, mf.from_torch(module)[1])]
for step in range(1, steps + 1):
    X, y = map(torch.from_numpy, model.data.draw(256, rng=step))
    adam.zero_grad()
    (0.5 * (module(X)[:, 0] - y) ** 2).mean().backward()
    adam.step()
    if step % 20 == 0:
        risks.append(mf.risk(model, mf.from_torch(module)[1]))
left, right = mf.plots.new_axes(2)
mf.plots.risk(run, ax=left, log="y")
right.semilogy(20 * np.arange(len(risks)), risks, color=mf.plots.COLORS[1])
right.set(xlabel="steps of Adam", ylabel="risk $R$")
left.savefig(given.picture) if given.picture else print(risks)
