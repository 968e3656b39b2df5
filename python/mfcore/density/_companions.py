"""A density on a grid, the same run on coarser grids, and the error of the risk by comparing their risks
(eq. (7.16)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..grids._grid import Grid, transfer
from ..reductions._model import ReducedModel
from ..runs._ends import End
from ._cells import starts_sharp
from ._gathered import atoms_in

if TYPE_CHECKING:
    from ._pde import PDE

MOST_AT_END = 1e-10  # mass in the cells at the open ends of the grid beyond which it grows
# with noise: relative error per step times cells², so that it falls with the grid's own error
_ACCURACY = 16.0
# without noise: stiffness of eq. (7.6) times cells: a step takes this fraction of a relaxation time, over
# cells
_CHANGE = 1.0
_COARSER = 2  # number of coarser grids, for the error estimate
# Safety factors of the grid convergence index, eq. (7.16): _SAFE if the observed order is within _NEAR of the
# scheme's, else _UNSURE.
_SAFE, _UNSURE, _NEAR = 1.25, 3.0, 0.5
_LEAST = 1.0  # an observed order below this counts as this; the safety factor covers the rest


class Solver(NamedTuple):
    """One grid, the potential on it, and the flow of masses."""

    grid: Grid
    potential: _core.GridPotential
    flow: _core.Flow

    @property
    def mass(self) -> FloatArray:
        """Masses of the cells, in the order of the coordinates."""
        return self.grid.from_core(self.flow.values())

    def risk(self) -> float:
        """R of these masses."""
        return self.potential.risk(self.flow.values())


class Solvers(NamedTuple):
    """The run on its grid and, if its error is wanted, on grids with half and a quarter of the cells."""

    fine: Solver
    coarser: tuple[Solver, ...]

    def follow(self, deadline: float) -> End:
        """The coarser ones go to where the fine one is, unless Ctrl-C or the time says otherwise."""
        for coarse in self.coarser:
            end = coarse.flow.advance(self.fine.flow.t, max(deadline - time.monotonic(), 0.0))
            if end in (End.out_of_time, End.interrupted):
                return end
        return End.reached


class Discretisation:
    """The settings that all grids of one run share: the scheme, the sizes of steps, and the order."""

    def __init__(self, reduced: ReducedModel, method: PDE, scheme: str, threads: int) -> None:
        self._reduced, self._method, self._scheme, self._threads = reduced, method, scheme, threads
        self.noiseless = scheme != "scharfetter-gummel"
        self.sharp = starts_sharp(reduced, method)

    def solvers(
        self, grid: Grid, mass: FloatArray, t: float, first: float, coarser: Sequence[FloatArray] = ()
    ) -> Solvers:
        """Start runs at time t from `mass`; `coarser`: masses on coarser grids, merged from `mass` if
        left out.
        """
        fine, found, coarse = self._solver(grid, mass, t, first, 1), [], grid
        for k in range(_COARSER if self._method.error else 0):
            coarse, finer = coarse.coarse(), coarse
            mass = transfer(mass, finer, coarse)
            found.append(self._solver(coarse, coarser[k] if coarser else mass, t, first, 2 ** (k + 1)))
        return Solvers(fine, tuple(found))

    def error(self, solvers: Solvers) -> float:
        """Estimate the error of the risk on the finest grid from the risks on it and on two coarser grids
        (grid convergence index, eq. (7.16)); NaN without them.

        Nothing is of second order where mass is in single cells: there from the start, or gathered.
        """
        if not solvers.coarser:
            return math.nan
        first_order = self._scheme == "upwind" or self.sharp
        fine = solvers.fine
        order = 1 if first_order or atoms_in(fine.mass, fine.grid) else 2
        return convergence_index([solver.risk() for solver in (fine, *solvers.coarser)], order)

    def _solver(self, grid: Grid, mass: FloatArray, t: float, first: float, coarser: int) -> Solver:
        method, flat = self._method, grid.to_core(mass)
        potential = grid.potential(self._threads, split=not self.noiseless)
        step, tolerance = method.step or 0.0, method.tolerance or 0.0
        cells, most = max(grid.shape[c] for c in grid.moving), MOST_AT_END if coarser == 1 else 0.0
        flow: _core.Flow
        if self.noiseless:
            flow = _core.Flow.finite_volume(
                potential,
                grid.axes(),
                flat,
                self._scheme,
                t=t,
                first=first,
                step=step,
                accuracy=_CHANGE / cells,
                tolerance=tolerance,
                most_watched=most,
            )
        else:
            flow = _core.FokkerPlanck(
                potential,
                grid.diffusion_axes(),
                flat,
                temperature=self._reduced.temperature,
                t=t,
                rtol=_ACCURACY / cells**2,
                first=first,
                step=step * coarser,
                tolerance=tolerance,
                most_watched=most,
                threads=self._threads,
            )
        return Solver(grid, potential, flow)


def convergence_index(risks: Sequence[float], order: int) -> float:
    """The error of the first of three risks, on n, n/2 and n/4 cells, by the grid convergence index.

    Differences that shrink by 2^p per halving leave last/(2^p − 1). The order p is measured, between 1 and
    that of the scheme; a last difference that is small by chance counts for what the one before makes it: eq.
    (7.16).
    """
    last, before = abs(risks[0] - risks[1]), abs(risks[1] - risks[2])
    if last == before == 0:
        return 0.0
    with np.errstate(divide="ignore"):
        observed = float(np.log2(before) - np.log2(last))
    p = min(max(observed, _LEAST), order)
    factor = _SAFE if abs(observed - order) <= _NEAR else _UNSURE
    return factor * max(last, before / 2**p) / (2**p - 1)
