"""Choose the grid on which `mf.PDE` starts, and put the masses of ρ₀ into its cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.check import FloatArray
from ..grids._grid import Grid, centered_edges
from ..init._blocks import share_among_cells
from ..measures._measure import Density
from ..reductions._model import ReducedModel

if TYPE_CHECKING:
    from ._pde import PDE

_DEFAULT = {1: 400, 2: 200}  # cells per moving coordinate, by the number of moving coordinates
MOST_CELLS = 1 << 22  # most cells in all: 32 MB of masses
_STILL = 12  # Gauss nodes of a random coordinate that does not move
_ROOM = 0.25  # the grid extends beyond the support of ρ₀ by this fraction of its length, on each side
_NODES = 32  # Gauss nodes that stand for the support of a law that knows no quantiles
_SPREAD = 8.0  # such a law is taken to extend so many standard deviations from its mean


def initial_grid(reduced: ReducedModel, method: PDE) -> tuple[Grid, FloatArray]:
    """The grid of a run at t = 0, and the masses of ρ₀ in its cells."""
    names = reduced.coordinates
    moving = [c for c, rate in enumerate(reduced.rates) if rate > 0]
    if not 1 <= len(moving) <= 2:
        raise ValueError(
            f"model must have one or two moving coordinates for a density on a grid, got {len(moving)} of "
            f"({', '.join(names)}); mf.Atoms takes any number"
        )
    if method.start is not None:
        return _given(reduced, method.start)
    law = reduced.initial
    if law is None:
        raise ValueError(
            f"init must have a law in the coordinates ({', '.join(names)}), got None; or pass "
            "mf.PDE(start=mf.Density(…))"
        )
    wanted = method.cells if method.cells is not None else _DEFAULT[len(moving)]
    counts = (wanted,) * len(moving) if isinstance(wanted, int) else wanted
    if len(counts) != len(moving):
        which = ", ".join(names[c] for c in moving)
        raise ValueError(f"cells must be one number or one for each of {which}, got {wanted!r}")
    if math.prod(counts) > MOST_CELLS:
        raise ValueError(f"cells must be at most {MOST_CELLS} in all, got {'×'.join(map(str, counts))}")
    extent = dict(method.extent or {})
    for name in extent:
        if name not in [names[c] for c in moving]:
            which = ", ".join(names[c] for c in moving)
            raise ValueError(f"extent must name moving coordinates ({which}), got {name!r}")

    points, weights = law.quadrature(_STILL if len(moving) < len(names) else _NODES)
    support = _support(law, points, weights)
    edges: list[FloatArray] = []
    for c, name in enumerate(names):
        if c not in moving:
            edges.append(centered_edges(np.unique(points[:, c])))
            continue
        count = counts[moving.index(c)]
        low, high = _ends(name, support[c], extent.get(name), reduced.nonnegative[c])
        edges.append(np.linspace(low, high, count + 1))
        mean = weights @ points[:, c]
        std = float(np.sqrt(weights @ (points[:, c] - mean) ** 2))
        if 1e-9 * (high - low) < std < (high - low) / count:
            raise ValueError(
                f"cells must be at least {int(np.ceil((high - low) / std))} along {name}, or wider than the "
                f"standard deviation {std:g} of ρ0 on [{low:g}, {high:g}], got {count}"
            )
    if hasattr(law, "cell_masses"):
        mass = law.cell_masses(edges, [None if c in moving else _STILL for c in range(len(names))])
    else:
        most = 4 * max(counts) if len(names) == 1 else _NODES
        points, weights = law.quadrature(most)
        mass = share_among_cells(points, weights, edges)
    return Grid(reduced, tuple(edges)), np.asarray(mass / mass.sum())


def starts_sharp(reduced: ReducedModel, method: PDE) -> bool:
    """Tell whether the initial law knows a moving coordinate exactly: nothing is smooth then."""
    if method.start is not None or not hasattr(reduced.initial, "support"):
        return False
    limits = zip(reduced.initial.support(), reduced.rates, strict=True)
    return any(rate > 0 and low == high for (low, high), rate in limits)


def _support(law: Any, points: FloatArray, weights: FloatArray) -> list[tuple[float, float]]:
    """The interval of one coordinate that holds the initial law, by its own account or by its Gauss nodes."""
    if hasattr(law, "support"):
        return list(law.support())
    mean = weights @ points
    spread = _SPREAD * np.sqrt(weights @ (points - mean) ** 2)
    low, high = np.maximum(mean - spread, points.min(axis=0)), np.minimum(mean + spread, points.max(axis=0))
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _ends(
    name: str, support: tuple[float, float], given: tuple[float, float] | None, nonnegative: bool
) -> tuple[float, float]:
    """Ends of the grid along one coordinate: those given, or the support with some room, radii not below
    0.
    """
    low, high = support
    if given is not None:
        if not given[0] <= low <= high <= given[1]:
            raise ValueError(
                f"extent of {name} must hold ρ0, which is on [{low:g}, {high:g}], got {list(given)}"
            )
        if nonnegative and given[0] < 0:
            raise ValueError(f"extent of {name} must be >= 0, got {list(given)}")
        return given
    room = _ROOM * (high - low) if high > low else 0.5 * (abs(low) or 1.0)
    low, high = low - room, high + room
    # A wall that is near is better than one more cell that ends there.
    return (0.0 if nonnegative and low < room else low), high


def _given(reduced: ReducedModel, start: Density) -> tuple[Grid, FloatArray]:
    """Grid and masses of a density that the user gave as `start`."""
    names = reduced.coordinates
    if len(start.edges) != len(names):
        raise ValueError(
            f"start must have the coordinates ({', '.join(names)}), got a density in {len(start.edges)}"
        )
    for name, radius, edges in zip(names, reduced.nonnegative, start.edges, strict=True):
        if radius and edges[0] < 0:
            raise ValueError(f"start must have edges >= 0 along {name}, got {edges[0]:g}")
    return Grid(reduced, start.edges), start.mass / start.mass.sum()
