"""Atoms at Gauss–Legendre nodes of panels (eq. (8.2)) of a law with one random coordinate; panels are halved
where the flow steepens.

Atoms are points z(x) of a curve, with masses ρ(x) dx. As long as z_t(x) is smooth on every panel its values
at the nodes determine it, and sums over atoms are integrals to rounding. A separatrix makes a steep front
(eq. (8.3)): there panels are halved, before it is lost, and the new atoms interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre

from .._base.check import FloatArray

NODES = 16  # nodes of one panel
_ROOTS = 4  # equal panels of the coarsest mesh
LEAST = NODES * _ROOTS  # fewest atoms of a mesh
_FINEST = 40  # a panel may be halved so often: narrower ones would be rounding


@dataclass(frozen=True)
class Curve:
    """A law with one random number: points z(x) for x in [low, high] with a density of total mass 1."""

    low: float
    high: float
    density: Callable[[FloatArray], FloatArray]
    points: Callable[[FloatArray], FloatArray]  # maps x of shape (n,) to z(x) of shape (n, k)


@dataclass(frozen=True, eq=False)
class Mesh:
    """The panels of a curve in order, each named by (level, index): number `index` of `_ROOTS`·2^level
    equal ones.
    """

    curve: Curve
    level: tuple[int, ...]
    index: tuple[int, ...]

    @cached_property
    def parameters(self) -> FloatArray:
        """The parameters x of the atoms."""
        x, _ = _RULE
        return (self._left[:, None] + self._width[:, None] * (1 + x) / 2).ravel()

    @cached_property
    def raw_masses(self) -> FloatArray:
        """ρ(x) times the Gauss weight: the masses of the atoms, whose sum is 1 up to quadrature."""
        _, w = _RULE
        dx = (self._width[:, None] / 2 * w).ravel()
        return np.asarray(self.curve.density(self.parameters) * dx)

    @property
    def masses(self) -> FloatArray:
        """The masses of the atoms, divided by their sum."""
        raw = self.raw_masses
        return np.asarray(raw / raw.sum())

    @property
    def panel_masses(self) -> FloatArray:
        """The mass of each panel."""
        return np.asarray(self.masses.reshape(-1, NODES).sum(axis=1))

    def __len__(self) -> int:
        return len(self.level)

    @property
    def _width(self) -> FloatArray:
        span = (self.curve.high - self.curve.low) / _ROOTS
        return np.asarray(span / np.exp2(np.array(self.level)))

    @property
    def _left(self) -> FloatArray:
        return np.asarray(self.curve.low + self._width * np.array(self.index))

    def halved(self, which: np.ndarray) -> Mesh:
        """The mesh in which the chosen panels are replaced by their halves."""
        level: list[int] = []
        index: list[int] = []
        for p, split in enumerate(which):
            j, i = self.level[p], self.index[p]
            level += [j + 1] * 2 if split else [j]
            index += [2 * i, 2 * i + 1] if split else [i]
        return Mesh(self.curve, tuple(level), tuple(index))


def _legendre_matrices() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Matrices from values at the nodes of a panel to its last two Legendre coefficients, to the nodes
    of its halves, and from these back.
    """
    x, w = _RULE
    basis = legendre.legvander(x, NODES - 1)
    coefficients = (basis * w[:, None]).T * (np.arange(NODES) + 0.5)[:, None]
    to_halves = np.stack([legendre.legvander((x + side) / 2, NODES - 1) @ coefficients for side in (-1, 1)])
    back = np.zeros((NODES, 2 * NODES))
    for j, at in enumerate(x):
        half = int(at > 0)
        local = np.array([2 * at + (1 if half == 0 else -1)])
        row = legendre.legvander(local, NODES - 1) @ coefficients
        back[j, half * NODES : (half + 1) * NODES] = row[0]
    return np.asarray(coefficients[-2:]), np.asarray(to_halves), back


_RULE = legendre.leggauss(NODES)
TAIL, _TO_HALVES, _TO_PARENT = _legendre_matrices()


def start_mesh(
    curve: Curve, integrand: Callable[[FloatArray], FloatArray], tolerance: float, most: int
) -> Mesh:
    """The coarsest mesh that integrates all functions `integrand` (n, Q) of points, of up to `most` panels.

    A panel is halved while its integrals change by more than `tolerance` of the largest one.
    """

    def integrals(mesh: Mesh) -> FloatArray:
        values = integrand(curve.points(mesh.parameters)) * mesh.raw_masses[:, None]
        return np.asarray(values.reshape(len(mesh), NODES, -1).sum(axis=1))

    mesh = Mesh(curve, (0,) * _ROOTS, tuple(range(_ROOTS)))
    scale = float(np.abs(integrals(mesh).sum(axis=0)).max())
    done: dict[tuple[int, int], bool] = {}
    while True:
        keys = list(zip(mesh.level, mesh.index, strict=True))
        fresh = np.array([key not in done for key in keys])
        if fresh.any():
            part = Mesh(curve, tuple(np.array(mesh.level)[fresh]), tuple(np.array(mesh.index)[fresh]))
            halves = part.halved(np.ones(len(part), dtype=bool))
            twice = integrals(halves).reshape(len(part), 2, -1).sum(axis=1)
            change = np.abs(twice - integrals(part)).max(axis=1)
            for level, index, size in zip(part.level, part.index, change, strict=True):
                done[int(level), int(index)] = bool(size <= tolerance * scale or level >= _FINEST)
        rough = np.array([not done[key] for key in keys])
        if not rough.any() or len(mesh) + rough.sum() > most:
            return mesh
        mesh = mesh.halved(rough)


def doubled(mesh: Mesh, z: FloatArray) -> tuple[Mesh, FloatArray]:
    """Halve every panel; the new atoms are interpolated."""
    every = np.ones(len(mesh), dtype=bool)
    return mesh.halved(every), _halves(z).reshape(-1, z.shape[1])


def refined(
    mesh: Mesh, z: FloatArray, rough: np.ndarray, missed: FloatArray, coarsest: Mesh, most: int
) -> tuple[Mesh, FloatArray]:
    """Halve the panels `rough`, and unite pairs of halves that one panel represents, not beyond `coarsest`.

    `missed` is by how much one panel may miss the atoms of its halves, shape (panels, k).
    """
    z = z.reshape(len(mesh), NODES, -1)
    united: dict[int, FloatArray] = {}
    pairs = np.array([p for p in _first_halves(mesh, coarsest) if not (rough[p] or rough[p + 1])], dtype=int)
    if len(pairs):
        both = np.concatenate([z[pairs], z[pairs + 1]], axis=1)
        parents = np.einsum("ji,pic->pjc", _TO_PARENT, both)
        error = np.abs(_halves(parents.reshape(-1, z.shape[2])).reshape(both.shape) - both).max(axis=1)
        fine = (error <= np.minimum(missed[pairs], missed[pairs + 1])).all(axis=1)
        united = {int(p): parent for p, parent in zip(pairs[fine], parents[fine], strict=True)}
    level: list[int] = []
    index: list[int] = []
    atoms: list[FloatArray] = []
    halves = _halves(z.reshape(-1, z.shape[2])).reshape(len(mesh), 2, NODES, -1)
    skip = False
    room = most - len(mesh) + len(united)
    for p in range(len(mesh)):
        if skip:
            skip = False
            continue
        j, i = mesh.level[p], mesh.index[p]
        if p in united:
            level, index, atoms, skip = [*level, j - 1], [*index, i // 2], [*atoms, united[p]], True
        elif rough[p] and room > 0 and j < _FINEST:
            room -= 1
            level, index, atoms = [*level, j + 1, j + 1], [*index, 2 * i, 2 * i + 1], [*atoms, *halves[p]]
        else:
            level, index, atoms = [*level, j], [*index, i], [*atoms, z[p]]
    return Mesh(mesh.curve, tuple(level), tuple(index)), np.concatenate(atoms)


def _first_halves(mesh: Mesh, coarsest: Mesh) -> list[int]:
    """Indices p such that panels p and p + 1 are the halves of one panel that `coarsest` has not halved."""
    names = list(zip(mesh.level, mesh.index, strict=True))
    least = set(zip(coarsest.level, coarsest.index, strict=True))
    return [
        p
        for p, ((level, i), following) in enumerate(pairwise(names))
        if i % 2 == 0 and following == (level, i + 1) and not {(level, i), following} & least
    ]


def _halves(z: FloatArray) -> FloatArray:
    """Interpolate the atoms of both halves of every panel, shape (panels, 2·NODES, k)."""
    panels = z.reshape(-1, NODES, z.shape[1])
    both = np.einsum("hji,pic->phjc", _TO_HALVES, panels)
    return np.asarray(both.reshape(len(panels), 2 * NODES, -1))
