"""The potential of pairs in closed form, averaged over the rotations across a few directions (eq. (5.15)).

For x ~ N(0, I) no nodes are needed: V(z) is a closed form in (a, b, s, r), and U(z, z') is that of two
neurons whose parts across the directions have the cosine u, averaged over u by a Gauss–Gegenbauer rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.course import Course
from .._base.lengths import norms_and_directions
from ..data._parts import GaussianPart, HermiteLabel, Label, NetworkLabel
from ..expectations._exact import GaussianExact, supports
from ..network import Network

if TYPE_CHECKING:
    from ..model import Model

_LEAST, _MOST = 6, 32  # nodes of the rule of u
_GOAL = 1e-9  # change of U by twice the nodes, relative to the neurons, that ends the search for their number
_ANGLE, _SERIES = 3, 60  # nanoseconds of a pair with a form in its angle, and of others, roughly
MAX_PLAIN_ROW = 3  # rows of parameters so short need no symmetry
_ROWS = 1 << 18  # most rows of partners held at a time


class _Exact(GaussianExact):
    """Expectations that are asked for at every step: polynomials of one direction in whole-array calls."""

    def _of_polynomial(
        self, network: Network, label: HermiteLabel, b: FloatArray, w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`hermite_correlation`: with c_k and u = w_1/|w|, Σ c_k u^k R s_{k−1}/√k + c_0 T(b, R)."""
        if len(label.directions) > 1:
            return super()._of_polynomial(network, label, b, w)
        sigma = network.activation._core
        c = np.zeros(1 + max((sum(alpha) for alpha in label.coefficients), default=0))
        for alpha, value in label.coefficients.items():
            c[sum(alpha)] = value
        norm, w, size = norms_and_directions(w)
        s, k = _core.slope_coefficients(sigma, b, norm, len(c) + 1), np.arange(1, len(c))
        u = w[:, 0] / size
        powers = np.vander(u, len(c), increasing=True)
        sizes = s[:, : len(c) - 1] / np.sqrt(k)
        value = c[0] * _core.smooth(sigma, b, norm)[0] + norm * ((powers[:, 1:] * sizes) @ c[1:])
        along = (powers * s[:, 1:]) @ (c * np.sqrt(np.arange(1, len(c) + 1)))
        dw = (along / size)[:, None] * w
        dw[:, 0] += (powers[:, :-1] * sizes) @ (c[1:] * k)
        return value, (powers * s[:, :-1]) @ c, dw


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """V, U, Ψ, ∇Ψ and the risk in coordinates (a, b, s…, r) by closed forms of pairs of neurons.

    Args:
        model: The model whose network and law these are.
        label: y as a function of the p directions.
        p: The number of directions.
        dim: Dimensions across them, possibly infinite; 0: there is no r.
        power: E y², noise included.
        nodes: Nodes of the average over u; None: as many as change U by less than 1e-9, and at most 32.
        threads: Of the sums over pairs.
    """

    model: Model
    label: Label
    p: int
    dim: float
    power: float
    nodes: int | None = None
    threads: int = 0

    def __post_init__(self) -> None:
        if self.nodes is None:
            object.__setattr__(self, "nodes", self._enough())

    @cached_property
    def _exact(self) -> _Exact:
        """The expectations in p + 1 or p + 2 dimensions, for scale 1 and labels y/scale (eq. (11.1))."""
        label = _lifted(self.label, self.p, self._across, 1 / self.model.network.scale)
        part = GaussianPart(1.0, lambda w: w, label)
        return _Exact(self.model._unit.network, [part], self.threads)

    @property
    def _factor(self) -> float:
        """The factor of expectations for scale 1."""
        return self.model.network.scale**2

    @property
    def _outer(self) -> int:
        """The number of a and b."""
        return self.model.network.row(0)

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes u and their weights, of the law of the cosine of two independent directions in R^dim."""
        if self.dim == 1:
            return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
        if self.dim == 0 or math.isinf(self.dim):
            return np.zeros(1), np.ones(1)
        return _core.gauss_gegenbauer(self.dim, self.nodes or 1)

    @property
    def _across(self) -> int:
        """Columns for what is across the directions: one along the r of a neuron, one beside it."""
        return 0 if self.dim == 0 else 1 if self.dim == 1 else 2

    def with_threads(self, threads: int) -> Pairs:
        """The same on so many threads."""
        if threads not in self._on:
            self._on[threads] = replace(self, threads=threads)
        return self._on[threads]

    @cached_property
    def _on(self) -> dict[int, Pairs]:
        """The copies that `with_threads` has made."""
        return {self.threads: self}

    @property
    def cosines(self) -> int:
        """Nodes of the average over u."""
        return len(self._rule[0])

    @property
    def kinked(self) -> bool:
        """Tell whether σ has kinks."""
        return len(self.model.network.activation.kinks) > 0

    @property
    def nanoseconds(self) -> int:
        """Cost of U of one pair of points, roughly."""
        network = self.model.network
        known = network.activation._core
        homogeneous = known.is_piecewise and list(known.knots) in ([], [0.0]) and not network.has_b
        return self.cosines * (_ANGLE if homogeneous else _SERIES)

    def V(self, theta: FloatArray) -> FloatArray:
        """V(z) = −E[y σ*(x; z)]."""
        return self._factor * self._exact.V(self._rows(theta))

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(z, z'), eq. (5.15), shape (n, m)."""
        rows, total = self._rows(theta), np.zeros((len(theta), len(other)))
        for u, share in zip(*self._rule, strict=True):
            total += self._factor * share * self._exact.U(rows, self._partners(other, np.array([u])))
        return total

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(z; ρ) = V(z) + ∫U(z, ·)dρ."""
        return self.V(theta) + self.interaction(theta, points, weights)

    def interaction(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∫U(z, ·)dμ of a measure, signed or not."""
        rows, value = self._rows(theta), np.zeros(len(theta))
        for partners in self._all_partners(points, weights):
            value += self._exact.interaction(rows, *partners, False)[0]
        return self._factor * value

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(z; ρ) with respect to the coordinates, shape (n, k)."""
        rows, parts = self._rows(theta), self._all_partners(points, weights)
        total = self._exact.grad_psi(rows, *parts[0])
        for partners in parts[1:]:
            more = self._exact.interaction(rows, *partners, True)[1]
            assert more is not None
            total += more
        return np.ascontiguousarray(self._factor * total[:, : theta.shape[1]])

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E y² + 2∫V dρ + ∫∫U dρdρ."""
        risk = self.power + float(weights @ (2 * self.V(points) + self.interaction(points, points, weights)))
        return 0.0 if risk < 0 else risk  # rounding may leave -1e-16; NaN stays NaN

    def apex(self, rates: Sequence[float]) -> _core.Apex:
        """Find where a kink of σ meets w = 0 (eq. (6.18))."""
        network, k = self.model.network, self._outer + self.p + (self.dim > 0)
        columns = list(range(self._outer, k))
        return _core.Apex(
            network.activation._core, columns, int(network.has_a) if network.has_b else -1, list(rates)
        )

    def error(self, z: FloatArray) -> float:
        """The change of U by twice the nodes of u at these points, relative to the size of the neurons."""
        if self.dim <= 1 or math.isinf(self.dim):
            return 0.0
        twice = replace(self, nodes=2 * (self.nodes or 1))
        own = self.U(z, z)
        return float(np.abs(own - twice.U(z, z)).max()) / max(1.0, float(own.diagonal().max()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Pairs, (self.model, self.label, self.p, self.dim, self.power, self.nodes, self.threads)

    def __repr__(self) -> str:
        return f"Pairs({self.cosines} cosine{'s' * (self.cosines != 1)})"

    def _enough(self) -> int:
        """The number of nodes of u: exact for polynomials, else found by doubling."""
        if self.dim <= 1 or math.isinf(self.dim):
            return 1 if self.dim != 1 else 2
        known = self.model.network.activation._core.facts
        if known.is_polynomial:
            return max(1, known.degree // 2 + 1)
        count = _LEAST
        z = self._probes()
        while count < _MOST and replace(self, nodes=count).error(z) > _GOAL:
            count = min(count * 4 // 3, _MOST)
        return count

    def _probes(self) -> FloatArray:
        """A few neurons of size one, two of them nearly parallel."""
        k = self._outer + self.p + 1
        z = np.random.default_rng(0).uniform(-1.0, 1.0, (6, k))
        z[:, -1] = np.abs(z[:, -1]) + 0.5
        z[1] = z[0] * 1.01
        return z

    def _rows(self, z: FloatArray) -> FloatArray:
        """Neurons [a, b, s, r, 0]: in the plane across the directions, r is along the first axis."""
        return np.pad(z, ((0, 0), (0, 1))) if self._across == 2 else z

    def _partners(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Neurons [a, b, s, r u, r √(1 − u²)], those of one z after the other."""
        if self._across == 0:
            return z
        r = z[:, -1:]
        rows = np.repeat(self._rows(z), len(u), axis=0)
        first = self._outer + self.p
        rows[:, first] = (r * u).ravel()
        if self._across == 2:
            rows[:, first + 1] = (r * np.sqrt(1 - u * u)).ravel()
        return rows

    def _all_partners(self, z: FloatArray, weights: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The partners of z with their masses, in pieces."""
        u, mass = self._rule
        piece = max(1, _ROWS // len(u))
        starts = range(0, len(z), piece)
        return [
            (
                self._partners(z[at : at + piece], u),
                np.multiply.outer(weights[at : at + piece], mass).ravel(),
            )
            for at in starts
        ]


def _lifted(label: Label, p: int, across: int, factor: float) -> Label:
    """A label of the p directions, as one of p + `across` coordinates, times a factor."""
    if isinstance(label, HermiteLabel):
        terms = {alpha: c * factor for alpha, c in label.coefficients.items()}
        return HermiteLabel(np.eye(p, p + across), terms)
    assert isinstance(label, NetworkLabel)
    theta = np.pad(label.theta, ((0, 0), (0, across)))
    return replace(label, theta=theta, factor=label.factor * factor)


def pairs_of(model: Model, limit: bool, nodes: int | None = None) -> Pairs | None:
    """The closed potential of pairs of a model; None where none is known."""
    found = model.data._along()
    if found is None or model.network.sphere:
        return None
    label, p = found
    if model.data._plain_first and is_short(model):  # θ itself
        (part,), p = model.data._parts() or [], int(model.data.d)
        label = part.label
    if supports(model.network, [GaussianPart(1.0, lambda w: w, label)]) is not None:
        return None
    power = model.data.target_power()
    if power is None:
        return None
    dim = float(model.data.d) - p
    return Pairs(model, label, p, math.inf if limit and dim > 0 else dim, power, nodes)


def served(model: Model) -> bool:
    """Tell whether pairs are better than nodes, which many directions have too many of.

    Nodes follow the kinks of σ in one direction alone.
    """
    found = model.data._along()
    if found is None:
        return False
    label, p = found
    kinks = len(model.network.activation.kinks) > 0
    if isinstance(label, NetworkLabel):
        kinks = kinks or len(label.network.activation.kinks) > 0
        return kinks or not is_short(model)
    return kinks and p > 1


def meets_kinks(model: Model) -> bool:
    """Tell whether pairs are better than nodes in motion.

    Trained output weights lead neurons to w = 0, where the kinks of all nodes meet.
    """
    network = model.network
    noisy = isinstance(model.temperature, Course) or model.temperature > 0
    return not noisy and "a" in network.trained and len(network.activation.kinks) > 0


def is_short(model: Model) -> bool:
    """Tell whether rows of parameters are so short that they need no symmetry."""
    return model.row is not None and model.row <= MAX_PLAIN_ROW


def no_features(_: FloatArray) -> FloatArray:
    """Refuse features of a model that has closed pairs in their place."""
    raise ValueError(
        "model must have features at nodes of the data here, got closed forms of pairs, with which mf.Atoms, "
        "mf.Nonlinear, mf.optimum, mf.certificate, mf.V, mf.U, mf.psi, mf.grad_psi and mf.risk work; "
        "model.reduce(nodes=…) has nodes, and node_error tells how well they see kinks"
    )
