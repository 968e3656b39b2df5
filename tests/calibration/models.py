"""Random models of the limit, and random settings of the rungs that solve them.

Two families that share no model: `tuning`, on which the safety factors in the rungs were chosen, and
`held out`, on which they are judged. They differ in the seed, in every dimension d (even or odd), in the
smooth activations, and in the number of knots of the piecewise-linear ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import mfcore as mf
import numpy as np

FAMILIES = ("tuning", "held out")
_SEEDS = {"tuning": 0, "held out": 7}  # seeds 1 to 6 were looked at, and belong to what was tuned on
_SMOOTH = {"tuning": ("relu", "tanh", "softplus"), "held out": ("erf", "sigmoid", "gelu")}
_KNOTS = {"tuning": (2, 4), "held out": (3, 5)}
KINDS = (
    "isotropic, piecewise linear",
    "isotropic, smooth",
    "d = inf, piecewise linear",
    "d = inf, smooth",
    "anisotropic",
    "one direction",
    "two directions",
    "trained output",
    "one input",
)


@dataclass(frozen=True)
class Problem:
    """A random model, the times at which its errors are compared, and one setting of each rung."""

    family: str
    number: int
    kind: str
    model: mf.ReducedModel
    warm: mf.ReducedModel | None  # the same with noise, in one random coordinate
    horizon: float
    times: tuple[float, ...]
    atoms: mf.Atoms
    jko: mf.JKO
    pde: mf.PDE | None  # None in more than one random coordinate


def problem(family: str, number: int) -> Problem:
    """Number `number` of a family: the same one always, whatever was drawn before."""
    rng = np.random.default_rng([_SEEDS[family], number])
    kind = KINDS[number % len(KINDS)]
    d = 2 * int(rng.integers(3, 120)) + FAMILIES.index(family)
    activation = _activation(rng, family, kind)
    trained = kind in ("trained output", "one input")
    network = mf.Network(activation, output="trained" if trained else "one")
    std = float(rng.uniform(0.2, 1.2))
    init: Any = mf.init.Gaussian(std / math.sqrt(d))
    if kind.startswith("d = inf"):
        init = mf.init.Radial(std)
    if kind == "trained output":
        w = mf.init.Normal(0.0, std / math.sqrt(d))
        init = mf.init.Product(a=mf.init.Normal(0.0, float(rng.uniform(0.3, 1))), w=w)
    if kind == "one input":  # long enough for neurons near the origin to part
        scalars = [mf.init.Normal(float(0.5 * rng.normal()), float(rng.uniform(0.3, 1.2))) for _ in range(2)]
        init = mf.init.Product(a=scalars[0], w=scalars[1])
    ridge = float(10 ** rng.uniform(-3, -1)) if rng.random() < 0.3 else 0.0
    model = mf.Model(data=_data(rng, kind, d), network=network, init=init, ridge=ridge)
    # Fewer nodes where there are thousands: the limit with these is as good a problem.
    reduced = model.reduce(nodes={"anisotropic": 6, "one direction": 8, "two directions": 4}.get(kind))
    if kind.startswith("d = inf"):  # |w| would start at one point
        chi = mf.init.Chi(d, std / math.sqrt(d))
        reduced = replace(reduced, initial=mf.ReducedInit([chi]) if number % 16 < 8 else chi)
    free = 1 if kind[:2] in ("is", "d ") else 3 if kind == "two directions" else 2
    warm = model.reduce() if kind.startswith("isotropic") else None
    lengths = (-0.5, 1.3) if kind == "one input" else (-1.0, 1.0) if free == 1 else (-1.0, 0.5)
    horizon = float(10 ** rng.uniform(*lengths))
    times = tuple(horizon * np.array([0.0, 0.1, 0.3, 0.6, 1.0]))
    jko = mf.JKO(horizon / 2 ** int(rng.integers(4, 8)), count=int(rng.integers(24, 150)))
    on_grid = hasattr(reduced.initial, "_blocks") and free == 1
    pde = mf.PDE(cells=4 * int(rng.integers(12, 80))) if on_grid else None
    return Problem(
        family,
        number,
        kind,
        reduced,
        replace(warm, temperature=float(10 ** rng.uniform(-3, -1))) if warm else None,
        horizon,
        times,
        _atoms(rng, free, horizon),
        jko,
        pde,
    )


def _dimension(kind: str, d: int) -> float:
    return math.inf if kind.startswith("d = inf") else d


def _data(rng: np.random.Generator, kind: str, d: int) -> Any:
    delta = float(rng.uniform(0.2, 0.9))
    if kind == "anisotropic":
        return mf.data.AnisotropicGaussians(d, delta, s0=max(2, int(d * rng.uniform(0.2, 0.8))))
    if kind == "one direction":
        return mf.data.MultiIndex(d, [0.0, *rng.normal(size=3)], 1)
    if kind == "two directions":
        return mf.data.MultiIndex(d, {(1, 0): rng.normal(), (1, 1): rng.normal(), (0, 2): rng.normal()}, 2)
    if kind == "one input":
        X = rng.uniform(-2, 2, size=(int(rng.integers(6, 24)), 1))
        y = np.sin(rng.uniform(0.5, 3) * X[:, 0] + rng.uniform(0, 3)) + 0.3 * rng.normal()
        return mf.data.Dataset(X, y)
    return mf.data.IsotropicGaussians(_dimension(kind, d), delta)


def _activation(rng: np.random.Generator, family: str, kind: str) -> Any:
    few, most = _KNOTS[family]
    either = "smooth" not in kind and kind != "one input"
    piecewise = "piecewise" in kind or (either and rng.random() < 0.5)
    if not piecewise:
        return getattr(mf.activations, _SMOOTH[family][int(rng.integers(3))])
    n = int(rng.integers(few, most + 1))
    knots = np.cumsum(rng.uniform(0.2, 1.0, size=n)) + rng.uniform(-1.0, 0.5)
    return mf.activations.piecewise_linear(
        knots=knots,
        values=rng.normal(0, 3, size=n),
        left_slope=float(rng.normal() * (rng.random() < 0.5)),
        right_slope=float(rng.normal() * (rng.random() < 0.5)),
    )


def _atoms(rng: np.random.Generator, free: int, horizon: float) -> mf.Atoms:
    which = rng.random()
    if which < 0.3 and free == 1:
        return mf.Atoms()
    few, most = {1: (64, 512), 2: (8, 21), 3: (6, 11)}[free]
    count = int(rng.integers(few, most)) ** free
    if which < 0.8:
        rtol = float(10 ** rng.uniform(-7, -3))
        return mf.Atoms(count, rtol=rtol, atol=1e-2 * rtol)
    method = ("euler", "heun", "rk4")[int(rng.integers(3))]
    return mf.Atoms(count, method=method, step=horizon / 10 ** float(rng.uniform(1.5, 2.5)))
