"""Small ladders beside the experiment `ladder`, for what theory says about other models; only numbers,
no picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import data, init, theory
from ..atoms._atoms import Atoms
from ..density._pde import PDE
from ..model import Model
from ..network import Network
from ._row import Row, sample
from ._source import Because, Source, about, computed, exact
from ._work import Work
from .isotropic_gaussians import DELTA, MODEL, NORM, SIGMA, D

NOISY = exact("Mei, Misiakiewicz, Montanari (2019), theorem 4: the exponent of its bound")
THEOREM = exact("Mei, Misiakiewicz, Montanari (2019), theorem 1: the exponent of its bound")
NORMAL = 1.96  # standard errors in half of a 95 % interval
DIMENSIONS = (80, 160, 320)
SIGNED = init.Product(a=init.Normal(1.0, 0.3), w=init.Radial(NORM))
NOISE = 0.1  # D/β, the temperature times the length of a row

# A step that moves the risk of the law by 17 %, as in the ten lines of the README.
COARSE = 5e-5
STEEP = Model(data=data.IsotropicGaussians(d=320, delta=0.5), network=Network(SIGMA), init=init.Radial(0.4))
HORIZON = 0.05


def slope(
    rate: theory.Rate,
    quantity: str,
    there: float,
    because: Because | None = None,
    source: Source = THEOREM,
    *,
    of: str = "",
) -> Row:
    """A row of the report for one fitted slope, with the 95 % interval of the fit."""
    half = 0.5 * (rate.high - rate.low)
    name = f"{of}slope of {rate.gap} in {rate.variable}, {quantity}"
    return Row(name, rate.slope, there, 0.0, source, half, half / NORMAL, because)


def variants(work: Work, replicas: int) -> Iterator[Row]:
    """Rows on Euler's error, dimension, fixed and trained output weights, noise, and the bias of a
    coarse step.
    """
    work.tell("small ladders of variants …")
    options: dict[str, Any] = {
        "horizon": 0.25,
        "replicas": replicas,
        "save_at": 3,
        "limit": Atoms(64, rtol=1e-6),
        "rng": work.seed,
        "threads": work.threads,
    }
    # Steps so long that GD takes all of its own: those above are brought down along a line.
    euler = _done(theory.ladder(MODEL, 25, [0.02, 0.01, 0.005], **options))
    gaps = np.abs(euler.gap("PD-GD")[0]).max(axis=-1).mean(axis=-1)  # of each step
    local = np.log2(gaps[:-1] / gaps[1:]) - 1.0
    # The second order bends the slope in proportion to h: over all steps it is the mean of both halves.
    why = about(
        f"of second order in h; over the two smaller steps the slope is off by {local[1]:+.2g}",
        1.5 * local[1],
    )
    order = exact("order of Euler's method")
    yield slope(euler.rates()["PD-GD", "h"], "risk", 1.0, why, order)
    options["gd_steps"] = 25
    ladders = [
        _done(theory.ladder(MODEL.replace(data=data.IsotropicGaussians(d, DELTA)), 50, 1e-4, **options))
        for d in DIMENSIONS
    ]
    sizes = theory.rates_in_dimension(ladders, "distance")
    yield slope(sizes["ND-PD", "D"], "distance", 0.0)
    first, last = (math.log(math.sqrt(d + math.log(50)) + 1.0) for d in (DIMENSIONS[0], DIMENSIONS[-1]))
    bound = (last - first) / math.log(DIMENSIONS[-1] / DIMENSIONS[0])
    here = exact("theorem 1: the slope of √(D + log N) + 1 over these D")
    yield slope(sizes["GD-SGD", "D"], "distance", bound, None, here)
    for output in ("fixed", "trained"):
        model = MODEL.replace(network=Network(SIGMA, output=output), init=SIGNED)
        rates = _done(theory.ladder(model, 50, [1e-3, 2.5e-4], **options)).rates("distance")
        yield slope(rates["GD-SGD", "h"], "distance", 0.5, of=f"a ~ N(1, 0.3²), {output}: ")
    model = MODEL.replace(temperature=NOISE / D, ridge=NOISE / 4)
    options |= {"horizon": 0.1, "limit": PDE(200, error=False)}
    rates = _done(theory.ladder(model, 50, [1e-3, 2.5e-4], **options)).rates("distance")
    yield slope(rates["PD-GD", "h"], "distance", 1.0, None, NOISY, of="noisy: ")
    yield slope(rates["GD-SGD", "h"], "distance", 0.5, None, NOISY, of="noisy: ")
    yield from _coarse(work, replicas)


def _coarse(work: Work, replicas: int) -> Iterator[Row]:
    limit, biased = (
        theory.modified_flow(STEEP, h, horizon=HORIZON, save_at=[0.0, HORIZON]) for h in (0.0, COARSE)
    )
    what = f"d = {STEEP.d:g}, h = {COARSE:g}, t = {HORIZON:g}"
    measured = _done(
        theory.ladder(
            STEEP,
            200,
            COARSE,
            horizon=HORIZON,
            replicas=replicas,
            save_at=2,
            gd_steps=25,
            rng=work.seed,
            threads=work.threads,
        )
    )
    moved = measured.norm[0, 0, :, 4, -1] - measured.norm[0, 0, :, 2, -1]
    there = float(np.diff([run.observed["norm_mean"][-1] for run in (limit, biased)])[0])
    yield sample(f"{what}: mean |w| of SGD − PD", moved, there, 0.0, computed(theory.modified_flow))


def _done(ladder: theory.Ladder) -> theory.Ladder:
    """Refuse a ladder of which Ctrl-C left out replicas."""
    if ladder.meta["status"] == "interrupted":
        raise KeyboardInterrupt
    return ladder
