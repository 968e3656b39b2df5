"""Expectations of one neuron and of pairs, of any size, with 20 digits: the other side of test_sizes.py.

E σ₁^{(i)}(g₁) σ₂^{(j)}(g₂) is a sum over panels of u along one neuron, with the mean of the other given u: in
closed form, or σ itself where its |w| is below 1e-12. By Stein's lemma ∇_w U = E[σ₁''σ₂] w + E[σ₁'σ₂'] w'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import mpmath as mp
import numpy as np
from mfcore import activations

mp.mp.dps = 22
TINY = mp.mpf("1e-12")
ZERO, ONE = mp.mpf(0), mp.mpf(1)


def npdf(t):
    return mp.npdf(t) if abs(t) < 40 else ZERO  # 1e-349


def ncdf(t):
    return mp.ncdf(t) if abs(t) < 40 else mp.mpf(t > 0)


@dataclass(frozen=True)
class Kind:
    """σ, σ' and σ'' (None if that is at kinks alone), and their means over N(m, r²) where they are known."""

    sigma: object
    orders: tuple
    means: tuple | None = None
    kinks: tuple = ()  # (knot, jump of the slope)
    degree: int = 1


def of_pieces(sigma, left, *kinks):
    """A line through 0 and ramps."""

    def at(t, f):
        return sum((jump * f(t - knot) for knot, jump in kinks), ZERO)

    orders = (
        lambda t: left * t + at(t, lambda g: max(g, ZERO)),
        lambda t: left + at(t, lambda g: mp.mpf(g > 0) + mp.mpf(g == 0) / 2),
        None,
    )
    means = (
        lambda m, r: left * m + at(m, lambda g: g * ncdf(g / r) + r * npdf(g / r)),
        lambda m, r: left + at(m, lambda g: ncdf(g / r)),
        lambda m, r: at(m, lambda g: npdf(g / r) / r),
    )
    return Kind(sigma, orders, means, kinks)


def of_powers(sigma, *c):
    """c_0 + c_1 t + c_2 t² + c_3 t³."""
    c = (*c, *[ZERO] * (4 - len(c)))
    return of_means(
        sigma,
        lambda m, r: c[0] + m * (c[1] + m * (c[2] + c[3] * m)) + r * r * (c[2] + 3 * c[3] * m),
        lambda m, r: c[1] + m * (2 * c[2] + 3 * c[3] * m) + 3 * c[3] * r * r,
        lambda m, r: 2 * c[2] + 6 * c[3] * m,
        degree=max(k for k, x in enumerate(c) if x != 0),
    )


def of_means(sigma, *means, degree=1):
    return Kind(sigma, tuple(lambda t, f=f: f(t, ZERO) for f in means), means, degree=degree)


def logistic(t):
    return 1 / (1 + mp.exp(-t)) if t > 0 else mp.exp(t) / (1 + mp.exp(t))


def sech2(t):
    return mp.sech(t) ** 2


def bell(m, r):
    """E erf'."""
    v = 1 + 2 * r * r
    return 2 / mp.sqrt(mp.pi * v) * mp.exp(-m * m / v)


def gelu_means():
    def of(f):
        return lambda m, r: f(m, mp.sqrt(1 + r * r))

    return (
        of(lambda m, v: m * ncdf(m / v) + (v - 1 / v) * npdf(m / v)),
        of(lambda m, v: ncdf(m / v) + m / v**3 * npdf(m / v)),
        of(lambda m, v: npdf(m / v) * (1 / v + 1 / v**3 - m * m / v**5)),
    )


half, root2, root6 = mp.mpf(1) / 2, mp.sqrt(2), mp.sqrt(6)
KINDS = {
    "linear": of_pieces(activations.linear, ONE),
    "relu": of_pieces(activations.relu, ZERO, (ZERO, ONE)),
    "pieces": of_pieces(
        activations.piecewise_linear([0.0, 1.0], [0.0, 1.5], 0.5, -0.5), half, (ZERO, ONE), (ONE, -2 * ONE)
    ),
    "polynomial": of_powers(activations.polynomial([0.125, 0.5, 0.25]), half**3, half, half**2),
    "even": of_powers(activations.polynomial([0.125, 0.0, 0.25]), half**3, ZERO, half**2),
    "hermite": of_powers(  # h_2 = (t² − 1)/√2, h_3 = (t³ − 3t)/√6
        activations.hermite([0.125, 0.0, 0.5, 0.25]),
        half**3 - half / root2,
        -3 * half**2 / root6,
        half / root2,
        half**2 / root6,
    ),
    "erf": of_means(
        activations.erf,
        lambda m, r: mp.erf(m / mp.sqrt(1 + 2 * r * r)),
        bell,
        lambda m, r: -2 * m / (1 + 2 * r * r) * bell(m, r),
    ),
    "gelu": of_means(activations.gelu, *gelu_means()),
    "tanh": Kind(activations.tanh, (mp.tanh, sech2, lambda t: -2 * mp.tanh(t) * sech2(t))),
    "sigmoid": Kind(
        activations.sigmoid,
        (logistic, lambda t: sech2(t / 2) / 4, lambda t: -mp.tanh(t / 2) * sech2(t / 2) / 4),
    ),
    "softplus": Kind(
        activations.softplus,
        (lambda t: max(t, ZERO) + mp.log1p(mp.exp(-abs(t))), logistic, lambda t: sech2(t / 2) / 4),
    ),
    "silu": Kind(
        activations.silu,
        (
            lambda t: t * logistic(t),
            lambda t: logistic(t) + t * sech2(t / 2) / 4,
            lambda t: sech2(t / 2) / 4 * (2 - t * mp.tanh(t / 2)),
        ),
    ),
    "expression": Kind(
        activations.expression("z*tanh(z)"),
        (
            lambda t: t * mp.tanh(t),
            lambda t: mp.tanh(t) + t * sech2(t),
            lambda t: 2 * sech2(t) * (1 - t * mp.tanh(t)),
        ),
        degree=1,
    ),
}


@cache
def gauss(count=16):
    """Gauss's nodes and weights on [−1, 1]."""

    def legendre(x):
        p, before = x, ONE
        for k in range(2, count + 1):
            p, before = ((2 * k - 1) * x * p - (k - 1) * before) / k, p
        return p, count * (before - x * p) / (1 - x * x)

    nodes = []
    for k in range(count):
        x = mp.cos(mp.pi * (k + mp.mpf(3) / 4) / (count + half))
        for _ in range(6):
            p, slope = legendre(x)
            x -= p / slope
        nodes.append((x, 2 / ((1 - x * x) * legendre(x)[1] ** 2)))
    return nodes


@cache
def panel(left, right):
    """Nodes, and weights of the normal law."""
    middle, width = (left + right) / 2, (right - left) / 2
    return [(middle + width * x, width * p * npdf(middle + width * x)) for x, p in gauss()]


def normal_sum(f, *lines):
    """E f(u) on panels that shrink towards where lines shift + scale·u pass 0 and 1, of widths 1/scale."""
    edges = {mp.mpf(e) for e in range(-10, 11, 2)}
    for shift, scale in lines:
        for centre in (ZERO, ONE) if scale != 0 else ():
            near, step = (centre - shift) / scale, 1 / abs(scale)
            edges |= {near + s * k * step for k in (0, 2, 4, 8, 16, 32) for s in (1, -1)}
    panels = pairwise(sorted(e for e in edges if abs(e) <= 10))
    return sum((p * f(u) for ends in panels for u, p in panel(*ends)), ZERO)


class Neuron:
    def __init__(self, kind, a, b, w):
        self.kind, self.a, self.b = kind, mp.mpf(a), mp.mpf(b)
        self.w = [mp.mpf(x) for x in w]
        self.R = mp.sqrt(sum(x * x for x in self.w))

    def is_inner(self):
        return self.kind.means is not None or self.R < TINY

    def inner(self, order, m, r):
        """E σ^{(order)} over N(m, r²)."""
        if self.kind.means is not None:
            return self.kind.means[order](m, r) if r > 0 else self.kind.orders[order](m)
        value = self.kind.orders[order](m)
        return value + r * r / 2 * self.kind.orders[2](m) if order == 0 else value

    def mean(self, order, size=False):
        """E σ^{(order)}(b + ⟨w, x⟩), or of its absolute value."""
        f = self.kind.orders[order]
        if f is None:
            terms = [jump * npdf((knot - self.b) / self.R) / self.R for knot, jump in self.kind.kinks]
            return sum(map(abs, terms) if size else terms, ZERO)
        g = (lambda t: abs(f(t))) if size else f
        return normal_sum(lambda u: g(self.b + self.R * u), (self.b, self.R))


def pair_mean(one, i, two, j):
    """E σ₁^{(i)} σ₂^{(j)}."""
    if not (two.is_inner() and not (one.is_inner() and one.R < two.R)):
        one, i, two, j = two, j, one, i
    p = sum(x * y for x, y in zip(one.w, two.w, strict=True)) / one.R
    r = mp.sqrt(sum((y - p * x / one.R) ** 2 for x, y in zip(one.w, two.w, strict=True)))
    if one.kind.orders[i] is None:
        taus = (((knot - one.b) / one.R, jump) for knot, jump in one.kind.kinks)
        return sum((jump * npdf(t) / one.R * two.inner(j, two.b + p * t, r) for t, jump in taus), ZERO)
    return normal_sum(
        lambda u: one.kind.orders[i](one.b + one.R * u) * two.inner(j, two.b + p * u, r),
        (one.b, one.R),
        (two.b, p / max(r, ONE)),
    )


def pair(one, two):
    """E σ₁*σ₂*, and its derivatives in a, b and w of the first, with the sizes of the terms."""
    value, slope, both, bent = (pair_mean(one, i, two, j) for i, j in ((0, 0), (1, 0), (1, 1), (2, 0)))
    (one0, one1, one2), (two0, two1) = ([x.mean(k, True) for k in range(n)] for x, n in ((one, 3), (two, 2)))
    a = one.a * two.a
    by_w = [a * (bent * x + both * y) for x, y in zip(one.w, two.w, strict=True)]
    size = abs(a) * (one2 * one.R * two0 + one1 * two1 * two.R)
    values = [two.a * value, a * slope, *by_w]
    sizes = [abs(two.a) * one0 * two0, abs(a) * one1 * two0, *[size] * len(by_w)]
    return np.array(values, dtype=float), np.array(sizes, dtype=float)
