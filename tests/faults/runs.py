"""Runs of every rung that take about a second, as victims of kills and signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mfcore as mf
import numpy as np
from mfcore.runs import _checkpoint

NET = mf.Network(mf.activations.relu)
MODEL = mf.Model(mf.data.IsotropicGaussians(20, 0.5), NET, mf.init.Radial(0.5))
PIECES = mf.Network(mf.activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5]))
WIDE = mf.Model(mf.data.IsotropicGaussians(20, 0.5), PIECES, mf.init.Radial(0.8))
NOISY = MODEL.replace(temperature=1e-3, ridge=0.1)
TWO = mf.Model(mf.data.MultiIndex(10, [0.0, 1.0, 0.5], 1), NET, mf.init.Radial(0.5))
LAYERS = MODEL.replace(
    network=mf.Network(mf.activations.tanh, output="fixed"),
    init=mf.init.Product(a=mf.init.Constant(0.1), w=mf.init.Radial(1.0)),
)
POINTS = 100  # save points, closer together than checkpoints

RUNGS: dict[str, tuple[Any, Any, float]] = {
    "SGD": (MODEL, mf.SGD(100, 2e-6), 1.0),
    "SGD, replicas": (NOISY, mf.SGD(20, 5e-5, batch=4, replicas=3, precision="float32"), 1.0),
    "SGD, long": (MODEL, mf.SGD(100, 1.5e-7), 1.0),  # to see what a kill may lose
    "LayerWise": (LAYERS, mf.LayerWise(100, 2e-5, batch=4), 1.0),
    "GD": (MODEL, mf.GD(100, 2e-3), 1.0),
    "Particles": (WIDE, mf.Particles(100), 2.0),
    "Particles, heun": (NOISY, mf.Particles(50, method="heun", step=2e-3), 1.0),
    "Particles, lsoda": (MODEL, mf.Particles(10, method="lsoda"), 5.0),
    "Nonlinear": (MODEL, mf.Nonlinear(50, step=0.01), 2.0),
    "PDE": (WIDE, mf.PDE(cells=600), 3.0),
    "PDE, noise": (NOISY, mf.PDE(cells=800), 3.0),
    "PDE, two coordinates": (TWO, mf.PDE(cells=(28, 32), error=False), 0.005),
    "Atoms": (TWO, mf.Atoms(64), 0.2),
    "Atoms, noise": (NOISY, mf.Atoms(2000, method="heun", step=5e-3), 1.0),
    "JKO": (MODEL, mf.JKO(0.02, count=50), 2.0),
    "JKO, noise": (NOISY, mf.JKO(0.02, count=50), 2.0),
}


def shorten(seconds: float) -> None:
    """Write checkpoints so often in this process."""
    _checkpoint.SECONDS, _checkpoint.SHARE = seconds, 0.0


def run(name: str, checkpoint: str | None, tick: Callable[[Any], float], again: bool = False) -> Any:
    """The run of this rung from its start or, `again`, its checkpoint; `tick` is called at save points."""
    model, method, horizon = RUNGS[name]
    observe = {"tick": tick}
    if again:
        assert checkpoint is not None
        return mf.resume(checkpoint, observe=observe, threads=1)
    return mf.solve(
        model,
        method,
        horizon=horizon,
        save_at=POINTS,
        observe=observe,
        rng=7,
        threads=1,
        checkpoint=checkpoint,
        keep=[0.0],
    )


def bits(trajectory: Any) -> bytes:
    """All numbers of a run."""
    final = trajectory.final
    parts = [trajectory.t, trajectory.risk, trajectory.error, *trajectory.observed.values()]
    parts += [final] if isinstance(final, np.ndarray) else list(vars(final).values())
    flat = [p for part in parts for p in (part if isinstance(part, tuple) else (part,))]
    return b"".join(np.asarray(p, dtype=np.float64).tobytes() for p in flat if p is not None)
