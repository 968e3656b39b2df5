"""The limit as weighted atoms in reduced coordinates."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._atom_starts import FEW, curve, filling, freedom, gauss
from .._check import FloatArray
from .._panels import LEAST, NODES, TAIL, Mesh, doubled, refined, start_mesh, tails
from ..measure import Cloud
from ..model import Model
from ..reduce import ReducedModel
from .particles import message_of
from .reduced import reduced_of

if TYPE_CHECKING:
    from ..atoms import Atoms

_CHUNK = 1 << 20  # numbers of features that Python holds at a time
_WALL = 1e2  # how much more error is tolerated where a wall cuts a panel: its atoms come to rest one by one
_HALF = 0.5  # panels with this share of the tolerated tail are halved together with those that have it all


class AtomRung:
    """Atoms moved by an integrator of the core, and what is needed to say how far off they are."""

    def __init__(self, method: Atoms, model: Model | ReducedModel, seed: int, threads: int) -> None:
        self._method, self._seed, self._threads = method, seed, threads
        self._reduced = reduced_of(model)
        _check(method, self._reduced)
        self._noisy = self._reduced.temperature > 0
        self._mesh: Mesh | None = None
        points, self._weights, self._other = self._atoms()
        self._slack = 1.0  # by how much the tolerance of panels had to grow for want of atoms
        self._since, self._steps, self._rejected, self._evaluations, self._drift = 0.0, 0, 0, 0, 0.0
        self._least = self._mesh
        self._flow = self._begin(points, self._weights, 0.0)
        self._companion = None if self._other is None else self._begin(*self._other, 0.0, alone=True)
        self._end = "reached"

    def _atoms(self) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
        """Points and masses at t = 0, and fewer of them to compare with."""
        method, reduced = self._method, self._reduced
        initial, given = reduced.initial, method.cloud
        if given is not None:
            return given.points.copy(), given.weights.copy(), None
        free = freedom(initial)
        count = method.count or _default(free, self._noisy)
        self._most = count // NODES
        if self._noisy:
            points = initial.sample(count, np.random.default_rng(self._seed))
            return np.asarray(points, dtype=np.float64), np.full(count, 1 / count), None
        line = curve(initial)
        if line is not None and count >= LEAST and not method.step:
            scale = np.sqrt(reduced.weights)
            self._mesh = start_mesh(line, lambda z: reduced.features(z) * scale, self._rtol, count // NODES)
            return line.points(self._mesh.parameters), self._mesh.masses, None
        if free == 0:
            return (*gauss(initial, 1), None)
        each = min(int(round(count ** (1 / free), 9)), 64)
        if each >= min(FEW, count) or free == 1:
            fewer = max(1, 2 * each // 3)
            return (*gauss(initial, each), gauss(initial, fewer) if fewer < each else None)
        points, weights = filling(initial, count, self._seed)
        half = max(1, count // 2)
        return points, weights, (points[:half], np.full(half, 1 / half))

    @property
    def _rtol(self) -> float:
        """What panels are measured by."""
        return 0.1 * self._method.rtol

    def _begin(
        self, points: FloatArray, weights: FloatArray, first_step: float, alone: bool = False
    ) -> _core.Flow:
        """A flow of these atoms; that of a companion knows no panels and never rests."""
        method, reduced = self._method, self._reduced
        panels = _core.Panels()
        if self._mesh is not None and not alone:
            panels = _core.Panels(
                nodes=NODES,
                tail=TAIL.ravel().tolist(),
                weight=self._tail_weights(self._mesh).tolist(),
                rtol=self._slack * self._rtol,
                atol=self._slack * 0.1 * method.atol,
                at_wall=_WALL,
            )
        system = system_of(reduced, weights, panels, self._threads)
        start, tolerance = points.ravel(), 0.0 if alone else method.tolerance or 0.0
        if method.step is None:
            return _core.Flow.dopri5(
                system, start, rtol=method.rtol, atol=method.atol, tolerance=tolerance, first_step=first_step
            )
        return _core.Flow.fixed(
            system,
            start,
            method.method,
            method.step,
            temperature=reduced.temperature,
            seed=self._seed,
            tolerance=tolerance,
            threads=self._threads,
        )

    @staticmethod
    def _tail_weights(mesh: Mesh) -> FloatArray:
        """How much the tail of a panel counts: as much as its mass, if that is not next to nothing."""
        return np.asarray(np.maximum(mesh.panel_masses, 1e-6))

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates these are."""
        return self._reduced

    @property
    def t(self) -> float:
        """The time reached."""
        return self._since + self._flow.t

    @property
    def status(self) -> str:
        """``"running"``, or how the run ended: ``"interrupted"``, ``"diverged"`` or ``"stationary"``."""
        return {"reached": "running", "out of time": "running", "stuck": "diverged"}.get(self._end, self._end)

    @property
    def message(self) -> str:
        """What ended the run, and what to do."""
        return message_of(self._end, self._flow, self._method.tolerance, since=self._since, done=self._steps)

    def advance(self, t: float, seconds: float) -> bool:
        """Go to time t; with fixed steps, to the step nearest to it."""
        deadline = time.monotonic() + seconds
        while True:
            self._end = self._flow.run(t - self._since, max(deadline - time.monotonic(), 0.0))
            if self._end != "unresolved":
                break
            self._remesh()
        if self._companion is not None and self._end in ("reached", "stationary"):
            end = self._companion.run(self.t, max(deadline - time.monotonic(), 0.0))
            if end in ("interrupted", "out of time"):
                self._end = end
        return self._end == "reached"

    def _remesh(self) -> None:
        """Split panels before the step that would tear them, and unite those that need not be two."""
        mesh, least = self._mesh, self._least
        assert mesh is not None and least is not None
        z, h, most = self._points(), self._flow.step_size, max(self._most, len(self._mesh or ()))
        # Where the atoms are, and where the step leads: both are as smooth as the map from x is so far.
        both = np.concatenate([z, self._flow.refused().reshape(z.shape)], axis=1)
        unite = self._flow.steps > 0  # what was split just now is not united again
        while True:
            allowed, weight = self._allowed(mesh, both), self._tail_weights(mesh)[:, None]
            rough = (weight * tails(self._clamped(both)) > _HALF * allowed).any(axis=1)
            if not rough.any():
                break

            def mergeable(missed: FloatArray, pairs: np.ndarray, within: FloatArray = allowed) -> np.ndarray:
                heavier = weight[pairs].max(axis=1)
                good = heavier * np.abs(missed).max(axis=1) <= 0.1 * within[pairs].min(axis=1)
                return good.all(axis=1) if unite else np.zeros(len(pairs), dtype=bool)

            finer, atoms = refined(mesh, both, rough, mergeable, least, most)
            if (finer.level, finer.index) == (mesh.level, mesh.index):  # no atoms left
                self._slack *= 10.0
            mesh, both, unite = finer, atoms, False
        self._since, (self._steps, self._rejected, self._evaluations, self._drift) = self.t, self._counts()
        self._mesh, self._weights = mesh, mesh.masses
        self._flow = self._begin(self._clamped(both[:, : z.shape[1]]), self._weights, h)

    def _allowed(self, mesh: Mesh, z: FloatArray) -> FloatArray:
        """Tolerated tails of the panels, as the core has them (dynamics/atoms.hpp)."""
        pieces = self._clamped(z).reshape(len(mesh), NODES, -1)
        walls = np.resize(np.array(self._reduced.nonnegative), pieces.shape[2])
        at_wall = (pieces[:, :, walls] == 0).sum(axis=1)
        cut = ((at_wall > 0) & (at_wall < NODES)).any(axis=1)
        allowed = 0.1 * self._method.atol + self._rtol * np.abs(pieces).max(axis=1)
        return np.asarray(self._slack * allowed * np.where(cut, _WALL, 1.0)[:, None])

    def _clamped(self, z: FloatArray) -> FloatArray:
        """A copy with radii >= 0; the coordinates may be there several times."""
        walls = np.resize(np.array(self._reduced.nonnegative), z.shape[1])
        return np.where(walls, np.maximum(z, 0.0), z)

    def _counts(self) -> tuple[int, int, int, float]:
        flow = self._flow
        return (
            self._steps + flow.steps,
            self._rejected + flow.rejected,
            self._evaluations + flow.evaluations,
            self._drift + flow.drift,
        )

    def _points(self) -> FloatArray:
        return self._flow.theta().reshape(len(self._weights), -1)

    def measure(self) -> Cloud:
        """The atoms."""
        return Cloud(self._points(), self._weights)

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and its error: of the initial law by atoms, plus that of the steps.

        The first is the change with twice the panels, the difference to a run with fewer nodes or half the
        atoms, or, with noise, two parts added as squares: the standard error of independent atoms, and how
        far their risk is above that of their law.
        """
        z = self._points()
        f = moments(self._reduced, z, self._weights)
        risk = risk_of(self._reduced, f)
        if self._noisy:
            return risk, self._sampling_error(z, f)
        error = self._counts()[3]
        if self._mesh is not None:
            mesh, atoms = doubled(self._mesh, z)
            twice = moments(self._reduced, self._clamped(atoms), mesh.masses)
            error += abs(risk_of(self._reduced, twice) - risk)
            error += self._corner(z, f)
        elif self._companion is not None and self._other is not None:
            weights = self._other[1]
            other = self._companion.theta().reshape(len(weights), -1)
            error += abs(risk_of(self._reduced, moments(self._reduced, other, weights)) - risk)
        return risk, error

    def _corner(self, z: FloatArray, f: FloatArray) -> float:
        """What can hide between the last atom of a panel at a wall and the first that is not there yet."""
        reduced, w = self._reduced, self._weights
        residual = reduced.weights * (f - reduced.targets)
        total = 0.0
        for c in np.flatnonzero(reduced.nonnegative):
            at_wall = z[:, c] <= 0
            free = ~at_wall & (np.roll(at_wall, 1) | np.roll(at_wall, -1))
            if free.any() and at_wall.any():
                slope = reduced.gradients(z[free])[:, :, c] @ residual  # type: ignore[misc]
                total += float(np.abs(w[free] * z[free, c] * slope).sum())
        return total

    def _sampling_error(self, z: FloatArray, f: FloatArray) -> float:
        reduced, w = self._reduced, self._weights
        residual = reduced.weights * (f - reduced.targets)
        first = second = own = 0.0
        for part in _chunks(reduced, len(w)):
            phi = reduced.features(z[part])
            psi = phi @ residual
            first += float(w[part] @ psi)
            second += float(w[part] @ psi**2)
            own += float(w[part] @ (phi**2 @ reduced.weights))
        share = float(w @ w)  # 1/N of equal masses
        bias = share * (own - float(reduced.weights @ f**2))
        return math.sqrt(4 * share * max(second - first**2, 0.0) + bias**2)

    def observed(self) -> Mapping[str, float]:
        """Nothing beside the standard ones."""
        return {}

    def state(self) -> dict[str, np.ndarray]:
        """The integrators' numbers and vectors, and the panels."""
        numbers, vectors = self._flow.save()
        counts = [self._since, self._steps, self._rejected, self._evaluations, self._drift, self._slack]
        state = {"numbers": numbers, "vectors": vectors, "counts": np.array(counts)}
        if self._mesh is not None:
            state["panels"] = np.array([self._mesh.level, self._mesh.index], dtype=np.int64)
        if self._companion is not None:
            state["other_numbers"], state["other_vectors"] = self._companion.save()
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        self._since, steps, rejected, evaluations, self._drift, self._slack = state["counts"].tolist()
        self._steps, self._rejected, self._evaluations = int(steps), int(rejected), int(evaluations)
        if self._mesh is not None:
            level, index = state["panels"].tolist()
            self._mesh = Mesh(self._mesh.curve, tuple(level), tuple(index))
            self._weights = self._mesh.masses
            blank = np.zeros((len(self._weights), len(self._reduced.coordinates)))
            self._flow = self._begin(blank, self._weights, 0.0)
        self._flow.restore(state["numbers"].tolist(), state["vectors"])
        if self._companion is not None:
            self._companion.restore(state["other_numbers"].tolist(), state["other_vectors"])

    def meta(self) -> dict[str, Any]:
        """Atoms, steps done and refused, and evaluations of ∇Ψ."""
        steps, rejected, evaluations, _ = self._counts()
        return {
            "atoms": len(self._weights),
            "steps": steps,
            "rejected": rejected,
            "evaluations": evaluations,
        }


def system_of(reduced: ReducedModel, weights: FloatArray, panels: _core.Panels, threads: int) -> _core.System:
    """The velocity −rates·∇Ψ_λ of atoms in their own field."""
    params = _core.AtomParams(
        rates=list(reduced.rates),
        decays=list(reduced.decays),
        nonnegative=list(reduced.nonnegative),
        volume=list(reduced.volume),
        ridge=reduced.ridge,
    )
    compiled = reduced._compiled
    if compiled is not None:
        p, y = reduced.weights.tolist(), reduced.targets.tolist()
        return _core.System.atoms(compiled, p, y, weights.tolist(), params, panels, threads)
    walls = np.array(reduced.nonnegative)

    def gradient(z: FloatArray) -> FloatArray:
        out = np.full(z.shape, np.nan)
        if not np.isfinite(z).all():  # reported as divergence
            return out
        z[:, walls] = np.maximum(z[:, walls], 0.0)
        residual = reduced.weights * (moments(reduced, z, weights) - reduced.targets)
        for part in _chunks(reduced, len(z)):
            out[part] = np.einsum("nqk,q->nk", reduced.gradients(z[part]), residual)  # type: ignore[misc]
        return out

    return _core.System.atoms_calling(gradient, weights.tolist(), params, panels)


def moments(reduced: ReducedModel, z: FloatArray, weights: FloatArray) -> FloatArray:
    """f_q = ∫Φ_q dρ, a few atoms at a time."""
    f = np.zeros(len(reduced.weights))
    for part in _chunks(reduced, len(z)):
        f += weights[part] @ reduced.features(z[part])
    return f


def risk_of(reduced: ReducedModel, f: FloatArray) -> float:
    """R = Σ p_q (y_q − f_q)² + τ²."""
    return float(reduced.weights @ (reduced.targets - f) ** 2) + reduced.noise


def _chunks(reduced: ReducedModel, n: int) -> list[slice]:
    """Slices of n atoms whose features and gradients are not too many numbers."""
    rows = max(1, _CHUNK // (len(reduced.weights) * (1 + len(reduced.coordinates))))
    return [slice(k, k + rows) for k in range(0, n, rows)]


def _default(free: int, noisy: bool) -> int:
    """Atoms, if nobody says how many."""
    if noisy:
        return 10_000
    return {0: 1, 1: 1024, 2: 1024}.get(free, 4096)


def _check(method: Atoms, reduced: ReducedModel) -> None:
    names = ", ".join(reduced.coordinates)
    if getattr(reduced.gradients, "function", None) is None:
        raise ValueError("gradients must be given for the atoms of a ReducedModel to move, got None")
    if method.cloud is None and reduced.initial is None:
        raise ValueError(
            f"start must be an mf.Cloud of atoms ({names}): the model has no initial law in these "
            "coordinates; got None"
        )
    if method.cloud is not None:
        points = method.cloud.points
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
