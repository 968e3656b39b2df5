"""The rung `mf.PDE`: masses on a grid that grows, by finite volumes or, with noise, Scharfetter–Gummel
fluxes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..grids._grid import Grid, transfer
from ..measures._measure import Density
from ..model import Model
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended, ended
from ..runs._reduced import featured
from ..runs._rung import State, labelled, part_of
from ._cells import initial_grid
from ._companions import MOST_AT_END, Discretisation, Solver
from ._gathered import atoms_in
from ._phases import DensityState, Past, Phase

if TYPE_CHECKING:
    from ._pde import PDE

_GONE = 1e-15  # cells at the ends with less mass than this are dropped when the grid grows
_MOST_GROWTH = 1e6  # a grid that has grown by this factor means that mass runs away


class DensityRung:
    """A run of `mf.PDE`: the masses of a density and, for the error of its risk, of the same on coarser
    grids.
    """

    def __init__(self, method: PDE, model: Model | ReducedModel, threads: int) -> None:
        self._reduced, self._method, self._threads = featured(model), method, threads
        require_convex(self._reduced, "mf.PDE")
        self._scheme = method.scheme_for(self._reduced)
        grid, mass = initial_grid(self._reduced, method)
        grid = grid.with_features()
        self._most = [n * 4 // 3 for n in grid.shape]
        self._first = tuple(float(e[-1] - e[0]) for e in grid.edges)
        self._discretisation = Discretisation(self._reduced, method, self._scheme, threads)
        if method.step is not None and self.noiseless:
            self._check_step(grid, mass, method.step)
        self._state = DensityState(self._discretisation.solvers(grid, mass, 0.0, 0.0))

    @property
    def noiseless(self) -> bool:
        """Tell whether the scheme is one of finite volumes."""
        return self._discretisation.noiseless

    @property
    def _fine(self) -> Solver:
        return self._state.solvers.fine

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates the density lives in."""
        return self._reduced

    @property
    def t(self) -> float:
        """The time reached."""
        return self._fine.flow.t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t; where mass comes to the end of the grid, on with a longer grid."""
        deadline = time.monotonic() + seconds
        phase: Phase | Ended = Phase.MEET if self._state.end is End.open_end else Phase.MOVE
        while isinstance(phase, Phase):
            match phase:
                case Phase.MOVE:
                    phase = self._move(t, deadline)
                case Phase.MEET:
                    phase = self._meet(deadline)
                case Phase.GROW:
                    phase = self._grow()
                case Phase.COMPARE:
                    phase = self._compare(t)
        return phase

    def _move(self, t: float, deadline: float) -> Phase | Ended:
        """The run itself goes to time t, or to that of the next record of the error."""
        state, fine, record = self._state, self._fine, self._next_record
        end = fine.flow.advance(min(t, record), max(deadline - time.monotonic(), 0.0))
        if fine.flow.t == record < t and self._counts()[0] == 0:  # no step was done: nothing to compare
            self._state = state._replace(past=state.past.seen(0.0, False))
            return Phase.MOVE
        self._state = state._replace(end=end)
        return Phase.MEET if end in (End.reached, End.open_end, End.stationary) else self._ended(end)

    def _meet(self, deadline: float) -> Phase | Ended:
        """The coarser runs go to where this one is, whatever happened there."""
        followed = self._state.solvers.follow(deadline)
        if followed is not End.reached:
            return Ended(followed)
        if self._state.end is End.open_end:
            return Phase.GROW
        return Phase.COMPARE if self._state.end is End.reached else self._ended(self._state.end)

    def _compare(self, t: float) -> Phase | Ended:
        """Record the error, if it is time to: `risk` reports the largest of those recorded last."""
        state, fine = self._state, self._fine
        if fine.flow.t == self._next_record:
            error = self._discretisation.error(state.solvers) if self._counts()[0] > 0 else 0.0
            self._state = state._replace(past=state.past.seen(error, self._discretisation.sharp))
        return Ended(End.reached) if fine.flow.t == t else Phase.MOVE

    @property
    def _next_record(self) -> float:
        return self._state.past.next if self._state.solvers.coarser else math.inf

    def _ended(self, end: End) -> Ended:
        if end is End.stuck:
            h = self._fine.flow.step_size
            return Ended(
                end,
                f"the step size fell to {h:.1e} at t = {self.t:g}: no step is accurate there, as if the "
                "potential were not finite",
            )
        return ended(end, self._fine.flow, self._method.tolerance, done=self._state.before[0])

    def measure(self) -> Density:
        """The masses of the cells."""
        fine = self._fine
        return Density(fine.grid.edges, fine.mass)

    def risk(self) -> tuple[float, float]:
        """R and its estimated error: the largest of the error now and those recorded last.

        The error oscillates in t: a small one now may be two errors that cancel. From a start in a single
        point, whose spread may grow, all records count, not the last two.
        """
        state = self._state
        return self._fine.risk(), max(self._discretisation.error(state.solvers), *state.past.errors)

    def observed(self) -> Mapping[str, float]:
        """The free energy."""
        fine = self._fine
        if isinstance(fine.flow, _core.FokkerPlanck):
            shift = self._reduced.log_volume + fine.grid.still_log_volume(fine.mass)
            return {"free_energy": fine.flow.free_energy - self._reduced.temperature * shift}
        mass = fine.flow.values()
        return {"free_energy": fine.potential.risk(mass) / 2 + float(fine.grid.decay() @ mass)}

    def state(self) -> State:
        """Grid, and numbers and vectors of all runs."""
        solvers, end, grown, before, rise, past = self._state
        grid = solvers.fine.grid
        arrays = {f"edges/{c}": e for c, e in enumerate(grid.edges)}
        arrays["counts"] = np.array([float(end is End.open_end), grown, *before])
        arrays["rise"] = np.array(rise)
        arrays["past"] = np.array([*past.errors, past.next])
        if grid.box is not None:
            arrays["box"] = grid.box
            arrays["separable"] = np.array(grid.features is not None)
        for k, solver in enumerate((solvers.fine, *solvers.coarser)):
            arrays |= labelled(f"grid{k}", solver.flow.state())
        return arrays

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Build the grid again and go back to the saved state."""
        edges = tuple(np.array(state[f"edges/{c}"]) for c in range(len(self._reduced.coordinates)))
        box = np.array(state["box"]) if "box" in state else None
        grid = Grid(self._reduced, edges, box)
        if box is not None and bool(state["separable"]):
            now = self._fine.grid
            same = now.box is not None and np.array_equal(now.box, box)
            grid = Grid(self._reduced, edges, box, now.features) if same else grid.on_box(box)
        solvers = self._discretisation.solvers(grid, np.full(grid.shape, 1.0 / grid.size), 0.0, 0.0)
        for k, solver in enumerate((solvers.fine, *solvers.coarser)):
            solver.flow.restore(part_of(state, f"grid{k}"))
        at_end, grown, steps, rejected, evaluations = (int(n) for n in state["counts"])
        older, last, next_record = state["past"].tolist()
        self._state = DensityState(
            solvers,
            End.open_end if at_end else End.reached,
            grown,
            (steps, rejected, evaluations),
            float(state["rise"]),
            Past((older, last), next_record),
        )

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: t."""
        return t

    def take_over(self, earlier: DensityRung) -> None:
        """Go on from where a rung with other forces is: on its grids, from their masses."""
        old = earlier._fine
        grid = Grid(self._reduced, old.grid.edges, old.grid.box, old.grid.features)
        first, masses = old.flow.step_size, [solver.mass for solver in earlier._state.solvers.coarser]
        self._first = earlier._first
        self._state = earlier._state._replace(
            solvers=self._discretisation.solvers(grid, old.mass, old.flow.t, first, masses),
            before=earlier._counts(),
            rise=0.0 if self.noiseless else earlier._largest_rise(),
        )

    def meta(self) -> dict[str, Any]:
        """Scheme, cells, extent and how often it grew, rank of the features, steps, and atoms of mass."""
        fine, grown = self._fine, self._state.grown
        steps, rejected, evaluations = self._counts()
        return {
            "scheme": self._scheme,
            "cells": list(fine.grid.shape),
            "extent": {name: [float(e[0]), float(e[-1])] for name, e in self._extent()},
            "grown": grown,
            "rank": fine.potential.rank,
            "steps": steps,
            "rejected": rejected,
            "evaluations": evaluations,
            "atoms": atoms_in(fine.mass, fine.grid),
            **({} if self.noiseless else {"largest_rise": self._largest_rise()}),
        }

    def _largest_rise(self) -> float:
        """The largest rise of the free energy in one step so far (rounding), 0 if there was none."""
        flow = self._fine.flow
        assert isinstance(flow, _core.FokkerPlanck)
        return max(0.0, flow.largest_rise, self._state.rise)

    def _extent(self) -> list[tuple[str, FloatArray]]:
        return list(zip(self._reduced.coordinates, self._fine.grid.edges, strict=True))

    def _counts(self) -> tuple[int, int, int]:
        """Steps done, steps refused and evaluations so far, on all grids."""
        flow, before = self._fine.flow, self._state.before
        return before[0] + flow.steps, before[1] + flow.rejected, before[2] + flow.evaluations

    def _grow(self) -> Phase | Ended:
        """Longer grids, from the present masses, unless that has no end."""
        fine, coarser = self._state.solvers
        grid, mass = fine.grid, fine.mass
        for c, first in zip(grid.moving, (self._first[c] for c in grid.moving), strict=True):
            along = np.moveaxis(mass, c, 0)
            grid = grid.trimmed(c, mass, _GONE)  # where mass was before needs no cells
            for side, end in ((0, along[0].sum()), (1, along[-1].sum())):
                if end > MOST_AT_END / 8 and not (side == 0 and grid.has_wall(c)):
                    grid = grid.grown(c, side, self._most[c])
            if grid.edges[c][-1] - grid.edges[c][0] > _MOST_GROWTH * first:
                ends = {name: [float(e[0]), float(e[-1])] for name, e in self._extent()}
                return Ended(
                    End.diverged,
                    f"mass runs away: at t = {self.t:g} the grid had grown to {ends}. Add a ridge",
                )
        grid = grid.with_features(fine.grid)
        masses, coarse = [], grid
        for solver in coarser:
            coarse = coarse.coarse()
            masses.append(transfer(solver.mass, solver.grid, coarse))
        mass = transfer(mass, fine.grid, grid)
        self._state = self._state._replace(
            solvers=self._discretisation.solvers(grid, mass, fine.flow.t, fine.flow.step_size, masses),
            end=End.reached,
            grown=self._state.grown + 1,
            before=self._counts(),
            rise=0.0 if self.noiseless else self._largest_rise(),
        )
        return Phase.MOVE

    def _check_step(self, grid: Grid, mass: FloatArray, step: float) -> None:
        stepper = _core.GridStepper(grid.potential(self._threads), grid.axes(), self._scheme)
        bound = stepper.bound(grid.to_core(mass))
        if step > bound:
            raise ValueError(
                f"step must be at most {bound:.6g}, where {self._scheme} on {'×'.join(map(str, grid.shape))} "
                f"cells is stable at the start, got {check.shown(step)}"
            )
