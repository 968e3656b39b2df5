"""Gradient flow by the implicit solvers of SciPy, for stiff systems, with the interface of `_core.Flow`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base.check import FloatArray, memory
from ._ends import End
from ._rung import State

# A solver is started afresh after so many steps, because its memory cannot be saved: a saved state is its
# last start, and `restore` repeats the steps since then.
_RESTART = 500

KINDS = {"lsoda": "LSODA", "bdf": "BDF", "radau": "Radau"}
# matrices, of the size of the state squared, that each solver holds
_MATRICES = {"lsoda": 1, "bdf": 4, "radau": 6}


class _Point(NamedTuple):
    """The state of the solver, replaced as a whole so that Ctrl-C finds the old or the new one."""

    anchor_t: float
    anchor: FloatArray
    done: int  # steps since the last start of the solver
    t: float
    y: FloatArray
    dense: Any  # the last step as a function of time
    steps: int


class ImplicitFlow:
    """A run in progress by `scipy.integrate.LSODA`, `BDF` or `Radau`, used as `_core.Flow` is.

    Args:
        system: Whose velocity is integrated.
        start: The state at t = 0.
        kind: Of `KINDS`.
        rtol: Relative error per step.
        atol: Absolute error per step.
        tolerance: Stop where the root mean square of the gradient is below it; 0: never.
        weights: Of the rows in that mean, of sum 1; None: equal ones.
        walls: Columns whose entries are >= 0.
        unit: Columns of a row that are a point of the unit sphere, if any are.
    """

    rejected, risk_error, failure = 0, 0.0, ""

    def __init__(
        self,
        system: _core.System,
        start: FloatArray,
        kind: str,
        *,
        rtol: float,
        atol: float,
        tolerance: float = 0.0,
        weights: FloatArray | None = None,
        walls: Sequence[bool] = (),
        unit: slice | None = None,
    ) -> None:
        self._plain, self._kind, self._rtol, self._atol = system, kind, rtol, atol
        self._rest_at(system.resting_radius(start, rtol))
        self._tolerance, self._unit = tolerance, unit
        speed = np.array(system.speed)
        rows = system.size // len(speed)
        share = np.full(rows, 1 / rows) if weights is None else weights
        self._moving = np.tile(speed > 0, rows)
        self._speed = np.tile(speed, rows)[self._moving]
        self._shares = np.repeat(share, len(speed))[self._moving] / max(int((speed > 0).sum()), 1)
        self._walls: npt.NDArray[np.bool_] = np.resize(np.array(walls or [False]), system.size)
        self._columns = len(speed)
        memory(_MATRICES[kind] * 8.0 * float(self._moving.sum()) ** 2, "method", kind)
        begin = self._system.fold(start.ravel())
        self._point = _Point(0.0, begin, 0, 0.0, begin, None, 0)
        self._solver: Any = None
        self._shown, self.evaluations = 0.0, 0

    @property
    def t(self) -> float:
        """The time reached."""
        return self._shown

    @property
    def steps(self) -> int:
        """Steps done."""
        return self._point.steps

    @property
    def step_size(self) -> float:
        """Length of the last step, 0 before the first."""
        return 0.0 if self._point.dense is None else float(self._point.dense.t - self._point.dense.t_old)

    def advance(self, t: float, seconds: float) -> End:
        """Go to time t; states between steps come from the solver's interpolant."""
        deadline = time.monotonic() + seconds
        end = End.reached
        try:
            while end is End.reached and self._point.t < t:
                end = self._step()
                if end is End.reached and time.monotonic() >= deadline and self._point.t < t:
                    end = End.out_of_time
        except KeyboardInterrupt:
            self._solver, end = None, End.interrupted
        self._shown = max(self._shown, min(t, self._point.t))
        return end

    def values(self) -> FloatArray:
        """The state at the time reached."""
        point = self._point
        y = point.y if self._shown == point.t else point.dense(self._shown)
        return self._system.unfold(self._projected(y))

    def refused(self) -> FloatArray:
        """No step is refused that errors allow."""
        return self.values()

    def state(self) -> State:
        """The last start of the solver, and what it did since."""
        p = self._point
        numbers = [p.anchor_t, p.done, p.steps, self._shown, self.evaluations, self._delta]
        return {"numbers": np.array(numbers), "vectors": p.anchor}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Start the solver where it last started, and do its steps again."""
        anchor_t, done, steps, shown, evaluations, *delta = state["numbers"].tolist()
        self._rest_at(delta[0] if delta else 0.0)  # none was saved before rows could rest
        anchor = np.array(state["vectors"])
        self._point = _Point(anchor_t, anchor, 0, anchor_t, anchor, None, int(steps - done))
        self._solver = None
        for _ in range(int(done)):
            self._step()
        self._shown, self.evaluations = shown, int(evaluations)

    def _rest_at(self, delta: float) -> None:
        """Take coordinates in which rows can rest within this distance of a kink at w = 0."""
        self._delta, self._system = delta, self._plain.folded(delta)

    def _step(self) -> End:
        """One step of the solver."""
        p = self._point
        if p.done == _RESTART:
            p = self._point = p._replace(anchor_t=p.t, anchor=self._projected(p.y), done=0)
            self._solver = None
        if self._tolerance > 0:
            gradient = self._velocity(p.t, p.y)[self._moving] / self._speed
            if np.sqrt(self._shares @ gradient**2) < self._tolerance:
                return End.stationary
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a failure is reported below
            if self._solver is None:
                self._open()
            solver = self._solver
            failure = solver.step()
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            self.failure = (
                f"{self._kind} failed after step {p.steps} (t = {p.t:g}): "
                f"{failure or 'the state was no longer finite'}. Try a smaller rtol"
            )
            return End.diverged
        self._point = p._replace(
            done=p.done + 1, t=solver.t, y=solver.y.copy(), dense=solver.dense_output(), steps=p.steps + 1
        )
        return End.reached

    def _open(self) -> None:
        """A solver at the anchor, moved on to the present point."""
        import scipy.integrate

        kind, p = getattr(scipy.integrate, KINDS[self._kind]), self._point
        # Without a bound the steps cannot depend on the horizon or the save points.
        solver = kind(self._velocity, p.anchor_t, p.anchor.copy(), np.inf, rtol=self._rtol, atol=self._atol)
        for _ in range(p.done):
            solver.step()
        self._solver = solver

    def _velocity(self, _: float, y: FloatArray) -> FloatArray:
        self.evaluations += 1
        velocity = self._system(y)
        # States are not clamped inside a solver, which has a memory of them: behind a wall they wait.
        return np.where(self._walls & (y <= 0), np.maximum(velocity, 0.0), velocity)

    def _projected(self, y: FloatArray) -> FloatArray:
        """A copy with every point back on its sphere, and on this side of its walls."""
        rows: FloatArray = np.where(self._walls, np.maximum(y, 0.0), y).reshape(-1, self._columns)
        if self._unit is not None:
            rows[:, self._unit] /= np.linalg.norm(rows[:, self._unit], axis=1, keepdims=True)
        return rows.ravel()
