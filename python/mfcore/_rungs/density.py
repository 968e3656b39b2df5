"""The limit itself: a density on a grid, by finite volumes or, with noise, by Scharfetter–Gummel fluxes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check, _core
from .._check import FloatArray
from .._grid import Grid, transfer
from ..measure import Density
from ..model import Model
from ..reduce import ReducedModel
from .cells import initial_grid, starts_sharp
from .particles import message_of
from .reduced import reduced_of

if TYPE_CHECKING:
    from ..density import PDE

_WALL = 1e-10  # mass in the outermost cells at which the grid grows
_GONE = 1e-15  # mass at the ends that need not stay where it is when the grid grows
_MOST_GROWTH = 1e6  # of the extent, after which mass is taken to run away
_ACCURACY = 16.0  # over cells²: error of a noisy step in time, so that it falls with that of the grid
_CHANGE = 1.0  # over cells: how much of a relaxation time of the potential one step may take
_COARSER = 2  # grids for the error estimate
_CHANCE = 2 / 3  # of the error if its parts at the nodes do not cancel is the least that is stated
_ATOM = 0.01  # mass in two cells next to each other that may be called an atom ...
_CONTRAST = 10.0  # ... if it is so many times what is in the cells beside them


class _Solver(NamedTuple):
    """A grid and the run on it."""

    grid: Grid
    potential: _core.GridPotential
    nodes: FloatArray  # from its moments to √p_q f_q
    flow: _core.Flow

    @property
    def mass(self) -> FloatArray:
        return self.grid.from_core(self.flow.theta())

    def risk(self) -> float:
        return self.potential.risk(self.flow.theta())

    def function(self) -> FloatArray:
        """√p_q f_q at the nodes."""
        return self.potential.moments(self.flow.theta()) @ self.nodes


class _State(NamedTuple):
    """Assigned as a whole, so that Ctrl-C finds the old or the new one."""

    fine: _Solver
    coarser: tuple[_Solver, ...]  # on half and a quarter of the cells, for the error estimate
    at_wall: bool = False  # the grid must grow before anything else
    grown: int = 0
    before: tuple[int, int, int] = (0, 0, 0)  # steps, rejected ones and evaluations on smaller grids
    rise: float = 0.0  # of the free energy on them, with noise


class DensityRung:
    """A density and, for the error estimate, the same on coarser grids."""

    def __init__(self, method: PDE, model: Model | ReducedModel, seed: int, threads: int) -> None:
        del seed  # nothing is random
        self._reduced, self._method, self._threads = reduced_of(model), method, threads
        self._scheme = method.scheme_for(self._reduced)
        grid, mass = initial_grid(self._reduced, method)
        grid = grid.with_features()
        self._order = 1 if self._scheme == "upwind" or starts_sharp(self._reduced, method) else 2
        self._most = [n * 4 // 3 for n in grid.shape]
        self._first = tuple(float(e[-1] - e[0]) for e in grid.edges)
        if method.step is not None and self.noiseless:
            self._check_step(grid, mass, method.step)
        self._state = self._solvers(grid, mass, [], 0.0, 0.0)
        self._end = "reached"

    @property
    def noiseless(self) -> bool:
        """Whether the scheme is one of finite volumes."""
        return self._scheme != "scharfetter-gummel"

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates the density lives in."""
        return self._reduced

    @property
    def t(self) -> float:
        """The time reached."""
        return self._state.fine.flow.t

    @property
    def status(self) -> str:
        """``"running"``, or how the run ended: ``"interrupted"``, ``"diverged"`` or ``"stationary"``."""
        running = ("reached", "out of time", "wall")
        return (
            "running"
            if self._end in running
            else {"stuck": "diverged", "runaway": "diverged"}.get(self._end, self._end)
        )

    @property
    def message(self) -> str:
        """What ended the run, and what to do."""
        if self._end == "runaway":
            ends = {name: [float(e[0]), float(e[-1])] for name, e in self._extent()}
            return f"mass runs away: at t = {self.t:g} the grid had grown to {ends}. Add a ridge"
        if self._end == "stuck":
            h = self._state.fine.flow.step_size
            return (
                f"the step size fell to {h:.1e} at t = {self.t:g}: no step is accurate there, as if the "
                "potential were not finite"
            )
        return message_of(self._end, self._state.fine.flow, self._method.tolerance)

    def advance(self, t: float, seconds: float) -> bool:
        """Go to time t; where mass comes to the end of the grid, on with a longer grid."""
        deadline = time.monotonic() + seconds
        while True:
            fine = self._state.fine
            if not self._state.at_wall:
                self._end = fine.flow.run(t, max(deadline - time.monotonic(), 0.0))
                if self._end == "wall":
                    self._state = self._state._replace(at_wall=True)
                    continue
            # The other grids follow to where this one is, whatever happened there.
            if self._end in ("reached", "wall", "stationary"):
                for coarse in self._state.coarser:
                    followed = coarse.flow.run(fine.flow.t, max(deadline - time.monotonic(), 0.0))
                    if followed in ("out of time", "interrupted"):
                        self._end = followed
                        return False
            if not self._state.at_wall:
                return self._end == "reached"
            if not self._grow():
                return False
            self._end = "reached"

    def measure(self) -> Density:
        """The masses of the cells."""
        fine = self._state.fine
        return Density(fine.grid.edges, fine.mass)

    def risk(self) -> tuple[float, float]:
        """R and its estimated error: the distance to that of vanishing cells.

        Differences of risks are now and then small by chance: at least two thirds of what they are if those
        at the nodes do not cancel, Σ 2p_q |f_q − y_q| |δf_q|, counts.
        """
        risk = self._state.fine.risk()
        if not self._state.coarser:
            return risk, math.nan
        solvers = (self._state.fine, *self._state.coarser)
        values, risks = [s.function() for s in solvers], [s.risk() for s in solvers]
        off = 2 * np.abs(values[0] - np.sqrt(self._reduced.weights) * self._reduced.targets)
        plain = extrapolated_error([abs(a - b) for a, b in pairwise(risks)], self._order)
        apart = extrapolated_error([float(off @ np.abs(a - b)) for a, b in pairwise(values)], self._order)
        return risk, max(plain, _CHANCE * apart)

    def observed(self) -> Mapping[str, float]:
        """The free energy."""
        fine = self._state.fine
        if isinstance(fine.flow, _core.FokkerPlanck):
            shift = self._reduced.log_volume + fine.grid.still_log_volume(fine.mass)
            return {"free_energy": fine.flow.free_energy - self._reduced.temperature * shift}
        mass = fine.flow.theta()
        return {"free_energy": fine.potential.risk(mass) / 2 + float(fine.grid.decay() @ mass)}

    def state(self) -> dict[str, np.ndarray]:
        """Grid, and numbers and vectors of both runs."""
        fine, coarser, at_wall, grown, before, rise = self._state
        arrays = {f"edges/{c}": e for c, e in enumerate(fine.grid.edges)}
        arrays["counts"] = np.array([float(at_wall), grown, *before])
        arrays["rise"] = np.array(rise)
        if fine.grid.box is not None:
            arrays["box"] = fine.grid.box
            arrays["separable"] = np.array(fine.grid.features is not None)
        for k, solver in enumerate((fine, *coarser)):
            arrays[f"numbers/{k}"], arrays[f"vectors/{k}"] = solver.flow.save()
        return arrays

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Build the grid again and go back to the saved state."""
        edges = tuple(np.array(state[f"edges/{c}"]) for c in range(len(self._reduced.coordinates)))
        box = np.array(state["box"]) if "box" in state else None
        grid = Grid(self._reduced, edges, box)
        if box is not None and bool(state["separable"]):
            now = self._state.fine.grid
            same = now.box is not None and np.array_equal(now.box, box)
            grid = Grid(self._reduced, edges, box, now.features) if same else grid.on_box(box)
        new = self._solvers(grid, np.full(grid.shape, 1.0 / grid.size), [], 0.0, 0.0)
        for k, solver in enumerate((new.fine, *new.coarser)):
            solver.flow.restore(state[f"numbers/{k}"].tolist(), state[f"vectors/{k}"])
        at_wall, grown, *before = (int(n) for n in state["counts"])
        steps, rejected, evaluations = before
        self._state = new._replace(
            at_wall=bool(at_wall),
            grown=grown,
            before=(steps, rejected, evaluations),
            rise=float(state["rise"]),
        )

    def meta(self) -> dict[str, Any]:
        """Scheme, cells, extent and how often it grew, rank of the features, steps, and atoms of mass."""
        fine, grown = self._state.fine, self._state.grown
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
        """Of the free energy in one step, of which rounding leaves something; 0 if there was none."""
        flow = self._state.fine.flow
        assert isinstance(flow, _core.FokkerPlanck)
        return max(0.0, flow.largest_rise, self._state.rise)

    def _extent(self) -> list[tuple[str, FloatArray]]:
        return list(zip(self._reduced.coordinates, self._state.fine.grid.edges, strict=True))

    def _counts(self) -> tuple[int, int, int]:
        """Steps, rejected ones and evaluations so far."""
        flow, before = self._state.fine.flow, self._state.before
        return before[0] + flow.steps, before[1] + flow.rejected, before[2] + flow.evaluations

    def _solvers(
        self, grid: Grid, mass: FloatArray, coarser: list[FloatArray], t: float, first: float
    ) -> _State:
        """Runs from time t on; `coarser` are the masses on coarser grids, those of `mass` if left out."""
        fine, found, coarse = self._solver(grid, mass, t, first), [], grid
        for k in range(_COARSER if self._method.error else 0):
            coarse, finer = coarse.coarse(), coarse
            mass = transfer(mass, finer, coarse)
            found.append(self._solver(coarse, coarser[k] if coarser else mass, t, first, 0.0, 2 ** (k + 1)))
        return _State(fine, tuple(found))

    def _solver(
        self,
        grid: Grid,
        mass: FloatArray,
        t: float,
        first: float,
        wall: float = _WALL,
        coarser: int = 1,
    ) -> _Solver:
        method, flat = self._method, grid.to_core(mass)
        potential, nodes = grid.compressed(self._threads, split=not self.noiseless)
        step, tolerance = method.step or 0.0, method.tolerance or 0.0
        flow: _core.Flow
        if self.noiseless:
            change = _CHANGE / max(grid.shape[c] for c in grid.moving)
            flow = _core.Flow.finite_volume(
                potential,
                grid.axes(),
                flat,
                self._scheme,
                t=t,
                first=first,
                step=step,
                accuracy=change,
                tolerance=tolerance,
                wall=wall,
            )
        else:
            flow = _core.FokkerPlanck(
                potential,
                grid.diffusion_axes(),
                flat,
                temperature=self._reduced.temperature,
                t=t,
                rtol=_ACCURACY / max(grid.shape[c] for c in grid.moving) ** 2,
                first=first,
                step=step * coarser,
                tolerance=tolerance,
                wall=wall,
                threads=self._threads,
            )
        return _Solver(grid, potential, nodes, flow)

    def _grow(self) -> bool:
        """Longer grids, from the present masses; False where that has no end."""
        fine, coarser, _, grown, *_ = self._state
        grid, mass = fine.grid, fine.mass
        for c, first in zip(grid.moving, (self._first[c] for c in grid.moving), strict=True):
            along = np.moveaxis(mass, c, 0)
            grid = grid.trimmed(c, mass, _GONE)  # where mass was before needs no cells
            for side, end in ((0, along[0].sum()), (1, along[-1].sum())):
                if end > _WALL / 8 and not (side == 0 and grid.has_wall(c)):
                    grid = grid.grown(c, side, self._most[c])
            if grid.edges[c][-1] - grid.edges[c][0] > _MOST_GROWTH * first:
                self._end = "runaway"
                return False
        grid = grid.with_features(fine.grid)
        masses, coarse = [], grid
        for solver in coarser:
            coarse = coarse.coarse()
            masses.append(transfer(solver.mass, solver.grid, coarse))
        t, h = fine.flow.t, fine.flow.step_size
        state = self._solvers(grid, transfer(mass, fine.grid, grid), masses, t, h)
        rise = 0.0 if self.noiseless else self._largest_rise()
        self._state = state._replace(grown=grown + 1, before=self._counts(), rise=rise)
        return True

    def _check_step(self, grid: Grid, mass: FloatArray, step: float) -> None:
        stepper = _core.GridStepper(grid.potential(self._threads), grid.axes(), self._scheme)
        bound = stepper.bound(grid.to_core(mass))
        if step > bound:
            raise ValueError(
                f"step must be at most {bound:.6g}, where {self._scheme} on {'×'.join(map(str, grid.shape))} "
                f"cells is stable at the start, got {_check.shown(step)}"
            )


def extrapolated_error(apart: Sequence[float], order: int) -> float:
    """Distance to vanishing cells, from those between all and half, and half and a quarter of the cells.

    Differences that shrink by a factor f per halving leave last/(f − 1): f is measured, between 3/2 and
    2^order. A last difference that is small by chance counts for what the one before makes it.
    """
    (last, before), ideal = apart, 2.0**order
    factor = min(max(before / last, 1.5), ideal) if last > 0 else ideal
    return max(last / (factor - 1), before / ideal)


def atoms_in(mass: FloatArray, grid: Grid) -> list[dict[str, Any]]:
    """Where much mass is in at most two cells along each moving coordinate."""
    found: list[dict[str, Any]] = []
    moving = set(grid.moving)
    near, far = mass, mass
    for c in range(mass.ndim):
        if c in moving:
            near, far = _windows(near, c, 0, 2), _windows(far, c, 1, 4)
    where = np.argwhere((near > _ATOM) & (near > _CONTRAST * (far - near)))
    taken: set[tuple[int, ...]] = set()
    for index in sorted((tuple(map(int, i)) for i in where), key=lambda i: -near[i]):
        cells = list(product(*(range(i, i + 1 + (c in moving)) for c, i in enumerate(index))))
        cells = [cell for cell in cells if all(i < n for i, n in zip(cell, mass.shape, strict=True))]
        if taken.isdisjoint(cells):
            taken.update(cells)
            weights = np.array([mass[cell] for cell in cells])
            centers = np.array([[grid.centers[c][i] for c, i in enumerate(cell)] for cell in cells])
            position = (weights @ centers / weights.sum()).tolist()
            found.append({"at": position, "mass": float(weights.sum())})
    return found


def _windows(mass: FloatArray, c: int, before: int, length: int) -> FloatArray:
    """Sums over `length` cells along axis c, from `before` cells before each on."""
    pad = [(0, 0)] * mass.ndim
    pad[c] = (before + 1, length - before)
    total = np.cumsum(np.pad(mass, pad), axis=c)
    n = mass.shape[c]
    upper, lower = np.arange(length, length + n), np.arange(n)
    return np.asarray(np.take(total, upper, axis=c) - np.take(total, lower, axis=c))
