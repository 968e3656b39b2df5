"""Expectations over Gaussian mixtures in closed form, or by quadrature to 1e-10: `GaussianExact`.

A part x = m + A g, g ~ N(0, I), is brought to g by w → A w and b → b + ⟨w, m⟩; gradients return by the same
maps (eq. (4.26)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.lengths import norms_and_directions
from ..activations import Activation
from ..data._parts import GaussianPart, HermiteLabel, NetworkLabel
from ..network import Network


def supports(network: Network, parts: Sequence[GaussianPart]) -> str | None:
    """Why the expectations of this model have no exact form, in words; None if they have one."""
    sigma = network.activation
    if not _core.has_exact_pairs(sigma._core, sigma._core):
        return (
            f"no exact Gaussian expectation is known for pairs of {sigma!r}, which {_lack(sigma)}; use "
            "mf.MonteCarlo(...)"
        )
    for part in parts:
        if isinstance(part.label, NetworkLabel):
            teacher = part.label.network.activation
            if not _core.has_exact_pairs(sigma._core, teacher._core):
                return (
                    f"no exact Gaussian expectation is known for {sigma!r} with a teacher of {teacher!r}, "
                    f"which {_lack(teacher)}; use mf.MonteCarlo(...)"
                )
    return None


def _lack(sigma: Activation) -> str:
    """Why pairs of this activation of the user's have no exact expectation."""
    if getattr(sigma, "strip", 0.0) > 0:
        return "jumps at a kink"
    return (
        "is not analytic near the real line, as far as its values show (where it is, "
        "mf.activations.custom takes the height of a strip, strip=)"
    )


class GaussianExact:
    """Exact `Evaluator` for Gaussian inputs and full-dimensional θ.

    Args:
        network: The network; its activation must have exact pairs (see `supports`).
        parts: The components of the mixture; their weights sum to one.
        threads: Threads of the pair sums; results have the same bits for any number.

    Raises:
        ValueError: No exact form is known; the message says what to use instead.

    Examples:
        >>> import numpy as np
        >>> import mfcore as mf
        >>> from mfcore.data._parts import GaussianPart
        >>> from mfcore.expectations._exact import GaussianExact
        >>> parts = [GaussianPart(1.0, lambda w: w, 1.0)]  # x ~ N(0, I), y = 1
        >>> exact = GaussianExact(mf.Network(mf.activations.relu), parts)
        >>> exact.V(np.array([[3.0, 4.0]])).round(6).tolist()  # -|w|/sqrt(2 pi)
        [-1.994711]
    """

    def __init__(self, network: Network, parts: Sequence[GaussianPart], threads: int | None = None) -> None:
        reason = supports(network, parts)
        if reason is not None:
            raise ValueError(reason)
        self._network = network
        self._biased = replace(network, bias="trained")  # what a part with a mean is seen by
        self._parts = tuple(parts)
        self._threads = threads or 0
        self._law = _diagonal_law(self._parts)

    def __repr__(self) -> str:
        return f"GaussianExact({self._network!r}, {len(self._parts)} parts)"

    def V(self, theta: FloatArray) -> FloatArray:
        """V(θ) = −E[y σ*(x; θ)] for every row, shape (n,)."""
        out = np.zeros(len(theta))
        for part in self._parts:
            out -= part.weight * self._correlation(part, self._seen(part, theta), False)[0]
        return out

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(θ_i, θ'_j) = E[σ*(x; θ_i) σ*(x; θ'_j)], shape (n, m)."""
        out = np.zeros((len(theta), len(other)))
        for part in self._parts:
            pairs = _core.pair_matrix(
                self._of(part)._core, self._seen(part, theta), self._seen(part, other), self._threads
            )
            pairs *= part.weight
            out += pairs
        return out

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(θ; ρ) = V(θ) + ∫U(θ, ·)dρ, shape (n,), without weight decay."""
        return self.V(theta) + self.interaction(theta, points, weights, False)[0]

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(θ; ρ) with respect to every entry of the rows, shape (n, D), without weight decay."""
        out = self.interaction(theta, points, weights, True)[1]
        assert out is not None
        for part in self._parts:
            pull = self._correlation(part, self._seen(part, theta), True)[1]
            assert pull is not None
            pull = self._pulled_back(part, pull)
            pull *= part.weight
            out -= pull
        return out

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = E(y − f_ρ(x))² = E y² + 2∫V dρ + ∫∫U dρdρ; the matrix U is never stored."""
        square = sum(part.weight * (self._label_square(part) + part.noise**2) for part in self._parts)
        fit = 2 * weights @ self.V(points) + weights @ self.interaction(points, points, weights, False)[0]
        risk = float(square + fit)
        return 0.0 if risk < 0 else risk  # rounding may leave -1e-16 at a perfect fit; NaN stays NaN

    def _of(self, part: GaussianPart) -> Network:
        """The network whose rows `_seen` gives: with a bias if the part has a mean."""
        return self._network if part.mean is None else self._biased

    def _seen(self, part: GaussianPart, theta: FloatArray) -> FloatArray:
        """Rows (a, b + ⟨w, m⟩, A w): under x = m + A g neurons act like these on g ~ N(0, I)."""
        if part.mean is None:
            return _seen(part, theta, self._network)
        network, at = self._network, self._network.row(0)
        out = np.empty((len(theta), len(part.mean) + self._biased.row(0)))
        out[:, 0] = theta[:, 0]  # a, where there is one
        out[:, self._biased.row(0) - 1] = theta[:, at:] @ part.mean
        if network.has_b:
            out[:, at - 1] += theta[:, at - 1]
        out[:, self._biased.row(0) :] = theta[:, at:]
        _rooted(part, out[:, self._biased.row(0) :])
        return out

    def _pulled_back(self, part: GaussianPart, grad: FloatArray) -> FloatArray:
        """Gradients in the rows of `_seen` become those in the rows of neurons; in place without a mean."""
        at = self._of(part).row(0)
        _rooted(part, grad[:, at:])
        if part.mean is None:
            return grad
        grad[:, at:] += np.multiply.outer(grad[:, at - 1], part.mean)
        return grad if self._network.has_b else np.delete(grad, at - 1, axis=1)

    def interaction(
        self, theta: FloatArray, points: FloatArray, weights: FloatArray, want_grad: bool
    ) -> tuple[FloatArray, FloatArray | None]:
        """∫U(θ, ·)dρ and its gradient in θ, summed over the parts of the mixture."""
        threads = self._threads
        if self._law is not None and _same(theta, points):  # every pair once, for all parts
            return _core.own_potential(self._network._core, theta, weights, *self._law, want_grad, threads)
        value, total = np.zeros(len(theta)), np.zeros_like(theta) if want_grad else None
        for part in self._parts:
            rows = self._seen(part, theta)
            columns = rows if _same(theta, points) else self._seen(part, points)  # the core halves such pairs
            core = self._of(part)._core
            potential, grad = _core.pair_potential(core, rows, columns, weights, want_grad, threads)
            value += part.weight * potential
            if total is not None:
                total += part.weight * self._pulled_back(part, grad)
        return value, total

    def _correlation(
        self, part: GaussianPart, seen: FloatArray, want_grad: bool
    ) -> tuple[FloatArray, FloatArray | None]:
        """E[y σ*] on one part of the mixture, and its gradient in the rows with A w."""
        label = part.label
        if isinstance(label, NetworkLabel):
            teacher = label.network
            rows = _seen(part, label.theta, teacher)
            mean = np.full(len(rows), 1 / len(rows))
            core, threads = self._network._core, self._threads
            value, grad = _core.pair_potential(
                core, seen, rows, mean, want_grad, threads, other_network=teacher._core
            )
            if label.factor != 1:
                return label.factor * value, None if grad is None else label.factor * grad
            return value, grad
        network = self._of(part)
        at = network.row(0)
        a = seen[:, 0] if network.has_a else np.ones(len(seen))
        b = seen[:, at - 1] if network.has_b else np.zeros(len(seen))
        w = seen[:, at:]
        if isinstance(label, HermiteLabel):
            value, db, dw = self._of_polynomial(network, label, b, w)
        else:
            value, db, dw = _mean(network, float(label), b, w, want_grad)
        if not want_grad:
            return a * value, None
        grad = np.empty_like(seen)
        grad[:, at:] = a[:, None] * dw
        if network.has_b:
            grad[:, at - 1] = a * db
        if network.has_a:
            grad[:, 0] = value
        return a * value, grad

    def _of_polynomial(
        self, network: Network, label: HermiteLabel, b: FloatArray, w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return hermite_correlation(network, label, b, w)

    def _label_square(self, part: GaussianPart) -> float:
        """E y² on one part of the mixture, without the label noise."""
        label = part.label
        if isinstance(label, HermiteLabel):
            return math.fsum(c * c for c in label.coefficients.values())
        if isinstance(label, NetworkLabel):
            teacher = label.network
            rows = _seen(part, label.theta, teacher)
            mean = np.full(len(rows), 1 / len(rows))
            potential = _core.pair_potential(teacher._core, rows, rows, mean, False, self._threads)[0]
            return label.factor**2 * float(mean @ potential)
        return float(label) ** 2


def _seen(part: GaussianPart, theta: FloatArray, network: Network) -> FloatArray:
    """Rows with A w in place of w: under x = A g they act like those on g ~ N(0, I)."""
    out = np.array(theta, dtype=np.float64, order="C")
    _rooted(part, out[:, network.row(0) :])
    return out


def _rooted(part: GaussianPart, w: FloatArray) -> None:
    """Put A w in the place of rows w, without a copy where A is diagonal."""
    if part.scales is None:
        w[...] = part.root(w)
        return
    begin = 0
    for end, factor in part.scales:
        if factor != 1:
            w[:, begin:end] *= factor
        begin = end


def _same(one: FloatArray, two: FloatArray) -> bool:
    """Tell whether two arrays are the same memory; views of one array are different objects."""
    layout = one.shape == two.shape and one.strides == two.strides
    return one is two or (layout and one.ctypes.data == two.ctypes.data)


def _diagonal_law(parts: Sequence[GaussianPart]) -> tuple[list[float], list[int], list[float]] | None:
    """(shares, ends, scales) of the mixture, eq. (4.26), if all parts have mean 0 and are diagonal on the
    same segments; else None.
    """
    if any(part.mean is not None for part in parts):
        return None
    ends = {tuple(end for end, _ in part.scales or ()) for part in parts}
    if len(ends) != 1 or () in ends:
        return None
    scales = [scale for part in parts for _, scale in part.scales or ()]
    return [part.weight for part in parts], list(*ends), scales


def _mean(
    network: Network, label: float, b: FloatArray, w: FloatArray, want_grad: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`hermite_correlation` for a constant label, in few calls: only k = 0 of eq. (4.27) is left.

    Derivatives that are not wanted are not formed: b and w stand in their places.
    """
    norm, w, size = norms_and_directions(w)
    value = label * _core.smooth(network.activation._core, b, norm)[0]
    if not want_grad:
        return value, b, w
    s = _core.slope_coefficients(network.activation._core, b, norm, 2)
    along = label * s[:, 1] * (1 / size)
    return value, label * s[:, 0], along[:, None] * w


def hermite_correlation(
    network: Network, label: HermiteLabel, b: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E[y σ(b + ⟨w, g⟩)] and its derivatives in b and w, by Stein's lemma: eq. (4.27).

    With R = |w|, u_j = ⟨w, e_j⟩/R and s_k = E[σ'(b + R G) h_k(G)], a term of degree k = |α| ≥ 1 is
    √(k!/α!) Π_j u_j^{α_j} · R s_{k−1}/√k; k = 0 is T(b, R). At w = 0, where u has no value, u = 0 is taken:
    the mean over directions.
    """
    norm, w, size = norms_and_directions(w)
    inverse = 1 / size
    u = (w @ label.directions.T) * inverse[:, None]
    degree = max((sum(alpha) for alpha in label.coefficients), default=0)
    s = _core.slope_coefficients(network.activation._core, b, norm, degree + 2)
    value, db, along = np.zeros(len(w)), np.zeros(len(w)), np.zeros(len(w))
    across = np.zeros((len(w), len(label.directions)))
    for alpha, c in label.coefficients.items():
        k = sum(alpha)
        scale = c * math.sqrt(math.factorial(k) / math.prod(map(math.factorial, alpha)))
        powers = np.array(alpha, dtype=np.intp)
        term = scale * np.prod(u**powers, axis=1)
        db += term * s[:, k]
        along += term * math.sqrt(k + 1) * s[:, k + 1]
        if k == 0:
            value += c * _core.smooth(network.activation._core, b, norm)[0]
            continue
        size = s[:, k - 1] / math.sqrt(k)
        value += term * norm * size
        for j in np.flatnonzero(powers):
            less = powers - (np.arange(len(powers)) == j)
            across[:, j] += scale * powers[j] * np.prod(u**less, axis=1) * size
    dw = (along * inverse)[:, None] * w
    if label.coefficients.keys() - {()}:
        dw += across @ label.directions
    return value, db, dw
