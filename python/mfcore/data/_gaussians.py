"""Two classes y = ±1 of centred Gaussians that differ in scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ._law import DataLaw, check_orthonormal, dimension, own_array, set_field
from ._parts import GaussianPart
from ._symmetry import Part, Radius, Split, Symmetry


@dataclass(frozen=True, eq=False, repr=False)
class IsotropicGaussians(DataLaw):
    """y = ±1 with equal odds, x | y ~ N(0, (1 ± delta)² I_d).

    Args:
        d: Dimension; ``math.inf`` for the limit in high dimension.
        delta: Difference in scale, 0 <= delta < 1.

    Examples:
        >>> import mfcore as mf
        >>> mf.data.IsotropicGaussians(d=320, delta=0.5)
        IsotropicGaussians(d=320, delta=0.5)
    """

    d: float
    delta: float

    def __post_init__(self) -> None:
        set_field(self, "d", dimension(self.d, infinite=True))
        set_field(self, "delta", _delta(self.delta))

    def target_power(self) -> float:
        """E y² = 1.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.IsotropicGaussians(d=320, delta=0.5).target_power()
            1.0
        """
        return 1.0

    def _make_sampler(self, d: int) -> _core.Sampler:
        return _core.isotropic_gaussians(d, self.delta)

    def _parts(self) -> list[GaussianPart] | None:
        if math.isinf(self.d):
            return None
        factors = {1.0: 1 + self.delta, -1.0: 1 - self.delta}
        d = int(self.d)
        return [GaussianPart(0.5, _scaling(f), y, scales=((d, f),)) for y, f in factors.items()]

    def _symmetry(self) -> Symmetry:
        return Symmetry((), (Radius("r", self.d),), _two_classes(self.delta, 1))

    def _split(self) -> Split:
        return Split(0, False, (), "r")


@dataclass(frozen=True, eq=False, repr=False)
class AnisotropicGaussians(DataLaw):
    """y = ±1 with equal odds; x | y has variance (1 ± delta)² on a subspace and 1 across it.

    The subspace is that of the first `s0` coordinates, or the span of `basis`. Its dimension is given by one
    of `s0` and `fraction`, or by `basis` alone. For finite d the law remembers `s0`, for d = inf `fraction`.

    Args:
        d: Dimension; ``math.inf`` (with `fraction`) for the limit in high dimension.
        delta: Difference in scale, 0 <= delta < 1.
        s0: Dimension of the subspace, 1 <= s0 <= d.
        fraction: γ = s0/d in (0, 1]; γd must be whole for finite d.
        basis: Orthonormal *columns* spanning the subspace, shape (d, s0).

    Examples:
        >>> import mfcore as mf
        >>> mf.data.AnisotropicGaussians(d=320, delta=0.5, fraction=0.1875)
        AnisotropicGaussians(d=320, delta=0.5, s0=60)
    """

    d: float
    delta: float
    s0: int | None = None
    fraction: float | None = None
    basis: FloatArray | None = None

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(
            self,
            d: float,
            delta: float,
            s0: int | None = None,
            fraction: float | None = None,
            basis: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field(self, "d", dimension(self.d, infinite=True))
        set_field(self, "delta", _delta(self.delta))
        if math.isinf(self.d):
            if self.fraction is None or self.s0 is not None or self.basis is not None:
                raise ValueError(
                    f"fraction alone must give the subspace when d=inf, got s0={self.s0}, "
                    f"fraction={self.fraction}, basis {'not ' * (self.basis is None)}given"
                )
            set_field(self, "fraction", _fraction(self.fraction))
            return
        if self.s0 is not None and self.fraction is not None:
            raise ValueError(
                f"exactly one of s0 and fraction must be given, got s0={self.s0} and fraction={self.fraction}"
            )
        if self.basis is not None:
            self._check_basis()
        set_field(self, "s0", self._subspace_dimension())
        set_field(self, "fraction", None)

    @property
    def gamma(self) -> float:
        """γ = s0/d, the share of the subspace.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.AnisotropicGaussians(d=320, delta=0.5, s0=60).gamma
            0.1875
        """
        return self.fraction if self.s0 is None else self.s0 / self.d  # type: ignore[return-value]

    def target_power(self) -> float:
        """E y² = 1.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.AnisotropicGaussians(d=320, delta=0.5, s0=60).target_power()
            1.0
        """
        return 1.0

    def _check_basis(self) -> None:
        assert self.basis is not None
        basis = own_array(self.basis, "basis", (int(self.d), None))
        check_orthonormal(basis.T, "basis", "columns")
        set_field(self, "basis", basis)

    def _subspace_dimension(self) -> int:
        d = int(self.d)
        given: int | None = None
        if self.s0 is not None:
            given = check.integer(self.s0, "s0", at_least=1)
            if given > d:
                raise ValueError(f"s0 must be <= d = {d}, got {given}")
        elif self.fraction is not None:
            share = _fraction(self.fraction) * d
            given = round(share)
            if abs(share - given) > 1e-9 * d or given < 1:
                raise ValueError(
                    f"fraction must make fraction·d a whole number >= 1, got {self.fraction!r} with d={d}"
                )
        if self.basis is None:
            if given is None:
                raise ValueError("exactly one of s0 and fraction must be given, got neither")
            return given
        columns = int(self.basis.shape[1])
        if given not in (None, columns):
            raise ValueError(f"basis must have s0 = {given} columns, got {columns}")
        return columns

    def _make_sampler(self, d: int) -> _core.Sampler:
        assert self.s0 is not None  # d is finite
        rows = None if self.basis is None else self.basis.T
        return _core.anisotropic_gaussians(d, self.s0, self.delta, rows)

    def _parts(self) -> list[GaussianPart] | None:
        if math.isinf(self.d):
            return None
        changes = {1.0: self.delta, -1.0: -self.delta}
        return [
            GaussianPart(0.5, self._stretch(change), y, scales=self._scales(change))
            for y, change in changes.items()
        ]

    def _symmetry(self) -> Symmetry:
        inside = math.inf if self.s0 is None else self.s0
        outside = math.inf if self.s0 is None else self.d - self.s0
        radii = (Radius("r1", inside, self.gamma), Radius("r2", outside, 1 - self.gamma))
        return Symmetry((), radii, _two_classes(self.delta, 2))

    def _split(self) -> Split:
        axes = int(self.s0 or 0) if self.basis is None else self.basis.T
        return Split(axes, True, ("r1",), "r2")

    def _scales(self, change: float) -> tuple[tuple[int, float], ...] | None:
        if self.basis is not None or self.s0 is None:
            return None
        d = int(self.d)
        inside = ((self.s0, 1 + change),)
        return inside if self.s0 == d else (*inside, (d, 1.0))

    def _stretch(self, change: float) -> Any:
        s0, basis = self.s0, self.basis

        def root(w: FloatArray) -> FloatArray:
            if basis is not None:
                return w + change * (w @ basis) @ basis.T
            out = w.copy()
            out[..., :s0] *= 1 + change
            return out

        return root


def _two_classes(delta: float, blocks: int) -> tuple[Part, ...]:
    """y = ±1, the first block stretched by 1 ± delta."""
    still = (1.0,) * (blocks - 1)
    return tuple(Part(0.5, (1 + y * delta, *still), float(y)) for y in (1, -1))


def _delta(value: Any) -> float:
    return check.number(value, "delta", at_least=0, below=1)


def _fraction(value: Any) -> float:
    return check.number(value, "fraction", above=0, at_most=1)


def _scaling(factor: float) -> Any:
    return lambda w: w * factor
