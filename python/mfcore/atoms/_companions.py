"""Coarser runs beside the atoms of a run without noise; comparing predictions f_q with theirs gives the
error of the risk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .._base.check import FloatArray
from ..reductions._model import ReducedModel
from ..runs._difference import extrapolated
from ..runs._ends import End
from ..runs._stiff import KINDS
from ._carried import Carried
from ._fits import Fit
from ._panels import Mesh

if TYPE_CHECKING:
    from ._atoms import Atoms

# tolerances of the companion with longer steps: 32 times as large, so that its steps are twice as long
_RATIO = 32.0
# The error of the risk by the steps is estimated by eq. (6.13), which does not know how errors grow or decay
# later. So it is bounded above and below by these multiples of the difference to the companion with longer
# steps: at most _MOST times, at least _LEAST or _FEW_STEPS/steps or _MANY_STEPS times. Chosen on the models
# `tuning` of `python -m tests.calibration`.
_MOST = 6.0
# least multiple for fixed steps of order p = 1, 2, 4: at least 3/2 of 1/(2^p − 1)
_LEAST = {"euler": 1.5, "heun": 0.75, "rk4": 0.25}
# adaptive schemes: at least _FEW_STEPS over the number of steps, and at least _MANY_STEPS
_FEW_STEPS, _MANY_STEPS = 1.5, 0.1
_NO_LAW = 2  # up to so many steps of the companion, its difference says nothing about the order
_GUESS = (
    3.0  # the least part then, with no largest one, and the part for SciPy's solvers, whose steps say nothing
)
_ADAPTED = 0.75  # least multiple once panels were halved or united, an error that eq. (6.13) does not see
# multiple of the difference to a quarter of the quasi-random points, where errors fall by 2 to 4
_QUARTER = 3.0


class Companions:
    """Coarser runs of the same law: with fewer atoms and the same steps, and with as few atoms and longer
    steps.

    Panels adapt to tolerances; atoms that are given are the same in all runs. `fewer` are the numbers of
    Gauss nodes that `coarser` gives, in its order, or a part of quasi-random points.
    """

    def __init__(
        self,
        atoms: Carried,
        reduced: ReducedModel,
        method: Atoms,
        fewer: Sequence[tuple[FloatArray, FloatArray]],
        *,
        seed: int,
        threads: int,
        mesh: Mesh | None,
        most: int,
    ) -> None:
        self._atoms, self._reduced, self._method = atoms, reduced, method
        self._seed, self._threads = seed, threads
        self._fewer = [self._run(method, *points) for points in fewer]
        start = fewer[0] if fewer else (atoms.points, atoms.weights)
        self._longer = self._run(_with_longer_steps(method), *start, mesh=mesh, most=most)

    def _run(
        self, method: Atoms, points: FloatArray, weights: FloatArray, mesh: Mesh | None = None, most: int = 0
    ) -> Carried:
        return Carried(
            self._reduced,
            method,
            points,
            weights,
            seed=self._seed,
            threads=self._threads,
            mesh=mesh,
            most=most,
            like=self._atoms,
        )

    @property
    def runs(self) -> list[Carried]:
        """The coarser runs and the longer one."""
        return [*self._fewer, self._longer]

    def follow(self, seconds: float) -> End:
        """Go to where the run is, unless Ctrl-C or the time says otherwise."""
        deadline, t = time.monotonic() + seconds, self._atoms.t
        for companion in self.runs:
            to = self._even(t) if companion is self._longer else t
            if (
                companion.clock is not None
                and companion is not self._longer
                and self._atoms.clock is not None
            ):
                companion.clock.end = self._atoms.clock.end
            end = companion.advance(to, max(deadline - time.monotonic(), 0.0))
            if end in (End.interrupted, End.out_of_time):
                return end
        return End.reached

    def error(self, fit: Fit) -> float:
        """The error of the risk of this fit, from steps and from the number of atoms; inf if unknown."""
        longer, runs = self._now(), [self._atoms, *self._fewer]
        if longer is None or any(abs(run.t - self._atoms.t) > 1e-9 * self._atoms.t for run in runs):
            return math.inf  # a coarser run ended before this one
        fewer = [_fit(run) for run in self._fewer]
        total = self._error_of_steps(fewer[0] if fewer else fit, _fit(longer))
        return total + self._error_of_atoms(fit, fewer)

    def _error_of_atoms(self, fit: Fit, fewer: Sequence[Fit]) -> float:
        """The error by the number of atoms.

        Differences of a run with n Gauss nodes to n/2 are small by chance where errors of both have one
        origin, such as atoms that a separatrix tears apart. Rules of which one has a node in the middle and
        the other has none err independently: the difference to some 3n/4 of them is added.
        """
        if not fewer:
            return 0.0
        differences = [fit.error(other) for other in fewer[:2]]
        if len(fewer) == 1:
            return _QUARTER * differences[0]
        error = sum(differences)
        if len(fewer) > 2:
            error = max(error, extrapolated(differences[0], fewer[0].error(fewer[2])))
        return error

    def _error_of_steps(self, fit: Fit, longer: Fit) -> float:
        difference, kind = fit.error(longer), self._method.method
        assert kind is not None  # the rung chose one
        if kind in KINDS:
            return _GUESS * difference
        of_steps, steps = self._atoms.counts[3], self._longer.counts[0]
        if steps <= _NO_LAW:
            return max(of_steps, _GUESS * difference)
        few = max(_FEW_STEPS / steps, _MANY_STEPS)
        if self._atoms.before[1] > 0:
            few = max(few, _ADAPTED)
        least = _LEAST.get(kind, few)
        return min(max(of_steps, least * difference), _MOST * difference)

    def _even(self, t: float) -> float:
        """The last time up to t that fixed steps of twice the length can reach."""
        clock = self._atoms.clock
        if clock is None:
            return t
        whole = clock.whole(t) - (clock.whole(t) * clock.step > t * (1 + 1e-9))  # not beyond a shortened step
        return whole // 2 * 2 * clock.step

    def _now(self) -> Carried | None:
        """The companion with longer steps at the time of the run, after the short steps that are missing."""
        missing, h = self._atoms.t - self._longer.t, self._method.step
        if abs(missing) <= 1e-9 * self._atoms.t:
            return self._longer
        if h is None or not 0 < missing < 2 * h:
            return None
        last = self._run(self._method, self._longer.points, self._longer.weights)
        assert last.clock is not None
        if abs(missing - h) <= 1e-6 * h:
            missing = h
        else:  # the last step was shortened
            last.clock.end = missing
        return last if last.advance(missing, math.inf) is End.reached else None


def _fit(run: Carried) -> Fit:
    return run.fit(run.points, run.weights)


def _with_longer_steps(method: Atoms) -> Atoms:
    if method.step is not None:
        return replace(method, step=2 * method.step)
    return replace(method, rtol=_RATIO * method.rtol, atol=_RATIO * method.atol)
