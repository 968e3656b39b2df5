"""The potential that moves the neurons: of a network in R^40, of its limit in one coordinate, by Monte Carlo.

Two Gaussian classes that differ in their spread only; 800 neurons σ(⟨w, x⟩) with a truncated ReLU. By
rotation symmetry the limit knows a neuron by its radius r = |w| alone. Left: the force −∂Ψ/∂r on a neuron of
radius r at the start: of the limit (line), of the 800 neurons themselves, exactly (dots) and from samples
(bars, 95 % intervals). Right: the risk if all neurons had one radius.

Run: python examples/potential.py [FILE.png]
"""

import sys

import mfcore as mf
import numpy as np
from scipy import stats

d, delta, neurons, norm = 40, 0.8, 800, 0.8
model = mf.Model(
    data=mf.data.IsotropicGaussians(d=d, delta=delta),
    network=mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])),
    init=mf.init.Radial(norm),
)
theta = model.init.sample(model.network, d, neurons, rng=0)
reduced = model.reduce()

# The limit: ρ₀ as Gauss nodes of its radius, ∇Ψ on a grid of radii.
radii = np.linspace(0.02, 4.0, 200)
start = mf.Cloud(*reduced.initial.quadrature(32))
force = -mf.grad_psi(reduced, radii[:, None], start)[:, 0]

# The network: probes along one direction, in the field of the 800 neurons.
probe_radii = np.linspace(0.25, 4.0, 16)
direction = np.ones(d) / np.sqrt(d)
probes = probe_radii[:, None] * direction
exact = -mf.grad_psi(model, probes, theta) @ direction
batches = [
    -mf.grad_psi(model, probes, theta, expectation=mf.MonteCarlo(2000, rng=seed)) @ direction
    for seed in range(20)
]
sampled, error = np.mean(batches, axis=0), np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))

left, right = mf.plots.new_axes(2)
blue, red, green, pink, *_ = mf.plots.COLORS
left.axhline(0, color="0.8", lw=1)
left.plot(radii, force, color=blue, lw=1.6, label="limit, d = 40")
left.plot(probe_radii, exact, "o", ms=5, mfc="none", color=red, label="800 neurons, exact")
interval = stats.t.ppf(0.975, len(batches) - 1) * error
left.errorbar(
    probe_radii, sampled, interval, fmt="none", ecolor="black", capsize=3, label="40 000 samples, 95 %"
)
left.set(xlabel="radius $r$ of a neuron", ylabel="force $-\\partial_r\\Psi(r;\\rho_0)$ at the start")
left.legend(frameon=False, fontsize=9)

for spread, color, dashes in ((0.2, green, "-"), (0.3, pink, "--"), (0.4, blue, ":")):
    sharp = model.replace(data=mf.data.IsotropicGaussians(d=d, delta=spread)).reduce()
    risks = np.array([mf.risk(sharp, [[r]]) for r in radii])
    right.plot(radii, risks, color=color, ls=dashes, lw=1.6)
    best = risks.argmin()
    right.plot(radii[best], risks[best], "o", ms=5, color=color)
    label = f"Δ = {spread}\n{risks[best]:.3f} at r = {radii[best]:.2f}"
    right.text(radii[-1] + 0.08, risks[-1], label, color=color, va="center", fontsize=9)
right.set(xlabel="radius $r$ of all neurons", ylabel="risk $R(δ_r)$", xlim=(0, 5.5), ylim=(0, 3.1))

target = sys.argv[1] if len(sys.argv) > 1 else "potential.png"
caption = " ".join((__doc__ or "").partition("Run:")[0].split())
left.savefig(
    target, dpi=150, metadata={"Title": "The potential that moves the neurons", "Description": caption}
)
gap = np.abs(exact - np.interp(probe_radii, radii, force)).max()
print(f"largest difference of the 800 neurons from the limit: {gap:.3f}")
print(f"largest Monte-Carlo difference: {np.abs((sampled - exact) / error).max():.1f} standard errors")
print(f"written: {target}")
