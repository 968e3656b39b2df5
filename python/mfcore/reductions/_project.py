"""Neurons and the coordinates of a reduction: what symmetric problems look at, and back (eq. (5.7))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .._base.check import FloatArray
from .._base.lengths import norms
from ..data import DataLaw
from ..data._symmetry import Split
from ..network import Network
from ._sphere import completed

Projection = Callable[[FloatArray], FloatArray]


def projections(law: DataLaw) -> dict[str, Projection]:
    """Name of a reduced coordinate to a function of weights w, shape (…, d); |w| itself is left out."""
    split = law._split()
    if split is None or not split.inside:
        return {}
    names = (*split.inside, split.outside)
    return {name: partial(_coordinate, split=split, at=j) for j, name in enumerate(names)}


class Coordinates:
    """Neurons in reduced coordinates [a, b, s… or r1, r], and back along the directions of given neurons.

    Args:
        network: The network whose rows are [a, b, w…].
        law: The data law.
        names: Coordinates of a reduction of the two.
    """

    def __init__(self, network: Network, law: DataLaw, names: Sequence[str]) -> None:
        self._outer = network.row(0)
        own = tuple(names[self._outer :])
        split = law._split()
        if split is None or own[:1] == ("w1",):  # a reduction to θ itself
            split = Split(len(own), False, own, "")
        self._split = split
        possible = (*split.inside, split.outside)
        present = [*range(self._outer), *(self._outer + j for j, c in enumerate(possible) if c in own)]
        self._present = present  # parts of dimension 0 have no coordinate
        self._columns = self._outer + len(possible)
        self._implied = network.sphere  # r, by |w| = 1

    def of(self, theta: FloatArray) -> FloatArray:
        """Reduced coordinates of neurons, (N, D) to (N, k)."""
        outer = self._outer
        z = np.empty((len(theta), self._columns))
        z[:, :outer] = theta[:, :outer]
        z[:, outer:] = coordinates_of(self._split, theta[:, outer:])
        return np.ascontiguousarray(z[:, self._present])

    def lift(self, theta: FloatArray, values: FloatArray) -> FloatArray:
        """Rows in the directions of `theta` with reduced coordinates `values`, (N, k) to (N, D).

        The part of w with norm r is scaled to its new norm. Where r = 0 there is no direction: it stays 0.
        """
        full = self._full(values)
        if self._implied:
            full[:, -1] = completed(values, self._outer)[:, -1]
        return self._along(theta, full)

    def lift_velocity(self, theta: FloatArray, velocity: FloatArray) -> FloatArray:
        """Velocities of the rows `theta` whose reduced coordinates move with `velocity`, (N, k) to (N, D):
        w moves by ṡ along the axes and by ṙ·w/r in the part with norm r.
        """
        full = self._full(velocity)
        if self._implied:  # s·ṡ + r·ṙ = 0
            z = completed(self.of(theta), self._outer)
            turned = -np.sum(z[:, self._outer : -1] * velocity[:, self._outer :], axis=1)
            full[:, -1] = _ratio(turned, z[:, -1])
        return self._along(theta, full)

    def _full(self, values: FloatArray) -> FloatArray:
        """With zeros for the coordinates that there are none of."""
        full = np.zeros((len(values), self._columns))
        full[:, self._present] = values
        return full

    def _along(self, theta: FloatArray, full: FloatArray) -> FloatArray:
        outer, split = self._outer, self._split
        along, rest = split.parts(theta[:, outer:])
        inside = full[:, outer:-1]
        if split.radial:
            inside = along * _ratio(inside[:, 0], norms(along))[:, None]
        rest = rest * _ratio(full[:, -1], norms(rest))[:, None]
        return np.concatenate([full[:, :outer], split.joined(inside, rest)], axis=1)


def coordinates_of(split: Split, w: FloatArray) -> FloatArray:
    """All coordinates of w, those of empty parts too, along a new last axis."""
    along, rest = split.parts(w)
    first = norms(along)[..., None] if split.radial else along
    return np.concatenate([first, norms(rest)[..., None]], axis=-1)


def _coordinate(w: FloatArray, split: Split, at: int) -> FloatArray:
    return np.asarray(coordinates_of(split, w)[..., at])


def _ratio(value: FloatArray, radius: FloatArray) -> FloatArray:
    return np.divide(value, radius, out=np.zeros_like(value), where=radius > 0)
