"""The rung `mf.JKO`: one minimising movement after another (eq. (8.4)), with a coarser companion for the
error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..measures._measure import Cloud, Density, as_measure
from ..model import Model
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel
from ..runs._clock import FixedClock
from ..runs._difference import ALIGNED, error_between
from ..runs._ends import End, Ended
from ..runs._reduced import featured
from ..runs._rung import State
from ._atoms import AtomsEnergy
from ._cells import CellsEnergy
from ._choice import energy_of
from ._field import Evaluated, PointEnergy
from ._start import gauss_coordinates, start_atoms, start_cells
from ._step import movement
from ._table import TableEnergy

if TYPE_CHECKING:
    from ._jko import JKO


# multiple of the companion's difference that is stated as error; chosen on the models `tuning` of `python -m
# tests.calibration`
_FACTOR = 2.5
# cosine assumed at least between residual and difference where ρ₀ is Gauss nodes, whose errors and those of
# the steps may cancel; chosen on the kind `one input` of these
_ALIGNED_GAUSS = 0.5


class _Point(NamedTuple):
    """The state after a step, replaced as a whole so that Ctrl-C finds the old or the new one."""

    energy: AtomsEnergy | CellsEnergy
    coarse: AtomsEnergy | CellsEnergy  # F of the companion
    place: Evaluated
    half: Evaluated  # the companion's variables after its last step
    steps: int
    iterations: int
    unfinished: int  # steps whose minimisation ended before the gradient vanished
    increase: float  # largest F^{n+1} − F^n so far
    speed: float  # W/τ of the last step
    since: float = 0.0  # the time after `before` steps, up to which one was shortened
    before: int = 0


class JkoRung:
    """A run of `mf.JKO`: ρ at t = n·τ, and a companion with steps 2τ and half as many atoms or cells."""

    def __init__(self, method: JKO, model: Model | ReducedModel, threads: int) -> None:
        self.reduced = featured(model)
        require_convex(self.reduced, "mf.JKO")
        self._method, self._tau, self.clock = method, method.tau, FixedClock(method.tau)
        check_moves(self.reduced)
        self._threads = threads
        start = _measure(self.reduced, method.start)
        field = energy_of(self.reduced, start, method.count, threads)
        of_law = start is None and self.reduced.temperature == 0
        nodes = gauss_coordinates(self.reduced) if of_law else 0
        self._aligned = _ALIGNED_GAUSS if nodes > 1 else ALIGNED
        energy, place = _begin(field, start, method.count)
        # The companion has half as many atoms or cells, or half the Gauss nodes of each coordinate.
        coarse, half = _begin(field, start, max(1, method.count // 2 ** max(nodes, 1)))
        self._point = _Point(energy, coarse, place, half, 0, 0, 0, -math.inf, math.inf)
        self._error: tuple[int, float] | None = None  # that of the risk after so many steps

    @property
    def t(self) -> float:
        """The time reached, n·τ, or the end of the shortened last step."""
        p = self._point
        return p.since + (p.steps - p.before) * self._tau

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to the step nearest to time t."""
        deadline = time.monotonic() + seconds
        target = self.clock.nearest(t)
        try:
            while self.t < target:
                left = target - self.t
                short = self.clock.ends(t) and left < (1 - 1e-6) * self._tau
                ended = self._step(target if short else None)
                if not ended.reached:
                    return ended
                if time.monotonic() >= deadline and self.t < target:
                    return Ended(End.out_of_time)
        except KeyboardInterrupt:
            return Ended(End.interrupted)
        return Ended(End.reached)

    def measure(self) -> Cloud | Density:
        """The density on its cells; atoms without noise, at the start from atoms, and of several labels."""
        energy, place = self._point.energy, self._point.place
        alone = place.z.shape[1] == 1 and math.isfinite(place.energy)
        if isinstance(energy, CellsEnergy) and alone:
            return Density(place.x[0].copy(), energy.masses[0])
        weights = energy.masses.ravel() if isinstance(energy, CellsEnergy) else energy.weights
        points = place.z.copy()
        if points.shape[1] == 1:  # in the order of a quantile function
            order = np.argsort(points[:, 0], kind="stable")
            points, weights = points[order], weights[order]
        return Cloud(points, weights)

    def risk(self) -> tuple[float, float]:
        """R, and its error: _FACTOR of what tells the companion's predictions from those of the run.

        Errors are of first order in τ: the companion's are twice as large, up to what is of higher order. Its
        predictions at odd steps are means of those before and after: a single step τ would have no error to
        show.
        """
        point = self._point
        if self._error is None or self._error[0] != point.steps:
            other = point.half.residual
            if (point.steps - point.before) % 2:
                with np.errstate(all="ignore"):  # what is not finite is reported by the run itself
                    after = movement(point.coarse, point.half, 2 * self._tau).place.residual
                    other = 0.5 * (other + after)
            reduced = self.reduced
            power = float(reduced.weights @ reduced.targets**2)
            difference = error_between(point.place.residual, other, power, aligned=self._aligned)
            self._error = point.steps, _FACTOR * difference
        return point.place.risk, self._error[1]

    def observed(self) -> Mapping[str, float]:
        """The free energy F, that of the discretisation."""
        return {"free_energy": self._point.place.energy}

    def state(self) -> State:
        """The variables of the scheme, its companion's, and counts."""
        p = self._point
        numbers = [p.steps, p.iterations, p.unfinished, p.increase, p.speed, p.since, p.before]
        state = {"numbers": np.array(numbers), "x": p.place.x, "half": p.half.x}
        if isinstance(p.energy, AtomsEnergy) and isinstance(p.energy.field, TableEnergy):
            state["box"] = p.energy.field.box
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        steps, iterations, unfinished, increase, speed, since, before = state["numbers"].tolist()
        energy, coarse = self._point.energy, self._point.coarse
        if isinstance(energy, AtomsEnergy) and isinstance(coarse, AtomsEnergy):
            field, box = energy.field, state.get("box")
            known = isinstance(field, TableEnergy) and box is not None and np.array_equal(field.box, box)
            if not known and (box is not None or isinstance(field, TableEnergy)):
                field = TableEnergy.on(self.reduced, self._threads, box)
                energy, coarse = energy.by(field), coarse.by(field)
        place, half = energy.at(state["x"].copy()), coarse.at(state["half"].copy())
        self._point = _Point(
            energy,
            coarse,
            place,
            half,
            int(steps),
            int(iterations),
            int(unfinished),
            increase,
            speed,
            since,
            int(before),
        )

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: the end of a step of the companion."""
        return round(0.5 * t / self._tau) * 2 * self._tau

    def take_over(self, earlier: JkoRung) -> None:
        """Go on from where a rung with other forces is."""
        self.restore(earlier.state())

    def meta(self) -> dict[str, Any]:
        """Steps, Newton steps, minimisations that ended early, and the largest increase of F in a step."""
        p = self._point
        return {
            "steps": p.steps,
            "iterations": p.iterations,
            "unfinished": p.unfinished,
            "largest_increase": p.increase,
        }

    def _step(self, short: float | None = None) -> Ended:
        """One step, and one of the companion after every other; a shortened one goes to the time `short`."""
        p, tolerance = self._point, self._method.tolerance
        if tolerance is not None and p.speed < tolerance:
            return Ended(
                End.stationary,
                f"stationary: the distance moved in a step over τ fell below {tolerance:g} at t = {self.t:g}",
            )
        p = self._point = _covered(p)
        steps, half, now = p.steps + 1, p.half, self.t
        tau = self._tau if short is None else short - now
        odd = (p.steps - p.before) % 2
        with np.errstate(all="ignore"):  # what is not finite is reported
            done = movement(p.energy, p.place, tau)
            if odd or short is not None:
                half = movement(p.coarse, half, tau + odd * self._tau).place
        if not math.isfinite(done.place.energy):
            return Ended(End.diverged, f"the free energy was not finite at step {steps} (t = {now + tau:g})")
        self._point = p._replace(
            place=done.place,
            half=half,
            steps=steps,
            iterations=p.iterations + done.iterations,
            unfinished=p.unfinished + (not done.finished),
            increase=max(p.increase, done.place.energy - p.place.energy),
            speed=math.sqrt(p.energy.transport(done.place.x - p.place.x)) / tau,
            since=p.since if short is None else short,
            before=p.before if short is None else steps,
        )
        return Ended(End.reached)


def _covered(p: _Point) -> _Point:
    """Replace the box of separable features by one that holds all atoms, if they have left it."""
    if not (isinstance(p.energy, AtomsEnergy) and isinstance(p.coarse, AtomsEnergy)):
        return p
    field = p.energy.field
    if not isinstance(field, TableEnergy):
        return p
    other = field.covering(np.concatenate([p.place.z, p.half.z]))
    if other is field:
        return p
    energy, coarse = p.energy.by(other), p.coarse.by(other)
    return p._replace(energy=energy, coarse=coarse, place=energy.at(p.place.x), half=coarse.at(p.half.x))


def check_moves(reduced: ReducedModel) -> None:
    """Refuse what `mf.JKO` cannot move."""
    moving = [name for name, rate in zip(reduced.coordinates, reduced.rates, strict=True) if rate > 0]
    if not moving:
        raise ValueError(f"rates must be > 0 for some coordinate, got {list(reduced.rates)}")
    if reduced.temperature > 0 and len(moving) > 1:
        raise ValueError(
            f"temperature must be 0 for mf.JKO where several coordinates move ({', '.join(moving)}), got "
            f"{reduced.temperature:g}; mf.PDE, in two coordinates, and mf.Atoms go with noise there"
        )
    rows = zip(reduced.coordinates, reduced.volume, reduced.nonnegative, strict=True)
    for name, e, radius in rows if reduced.temperature > 0 else ():
        if e < 0 or (e > 0 and not radius):
            raise ValueError(f"volume must be > 0 for coordinates >= 0, else 0, got {e:g} for {name}")
    if reduced.pairs is None:
        reduced._gradients(np.empty((0, len(reduced.coordinates))))  # refused where there are none


def _measure(reduced: ReducedModel, start: object) -> Cloud | Density | None:
    """Check the start that the user gave against the coordinates."""
    if start is None:
        return None
    assert isinstance(start, Cloud | Density)  # arrays have become one
    points, _ = as_measure(start, "start", len(reduced.coordinates))
    lowest = [e[0] for e in start.edges] if isinstance(start, Density) else points.min(axis=0)
    for name, low, bounded in zip(reduced.coordinates, lowest, reduced.nonnegative, strict=True):
        if bounded and low < 0:
            raise ValueError(f"start must have {name} >= 0, got {low:g}")
    return start


def _begin(
    field: PointEnergy, start: Cloud | Density | None, count: int
) -> tuple[AtomsEnergy | CellsEnergy, Evaluated]:
    reduced = field.reduced
    if reduced.temperature > 0:
        labels, masses, edges = start_cells(reduced, start, count)
        cells = CellsEnergy(field, labels, masses)
        return cells, cells.at(edges)
    cloud = start_atoms(reduced, start, count)
    atoms = AtomsEnergy(field, cloud.points, cloud.weights)
    return atoms, atoms.at(np.ascontiguousarray(cloud.points[:, field.moving]))
