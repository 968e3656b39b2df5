"""Discretise the initial law in reduced coordinates by atoms: a curve for panels, Gauss nodes, or
quasi-random points.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from scipy import special

from .._base.check import FloatArray
from ..init._blocks import Chi, Point, Scalar, SpherePoint
from ..init._scalar import Constant, Normal, Uniform
from ..reductions._init import ReducedInit
from ..reductions._node_rules import pruned
from ._panels import Curve

Atoms = tuple[FloatArray, FloatArray]  # points (n, k) and masses

TAIL = 1e-17  # mass of a law left out beyond each end of its panels
FEW = 8  # with fewer Gauss nodes per coordinate, quasi-random points are better


def freedom(initial: Any) -> int:
    """Number of random coordinates of the law; for a law made by hand, all of them."""
    if isinstance(initial, ReducedInit):
        return sum(_block_freedom(block) for block in initial._blocks)
    return int(np.asarray(initial.quadrature(1)[0]).shape[1])


def curve(initial: Any) -> Curve | None:
    """The law as a `Curve`, if exactly one coordinate is random and its density is known; else None."""
    if not isinstance(initial, ReducedInit) or freedom(initial) != 1:
        return None
    which = next(k for k, block in enumerate(initial._blocks) if _block_freedom(block))
    made = _block_curve(initial._blocks[which])
    if made is None:
        return None
    low, high, density, points = made
    before, after = [
        np.concatenate([[], *(block.quadrature(1)[0][0] for block in part)])
        for part in (initial._blocks[:which], initial._blocks[which + 1 :])
    ]

    def whole(x: FloatArray) -> FloatArray:
        n = len(x)
        return np.concatenate([np.tile(before, (n, 1)), points(x), np.tile(after, (n, 1))], axis=1)

    return Curve(low, high, density, whole)


def gauss(initial: Any, per_coordinate: int) -> Atoms:
    """The tensor product of Gauss nodes of all coordinates, without nodes of negligible weight."""
    points, weights = initial.quadrature(per_coordinate)
    return pruned(np.asarray(points, dtype=np.float64), np.asarray(weights, dtype=np.float64))


def coarser(each: int) -> list[int]:
    """Numbers of Gauss nodes that `each` of them are compared with: half, some three quarters, and a quarter.

    The second is odd where `each` is even, so that just one of the two rules has a node in the middle.
    """
    between = each * 3 // 4
    counts = [each // 2, between if (each - between) % 2 else between - 1, each // 4]
    return [n for n in counts if n > 0]


def filling(initial: Any, count: int, seed: int) -> Atoms:
    """`count` atoms of equal mass at Sobol points mapped by quantiles (random draws for laws made by
    hand).
    """
    rng = np.random.default_rng(seed)
    weights = np.full(count, 1 / count)
    if not isinstance(initial, ReducedInit):
        return np.asarray(initial.sample(count, rng), dtype=np.float64), weights
    from scipy.stats import qmc

    widths = [_quantile_width(block) for block in initial._blocks]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers other than powers of 2 balance less well
        uniform = qmc.Sobol(max(sum(widths), 1), rng=rng).random(count)
    uniform = np.clip(uniform, TAIL, 1 - 2**-53)
    columns, at = [], 0
    for block, width in zip(initial._blocks, widths, strict=True):
        columns.append(_from_uniform(block, uniform[:, at : at + width]))
        at += width
    return np.concatenate(columns, axis=1), weights


def _block_freedom(block: Any) -> int:
    if isinstance(block, Point) or (isinstance(block, Scalar) and isinstance(block.law, Constant)):
        return 0
    return block.directions + len(block.dims) - 1 if isinstance(block, SpherePoint) else 1


def _block_curve(
    block: Any,
) -> tuple[float, float, Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]] | None:
    """(low, high, density, points) of one block with one random coordinate; None if its density is
    unknown.
    """
    if isinstance(block, Chi):
        a = block.d / 2
        low, high = [
            block.scale * math.sqrt(2 * float(inverse(a, TAIL)))
            for inverse in (special.gammaincinv, special.gammainccinv)
        ]

        def chi(r: FloatArray) -> FloatArray:
            x = r / block.scale
            log = special.xlogy(block.d - 1, x) - x * x / 2 + (1 - a) * math.log(2) - special.gammaln(a)
            return np.asarray(np.exp(log) / block.scale)

        return (0.0 if block.d < 3 else low), high, chi, lambda r: r[:, None]
    if isinstance(block, Scalar) and isinstance(block.law, Normal):
        mean, std = block.law.mean, block.law.std
        reach = -float(special.ndtri(TAIL)) * std

        def normal(x: FloatArray) -> FloatArray:
            return np.asarray(np.exp(-(((x - mean) / std) ** 2) / 2) / (math.sqrt(2 * math.pi) * std))

        return mean - reach, mean + reach, normal, lambda x: x[:, None]
    if isinstance(block, Scalar) and isinstance(block.law, Uniform):
        low, high = block.law.low, block.law.high
        return low, high, lambda x: np.full(len(x), 1 / (high - low)), lambda x: x[:, None]
    return None


def _quantile_width(block: Any) -> int:
    """How many uniform numbers one draw of a block takes."""
    if isinstance(block, SpherePoint):
        return block.directions + len(block.dims)
    return 0 if isinstance(block, Point) else 1


def _from_uniform(block: Any, u: FloatArray) -> FloatArray:
    """Map uniform numbers to draws of a block by its quantile functions, shape (n, m)."""
    if isinstance(block, Point):
        return np.tile(np.array(block.values), (len(u), 1))
    if isinstance(block, Scalar):
        return np.asarray(block.law.quantile(u))
    if isinstance(block, Chi):
        return np.asarray(block.scale * _chi_quantile(block.d, u))
    p = block.directions
    parts = [special.ndtri(u[:, :p]), *(_chi_quantile(d, u[:, [p + j]]) for j, d in enumerate(block.dims))]
    rows = reduce(lambda a, b: np.concatenate([a, b], axis=1), parts)
    return np.asarray(block.on_sphere(rows))


def _chi_quantile(d: float, u: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(2 * special.gammaincinv(d / 2, u)))
