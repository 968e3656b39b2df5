"""Gradient flow by the implicit solvers of SciPy, for speeds that differ by many orders of magnitude."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._check import FloatArray
from ..model import Model
from ..reduce import ReducedModel
from .particles import population, system_of

if TYPE_CHECKING:
    from ..methods import Particles

# The solvers' own memory cannot be copied, so they start afresh after so many steps, at a state that can be
# stored; `restore` does again what they did since.
_RESTART = 500


class _Point(NamedTuple):
    """Where the solver is: assigned as a whole, so that Ctrl-C finds the old or the new one."""

    anchor_t: float
    anchor: FloatArray
    done: int  # steps since the anchor
    t: float
    y: FloatArray
    dense: Any  # the last step as a function of time
    steps: int


class StiffRung:
    """N neurons moved by `scipy.integrate.LSODA`, `BDF` or `Radau`."""

    reduced: ReducedModel | None = None

    def __init__(self, method: Particles, model: Model, seed: int, threads: int, followers: int = 0) -> None:
        start = population(model, method.neurons, followers, seed)
        self._method, self._shape, self._rows = method, start.shape, followers or method.neurons
        self._w = slice(model.network.row(0), None) if model.network.sphere else None
        self._system = system_of(model, method.neurons, method.expectation, threads, followers)
        self._speed = np.tile(self._system.speed, len(start))
        self._point = _Point(0.0, start.ravel(), 0, 0.0, start.ravel(), None, 0)
        self._solver: Any = None
        self._shown, self._status, self._message, self._evaluations = 0.0, "running", "", 0

    @property
    def t(self) -> float:
        """The time reached."""
        return self._shown

    @property
    def status(self) -> str:
        """``"running"``, or how the run ended: ``"interrupted"``, ``"diverged"`` or ``"stationary"``."""
        return self._status

    @property
    def message(self) -> str:
        """What ended the run, and what to do."""
        return self._message

    def advance(self, t: float, seconds: float) -> bool:
        """Go to time t; states between steps come from the solver's interpolant."""
        deadline = time.monotonic() + seconds
        self._status = "running"
        try:
            while self._point.t < t:
                if not self._step() or (time.monotonic() >= deadline and self._point.t < t):
                    break
        except KeyboardInterrupt:
            self._solver, self._status = None, "interrupted"
        self._shown = max(self._shown, min(t, self._point.t))
        return self._point.t >= t

    def measure(self) -> FloatArray:
        """Neurons, shape (N, D): the followers, if there are any."""
        point = self._point
        y = point.y if self._shown == point.t else point.dense(self._shown)
        rows = self._projected(y).reshape(self._shape)
        return rows if self._rows == len(rows) else rows[: self._rows].copy()

    def state(self) -> dict[str, np.ndarray]:
        """The last start of the solver, and what it did since."""
        p = self._point
        numbers = [p.anchor_t, p.done, p.steps, self._shown, self._evaluations]
        return {"numbers": np.array(numbers), "vectors": p.anchor}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Start the solver where it last started, and do its steps again."""
        anchor_t, done, steps, shown, evaluations = state["numbers"].tolist()
        anchor = np.array(state["vectors"])
        self._point = _Point(anchor_t, anchor, 0, anchor_t, anchor, None, int(steps - done))
        self._solver = None
        for _ in range(int(done)):
            self._step()
        self._shown, self._evaluations = shown, int(evaluations)

    def meta(self) -> dict[str, Any]:
        """Steps done and evaluations of ∇Ψ, those of Jacobians by differences among them."""
        return {"steps": self._point.steps, "rejected": 0, "evaluations": self._evaluations}

    def _step(self) -> bool:
        """One step of the solver. False: the run has ended."""
        p, tolerance = self._point, self._method.tolerance
        if p.done == _RESTART:
            p = self._point = p._replace(anchor_t=p.t, anchor=self._projected(p.y), done=0)
            self._solver = None
        if tolerance is not None:
            moving = self._speed > 0
            gradient = self._velocity(p.t, p.y)[moving] / self._speed[moving]
            if np.sqrt(np.mean(gradient**2)) < tolerance:
                self._status = "stationary"
                self._message = (
                    "stationary: the root mean square of the gradient fell below "
                    f"{tolerance:g} at t = {p.t:g}"
                )
                return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a failure is reported below
            if self._solver is None:
                self._open()
            solver = self._solver
            failure = solver.step()
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            self._status = "diverged"
            self._message = (
                f"{self._method.method} failed after step {p.steps} (t = {p.t:g}): "
                f"{failure or 'the state was no longer finite'}. Try a smaller rtol"
            )
            return False
        self._point = p._replace(
            done=p.done + 1, t=solver.t, y=solver.y.copy(), dense=solver.dense_output(), steps=p.steps + 1
        )
        return True

    def _open(self) -> None:
        """A solver at the anchor, moved on to the present point."""
        import scipy.integrate

        kinds = {"lsoda": "LSODA", "bdf": "BDF", "radau": "Radau"}
        kind = getattr(scipy.integrate, kinds[self._method.method])
        p, method = self._point, self._method
        # Without a bound the steps cannot depend on the horizon or the save points.
        solver = kind(self._velocity, p.anchor_t, p.anchor.copy(), np.inf, rtol=method.rtol, atol=method.atol)
        for _ in range(p.done):
            solver.step()
        self._solver = solver

    def _velocity(self, _: float, y: FloatArray) -> FloatArray:
        self._evaluations += 1
        return self._system(y)

    def _projected(self, y: FloatArray) -> FloatArray:
        """A copy with every w back on the sphere, where that is its place."""
        rows: FloatArray = y.reshape(self._shape).copy()
        if self._w is not None:
            rows[:, self._w] /= np.linalg.norm(rows[:, self._w], axis=1, keepdims=True)
        return rows.ravel()
