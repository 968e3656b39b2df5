"""The dual D of the free energy (eq. (9.1)) by integrals over continuous z instead of cells, with the error
of the integrals.

D(f) has the integral Z(f) = ∫v e^{−βΨ_λ(z; f)}dz. Every coordinate has panels, and each of them two
Gauss–Legendre rules: what they differ by, panel after panel, is the error, and panels where it matters are
halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._base.check import FloatArray
from .._base.limits import next_round
from ..reductions._model import ReducedModel
from ._boxes import Box
from ._newton import Solution, Support, newton
from ._panels import PanelErrors, errors_at_ends, nodes_of, steep_panels

# Gauss nodes of the finer and the coarser rule on a panel are compared: by the number of coordinates
NODES = {1: (10, 16), 2: (16, 24), 3: (16, 24)}
FEW_NODES = (11, 15)
FIRST = {1: 24, 2: 2}  # panels per coordinate to begin with, by the number of coordinates; else one
MOST_NUMBERS = 1 << 25  # most points times features
MOST_POINTS = 1 << 17
MOST_ROUNDS = 60
# In one coordinate errors below RESOLVED that have not halved in so many rounds are rounding of the features.
MOST_STALLED, RESOLVED = 3, 1e-9
GOAL = {1: 2e-14}  # relative error of the integrals that is aimed at, in one coordinate
ENOUGH = 1e-10  # the same in more coordinates
BY_CHANCE = 2e-12  # added to the stated errors: at a kink two rules can agree by chance
# fraction of the box that is added at each end for the tails, by the number of coordinates
ROOM = {1: 0.25, 2: 0.1}
LEFT_OUT = 5e-12  # mass beyond a box without room around it: see EMPTY in `_extent`


@dataclass(frozen=True, eq=False)
class Continuum:
    """The maximiser of D (eq. (9.1)), or a given point, and the error of its integrals.

    Args:
        found: Masses of the nodes, the dual point h, the moments ∫F dρ_h, D(h).
        where: The nodes.
        integral: Error of log Z.
        moments: Error of ∫F dρ_h.
        outside: Mass near the end of the nodes, where there is an end.
    """

    found: Solution
    where: Support
    integral: float
    moments: float
    outside: float

    @property
    def risk(self) -> float:
        """R = |∫F dρ − t|² plus the part of R that no measure reaches."""
        t = self.where.features
        return float(np.square(self.found.mean - t.target).sum()) + t.unreached

    @property
    def spread(self) -> float:
        """The standard deviation (∫|F − ∫F dρ|²dρ)^½ of the features under the law."""
        deviation = np.square(self.where.features.values - self.found.mean).sum(axis=1)
        return float(np.sqrt(self.found.mass @ deviation))


def continuum(
    reduced: ReducedModel,
    box: Box,
    f: FloatArray,
    tolerance: float,
    *,
    fixed: bool = False,
    ends: bool = False,
    enough: float = 0.0,
    most: float = MOST_POINTS,
) -> Continuum:
    """The stationary law by adaptive quadrature; Newton's method starts at `f`.

    Args:
        reduced: A model with few nodes.
        box: Where the mass is.
        f: Where Newton starts, or, if `fixed`, the argument of D.
        tolerance: Gap at which Newton stops.
        fixed: Integrate for `f` alone.
        ends: Whether space ends where the box does.
        enough: Relative errors that matter little beside those of the model's features.
        most: Points that are affordable.
    """
    k = len(box)
    goal = max(GOAL.get(k, ENOUGH), enough)
    sides = box if ends else wider(reduced, box)
    rough, nodes = NODES.get(k, FEW_NODES)
    axes = [np.linspace(low, high, FIRST.get(k, 1) + 1) for low, high in sides]
    most = min(MOST_POINTS, most, MOST_NUMBERS // (len(reduced.weights) + 8))
    h = np.sqrt(reduced.weights) * f
    least, stalled = (np.inf, np.inf), 0
    for _ in range(MOST_ROUNDS):
        next_round("panels")
        where = nodes_of(reduced, axes, [nodes] * k)
        if fixed:
            mass, log_z = where.law(h)
            found = Solution(mass, h, mass @ where.features.values, where.dual(h, log_z), 0)
        else:
            found = newton(where, h, tolerance)
            h = found.h
        errors = PanelErrors.of(reduced, where, found, axes, (nodes, rough))
        if k == 1:
            errors = errors.with_ends(errors_at_ends(reduced, where, found, axes[0], nodes))
        steep = (
            [steep_panels(where, found, axes, nodes)]
            if k == 1
            else [np.zeros(len(e) - 1, dtype=bool) for e in axes]
        )
        now = errors.integral, errors.moments
        falls = now[0] > RESOLVED or any(new < 0.5 * old for new, old in zip(now, least, strict=True))
        stalled = 0 if k > 1 or falls else stalled + 1
        least = min(now[0], least[0]), min(now[1], least[1])
        if stalled == MOST_STALLED:
            goal = np.inf  # only steep panels are halved from now on
        halved = _affordable(axes, errors.wrong(where, found, steep, goal), most / nodes**k)
        if halved is None:
            break
        axes = halved
    outside = 0.0 if ends else _outside(where, found, box)
    out = Continuum(found, where, errors.integral + BY_CHANCE, errors.moments, outside)
    return replace(out, moments=out.moments + BY_CHANCE * out.spread)


def wider(reduced: ReducedModel, box: Box) -> Box:
    """The box with room added for the tails."""
    out: Box = []
    for (low, high), radius in zip(box, reduced.nonnegative, strict=True):
        room = ROOM.get(len(box), 0.0) * (high - low)
        out.append((max(low - room, 0.0) if radius else low - room, high + room))
    return out


def _affordable(axes: list[FloatArray], wrong: list[FloatArray], most: float) -> list[FloatArray] | None:
    """The axes with the wanted panels halved: on all axes, or on one, or None if that takes too many
    points.
    """
    for threshold in (1.0, *sorted({float(w.max()) for w in wrong})):
        out = [
            np.unique(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])[w >= threshold]]))
            for edges, w in zip(axes, wrong, strict=True)
        ]
        if all(len(new) == len(old) for new, old in zip(out, axes, strict=True)):
            return None
        if np.prod([float(len(e) - 1) for e in out]) <= most:
            return out
    return None


def _outside(where: Support, found: Solution, box: Box) -> float:
    """Mass in the room added around the box: more than there is beyond it."""
    if len(box) not in ROOM:
        return LEFT_OUT
    ends = np.array(box)
    beyond = ((where.points < ends[:, 0]) | (where.points > ends[:, 1])).any(axis=1)
    return float(found.mass[beyond].sum())
