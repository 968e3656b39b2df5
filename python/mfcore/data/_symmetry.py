"""The symmetry of a data law: the few numbers through which inputs act, their distribution, and y.

Plain descriptions: quadrature rules for them are in the room `reductions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._base import check
from .._base.check import FloatArray

INPUTS = ("gaussian", "hypercube", "sphere")  # laws of x that reductions have nodes for


@dataclass(frozen=True)
class Split:
    """w as its part along some axes (the first ones, or orthonormal rows) and the rest.

    The part along the axes is seen through its coordinates or, with `radial`, through its norm; the rest
    through its norm.
    """

    axes: int | FloatArray
    radial: bool
    inside: tuple[str, ...]
    outside: str

    def parts(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates along the axes, and what is left of w."""
        if isinstance(self.axes, int | np.integer):
            return w[..., : self.axes], w[..., self.axes :]
        along = w @ self.axes.T
        return along, w - along @ self.axes

    def joined(self, along: FloatArray, rest: FloatArray) -> FloatArray:
        """The inverse of `parts`."""
        if isinstance(self.axes, int | np.integer):
            return np.concatenate([along, rest], axis=-1)
        return along @ self.axes + rest


@dataclass(frozen=True)
class Radius:
    """The norm of the part of w in a subspace; rotations of that subspace leave the law as it is."""

    name: str
    dim: float  # of the subspace, at the law's own d; 0 if there is none
    share: float = 1.0  # of |w|² in it at d = inf


@dataclass(frozen=True)
class Part:
    """One component of a mixture of laws, drawn with probability `weight`."""

    weight: float
    stretch: tuple[float, ...]  # of x, for each direction and each radius
    label: float | Callable[[FloatArray], FloatArray]  # y, or y of the directions z before they are stretched
    mixing: FloatArray | None = None  # a symmetric matrix A: the directions are A z before they are stretched
    shift: tuple[float, ...] = ()  # of the directions, after they are stretched

    def seen(self, z: FloatArray) -> FloatArray:
        """Rows [z, s] of x, from those before this part stretches them."""
        p = 0 if self.mixing is None else len(self.mixing)
        mixed = z if self.mixing is None else np.hstack([z[:, :p] @ self.mixing, z[:, p:]])
        out = mixed * np.array(self.stretch)
        out[:, : len(self.shift)] += self.shift
        return np.asarray(out)


@dataclass(frozen=True)
class Symmetry:
    """Inputs as coordinates z along some directions and norms s in blocks of the others: eq. (5.1).

    Before the parts stretch it, x is standard Gaussian, or uniform on {−1, 1}^d or the sphere of radius √d.
    """

    directions: tuple[str, ...]
    radii: tuple[Radius, ...]
    parts: tuple[Part, ...]
    inputs: str = "gaussian"  # or "hypercube", "sphere"
    degrees: tuple[int, ...] | None = None  # of y in each direction, if y is a polynomial of them

    def __post_init__(self) -> None:
        check.choice(self.inputs, "inputs of a symmetry", INPUTS)
