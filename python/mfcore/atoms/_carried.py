"""Integrate weighted atoms in their own field (eq. (8.1)), restarting the integrator when panels or
features change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..grids._separable import Separable
from ..reductions._model import ReducedModel
from ..runs._clock import FixedClock
from ..runs._ends import End
from ..runs._rung import State
from ..runs._stiff import KINDS, ImplicitFlow
from ._boxes import enclosing, inside, separated
from ._field import clamped, moments, system_of
from ._fits import Fit, NodeFit, PairFit
from ._panels import NODES, TAIL, Mesh, refined

if TYPE_CHECKING:
    from ._atoms import Atoms

_WALL = 1e2  # how much more error is tolerated where a wall cuts a panel: its atoms come to rest one by one
_SHARE = 0.1  # the tail of a panel (eq. (8.3)) may be this fraction of the tolerance of a step
# when some panel exceeds its tolerance, all that exceed this fraction of theirs are halved with it
_HALF = 0.5
_DEAR = 50_000_000  # nanoseconds per evaluation of all features beyond which separable features are built


class _Now(NamedTuple):
    """The state between two integrators, replaced as a whole so that Ctrl-C finds the old or the new one."""

    weights: FloatArray
    mesh: Mesh | None
    slack: float  # factor by which the tolerance of panels was raised because `most` panels were reached
    box: FloatArray | None  # box on which `separable` holds the features; None: the features themselves
    separable: Separable | None
    since: float  # time at which the present integrator began
    before: tuple[int, int, int, float]  # counts of all integrators before it
    flow: _core.Flow | ImplicitFlow | None = None


class Carried:
    """Weighted atoms z_i moving in their own field, with the panels they are nodes of and the features
    they use.
    """

    def __init__(
        self,
        reduced: ReducedModel,
        method: Atoms,
        points: FloatArray,
        weights: FloatArray,
        *,
        seed: int,
        threads: int,
        tolerance: float = 0.0,
        mesh: Mesh | None = None,
        most: int = 0,
        like: Carried | None = None,
    ) -> None:
        self._reduced, self._method, self._seed, self._threads = reduced, method, seed, threads
        self.clock = None if method.step is None else FixedClock(method.step)
        self._tolerance, self._walls = tolerance, np.array(reduced.nonnegative)
        self._coarsest, self._most = mesh, most
        box, separable = None, None
        if like is not None:
            box, separable = like._now.box, like._now.separable
        elif self._is_dear(len(points)):
            box, separable = separated(reduced, enclosing(points, self._walls), self._walls)
        now = _Now(weights, mesh, 1.0, box, separable, 0.0, (0, 0, 0, 0.0))
        self._now: _Now = self._begin(now, points, 0.0)

    @property
    def flow(self) -> _core.Flow | ImplicitFlow:
        """The present integrator."""
        assert self._now.flow is not None
        return self._now.flow

    @property
    def weights(self) -> FloatArray:
        """Masses w_i."""
        return self._now.weights

    @property
    def mesh(self) -> Mesh | None:
        """The panels whose Gauss–Legendre nodes the atoms are; None for other atoms."""
        return self._now.mesh

    @property
    def t(self) -> float:
        """The time reached."""
        return self._now.since + self.flow.t

    @property
    def before(self) -> tuple[float, int]:
        """Time at which the present integrator began, and the steps done before it."""
        return self._now.since, self._now.before[0]

    @property
    def counts(self) -> tuple[int, int, int, float]:
        """Steps done, steps refused, evaluations of ∇Ψ, and the error of the risk by steps (eq. (6.13))."""
        flow, (steps, rejected, evaluations, risk_error) = self.flow, self._now.before
        return (
            steps + flow.steps,
            rejected + flow.rejected,
            evaluations + flow.evaluations,
            risk_error + flow.risk_error,
        )

    @property
    def points(self) -> FloatArray:
        """The atoms z_i, shape (N, k)."""
        return self.flow.values().reshape(len(self.weights), -1)

    def advance(self, t: float, seconds: float) -> End:
        """Go to time t."""
        if self.clock is not None and isinstance(self.flow, _core.Flow):
            return self.clock.advance(self.flow, t, seconds)
        while (end := self.flow.advance(t - self._now.since, seconds)) is End.unresolved:
            self._adapt()
        return end

    def clamped(self, z: FloatArray) -> FloatArray:
        """A copy with negative radii set to 0; rows may hold the coordinates several times in sequence."""
        return clamped(z, self._walls)

    def fit(self, z: FloatArray, weights: FloatArray) -> Fit:
        """How well these atoms fit the data."""
        if self._reduced.pairs is not None:
            return PairFit(self._reduced, z, weights, self._threads)
        separable = self._now.separable
        if separable is not None and separable.covers(z):
            found, _ = separable.compiled.moments(z, weights, self._threads)
            f = separable.predictions(found)
        else:
            f = moments(self._reduced, z, weights, self._threads)
        return NodeFit(self._reduced, f, self._threads)

    def state(self) -> State:
        """All that `restore` needs."""
        now, state = self._now, self.flow.state()
        state["before"] = np.array([now.slack, now.since, *now.before])
        if now.mesh is not None:
            state["panels"] = np.array([now.mesh.level, now.mesh.index], dtype=np.int64)
        if now.box is not None:
            state["box"] = now.box
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        now = self._now
        mesh, weights, box, separable = now.mesh, now.weights, now.box, now.separable
        slack, since, steps, rejected, evaluations, risk_error = state["before"].tolist()
        if mesh is not None:
            level, index = state["panels"].tolist()
            mesh = Mesh(mesh.curve, tuple(level), tuple(index))
            weights = mesh.masses
        if "box" not in state:
            box, separable = None, None
        elif box is None or not np.array_equal(box, state["box"]):
            box, separable = separated(self._reduced, state["box"], self._walls)
        counts = (int(steps), int(rejected), int(evaluations), risk_error)
        now = _Now(weights, mesh, slack, box, separable, since, counts)
        self._now = self._begin(now, np.zeros((len(weights), len(self._walls))), 0.0)
        self.flow.restore(dict(state))

    def take_over(self, earlier: Carried) -> None:
        """Go on from where atoms with other forces are: at the same step, or with steps chosen anew."""
        if self.clock is not None:
            self.restore(earlier.state())
            return
        now = earlier._now._replace(since=earlier.t, before=earlier.counts)
        self._now = self._begin(now, earlier.points, earlier.flow.step_size)

    def _begin(self, now: _Now, points: FloatArray, first_step: float) -> _Now:
        """With a flow of these atoms."""
        panels = _core.Panels() if now.mesh is None else self._panels(now.mesh, now.slack)
        gradients = now.separable or self._reduced
        system = system_of(self._reduced, gradients, now.weights, now.box, panels, self._threads)
        return now._replace(flow=self._flow_of(system, points.ravel(), now.weights, first_step))

    def _panels(self, mesh: Mesh, slack: float) -> _core.Panels:
        """The panels of a mesh, and how well they must be resolved."""
        return _core.Panels(
            nodes=NODES,
            tail=TAIL.ravel().tolist(),
            weight=_tail_weights(mesh).tolist(),
            rtol=slack * _SHARE * self._method.rtol,
            atol=slack * _SHARE * self._method.atol,
            at_wall=_WALL,
        )

    def _flow_of(
        self, system: _core.System, start: FloatArray, weights: FloatArray, first_step: float
    ) -> _core.Flow | ImplicitFlow:
        method, reduced = self._method, self._reduced
        assert method.method is not None  # the rung chose one
        if method.method in KINDS:
            return ImplicitFlow(
                system,
                start,
                method.method,
                rtol=method.rtol,
                atol=method.atol,
                tolerance=self._tolerance,
                weights=weights,
                walls=reduced.nonnegative,
            )
        if method.step is None:
            return _core.Flow.dopri5(
                system,
                start,
                rtol=method.rtol,
                atol=method.atol,
                tolerance=self._tolerance,
                first_step=first_step,
            )
        return _core.Flow.fixed(
            system,
            start,
            method.method,
            method.step,
            temperature=reduced.temperature,
            seed=self._seed,
            tolerance=self._tolerance,
            threads=self._threads,
        )

    def _adapt(self) -> None:
        """Change the box or the panels that made the last step fail, and restart the integrator."""
        now, z = self._now, self.points
        next_ = self.flow.refused().reshape(z.shape)
        h, unite = self.flow.step_size, self.flow.steps > 0  # what was split just now is not united again
        now = now._replace(since=self.t, before=self.counts)
        if now.box is not None and not inside(now.box, self.clamped(next_)):
            both = np.concatenate([z, self.clamped(next_)])
            box, separable = separated(self._reduced, enclosing(both, self._walls), self._walls)
            now = now._replace(box=box, separable=separable)
        if now.mesh is not None:
            mesh, z, slack = self._remesh(now.mesh, z, next_, now.slack, unite)
            now = now._replace(mesh=mesh, weights=mesh.masses, slack=slack)
        self._now = self._begin(now, z, h)

    def _remesh(
        self, mesh: Mesh, z: FloatArray, next_: FloatArray, slack: float, unite: bool
    ) -> tuple[Mesh, FloatArray, float]:
        """Halve panels that the refused step would not resolve, and unite halves that one panel resolves."""
        assert self._coarsest is not None
        # The atoms before and after the step: both are as smooth as the map from x is so far.
        both = np.concatenate([z, next_], axis=1)
        walls = np.resize(self._walls, both.shape[1]).tolist()
        while True:
            tails, allowed = self._panels(mesh, slack).tails(both, walls)
            rough = np.asarray((tails > _HALF * allowed).any(axis=1))
            if not rough.any():
                break
            weight = _tail_weights(mesh)[:, None]
            limit = 0.1 * allowed / weight if unite else np.zeros_like(allowed)
            finer, atoms = refined(mesh, both, rough, limit, self._coarsest, max(self._most, len(mesh)))
            if (finer.level, finer.index) == (mesh.level, mesh.index):  # no atoms left
                slack *= 10.0
            mesh, both, unite = finer, atoms, False
        return mesh, self.clamped(both[:, : z.shape[1]]), slack

    def _is_dear(self, atoms: int) -> bool:
        """Tell whether features cost enough to build separable ones; an estimate, never a measured time."""
        features = self._reduced._compiled
        if features is None or features.coordinates != 2 or self._method.method != "dopri5":
            return False
        return atoms * features.nanoseconds >= _DEAR


def _tail_weights(mesh: Mesh) -> FloatArray:
    """The factor g of eq. (8.3): the mass of each panel, but at least 1e-6."""
    return np.asarray(np.maximum(mesh.panel_masses, 1e-6))
