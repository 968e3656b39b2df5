"""Where the stationary law lives: a box that holds all of its mass and little else."""

from __future__ import annotations

import math

import numpy as np

from .._cells import log_volumes
from .._check import FloatArray
from ..reduce import ReducedModel
from .boxes import Box
from .newton import newton, places

SEARCH = {
    1: 1000,
    2: 64,
    3: 20,
}  # cells per coordinate of the grids that search, by the number of coordinates
FEWEST = 10
EMPTY = 1e-12  # mass of an outer cell that may as well be beyond
TAIL = 1e-15  # mass beyond a side that is left out
FIRST = 10.0  # where to begin without decay
ROUGH = 1e-9  # gap while searching
MOST_ROUNDS = 60
MOST_DOUBLINGS = 14


def grid(box: Box, cells: list[int]) -> list[FloatArray]:
    """Edges of equal cells."""
    return [np.linspace(low, high, n + 1) for (low, high), n in zip(box, cells, strict=True)]


def centers(edges: list[FloatArray]) -> FloatArray:
    """Midpoints of the cells of a tensor grid, (n, k), the last coordinate varying fastest."""
    mesh = np.meshgrid(*[0.5 * (e[1:] + e[:-1]) for e in edges], indexing="ij")
    return np.stack([c.ravel() for c in mesh], axis=1)


def find_box(reduced: ReducedModel, f: FloatArray | None, fixed: bool = False) -> tuple[Box, FloatArray]:
    """The box, and f of the stationary law on a grid that fits it; `f` is where Newton starts.

    Begins with a box that decay keeps the law in, doubles sides with mass at them, and closes in on the mass.
    If `fixed`, the law is that in the potential of `f` instead.
    """
    box = _first_box(reduced)
    cells = [SEARCH.get(len(box), FEWEST)] * len(box)
    doublings = [0] * len(box)
    for _ in range(MOST_ROUNDS):
        edges = grid(box, cells)
        f, mass = _solve(reduced, edges, f, fixed)
        mass = mass.reshape(cells)
        changed = False
        for c, side in enumerate(edges):
            marginal = mass.sum(axis=tuple(i for i in range(len(box)) if i != c))
            new, grows = _adjusted(side, marginal, reduced.nonnegative[c])
            doublings[c] += grows
            changed |= new != box[c]
            box[c] = new
        if max(doublings) > MOST_DOUBLINGS:
            c = int(np.argmax(doublings))
            raise ValueError(
                "model must confine the stationary law, by ridge > 0 or an extent, got one with ridge = "
                f"{reduced.ridge:g} whose law still has mass {marginal[[0, -1]].max():.1e} at the sides of "
                f"{reduced.coordinates[c]} = {box[c][0]:g} … {box[c][1]:g}"
            )
        if not changed:
            break
    assert f is not None
    return box, f


def _solve(
    reduced: ReducedModel, edges: list[FloatArray], f: FloatArray | None, fixed: bool
) -> tuple[FloatArray, FloatArray]:
    """f and the masses of the cells."""
    where = places(reduced, centers(edges), log_volumes(edges, reduced.volume).ravel())
    start = None if f is None else where.features.moments(f)
    if fixed and f is not None and start is not None:
        return f, where.law(start)[0]
    found = newton(where, start, ROUGH)
    return where.features.function(found.h), found.mass


def _adjusted(edges: FloatArray, marginal: FloatArray, wall: bool) -> tuple[tuple[float, float], bool]:
    """New ends of one side of the box, and whether they are further apart."""
    low, high, n = edges[0], edges[-1], len(marginal)
    at_wall = wall and low == 0.0
    grow_low, grow_high = bool(marginal[0] > EMPTY) and not at_wall, bool(marginal[-1] > EMPTY)
    if grow_low or grow_high:
        wide = high - low
        low = low - wide * grow_low
        return (float(max(low, 0.0) if wall else low), float(high + wide * grow_high)), True
    inside = np.flatnonzero((np.cumsum(marginal) > TAIL) & (np.cumsum(marginal[::-1])[::-1] > TAIL))
    first, last = int(inside[0]), int(inside[-1])
    margin = max(1, (last - first + 1) // 20)
    if last - first + 1 + 2 * margin > 0.6 * n:
        return (float(low), float(high)), False
    return (float(edges[max(0, first - margin)]), float(edges[min(n, last + 1 + margin)])), False


def _first_box(reduced: ReducedModel) -> Box:
    """Ends that the law cannot reach while R(ρ) ≤ E y² + τ², as |Ψ(z)| ≤ √R √U(z, z): then decay wins."""
    size = math.sqrt(float(reduced.weights @ np.square(reduced.targets)) + reduced.noise)
    rng = np.random.default_rng(0)
    k = len(reduced.coordinates)
    probes = rng.uniform(-1, 1, (32 * k, k))
    probes = np.concatenate([probes, np.eye(k), -np.eye(k)])
    probes[:, np.asarray(reduced.nonnegative)] = np.abs(probes[:, np.asarray(reduced.nonnegative)])
    out: Box = []
    for c in range(k):
        reach = FIRST
        if reduced.ridge > 0 and reduced.decays[c]:
            spread = math.sqrt((reduced.volume[c] + 1) * reduced.temperature / reduced.ridge)
            reach = max(2.0 * spread, spread + 10 * math.sqrt(reduced.temperature / reduced.ridge))
            for _ in range(40):
                strongest = math.sqrt(
                    float((np.square(reduced.features(probes * reach)) @ reduced.weights).max())
                )
                if 0.5 * reduced.ridge * reach**2 > 2 * size * strongest:
                    break
                reach *= 1.5
        out.append((0.0 if reduced.nonnegative[c] else -reach, reach))
    return out
