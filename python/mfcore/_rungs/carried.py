"""Atoms in their own field: one integrator of the core after another, as atoms and features change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._check import FloatArray
from .._panels import NODES, TAIL, Mesh, refined, tails
from .._separable import NotSeparableError, Separable
from ..reduce import ReducedModel
from .stiff import KINDS, ImplicitFlow

if TYPE_CHECKING:
    from ..atoms import Atoms

_CHUNK = 1 << 20  # numbers of features that Python holds at a time
_WALL = 1e2  # how much more error is tolerated where a wall cuts a panel: its atoms come to rest one by one
_SHARE = 0.1  # of the tolerances of a step, for what panels may lose
_HALF = 0.5  # panels that have lost this share of that are halved together with those that lost it all
_DEAR = 50_000_000  # nanoseconds of all features, from which it pays to make them separable
_INNER, _OUTER = 0.5, 0.25  # how far beyond the atoms the box is, in their own spread, and its rim


class Carried:
    """Atoms z_i with masses w_i on their way, and what they need to go on: panels, features on a box."""

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
        self._tolerance, self._walls = tolerance, np.array(reduced.nonnegative)
        self.weights, self.mesh, self._coarsest, self._most = weights, mesh, mesh, most
        self._slack = 1.0  # by how much the tolerance of panels had to grow for want of atoms
        self._before = (0.0, 0, 0, 0, 0.0)  # time and counts when the present flow began
        self._box: FloatArray | None = None
        self._separable: Separable | None = None
        if like is not None:
            self._box, self._separable = like._box, like._separable
        elif self._is_dear(len(points)):
            self._enclose(points)
        self.flow = self._begin(points, 0.0)

    @property
    def t(self) -> float:
        """The time reached."""
        return self._before[0] + self.flow.t

    @property
    def before(self) -> tuple[float, int]:
        """Time and steps when the present flow began."""
        return self._before[:2]

    @property
    def counts(self) -> tuple[int, int, int, float]:
        """Steps done, steps refused, evaluations of ∇Ψ, and the drift of the risk (dynamics/flow.hpp)."""
        flow, (_, steps, rejected, evaluations, drift) = self.flow, self._before
        return (
            steps + flow.steps,
            rejected + flow.rejected,
            evaluations + flow.evaluations,
            drift + flow.drift,
        )

    @property
    def points(self) -> FloatArray:
        """The atoms, shape (N, k)."""
        return self.flow.theta().reshape(len(self.weights), -1)

    def run(self, t: float, seconds: float) -> str:
        """Go to time t. How it ended, as the core says it."""
        while (end := self.flow.run(t - self._before[0], seconds)) == "unresolved":
            self._adapt()
        return end

    def clamped(self, z: FloatArray) -> FloatArray:
        """A copy with radii >= 0; the coordinates may be there several times."""
        walls = np.resize(self._walls, z.shape[1])
        return np.where(walls, np.maximum(z, 0.0), z)

    def moments(self, z: FloatArray, weights: FloatArray) -> FloatArray:
        """f_q = ∫Φ_q dρ."""
        if self._separable is not None and self._separable.covers(z):
            found, _ = self._separable.compiled.moments(z, weights, self._threads)
            return self._separable.predictions(found)
        return moments(self._reduced, z, weights)

    def state(self) -> dict[str, np.ndarray]:
        """All that `restore` needs."""
        numbers, vectors = self.flow.save()
        before = np.array([*self._before, self._slack])
        state = {"numbers": numbers, "vectors": vectors, "before": before}
        if self.mesh is not None:
            state["panels"] = np.array([self.mesh.level, self.mesh.index], dtype=np.int64)
        if self._box is not None:
            state["box"] = self._box
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        t, steps, rejected, evaluations, drift, self._slack = state["before"].tolist()
        self._before = (t, int(steps), int(rejected), int(evaluations), drift)
        if self.mesh is not None:
            level, index = state["panels"].tolist()
            self.mesh = Mesh(self.mesh.curve, tuple(level), tuple(index))
            self.weights = self.mesh.masses
        if self._box is not None and not np.array_equal(self._box, state["box"]):
            self._box = state["box"]
            self._separate()
        self.flow = self._begin(np.zeros((len(self.weights), len(self._walls))), 0.0)
        self.flow.restore(state["numbers"].tolist(), state["vectors"])

    def _begin(self, points: FloatArray, first_step: float) -> _core.Flow | ImplicitFlow:
        """A flow of these atoms."""
        method, reduced = self._method, self._reduced
        panels = _core.Panels()
        if self.mesh is not None:
            panels = _core.Panels(
                nodes=NODES,
                tail=TAIL.ravel().tolist(),
                weight=_tail_weights(self.mesh).tolist(),
                rtol=self._slack * _SHARE * method.rtol,
                atol=self._slack * _SHARE * method.atol,
                at_wall=_WALL,
            )
        system, start = self._system(panels), points.ravel()
        if method.method in KINDS:
            return ImplicitFlow(
                system,
                start,
                method.method,
                rtol=method.rtol,
                atol=method.atol,
                tolerance=self._tolerance,
                weights=self.weights,
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

    def _system(self, panels: _core.Panels) -> _core.System:
        """The velocity −rates·∇Ψ_λ of the atoms in their own field."""
        reduced, masses = self._reduced, self.weights.tolist()
        inner = np.empty((0, 2)) if self._box is None else self._box
        params = _core.AtomParams(
            rates=list(reduced.rates),
            decays=list(reduced.decays),
            nonnegative=list(reduced.nonnegative),
            volume=list(reduced.volume),
            ridge=reduced.ridge,
            low=inner[:, 0].tolist(),
            high=inner[:, 1].tolist(),
        )
        if self._separable is not None:
            compiled = self._separable.compiled
            return _core.System.atoms_separable(compiled, masses, params, panels, self._threads)
        features = reduced._compiled
        if features is not None:
            p, y = reduced.weights.tolist(), reduced.targets.tolist()
            return _core.System.atoms(features, p, y, masses, params, panels, self._threads)
        return _core.System.atoms_calling(self._gradient(self.weights), masses, params, panels)

    def _gradient(self, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """∇Ψ of features written in Python, a few atoms at a time."""
        reduced = self._reduced
        by_hand: Any = reduced.gradients

        def gradient(z: FloatArray) -> FloatArray:
            out = np.full(z.shape, np.nan)
            if not np.isfinite(z).all():  # reported as divergence
                return out
            at = self.clamped(z)
            with np.errstate(all="ignore"):
                residual = reduced.weights * (moments(reduced, at, weights) - reduced.targets)
                for part in chunks(reduced, len(z)):
                    out[part] = np.einsum("nqk,q->nk", by_hand(at[part]), residual)
            return out

        return gradient

    def _adapt(self) -> None:
        """Change what the next step would have been wrong with."""
        z, next_ = self.points, self.flow.refused().reshape(len(self.weights), -1)
        h, unite = self.flow.step_size, self.flow.steps > 0  # what was split just now is not united again
        self._before = (self.t, *self.counts)
        if self._box is not None and not _inside(self._box, self.clamped(next_)):
            self._enclose(np.concatenate([z, self.clamped(next_)]))
        if self.mesh is not None:
            z = self._remesh(z, next_, unite)
        self.flow = self._begin(z, h)

    def _remesh(self, z: FloatArray, next_: FloatArray, unite: bool) -> FloatArray:
        """Split panels before the step that would tear them, and unite those that need not be two."""
        mesh, coarsest = self.mesh, self._coarsest
        assert mesh is not None
        assert coarsest is not None
        # Where the atoms are, and where the step leads: both are as smooth as the map from x is so far.
        both = np.concatenate([z, next_], axis=1)
        while True:
            allowed, weight = self._allowed(mesh, both), _tail_weights(mesh)[:, None]
            rough = np.asarray((weight * tails(self.clamped(both)) > _HALF * allowed).any(axis=1))
            if not rough.any():
                break
            limit = 0.1 * allowed / weight if unite else np.zeros_like(allowed)
            finer, atoms = refined(mesh, both, rough, limit, coarsest, max(self._most, len(mesh)))
            if (finer.level, finer.index) == (mesh.level, mesh.index):  # no atoms left
                self._slack *= 10.0
            mesh, both, unite = finer, atoms, False
        self.mesh, self.weights = mesh, mesh.masses
        return self.clamped(both[:, : z.shape[1]])

    def _allowed(self, mesh: Mesh, z: FloatArray) -> FloatArray:
        """Tolerated tails of the panels, as the core has them (dynamics/atoms.hpp)."""
        pieces = self.clamped(z).reshape(len(mesh), NODES, -1)
        at_wall = (pieces[:, :, np.resize(self._walls, pieces.shape[2])] == 0).sum(axis=1)
        cut = ((at_wall > 0) & (at_wall < NODES)).any(axis=1)
        allowed = self._method.atol + self._method.rtol * np.abs(pieces).max(axis=1)
        return np.asarray(self._slack * _SHARE * allowed * np.where(cut, _WALL, 1.0)[:, None])

    def _is_dear(self, atoms: int) -> bool:
        """Whether to look for separable features: decided by the problem, never by the clock."""
        features = self._reduced._compiled
        if features is None or features.coordinates != 2 or self._method.method != "dopri5":
            return False
        return atoms * features.nanoseconds >= _DEAR

    def _enclose(self, z: FloatArray) -> None:
        """Features on a box around these atoms, if they can be had."""
        low, high = z.min(axis=0), z.max(axis=0)
        spread = np.maximum(high - low, 0.5 * np.maximum(np.abs(low), np.abs(high)))
        spread = np.maximum(spread, 0.1)
        low = np.where(self._walls, 0.0, low - _INNER * spread)
        self._box = np.stack([low, high + _INNER * spread], axis=1)
        self._separate()

    def _separate(self) -> None:
        assert self._box is not None
        low, high = self._box.T
        rim = _OUTER * (high - low)
        outer = np.stack([np.where(self._walls, 0.0, low - rim), high + rim], axis=1)
        try:
            self._separable = Separable.build(self._reduced, outer)
        except NotSeparableError:
            self._box = self._separable = None


def moments(reduced: ReducedModel, z: FloatArray, weights: FloatArray) -> FloatArray:
    """f_q = ∫Φ_q dρ, a few atoms at a time."""
    f = np.zeros(len(reduced.weights))
    for part in chunks(reduced, len(z)):
        f += weights[part] @ reduced.features(z[part])
    return f


def chunks(reduced: ReducedModel, n: int) -> list[slice]:
    """Slices of n atoms whose features and gradients are not too many numbers."""
    rows = max(1, _CHUNK // (len(reduced.weights) * (1 + len(reduced.coordinates))))
    return [slice(k, k + rows) for k in range(0, n, rows)]


def _tail_weights(mesh: Mesh) -> FloatArray:
    """How much the tail of a panel counts: as much as its mass, if that is not next to nothing."""
    return np.asarray(np.maximum(mesh.panel_masses, 1e-6))


def _inside(box: FloatArray, z: FloatArray) -> bool:
    return bool(((z >= box[:, 0]) & (z <= box[:, 1])).all())
