"""Find a box that holds all but a negligible part of the mass of the stationary law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.check import FloatArray
from .._base.limits import next_round
from ..measures._cells import log_volumes
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._compact import FIRST as SAMPLED
from ._compact import Compact, afford, compact, seconds, thinned
from ._newton import newton, support

SEARCH = {
    1: 1000,
    2: 64,
    3: 20,
}  # cells per coordinate of the grids that search, by the number of coordinates
FEWEST = 10
MANY = 256  # models with more nodes are compressed for the search
LOOSE = 1e-6  # error of features allowed for that
EMPTY = 1e-12  # outer cells with less mass than this may be cut off
TAIL = 1e-15  # mass beyond a side that is left out
FIRST = 10.0  # half-length of the first box of coordinates without decay
ROUGH = 1e-9  # gap F − D at which Newton's method stops during the search
FULL = 0.8  # a box whose mass fills this fraction of it is not made smaller; …
SPARSE = 0.2  # … once it had to grow again, it is made smaller only below this fraction
MOST_ROUNDS = 80
MOST_GROWTHS = 24
PROBES = 128  # points per scale at which the size of features is measured
SCALES = 16  # scales, each twice the one before
_WHAT = "a stationary law"
MOST_UNIT = 1e50  # coordinates of this size, or of its inverse, still have finite powers


def grid(box: Box, cells: list[int]) -> list[FloatArray]:
    """Edges of equal cells."""
    return [np.linspace(low, high, n + 1) for (low, high), n in zip(box, cells, strict=True)]


def centers(edges: list[FloatArray]) -> FloatArray:
    """Midpoints of the cells of a tensor grid, (n, k), the last coordinate varying fastest."""
    mesh = np.meshgrid(*[0.5 * (e[1:] + e[:-1]) for e in edges], indexing="ij")
    return np.stack([c.ravel() for c in mesh], axis=1)


def find_box(reduced: ReducedModel, f: FloatArray | None, fixed: bool = False) -> tuple[Box, FloatArray]:
    """The box, and the predictions f of the stationary law on a grid in it; Newton's method starts at `f`.

    Begins with a box that decay keeps the law in, doubles sides with mass at them, and closes in on the mass.
    If `fixed`, the law is that in the potential of `f` instead.
    """
    sides = [
        _Side(low, high, high / 10, radius)
        for (low, high), radius in zip(_first_box(reduced), reduced.nonnegative, strict=True)
    ]
    k = len(sides)
    cells = [SEARCH.get(k, FEWEST)] * k
    plain, covered = Compact(reduced, reduced), [(s.low, s.high) for s in sides]
    small, spent = plain, 0.0
    if len(reduced.weights) > MANY:
        spent = seconds(plain, covered, SAMPLED)
        afford(spent, plain, _WHAT)
        small = compact(reduced, covered, tolerance=LOOSE)
    for _ in range(MOST_ROUNDS):
        next_round("the box")
        edges = [side.edges(n) for side, n in zip(sides, cells, strict=True)]
        if small.rows is not None and not _inside(sides, covered):
            covered = [(2 * s.low - s.high if s.low < 0 else s.low, 2 * s.high - s.low) for s in sides]
            spent += seconds(plain, covered, SAMPLED)
            afford(spent, plain, _WHAT)
            small = compact(reduced, covered, tolerance=LOOSE)
        spent += seconds(small, [(s.low, s.high) for s in sides], math.prod(cells))
        afford(spent, small, _WHAT)
        start = None if f is None else small.restricted(f)
        f, mass = _solve(small.model, edges, start, fixed)
        f = small.function(f)
        mass = mass.reshape(cells)
        marginals = [mass.sum(axis=tuple(i for i in range(k) if i != c)) for c in range(k)]
        changes = [
            side.adjust(e, marginal) for side, e, marginal in zip(sides, edges, marginals, strict=True)
        ]
        if not any(changes):
            break
        if max(side.growths for side in sides) > MOST_GROWTHS:
            c = int(np.argmax([side.growths for side in sides]))
            raise UnconfinedError(
                "model must confine the stationary law, by ridge > 0 or an extent, got one with ridge = "
                f"{reduced.ridge:g} whose law still has mass {marginals[c][[0, -1]].max():.1e} at the sides "
                f"of {reduced.coordinates[c]} = {sides[c].low:g} … {sides[c].high:g}"
            )
    assert f is not None
    return [(s.low, s.high) for s in sides], f


def _inside(sides: list[_Side], box: Box) -> bool:
    pairs = zip(sides, box, strict=True)
    return all(low <= side.low and side.high <= high for side, (low, high) in pairs)


class UnconfinedError(ValueError):
    """There is no stationary law, because mass goes to infinity."""


@dataclass
class _Side:
    """The interval of one coordinate: it grows, then shrinks, and grows again only if it had shrunk too
    far.
    """

    low: float
    high: float
    unit: (
        float  # cells are equal up to here and in proportion to |z| beyond, so that they still see the centre
    )
    wall: bool  # whether the coordinate ends at the wall 0
    growths: int = 0
    shrunk: bool = False
    regrown: bool = False

    def edges(self, n: int) -> FloatArray:
        """Edges of n cells, equal near 0 and growing in proportion to |z| beyond `unit`."""
        low, high = math.asinh(self.low / self.unit), math.asinh(self.high / self.unit)
        out = self.unit * np.sinh(np.linspace(low, high, n + 1))
        out[[0, -1]] = self.low, self.high
        return np.asarray(out)

    def adjust(self, edges: FloatArray, marginal: FloatArray) -> bool:
        """Move the ends by the masses of the cells; False if they stay."""
        width, n = self.high - self.low, len(marginal)
        low = bool(marginal[0] > EMPTY) and not (self.wall and self.low == 0)
        high = bool(marginal[-1] > EMPTY)
        if low or high:
            more = 0.5 * width if self.shrunk else width
            self.low = max(self.low - more * low, 0.0) if self.wall else self.low - more * low
            self.high += more * high
            self.regrown |= self.shrunk
            self.growths += 1
            return True
        inside = np.flatnonzero((np.cumsum(marginal) > TAIL) & (np.cumsum(marginal[::-1])[::-1] > TAIL))
        first, last = int(inside[0]), int(inside[-1]) + 1
        margin = max(1, (last - first) // 20)
        new_low, new_high = float(edges[max(0, first - margin)]), float(edges[min(n, last + margin)])
        if new_high - new_low > (SPARSE if self.regrown else FULL) * width:
            return False
        self.low, self.high = new_low, new_high
        self.shrunk = True
        return True


def _solve(
    reduced: ReducedModel, edges: list[FloatArray], f: FloatArray | None, fixed: bool
) -> tuple[FloatArray, FloatArray]:
    """Predictions f and masses of the cells of the stationary law on a grid."""
    where = support(reduced, centers(edges), log_volumes(edges, reduced.volume).ravel())
    start = None if f is None else where.features.moments(f)
    if fixed and f is not None and start is not None:
        return f, where.law(start)[0]
    found = newton(where, start, ROUGH)
    return where.features.function(found.h), found.mass


def _first_box(reduced: ReducedModel) -> Box:
    """Ends beyond which decay dominates as long as R(ρ) ≤ E y² + τ², by |Ψ(z)| ≤ √R √U(z, z).

    Where features grow as fast as decay that says nothing, and the box is that of decay and noise alone.
    """
    size = math.sqrt(float(reduced.weights @ np.square(reduced.targets)) + reduced.noise)
    k = len(reduced.coordinates)
    probes = np.random.default_rng(0).uniform(-1, 1, (PROBES, k))
    probes = np.concatenate([probes, np.eye(k), -np.eye(k)])
    probes = np.where(reduced.nonnegative, np.abs(probes), probes)
    few = thinned(reduced, MANY)
    out: Box = []
    reaches: dict[float, int] = {}  # the last scale at which features are stronger than decay, by `end`
    for c, radius in enumerate(reduced.nonnegative):
        end = FIRST
        if reduced.ridge > 0 and reduced.decays[c]:
            unit = math.sqrt(reduced.temperature / reduced.ridge)
            if not 1 / MOST_UNIT < unit < MOST_UNIT:
                raise ValueError(
                    f"temperature must be between {MOST_UNIT**-2:g} and {MOST_UNIT**2:g} times the ridge, "
                    f"{reduced.ridge:g}, got {reduced.temperature:g}"
                )
            end = unit * (math.sqrt(reduced.volume[c] + 1) + 10)
            if end not in reaches:
                powers = range(SCALES - 1, -1, -1)
                reaches[end] = next((j for j in powers if _pulls(few, probes, end * 2.0**j, size)), -1)
            if reaches[end] < SCALES - 1:
                end *= 2.0 ** (reaches[end] + 1)
        out.append((0.0 if radius else -end, end))
    return out


def _pulls(reduced: ReducedModel, probes: FloatArray, reach: float, size: float) -> bool:
    """Tell whether features can be stronger than decay at this distance from 0."""
    square = float((np.square(reduced.features(probes * reach)) @ reduced.weights).max())
    return 0.5 * reduced.ridge * reach**2 <= 2 * size * math.sqrt(square)
