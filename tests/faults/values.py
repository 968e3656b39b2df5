"""Values for generated calls: good ones by the name of a parameter, and extreme or wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import data, init

NET = mf.Network(mf.activations.relu)
NETS = [
    NET,
    mf.Network(mf.activations.tanh, output="trained", bias="trained"),
    mf.Network(mf.activations.sigmoid, output="fixed"),
    mf.Network(mf.activations.gelu, sphere=True),
    mf.Network(mf.activations.softplus, bias="trained"),
    mf.Network(mf.activations.hermite([0.1, 1.0, 0.5])),
    mf.Network(mf.activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5])),
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-200, 1e-16, 1e8, 1e16, 1e100, 1e200, -1e200, 1.7e308]
ODD = [
    math.nan,
    math.inf,
    -math.inf,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    "x",
    "",
    b"x",
    None,
    True,
    False,
]
ODD += [
    [],
    (),
    {},
    {"a": 1},
    [1, [2]],
    [None],
    ["1"],
    object(),
    1j,
    np.float32(0.5),
    np.int8(3),
    len,
    mf,
    [[]],
]
BIG = {2**31, 2**63 - 1, 2**63, 10**30, 1e8, 1e16, 1e100, 1e200, 1.7e308}
# With a number beyond the edge of these a call may take as long as it was asked to.
COUNTS = {
    "samples",
    "gd_steps",
    "replicas",
    "count",
    "cells",
    "steps",
    "n",
    "neurons",
    "directions",
    "save_at",
    "d",
}
TIMES = {"horizon", "t", "step", "h", "dt", "tau", "rtol", "atol", "tolerance", "first"}


def all_laws() -> list[Any]:
    return [
        data.IsotropicGaussians(3, 0.5),
        data.AnisotropicGaussians(4, 0.5, s0=2),
        data.MultiIndex(3, [0.0, 1.0, 0.5], 1, noise=0.1),
        data.MultiIndex(3, {(0,): 1.0, (0, 1): 0.5}, 2, inputs="hypercube"),
        data.MultiIndex(3, lambda z: np.tanh(z[:, 0]), 1, inputs="sphere"),
        data.Staircase(3, [(0,), (0, 1)]),
        data.Teacher(NET, [[1.0, 0.0, 0.5], [0.0, -2.0, 0.1]]),
        data.Linear([1.0, -1.0, 0.5], noise=0.1),
        data.Dataset(np.arange(15.0).reshape(5, 3) / 10, np.arange(5.0)),
        data.Stream(lambda n, rng: ((x := rng.normal(size=(n, 3))), x[:, 0])),
        data.IsotropicGaussians(math.inf, 0.5),
        data.GaussianMixture([[1.0, 0.0, 0.5], [-1.0, 0.0, 0.0]], [0.5, 1.0], [1.0, -1.0]),
    ]


@cache
def models() -> list[Any]:
    """Small models of every kind, and reduced ones."""
    laws = all_laws()
    found = [mf.Model(laws[0], NET, init.Radial(0.5)), mf.Model(laws[0], NET, init.Radial(0.5), ridge=0.1)]
    found += [mf.Model(laws[0], NET, init.Radial(0.5), ridge=0.1, temperature=1e-2)]
    found += [mf.Model(law, NET, init.Radial(0.5)) for law in laws]
    found += [mf.Model(laws[0], net, start(net)) for net in NETS[1:]]
    found += [mf.Model(laws[2], NETS[1], start(NETS[1]), rates={"a": 2.0})]
    return [*found, found[0].reduce(), found[2].reduce(), found[5].reduce()]


def start(net: Any) -> Any:
    """An initial law that fits the network."""
    scalar = init.Normal(0.0, 0.5)
    return init.Product(a=scalar if net.has_a else None, b=scalar if net.has_b else None, w=init.Radial(0.5))


@cache
def trajectories() -> list[Any]:
    """A run of a network and one of the limit."""
    model = models()[0]
    methods = [mf.SGD(4, 0.05), mf.PDE(cells=20), mf.Atoms(), mf.Particles(4)]
    return [mf.solve(model, m, horizon=0.2, save_at=3, keep="all", rng=0, threads=1) for m in methods]


def any_array(r: Random) -> Any:
    """Arrays of every layout and dtype, with or without an entry at the edge."""
    shape = r.choice([(3,), (2, 3), (5, 3), (1, 3), (2, 4), (2, 5), (4, 1), (4,), (2, 2, 3), (0, 3), (3, 0)])
    out = np.random.default_rng(r.randrange(2**32)).normal(size=shape) * r.choice([0.5, 0.5, 0.5, 1e5, 1e-5])
    if r.random() < 0.3 and out.size:
        out.flat[r.randrange(out.size)] = r.choice([*FLOATS, math.nan, math.inf])
    kind = r.randrange(12)
    if kind == 0:
        with np.errstate(over="ignore"):
            return out.astype(np.float32)
    if kind == 1:
        return np.asfortranarray(out)
    if kind == 2:
        return np.repeat(out, 2, axis=-1)[..., ::2]
    if kind == 3:
        out.flags.writeable = False
    if kind == 4:
        return out.tolist()
    if kind == 5:
        return r.choice(
            [out.astype(complex), out.astype(str), out > 0, np.ma.masked_less(out, 0), out.astype(object)]
        )
    if kind == 6:
        with np.errstate(invalid="ignore"):
            return np.clip(np.nan_to_num(out), -9, 9).astype(
                r.choice([np.int64, np.uint8, ">f8", np.longdouble])
            )
    return out


def rows(r: Random) -> Any:
    size = 10 ** r.choice([-8.0, -1.0, 0.0, 0.0, 0.0, 3.0, 8.0])
    values = np.random.default_rng(r.randrange(2**32)).normal(
        size=(r.choice([1, 2, 6]), r.choice([1, 2, 3, 3, 3, 4, 5]))
    )
    return values * size


def measure(r: Random) -> Any:
    kind = r.randrange(5)
    if kind == 0:
        n = r.choice([1, 2, 6])
        return mf.Density(np.linspace(0.0, r.choice([1.0, 1e-8, 1e6]), n + 1), np.full(n, 1 / n))
    if kind == 1:
        points = rows(r)
        return mf.Cloud(points, np.full(len(points), 1 / len(points)))
    return r.choice(trajectories()).final if kind == 2 else rows(r)


def _method(r: Random) -> Any:
    return r.choice(
        [
            mf.SGD(4, r.choice([0.05, 10.0, 1e200])),
            mf.SGD(3, 0.05, batch=2, replicas=2, precision=r.choice(["float32", "float64"])),
            mf.GD(4, r.choice([0.05, 1e3])),
            mf.Particles(4),
            mf.Particles(4, method=r.choice(["euler", "heun", "rk4"]), step=0.05),
            mf.Particles(3, method=r.choice(["lsoda", "bdf", "radau"])),
            mf.Nonlinear(3),
            mf.PDE(cells=r.choice([10, 20])),
            mf.Atoms(r.choice([None, 16, 100])),
            mf.Atoms(20, method="heun", step=0.05),
            mf.JKO(0.05, count=r.choice([8, 20])),
        ]
    )


# By the name of a parameter, a value that is usually right. Every name of the surface that is not here, and
# has no default, gets numbers and arrays.
GOOD: dict[str, Callable[[Random], Any]] = {
    "model": lambda r: r.choice(models()),
    "source": lambda r: r.choice([models()[0], models()[4].data.draw]),
    "network": lambda r: r.choice(NETS),
    "activation": lambda r: r.choice([n.activation for n in NETS]),
    "method": lambda r: _method(r),
    "driver": lambda r: r.choice([None, mf.Atoms(), mf.Particles(10)]),
    "limit": lambda r: r.choice([None, mf.Atoms(), False]),
    "data": lambda r: r.choice(models()[3:14]).data,
    "init": lambda r: start(r.choice(NETS)),
    "theta": rows,
    "other": rows,
    "X": rows,
    "measure": measure,
    "a": measure,
    "b": measure,
    "points": rows,
    "z": any_array,
    "y": lambda r: np.linspace(-1, 1, r.choice([1, 2, 6])),
    "coordinates": lambda r: r.choice([["r"], ["z"], ["a", "r"], None]),
    "features": lambda r: r.choice([lambda z: z, lambda z: z**2, np.exp, lambda z: z / 0]),
    "gradients": lambda r: r.choice([None, lambda z: np.ones((len(z), 1, 1))]),
    "targets": lambda r: [r.choice([0.0, 1.0, 1e200])],
    "weights": lambda r: r.choice([[1.0], [0.5, 0.5], None]),
    "link": lambda r: r.choice(
        [[0.0, 1.0], {(1,): 1.0}, lambda z: z[:, 0], np.tanh, {(0,): 1.0}, {(0, 1): 2.0}]
    ),
    "monomials": lambda r: r.choice([[(0,)], [(0,), (0, 1)], {(0,): 1e200}]),
    "expectation": lambda r: r.choice([None, mf.Exact(), mf.MonteCarlo(100, 0)]),
    "risk": lambda r: r.choice([True, False, mf.Exact(), mf.MonteCarlo(100, 0)]),
    "rng": lambda r: r.choice([0, 1, 2**64, np.random.default_rng(0), np.random.SeedSequence(1)]),
    "seed": lambda r: r.choice([0, 2**64 - 1]),
    "threads": lambda r: r.choice([None, 1, 2, 3]),
    "horizon": lambda r: r.choice([0.1, 0.2]),
    "save_at": lambda r: r.choice([3, [0.0, 0.1], [], 1]),
    "max_seconds": lambda r: r.choice([0, 0.5]),
    "keep": lambda r: r.choice([None, "all", "final", [0.1]]),
    "observe": lambda r: r.choice([None, {"n": len}]),
    "progress": lambda r: False,
    "checkpoint": lambda r: None,
    "path": lambda r: "/nowhere/file",
    "start": lambda r: None,
    "ax": lambda r: None,
    "neurons": lambda r: r.choice([1, 4]),
    "samples": lambda r: r.choice([1, 100]),
    "replicas": lambda r: r.choice([1, 2]),
    "steps": lambda r: r.choice([0, 1, 3]),
    "gd_steps": lambda r: 5,
    "count": lambda r: r.choice([8, 20]),
    "n": lambda r: r.choice([1, 5, 300]),
    "d": lambda r: r.choice([1, 2, 3, 10, math.inf]),
    "cells": lambda r: r.choice([10, 14]),
    "edges": lambda r: np.linspace(0.0, 1.0, 7),
    "mass": lambda r: np.full(6, 1 / 6),
    "extent": lambda r: r.choice([None, (0, 2)]),
    "trajectories": lambda r: r.choice([trajectories()[0], trajectories()[:2]]),
    "budget": lambda r: None,
    "trajectory": lambda r: r.choice(trajectories()),
    "name": lambda r: r.choice(["relu", "norm_mean", "tanh"]),
    "temperatures": lambda r: [0.1, 0.01],
    "blocks": lambda r: [init.Normal(0, 1), 0.5],
    "ladders": lambda r: [],
    "config": lambda r: {"kind": r.choice(["relu", "hermite", "Linear", "Staircase"])},
    "knots": lambda r: [0.0, 1.0],
    "values": lambda r: [0.0, 2.0],
    "coefficients": lambda r: [0.0, 1.0, r.choice(FLOATS)],
    "basis": lambda r: None,
    "w": lambda r: r.choice([init.Radial(0.5), init.Normal(0, 1), [1.0, 2.0]]),
    "delta": lambda r: r.choice([0.0, 0.5, 0.99]),
    "directions": lambda r: r.choice([1, 2]),
    "low": lambda r: -1.0,
    "high": lambda r: 1.0,
    "out": lambda r: None,
}
