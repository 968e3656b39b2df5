"""Record a hash of final states: `python -m tests.bits FILE.json`; compare two such files by naming both.

Record before a change that should not touch results, and after it, on one machine and instruction-set level.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mfcore as mf
import numpy as np

STEP = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
SMOOTH = ("tanh", "erf", "gelu", "softplus", "sigmoid")
Case = Callable[[], Any]


def model(activation: Any, **forces: float) -> mf.Model:
    """Two isotropic classes and neurons σ(⟨w, x⟩)."""
    start = mf.init.Gaussian(0.4 / math.sqrt(20))
    return mf.Model(mf.data.IsotropicGaussians(20, 0.5), mf.Network(activation), start, **forces)


def with_all_blocks(activation: Any) -> mf.Model:
    """The same classes, a and b trained too."""
    network = mf.Network(activation, output="trained", bias="trained")
    start = mf.init.Product(
        a=mf.init.Normal(0.0, 1.0), b=mf.init.Normal(0.0, 0.5), w=mf.init.Normal(0.0, 0.3)
    )
    return mf.Model(mf.data.IsotropicGaussians(12, 0.5), network, start)


def run(what: mf.Model, method: Any, **options: Any) -> Case:
    """A short run, when it is called."""
    return lambda: mf.solve(what, method, horizon=0.2, rng=3, **options)


def cases() -> Iterator[tuple[str, Case]]:
    """Every rung, with and without noise, in single precision, with replicas, batches and two threads."""
    named = {name: getattr(mf.activations, name) for name in ("relu", *SMOOTH)} | {"step": STEP}
    for name, sigma in named.items():
        yield f"SGD, {name}", run(model(sigma), mf.SGD(60, step=1e-3))
    for name in ("step", "relu", "tanh", "erf"):
        plain = model(named[name])
        for method in (mf.GD(40, step=1e-2), mf.Particles(40), mf.PDE(100), mf.Atoms(64), mf.Nonlinear(30)):
            yield f"{type(method).__name__}, {name}", run(plain, method)
    for name in ("step", "tanh"):
        noisy = model(named[name], ridge=0.1, temperature=0.05)
        yield f"SGD, {name}, noise", run(noisy, mf.SGD(60, step=1e-3))
        yield f"SGD, {name}, coupled noise", run(noisy, mf.SGD(60, step=1e-3, coupled=True))
        yield f"GD, {name}, noise", run(noisy, mf.GD(40, step=1e-2))
        yield f"Particles, {name}, noise", run(noisy, mf.Particles(40, method="heun", step=1e-2))
        yield f"PDE, {name}, noise", run(noisy, mf.PDE(100))
        yield f"Atoms, {name}, noise", run(noisy, mf.Atoms(200, method="euler", step=1e-2))
    plain, tanh = model(STEP), model(mf.activations.tanh)
    yield "SGD, single precision", run(plain, mf.SGD(60, step=1e-3, precision="float32"))
    yield "SGD, replicas", run(plain, mf.SGD(60, step=1e-3, replicas=3))
    yield "SGD, two threads", run(plain, mf.SGD(300, step=1e-3), threads=2)
    yield "SGD, batches", run(tanh, mf.SGD(60, step=1e-3, batch=5))
    yield "PDE, upwind", run(model(mf.activations.relu), mf.PDE(100, scheme="upwind"))
    yield "Atoms, Runge-Kutta", run(tanh, mf.Atoms(64, method="rk4", step=1e-2))
    yield "Particles, LSODA", run(tanh, mf.Particles(20, method="lsoda"))
    yield "JKO", run(model(mf.activations.relu), mf.JKO(tau=0.05, count=32))
    yield "SGD, a and b", run(with_all_blocks(mf.activations.tanh), mf.SGD(60, step=1e-3))
    yield "GD, a and b", run(with_all_blocks(mf.activations.relu), mf.GD(40, step=1e-2))
    plane = mf.data.AnisotropicGaussians(d=20, delta=0.5, s0=5)
    two_radii = mf.Model(plane, mf.Network(STEP), mf.init.Gaussian(0.1))
    yield "PDE, two radii, two threads", run(two_radii, mf.PDE(40), threads=2)
    yield "Atoms, two radii", run(two_radii, mf.Atoms(100))
    yield "gibbs", lambda: mf.gibbs(model(mf.activations.tanh, ridge=0.1, temperature=0.05))
    yield "optimum", lambda: mf.optimum(model(mf.activations.relu))


def bits(result: Any) -> str:
    """A hash of the final measure and of all recorded risks."""
    found = hashlib.sha256()
    measure = result.final if isinstance(result, mf.Trajectory) else result.measure
    parts = [measure]
    if isinstance(measure, mf.Density):
        parts = [*measure.edges, measure.mass]
    elif isinstance(measure, mf.Cloud):
        parts = [measure.points, measure.weights]
    for part in [*parts, result.risk]:
        found.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return found.hexdigest()[:24]


def main() -> int:
    """Record or compare; 1 if a state differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bits", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="one: to write; two: to compare")
    files = parser.parse_args().files
    if len(files) == 1:
        states = {}
        for name, case in cases():
            states[name] = bits(case())
            print(f"{states[name]}  {name}", flush=True)
        files[0].write_text(json.dumps(states, indent=1))
        return 0
    one, two = (json.loads(file.read_text()) for file in files[:2])
    different = [name for name in one.keys() | two.keys() if one.get(name) != two.get(name)]
    print(f"{len(one)} states, {len(different)} differ", *sorted(different), sep="\n")
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
