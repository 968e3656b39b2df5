"""The rung `mf.Atoms`: weighted atoms moved by their own field, with an estimate of the error of their
risk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.check import FloatArray
from .._base.check import memory as check_memory
from ..measures._measure import Cloud
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._clock import FixedClock
from ..runs._ends import End, Ended, ended
from ..runs._reduced import in_motion
from ..runs._rung import State, labelled, part_of
from ._carried import Carried
from ._companions import Companions
from ._field import features_at
from ._fits import Fit
from ._panels import LEAST, NODES, Curve, Mesh, doubled, start_mesh
from ._starts import FEW, coarser, curve, filling, freedom, gauss

if TYPE_CHECKING:
    from ._atoms import Atoms

_MOST_GAUSS = 64  # most Gauss nodes per coordinate
_ATOM_NUMBERS = 12  # numbers held per coordinate of an atom: stages of a step, and copies
_STIFF = 100.0  # rates that differ by this factor are taken to make the system stiff
_MATRIX = (
    500  # most numbers in the state of an implicit scheme that is chosen here, which factors their matrix
)
_PARTNERS = 8  # neurons along ρ₀ whose pairs with z tell how many panels it needs
_DEAR = 20_000_000  # nanoseconds that an evaluation of all atoms may take where their number is chosen here
_FEWEST = 128  # closed pairs: atoms that are taken all the same
_SHARE = 0.01  # the panels of ρ₀ may err by this fraction of the relative tolerance of a step


class AtomRung:
    """A run of `mf.Atoms`: atoms in their own field and, without noise, coarser runs that give the error."""

    def __init__(self, method: Atoms, model: Model | ReducedModel, seed: int, threads: int) -> None:
        self._seed, self._threads = seed, threads
        self._reduced = reduced = in_motion(model)
        self._method = method = _chosen(method, reduced)
        _check(method, reduced)
        self._noisy = reduced.temperature > 0
        self._mesh: Mesh | None = None
        self._most = 0
        points, weights, fewer = self._start()
        self._atoms = Carried(
            reduced,
            method,
            points,
            weights,
            seed=seed,
            threads=threads,
            tolerance=method.tolerance or 0.0,
            mesh=self._mesh,
            most=self._most,
        )
        self._companions: Companions | None = None
        if not self._noisy:
            self._companions = Companions(
                self._atoms,
                reduced,
                method,
                fewer,
                seed=seed,
                threads=threads,
                mesh=self._mesh,
                most=self._most,
            )

    def _start(self) -> tuple[FloatArray, FloatArray, list[tuple[FloatArray, FloatArray]]]:
        """Points and masses at t = 0, and those of the coarser runs (none: these adapt by themselves)."""
        method, reduced = self._method, self._reduced
        initial, given = reduced.initial, method.start
        if given is not None:
            return given.points.copy(), given.weights.copy(), []
        free = freedom(initial)
        count = method.count or _default(reduced, free, self._noisy)
        if self._noisy:
            self._check_memory(count)
            points = initial.sample(count, np.random.default_rng(self._seed))
            return np.asarray(points, dtype=np.float64), np.full(count, 1 / count), []
        # Where some neurons come to rest at a kink and others do not, ρ_t(z₀) is not smooth.
        line = None if reduced.pairs is not None and reduced.pairs.kinked else curve(initial)
        if line is not None and count >= LEAST and method.method == "dopri5":
            self._most = count // NODES
            self._mesh = start_mesh(line, self._functions_along(line), _SHARE * method.rtol, self._most)
            return line.points(self._mesh.parameters), self._mesh.masses, []
        if free == 0:
            return (*gauss(initial, 1), [])
        each = min(int(round(count ** (1 / free), 9)), _MOST_GAUSS)
        if each >= min(FEW, count) or free == 1:
            return (*gauss(initial, each), [gauss(initial, n) for n in coarser(each)])
        self._check_memory(count)
        points, weights = filling(initial, count, self._seed)
        few = max(1, count // 4)
        return points, weights, [(points[:few], np.full(few, 1 / few))] if few < count else []

    def _functions_along(self, line: Curve) -> Callable[[FloatArray], FloatArray]:
        """Functions of z that panels of ρ₀ must resolve: features or, of pairs, V and U with a few."""
        reduced = self._reduced
        if reduced.pairs is not None:
            pairs = reduced.pairs.with_threads(self._threads)
            partners = line.points(np.linspace(line.low, line.high, _PARTNERS + 2)[1:-1])
            return lambda z: np.column_stack([pairs.V(z), pairs.U(z, partners)])
        root = np.sqrt(np.abs(reduced.weights))
        return lambda z: features_at(reduced, z, self._threads) * root

    def _check_memory(self, count: int) -> None:
        check_memory(8.0 * _ATOM_NUMBERS * count * len(self._reduced.coordinates), "count", count)

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates these are."""
        return self._reduced

    @property
    def clock(self) -> FixedClock | None:
        """The clock of fixed steps, if the method has them."""
        return self._atoms.clock

    @property
    def t(self) -> float:
        """The time reached."""
        return self._atoms.t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t; with fixed steps, to the step nearest to it."""
        deadline = time.monotonic() + seconds
        end = self._atoms.advance(t, seconds)
        if self._companions is not None and end not in (End.interrupted, End.out_of_time):
            followed = self._companions.follow(max(deadline - time.monotonic(), 0.0))
            if followed is not End.reached:
                end = followed
        since, done = self._atoms.before
        return ended(
            end,
            self._atoms.flow,
            self._method.tolerance,
            since=since,
            done=done,
            name=self._name_of_atom,
        )

    def _name_of_atom(self, i: int) -> str:
        at = zip(self._reduced.coordinates, self._atoms.points[i], strict=True)
        return f"atom {i} at " + ", ".join(f"{name} = {value:.3g}" for name, value in at)

    def measure(self) -> Cloud:
        """The atoms."""
        return Cloud(self._atoms.points, self._atoms.weights)

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and its error: from coarser runs, and the change if every panel is halved.

        With noise, two parts added as squares: the standard error of independent atoms, and how far their
        risk is above that of their law.
        """
        atoms, z = self._atoms, self._atoms.points
        fit = atoms.fit(z, atoms.weights)
        if self._companions is None:
            return fit.risk, self._sampling_error(z, fit)
        error = self._companions.error(fit)
        if atoms.mesh is not None:
            mesh, twice = doubled(atoms.mesh, z)
            error += abs(atoms.fit(atoms.clamped(twice), mesh.masses).risk - fit.risk)
            error += self._corner(z, fit)
        return fit.risk, error

    def _corner(self, z: FloatArray, fit: Fit) -> float:
        """Bound the error of the risk where radii of a panel have reached 0 up to some atom: Σ w r
        |∂_rΨ| of the next ones.
        """
        total, w = 0.0, self._atoms.weights
        for c in np.flatnonzero(self._reduced.nonnegative):
            at_wall = z[:, c] <= 0
            free = ~at_wall & (np.roll(at_wall, 1) | np.roll(at_wall, -1))
            if free.any():
                total += float(np.abs(w[free] * z[free, c] * fit.slopes(z[free])[:, c]).sum())
        return total

    def _sampling_error(self, z: FloatArray, fit: Fit) -> float:
        """The error of R by N independent draws from ρ: variance (10.2) and bias (10.1)."""
        w = self._atoms.weights
        first, second, own = fit.spread(z, w)
        share = float(w @ w)  # 1/N of equal masses
        bias = share * own
        return math.sqrt(4 * share * max(second - first**2, 0.0) + bias**2)

    def observed(self) -> Mapping[str, float]:
        """Nothing beside the standard ones."""
        return {}

    def state(self) -> State:
        """Return the state of the atoms, and of those they are compared with."""
        companions = [] if self._companions is None else self._companions.runs
        parts = [labelled(f"companion{k}", run.state()) for k, run in enumerate(companions)]
        return reduce(or_, parts, self._atoms.state())

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._atoms.restore(state)
        for k, run in enumerate([] if self._companions is None else self._companions.runs):
            run.restore(part_of(state, f"companion{k}"))

    def change_time(self, t: float) -> float:
        """The time nearest to t at which the forces may change: t, or the end of a step of all runs."""
        if self.clock is None:
            return t
        h = self.clock.step if self._companions is None else 2 * self.clock.step
        return round(t / h) * h

    def take_over(self, earlier: AtomRung) -> None:
        """Go on from where a rung with other forces is."""
        self._atoms.take_over(earlier._atoms)
        if self._companions is not None and earlier._companions is not None:
            for run, old in zip(self._companions.runs, earlier._companions.runs, strict=True):
                run.take_over(old)

    def meta(self) -> dict[str, Any]:
        """Atoms, steps done and refused, and evaluations of ∇Ψ."""
        steps, rejected, evaluations, _ = self._atoms.counts
        return {
            "atoms": len(self._atoms.weights),
            "steps": steps,
            "rejected": rejected,
            "evaluations": evaluations,
        }


def default_atoms(method: Atoms, reduced: ReducedModel) -> int:
    """The number of atoms that a run of this method would start with, at most."""
    _check(_chosen(method, reduced), reduced)
    return _default(reduced, freedom(reduced.initial), reduced.temperature > 0)


def _default(reduced: ReducedModel, free: int, noisy: bool) -> int:
    """The number of atoms if the user names none, by the number of random coordinates.

    Fewer, where one evaluation of them would take long: that of closed pairs takes all pairs of them.
    """
    count = 10_000 if noisy else {0: 1, 1: 1024, 2: 1024}.get(free, 4096)
    if reduced.pairs is not None and free > 0:
        affordable = math.isqrt(_DEAR // reduced.pairs.nanoseconds)
        return min(count, max(_FEWEST, 1 << max(affordable.bit_length() - 1, 0)))
    compiled = reduced._compiled
    dear = not noisy and free > 2 and compiled is not None and count * compiled.nanoseconds > 2 * _DEAR
    return FEW**free if dear and FEW**free < count else count


def _chosen(method: Atoms, reduced: ReducedModel) -> Atoms:
    """With a scheme, if the user named none: an implicit one where the rates alone make the system stiff."""
    if method.method is not None:
        return method
    speeds = [rate for rate in reduced.rates if rate > 0]
    stiff = bool(speeds) and max(speeds) >= _STIFF * min(speeds)
    if method.start is not None:
        count = len(method.start)
    elif reduced.initial is None:
        count = 0
    else:
        free = freedom(reduced.initial)
        count = method.count or (_MOST_GAUSS if free == 1 else _default(reduced, free, False))
    few = count * len(reduced.coordinates) <= _MATRIX
    implicit = stiff and few and reduced.temperature == 0
    return replace(method, method="lsoda" if implicit else "dopri5")


def _check(method: Atoms, reduced: ReducedModel) -> None:
    names = ", ".join(reduced.coordinates)
    if reduced.pairs is None and getattr(reduced.gradients, "function", None) is None:
        raise ValueError("gradients must be given for the atoms of a ReducedModel to move, got None")
    if method.start is None and reduced.initial is None:
        raise ValueError(
            f"start must be an mf.Cloud of atoms ({names}): the model has no initial law in these "
            "coordinates; got None"
        )
    if method.start is not None:
        points = method.start.points
        if points.shape[1] != len(reduced.coordinates):
            raise ValueError(f"start must have points ({names}), got rows of length {points.shape[1]}")
        negative = (points < 0) & np.array(reduced.nonnegative)
        if negative.any():
            i, c = np.argwhere(negative)[0]
            raise ValueError(f"start must have {reduced.coordinates[c]} >= 0, got {points[i, c]} in row {i}")
    if reduced.temperature == 0:
        return
    at = f"at temperature = {reduced.temperature:g}"
    if method.method not in ("euler", "heun"):
        raise ValueError(f"method must be 'euler' or 'heun', with a step, {at}, got {method.method!r}")
    if method.tolerance is not None:
        raise ValueError(
            f"tolerance must be left out {at}, where nothing comes to rest, got {method.tolerance:g}"
        )
    for name, e, radius in zip(reduced.coordinates, reduced.volume, reduced.nonnegative, strict=True):
        if e < 0 or (e > 0 and not radius):
            raise ValueError(
                f"volume must be > 0 for coordinates >= 0, else 0, for atoms {at}, got {e:g} for {name}"
            )
