"""Expectations over inputs on the sphere of radius √d, by zonal kernels: `SphereExact`.

A neuron sees x through the cosine of x and w alone: it is a series in the polynomials of that cosine, and
a pair of neurons one in the polynomials of their angle (eqs. (4.28) to (4.32)).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.lengths import norms_and_directions
from ..data._parts import SphereLabel
from ..network import Network
from ._legendre import Harmonics, Legendre
from ._zonal_series import TAIL, TERMS, Series, Terms, on_nodes, series_of_link, supports, terms_of

_PAIRS = 1 << 15  # of a block: the arrays of a few terms stay in the second cache


class SphereExact:
    """Exact `Evaluator` for x uniform on the sphere of radius √d and full-dimensional θ.

    Polynomials σ are exact to rounding. So is σ with one kink at 0 and no bias, whose pairs are those of
    Gaussian inputs, as σσ is homogeneous. Of others, on |w| = 1, at most 1e-12 of E σ² is left out.

    Args:
        network: The network; `supports` says which.
        label: The target.
        threads: Threads of pairs with a kink.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore.expectations._zonal import SphereExact
        >>> law = mf.data.MultiIndex(5, [0.0, 1.0], directions=1, inputs="sphere")
        >>> label = law._sphere()
        >>> assert label is not None
        >>> exact = SphereExact(mf.Network(mf.activations.linear), label)
        >>> exact.V(np.eye(2, 5)) + 0.0
        array([-1.,  0.])
    """

    def __init__(self, network: Network, label: SphereLabel, threads: int | None = None) -> None:
        reason = supports(network, label)
        if reason is not None:
            raise ValueError(reason)
        self._network, self._label, self._threads = network, label, threads or 0
        self._found = terms_of(network, label)

    def __repr__(self) -> str:
        return f"SphereExact({self._network!r}, d={self._label.d})"

    def V(self, theta: FloatArray) -> FloatArray:
        """V(θ) = −E[y σ*(x; θ)] for every row, shape (n,)."""
        return self._pull(self._rows(theta))[0]

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(θ_i, θ'_j) = E[σ*(x; θ_i) σ*(x; θ'_j)], shape (n, m)."""
        if self._found.homogeneous:
            return _core.pair_matrix(self._network._core, theta, other, self._threads)
        first, second = self._rows(theta), self._rows(other)
        out = np.zeros((len(theta), len(other)))
        for at in _blocks(len(theta), len(other)):
            cosines = first.omega[at] @ second.omega.T
            for k, p in enumerate(self._rule.polynomials(cosines, self._found.size)):
                out[at] += np.multiply.outer(first.value[at, k], second.value[:, k]) * p
        return first.a[:, None] * out * second.a

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(θ; ρ) = V(θ) + ∫U(θ, ·)dρ, shape (n,), without weight decay."""
        return self.V(theta) + self._interaction(theta, points, weights, False)[0]

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(θ; ρ) with respect to every entry of the rows, shape (n, D), without weight decay."""
        out = self._interaction(theta, points, weights, True)[1]
        assert out is not None
        rows = self._rows(theta)
        value, by_b, by_r, across = self._pull(rows, gradient=True)
        out += rows.gradient(self._network, value, by_b, by_r, across)
        return out

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E(y − f_ρ(x))² = E y² + 2∫V dρ + ∫∫U dρdρ."""
        fit = 2 * weights @ self.V(points) + weights @ self._interaction(points, points, weights, False)[0]
        risk = float(self._power + fit)
        return 0.0 if risk < 0 else risk  # rounding may leave -1e-16 at a perfect fit; NaN stays NaN

    @property
    def _rule(self) -> Legendre:
        return Legendre.of(self._label.d, self._found.size)

    def _rows(self, theta: FloatArray) -> _Rows:
        return _Rows(self._network, self._label.d, self._found, theta)

    @cached_property
    def _target(self) -> Harmonics:
        """The part of the target in every degree, as a function of the direction of w."""
        label, count = self._label, self._found.size
        if label.coefficients is not None:
            return Harmonics.of_polynomial(label.coefficients, label.d).scaled(label.factor)
        return Harmonics.of_series(label.factor * series_of_link(label, count), label.d)

    @cached_property
    def _power(self) -> float:
        """E y², noise included."""
        label = self._label
        if label.coefficients is not None:
            return self._target.power() + label.noise**2
        rule = Legendre.of(label.d, TERMS[-1])
        return label.factor**2 * float(rule.weights @ on_nodes(label, rule) ** 2) + label.noise**2

    def _pull(self, rows: _Rows, gradient: bool = False) -> tuple[FloatArray, ...]:
        """V, and without the factor a its derivatives in b and r and, over r, in the direction of w."""
        e = rows.omega @ self._label.directions.T
        value, by_b, by_r = np.zeros((3, len(e)))
        across = np.zeros((len(e), len(self._label.directions)))
        for k, (phi, slope) in enumerate(self._target.at(e, self._found.size, gradient)):
            value -= rows.value[:, k] * phi
            if gradient:
                by_r -= rows.by_r[:, k] * phi
                across -= rows.over_r[:, k, None] * slope
                if rows.by_b is not None:
                    by_b -= rows.by_b[:, k] * phi
        if not gradient:
            return (rows.a * value,)
        return value, by_b, by_r, across @ self._label.directions

    def _interaction(
        self, theta: FloatArray, points: FloatArray, weights: FloatArray, want_grad: bool
    ) -> tuple[FloatArray, FloatArray | None]:
        """∫U(θ, ·)dρ and its gradient in θ."""
        network = self._network
        if self._found.homogeneous:
            return _core.pair_potential(network._core, theta, points, weights, want_grad, self._threads)
        rows = self._rows(theta)
        others = rows if theta is points else self._rows(points)
        mass = (weights * others.a)[:, None] * others.value
        value, by_b, by_r = np.zeros((3, len(theta)))
        across = np.zeros_like(rows.omega)
        for at in _blocks(len(theta), len(points)):
            cosines = rows.omega[at] @ others.omega.T
            kernel = np.zeros_like(cosines)
            if want_grad:
                for k, (p, slope) in enumerate(self._rule.with_slopes(cosines, self._found.size)):
                    if not mass[:, k].any():  # such as of odd degrees, where σ is even
                        continue
                    sums = p @ mass[:, k]
                    value[at] += rows.value[at, k] * sums
                    by_r[at] += rows.by_r[at, k] * sums
                    if rows.by_b is not None:
                        by_b[at] += rows.by_b[at, k] * sums
                    if k:
                        kernel += np.multiply.outer(rows.over_r[at, k], mass[:, k]) * slope
                across[at] = kernel @ others.omega
            else:
                for k, p in enumerate(self._rule.polynomials(cosines, self._found.size)):
                    value[at] += rows.value[at, k] * (p @ mass[:, k])
        if not want_grad:
            return rows.a * value, None
        return rows.a * value, rows.gradient(network, value, by_b, by_r, across)


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(8, _PAIRS // max(columns, 1))
    return (slice(first, first + step) for first in range(0, rows, step))


class _Rows:
    """Neurons as directions ω, and the coefficients of their series in the cosine."""

    def __init__(self, network: Network, d: int, terms: Terms, theta: FloatArray) -> None:
        at = int(network.has_a) + int(network.has_b)
        self.a = theta[:, 0] if network.has_a else np.ones(len(theta))
        b = theta[:, at - 1] if network.has_b else np.zeros(len(theta))
        w = theta[:, at:]
        r, w, size = norms_and_directions(w)
        self.omega = w / size[:, None]
        self.omega[r == 0, 0] = 1.0  # any direction: the limit r → 0 does not depend on it
        series = Series(network, d, terms.size, r, b)
        if not terms.ends and not terms.homogeneous and (worst := float(series.tail.max(initial=0))) > TAIL:
            raise ValueError(
                f"expectation must be mf.MonteCarlo(samples, rng) here: {network.activation!r} has a share "
                f"of {worst:.1g} beyond degree {terms.size - 1}, at |w| up to {r.max():.3g}"
            )
        self.value, self.over_r, self.by_r, self.by_b = series.value, series.over_r, series.by_r, series.by_b

    def gradient(
        self, network: Network, value: FloatArray, by_b: FloatArray, by_r: FloatArray, across: FloatArray
    ) -> FloatArray:
        """Rows of derivatives in [a, b, w…] from those in b, r and, over r, in ω."""
        tangential = across - (across * self.omega).sum(axis=1)[:, None] * self.omega
        columns = [value[:, None]] if network.has_a else []
        if network.has_b:
            columns.append((self.a * by_b)[:, None])
        columns.append(self.a[:, None] * (by_r[:, None] * self.omega + tangential))
        return np.concatenate(columns, axis=1)
