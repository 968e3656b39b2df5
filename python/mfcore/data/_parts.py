"""Gaussian data laws as mixtures of parts x = m + A g, g ~ N(0, I_d), with their labels, for the exact
expectations.

A label is one of: a number (y constant on the part), `HermiteLabel`, or `NetworkLabel`. Roots A are
symmetric, so gradients with respect to w are pulled back by the same map: ∂/∂w = A ∂/∂(Aw).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._base.check import FloatArray

if TYPE_CHECKING:
    from ..network import Network


@dataclass(frozen=True)
class HermiteLabel:
    """y = Σ_α c_α Π_j h_{α_j}(⟨e_j, g⟩), orthonormal Hermite polynomials h_k = He_k/√k!, orthonormal e_j."""

    directions: FloatArray  # (P, d), orthonormal rows e_j, in the coordinates of g
    coefficients: Mapping[tuple[int, ...], float]  # maps degrees α (length P) to c_α


@dataclass(frozen=True)
class NetworkLabel:
    """y = factor·(1/m) Σ_j a_j σ(⟨w_j, x⟩ + b_j): a teacher network on the inputs x = A g themselves."""

    network: Network
    theta: FloatArray  # (m, D)
    factor: float = 1.0  # the scale of the network, and whatever labels are multiplied by


@dataclass(frozen=True)
class SphereLabel:
    """y = factor·φ(Πx) and noise, x uniform on the sphere of radius √d."""

    d: int
    directions: FloatArray  # (P, d), orthonormal rows
    link: Any  # φ: a callable, or coefficients in products of Hermite polynomials
    coefficients: Mapping[tuple[int, ...], float] | None  # of the same kind, if φ is a polynomial
    noise: float = 0.0
    factor: float = 1.0


Label = float | HermiteLabel | NetworkLabel


@dataclass(frozen=True)
class GaussianPart:
    """One component of a Gaussian mixture, drawn with probability `weight`."""

    weight: float
    root: Callable[[FloatArray], FloatArray]  # maps rows w to rows A w, A symmetric
    label: Label
    noise: float = 0.0  # standard deviation of additive label noise
    # (end, factor) of consecutive segments of coordinates, if A is diagonal: `root` in numbers.
    scales: tuple[tuple[int, float], ...] | None = None
    mean: FloatArray | None = None  # m, shape (d,); None for 0. Only constant labels come with one.

    def at(self, g: FloatArray) -> FloatArray:
        """The inputs x = m + A g of rows g."""
        x = self.root(g)
        return x if self.mean is None else x + self.mean
