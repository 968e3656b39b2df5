"""Laws of one real number (`Normal`, `Uniform`, `Constant`), for a, for b, or for every coordinate of w."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable

MOST_NODES = 10_000  # most nodes of a Gauss rule, whose computation takes a time like their number squared
_SIGNS = 3  # the streams of the blocks a, b, w are numbers 0 to 2, those of their signs the next three


def nodes_count(n: int) -> int:
    """The argument `n` as a number of Gauss nodes."""
    return check.integer(n, "n", at_least=1, at_most=MOST_NODES)


def _real(value: float | FloatArray, name: str, low: float = -math.inf, high: float = math.inf) -> FloatArray:
    """Numbers, possibly infinite ones, between the ends."""
    found = check.as_numpy(value, name)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got {check.shown(value)}")
    if not ((found >= low) & (found <= high)).all():
        raise ValueError(f"{name} must be >= {low:g} and <= {high:g}, got {check.shown(value)}")
    return found.astype(np.float64)


class ScalarLaw(ABC):
    """A law of one real number. Base class of `Normal`, `Uniform`, `Constant` and of laws of your own, which
    need `mean`, `std`, `cdf`, `quantile` and `quadrature`.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.init.Uniform(0, 2)
        >>> law.mean, law.quantile(0.25).item(), law.cdf(0.5).item()
        (1.0, 0.5, 0.25)
    """

    @property
    @abstractmethod
    def mean(self) -> float:
        """E x."""

    @property
    @abstractmethod
    def std(self) -> float:
        """The standard deviation (E x² − (E x)²)^½."""

    @property
    def second_moment(self) -> float:
        """E x² = mean² + std²."""
        return self.mean**2 + self.std**2

    @abstractmethod
    def cdf(self, x: float | FloatArray) -> FloatArray:
        """P(X ≤ x), elementwise."""

    @abstractmethod
    def quantile(self, u: float | FloatArray) -> FloatArray:
        """The smallest x with P(X ≤ x) ≥ u, for u in (0, 1), elementwise."""

    @abstractmethod
    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Gauss nodes and weights (Σ = 1): exact for polynomials of degree up to 2n − 1."""

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows, a block of columns of θ, from the stream at address (seed, "init", step); `rows` begins
        at row `first` of the network. By default by quantiles of uniform numbers.
        """
        _core.fill_rows(rows, "uniform", 0.0, 1.0, seed, "init", step, threads, first)
        rows[...] = self.quantile(rows)


@configurable
@dataclass(frozen=True)
class Normal(ScalarLaw):
    """The normal law N(mean, std²).

    Examples:
        >>> import mfcore as mf
        >>> mf.init.Normal(mean=1.0, std=0.5).second_moment
        1.25
    """

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", check.number(self.mean, "mean"))
        object.__setattr__(self, "std", check.number(self.std, "std", above=0))

    def cdf(self, x: float | FloatArray) -> FloatArray:
        """P(X ≤ x), elementwise."""
        return np.asarray(special.ndtr((_real(x, "x") - self.mean) / self.std))

    def quantile(self, u: float | FloatArray) -> FloatArray:
        """The x with P(X ≤ x) = u, elementwise."""
        return np.asarray(self.mean + self.std * special.ndtri(_real(u, "u", 0.0, 1.0)))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Gauss–Hermite nodes and weights (Σ = 1)."""
        nodes, weights = special.roots_hermitenorm(nodes_count(n))
        return self.mean + self.std * nodes, weights / weights.sum()

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows with mean + std·z, z the normal numbers of the stream."""
        _core.fill_rows(rows, "normal", self.mean, self.std, seed, "init", step, threads, first)


@configurable
@dataclass(frozen=True)
class Uniform(ScalarLaw):
    """The uniform law on the interval from low to high.

    Examples:
        >>> import mfcore as mf
        >>> nodes, weights = mf.init.Uniform(-1, 1).quadrature(2)
        >>> nodes.round(4).tolist(), weights.tolist()
        ([-0.5774, 0.5774], [0.5, 0.5])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", check.number(self.low, "low"))
        object.__setattr__(self, "high", check.number(self.high, "high"))
        if not self.low < self.high:
            raise ValueError(f"high must be > low, got low={self.low:g}, high={self.high:g}")

    @property
    def mean(self) -> float:
        """The middle of the interval."""
        return 0.5 * (self.low + self.high)

    @property
    def std(self) -> float:
        """The length of the interval over √12."""
        return float((self.high - self.low) / np.sqrt(12.0))

    def cdf(self, x: float | FloatArray) -> FloatArray:
        """P(X ≤ x), elementwise."""
        return np.clip((_real(x, "x") - self.low) / (self.high - self.low), 0.0, 1.0)

    def quantile(self, u: float | FloatArray) -> FloatArray:
        """The x with P(X ≤ x) = u, elementwise."""
        return self.low + (self.high - self.low) * _real(u, "u", 0.0, 1.0)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Gauss–Legendre nodes and weights (Σ = 1)."""
        nodes, weights = special.roots_legendre(nodes_count(n))
        return self.mean + 0.5 * (self.high - self.low) * nodes, weights / weights.sum()

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows with low + (high − low)·u, u the uniform numbers of the stream."""
        _core.fill_rows(rows, "uniform", self.low, self.high - self.low, seed, "init", step, threads, first)


@configurable
@dataclass(frozen=True)
class Constant(ScalarLaw):
    """One value, always.

    Examples:
        >>> import mfcore as mf
        >>> mf.init.Constant(1.0).quadrature(5)
        (array([1.]), array([1.]))
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check.number(self.value, "value"))

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    @property
    def std(self) -> float:
        """0."""
        return 0.0

    def cdf(self, x: float | FloatArray) -> FloatArray:
        """P(X ≤ x), elementwise: a step at the value."""
        return np.where(_real(x, "x") >= self.value, 1.0, 0.0)

    def quantile(self, u: float | FloatArray) -> FloatArray:
        """The value, for every u."""
        return np.full(_real(u, "u", 0.0, 1.0).shape, self.value)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """One node, whatever n."""
        nodes_count(n)
        return np.array([self.value]), np.ones(1)

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows with the value."""
        rows[...] = self.value


@configurable
@dataclass(frozen=True)
class Symmetric(ScalarLaw):
    """The law of ±x with equal odds, x distributed by another law.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.init.Symmetric(mf.init.Constant(2.0))
        >>> law.quantile(0.25).item(), law.quantile(0.75).item(), law.std
        (-2.0, 2.0, 2.0)
    """

    law: ScalarLaw

    def __post_init__(self) -> None:
        check.instance(self.law, "law", ScalarLaw, "Normal(mean, std), Uniform(low, high) or Constant(value)")

    @property
    def mean(self) -> float:
        """0."""
        return 0.0

    @property
    def std(self) -> float:
        """√(E x²)."""
        return math.sqrt(self.law.second_moment)

    def cdf(self, x: float | FloatArray) -> FloatArray:
        """P(X ≤ x), elementwise; at jumps, which a Constant has, from the right."""
        x = _real(x, "x")
        below = np.nextafter(-x, -np.inf)
        return 0.5 * (self.law.cdf(x) + 1.0 - self.law.cdf(below))

    def quantile(self, u: float | FloatArray) -> FloatArray:
        """The smallest x with P(X ≤ x) ≥ u, by bisection."""
        u = _real(u, "u", 0.0, 1.0)
        if isinstance(self.law, Constant):
            size = abs(self.law.value)
            return np.where(u <= 0.5, -size, size)
        reach = float(np.abs(self.law.quantile(np.array([1e-300, 1 - 1e-16]))).max())
        low, high = np.full(np.shape(u), -reach), np.full(np.shape(u), reach)
        for _ in range(80):
            middle = 0.5 * (low + high)
            left = self.cdf(middle) < u
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return high

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The nodes of the law and their negatives, 2n of them."""
        nodes, weights = self.law.quadrature(n)
        return np.concatenate([-nodes[::-1], nodes]), 0.5 * np.concatenate([weights[::-1], weights])

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows with numbers of the law, their signs drawn from a stream of its own."""
        self.law.fill(rows, seed, step, threads, first)
        signs = np.empty(rows.shape)
        _core.fill_rows(signs, "uniform", -0.5, 1.0, seed, "init", step + _SIGNS, threads, first)
        rows *= np.copysign(1.0, signs)


def symmetric(law: ScalarLaw) -> ScalarLaw:
    """The law of ±x with equal odds: the law itself if it is symmetric already."""
    alike = isinstance(law, Normal | Uniform) and law.mean == 0
    zero = isinstance(law, Constant) and law.value == 0
    return law if alike or zero or isinstance(law, Symmetric) else Symmetric(law)
