"""On the sphere: the series of σ and of the target in the cosine of x and w, and how long they are."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._base.check import FloatArray
from ..activations import Activation
from ..data._links import CheckedLink, hermite_table
from ..data._parts import SphereLabel
from ..network import Network
from ._legendre import Legendre, even_moments

TERMS = (16, 32, 64, 128)  # tried for σ that are no polynomials
TAIL = 1e-12  # of E σ², that the terms left out may have
ROUNDING = 1e-14  # of E φ²: what is left of a link whose series has ended
SMALL = 1e-4  # |w| below which differences over |w| are not formed
AGREE = 1e-10  # of √E φ²: how far two rules may differ


def supports(network: Network, label: SphereLabel) -> str | None:
    """Why the expectations on the sphere have no exact form, in words; None if they have one."""
    if len(label.directions) > 1 and label.coefficients is None:
        return "the link of several directions is no polynomial; use mf.MonteCarlo(...)"
    try:
        terms_of(network, label)
    except ValueError as error:
        return str(error)
    return None


class Terms(NamedTuple):
    """How many terms the series of σ takes, and whether it ends with them."""

    size: int
    ends: bool
    homogeneous: bool = False


def terms_of(network: Network, label: SphereLabel) -> Terms:
    """Raises ValueError with the reason if there is no such number."""
    sigma = network.activation
    pieces, facts = sigma.pieces, sigma._core.facts
    if facts.is_polynomial:
        _share_of_link(label, facts.degree + 1)
        return Terms(facts.degree + 1, True)
    if pieces and pieces.offset == 0 and pieces.knots == (0.0,) and not network.has_b:
        if (share := _share_of_link(label, TERMS[-1])) > ROUNDING:
            raise ValueError(_too_long("the link", share))
        return Terms(TERMS[-1], False, homogeneous=True)
    if not network.sphere:
        raise ValueError(
            f"on the sphere {sigma!r} needs |w| = 1 (sphere=True), or to be a polynomial, or to have one "
            "kink, at 0, and no bias; use mf.MonteCarlo(...)"
        )
    shifts = np.linspace(-2.0, 2.0, 9) if network.has_b else np.zeros(1)
    for count in TERMS:
        share = float(Series(network, label.d, count, np.ones(len(shifts)), shifts).tail.max())
        both = share * _share_of_link(label, count)
        if share <= TAIL and both <= TAIL**2:
            return Terms(count, False)
    raise ValueError(_too_long(f"{sigma!r}" if share > TAIL else "the link", max(share, both / share)))


def _too_long(what: str, share: float) -> str:
    return f"{what} has a share of {share:.1g} beyond degree {TERMS[-1] - 1}; use mf.MonteCarlo(...)"


class Series:
    """c_k = E σ(b + r√d u)e_k(u) of neurons of norms r, its derivatives and c_k/r: rows of `count`."""

    def __init__(self, network: Network, d: int, count: int, r: FloatArray, b: FloatArray) -> None:
        sigma, self.r = network.activation, r
        rule = Legendre.of(d, count)
        if sigma.pieces and sigma.pieces.knots == (0.0,) and not b.any():
            unit = self._of_ramp(network, d, count)
            self.value, self.by_r, self.by_b = np.outer(r, unit), np.tile(unit, (len(r), 1)), None
            self.over_r = self.by_r
            self.tail = np.zeros(len(r))  # pairs take a closed form, and targets end the series
            return
        z = math.sqrt(d) * rule.nodes
        inner = np.multiply.outer(r, z) + b[:, None]
        with np.errstate(all="ignore"):
            values, slopes = sigma(inner), sigma.derivative(inner)
            self.value, self.by_b = values @ rule.weighted, slopes @ rule.weighted
            self.by_r = (slopes * z) @ rule.weighted
            self.over_r = self.value / np.where(r > 0, r, 1.0)[:, None]
            if (r < SMALL).any():
                self._narrow(sigma, rule, z, b)
            power = values**2 @ rule.weights
            left = power - (self.value**2).sum(axis=1)
        self.tail = np.maximum(left, 0.0) / np.where(power > 0, power, 1.0)

    def _narrow(self, sigma: Activation, rule: Legendre, z: FloatArray, b: FloatArray) -> None:
        """Derivatives in r, and means over r, by curvatures, of which nothing cancels.

        c_k' = σ'(b)E z e_k + r∫₀¹E σ''(b + srz)z²e_k ds, and c_k/r has 1 − s under the integral too.
        """
        narrow = np.flatnonzero(self.r < SMALL)
        r, shift = self.r[narrow, None], b[narrow, None]
        first = np.zeros(rule.weighted.shape[1])
        first[1:2] = (z @ rule.weighted)[1:2]
        by_r, over_r = (sigma.derivative(shift) * first for _ in range(2))
        for s in (0.5 - 0.5 / math.sqrt(3), 0.5 + 0.5 / math.sqrt(3)):
            bend = 0.5 * r * ((sigma.second_derivative(shift + s * r * z) * z**2) @ rule.weighted)
            by_r, over_r = by_r + bend, over_r + (1 - s) * bend
        self.by_r[narrow], self.over_r[narrow] = by_r, over_r

    @staticmethod
    def _of_ramp(network: Network, d: int, count: int) -> FloatArray:
        """Of σ(t) = αt + κt₊ = (α + κ/2)t + κ|t|/2 at r = 1."""
        pieces = network.activation.pieces
        assert pieces is not None
        jump = pieces.jumps[0]
        unit = 0.5 * jump * even_moments(d, count)
        if count > 1:
            unit[1] = pieces.left_slope + 0.5 * jump
        return unit


def on_nodes(label: SphereLabel, rule: Legendre) -> FloatArray:
    """The link of one direction at the nodes."""
    z = math.sqrt(label.d) * rule.nodes[:, None]
    if callable(label.link):
        return CheckedLink(label.link)(z)
    degree = max(key[0] for key in label.link)
    table = hermite_table(z[:, 0], degree)
    return np.asarray(sum(c * table[:, k] for (k,), c in label.link.items()))


def series_of_link(label: SphereLabel, count: int) -> FloatArray:
    """E φ e_k of a link of one direction."""
    rule = Legendre.of(label.d, TERMS[-1])
    return np.asarray((on_nodes(label, rule) @ rule.weighted)[:count])


def _share_of_link(label: SphereLabel, count: int) -> float:
    """The share of E φ² in degrees from `count` on, of a link that is no polynomial; of others it ends.

    Raises ValueError if two rules disagree about the coefficients.
    """
    if label.coefficients is not None:
        return 0.0
    rule, other = Legendre.of(label.d, TERMS[-1]), Legendre.of(label.d, TERMS[-1] - 5)
    values, others = on_nodes(label, rule), on_nodes(label, other)
    power = float(rule.weights @ values**2)
    found = (values @ rule.weighted)[:count]
    gap = np.abs(found[: other.weighted.shape[1]] - (others @ other.weighted)[:count]).max()
    if gap > AGREE * math.sqrt(power):
        raise ValueError(
            f"the link is not smooth enough: quadrature of its series disagrees by {gap:.1g}; "
            "use mf.MonteCarlo(...)"
        )
    left = power - float((found**2).sum())
    return max(left, 0.0) / power if power > 0 else 0.0
