"""Activations of the core: those with a name, and those that arguments describe."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check

NAMES = tuple(_core.named_kinds())


@dataclass(frozen=True)
class Pieces:
    """A piecewise linear σ as a line and ramps: σ(t) = offset + left_slope·t + Σ_k jumps_k (t − knots_k)₊."""

    offset: float
    left_slope: float
    knots: tuple[float, ...] = ()
    jumps: tuple[float, ...] = ()


@dataclass(frozen=True, repr=False)
class Activation:
    """A function σ of one variable, applied entrywise, with its first two derivatives.

    Calls take scalars and arrays of any shape. A scalar gives a float, float32 arrays give float32, and all
    else gives float64. At a knot of a piecewise linear σ the derivative is the one from the left.

    Args:
        name: The kind of function, as in a configuration file.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.relu([-1.0, 2.0])
        array([0., 2.])
        >>> mf.activations.tanh.derivative(0.0)
        1.0
    """

    name: str

    def __post_init__(self) -> None:
        check.choice(self.name, "activation", NAMES)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where σ is not analytic."""
        return () if self.pieces is None else self.pieces.knots

    @property
    def pieces(self) -> Pieces | None:
        """The line and ramps of a piecewise linear σ, None for the others."""
        p = self._core
        return Pieces(p.offset, p.left_slope, tuple(p.knots), tuple(p.jumps)) if p.is_piecewise else None

    def __call__(self, z: npt.ArrayLike) -> Any:
        """σ(z)."""
        return self._evaluate(z, 0)

    def derivative(self, z: npt.ArrayLike) -> Any:
        """σ'(z)."""
        return self._evaluate(z, 1)

    def second_derivative(self, z: npt.ArrayLike) -> Any:
        """σ''(z); 0 for piecewise linear σ."""
        return self._evaluate(z, 2)

    def _evaluate(self, z: Any, order: int) -> Any:
        if hasattr(z, "__dlpack__") and not isinstance(z, np.ndarray):
            z = np.from_dlpack(z)
        try:
            z = np.asarray(z)
        except ValueError as error:  # ragged nested lists
            raise ValueError(f"z must be a rectangular array of numbers: {error}") from None
        if z.dtype.kind not in "fiu":
            raise TypeError(f"z must hold real numbers, got dtype {z.dtype}")
        out = _core.evaluate(self._core, z, order)
        return float(out) if z.ndim == 0 else out

    @cached_property
    def _core(self) -> _core.Activation:
        return _core.Activation.named(self.name)

    def _to_config(self) -> dict[str, Any]:
        """A plain dict from which `from_config` makes the same activation."""
        return {"kind": self.name}

    def __reduce__(self) -> tuple[Any, ...]:
        given = [getattr(self, f.name) for f in dataclasses.fields(self) if f.init]
        return type(self), tuple(given)  # the compiled object does not pickle

    def __repr__(self) -> str:
        return f"mf.activations.{self.name}"


@dataclass(frozen=True, repr=False)
class PiecewiseLinear(Activation):
    """Continuous and linear between its knots; made by `piecewise_linear`, which explains the arguments.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.piecewise_linear([0.0], [0.0], right_slope=2.0)
        mf.activations.piecewise_linear(knots=[0.0], values=[0.0], right_slope=2.0)
    """

    name: str = field(default="piecewise_linear", init=False)
    knots: tuple[float, ...]
    values: tuple[float, ...]
    left_slope: float = 0.0
    right_slope: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", numbers(self.knots, "knots"))
        object.__setattr__(self, "values", numbers(self.values, "values"))
        object.__setattr__(self, "left_slope", check.number(self.left_slope, "left_slope"))
        object.__setattr__(self, "right_slope", check.number(self.right_slope, "right_slope"))
        if len(self.values) != len(self.knots):
            raise ValueError(f"values must be as many as knots ({len(self.knots)}), got {len(self.values)}")
        if not all(a < b for a, b in pairwise(self.knots)):
            raise ValueError(f"knots must be strictly increasing, got {list(self.knots)}")
        if not np.isfinite([self.pieces.offset, *self.pieces.jumps]).all():
            raise ValueError(f"knots must be far enough apart for finite slopes, got {list(self.knots)}")

    @property
    def pieces(self) -> Pieces:
        """The line and ramps: the left line, and the change of slope at each knot."""
        with np.errstate(over="ignore"):
            between = np.diff(self.values) / np.diff(self.knots)
        slopes = [self.left_slope, *between.tolist(), self.right_slope]
        jumps = tuple(after - before for before, after in pairwise(slopes))
        return Pieces(self.values[0] - self.left_slope * self.knots[0], self.left_slope, self.knots, jumps)

    @cached_property
    def _core(self) -> _core.Activation:
        return _core.Activation(self.name, **dataclasses.asdict(self.pieces))

    def _to_config(self) -> dict[str, Any]:
        ends = {"left_slope": self.left_slope, "right_slope": self.right_slope}
        return {"kind": self.name, "knots": list(self.knots), "values": list(self.values), **ends}

    def __repr__(self) -> str:
        shown = f"knots={list(self.knots)}, values={list(self.values)}"
        for side, slope in (("left_slope", self.left_slope), ("right_slope", self.right_slope)):
            if slope != 0:
                shown += f", {side}={slope}"
        return f"mf.activations.piecewise_linear({shown})"


@dataclass(frozen=True, repr=False)
class _Series(Activation):
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", numbers(self.coefficients, "coefficients"))

    @cached_property
    def _core(self) -> _core.Activation:
        return _core.Activation(self.name, coefficients=self.coefficients)

    def _to_config(self) -> dict[str, Any]:
        return {"kind": self.name, "coefficients": list(self.coefficients)}

    def __repr__(self) -> str:
        return f"mf.activations.{self.name}({list(self.coefficients)})"


@dataclass(frozen=True, repr=False)
class Polynomial(_Series):
    """σ(t) = Σ_k coefficients_k tᵏ; made by `polynomial`.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.polynomial([1.0, 0.0, 2.0]).coefficients
        (1.0, 0.0, 2.0)
    """

    name: str = field(default="polynomial", init=False)


@dataclass(frozen=True, repr=False)
class Hermite(_Series):
    """σ(t) = Σ_k coefficients_k h_k(t), orthonormal h_k; made by `hermite`.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.hermite([0.0, 1.0]).coefficients
        (0.0, 1.0)
    """

    name: str = field(default="hermite", init=False)


linear = Activation("linear")
relu = Activation("relu")
erf = Activation("erf")
tanh = Activation("tanh")
sigmoid = Activation("sigmoid")
softplus = Activation("softplus")
gelu = Activation("gelu")
silu = Activation("silu")
sin = Activation("sin")
cos = Activation("cos")


def piecewise_linear(
    knots: npt.ArrayLike, values: npt.ArrayLike, left_slope: float = 0.0, right_slope: float = 0.0
) -> PiecewiseLinear:
    """The continuous σ with the given values at the knots, linear between them.

    Args:
        knots: Strictly increasing, at least one.
        values: σ at the knots.
        left_slope: Slope left of the first knot.
        right_slope: Slope right of the last knot.

    Examples:
        >>> import mfcore as mf
        >>> step = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
        >>> step([0.0, 1.0, 2.0])
        array([-2.5,  2.5,  7.5])
    """
    return PiecewiseLinear(knots, values, left_slope, right_slope)  # type: ignore[arg-type]


def polynomial(coefficients: npt.ArrayLike) -> Polynomial:
    """σ(t) = Σ_k coefficients_k tᵏ.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.polynomial([1.0, 0.0, 2.0])(3.0)
        19.0
    """
    return Polynomial(coefficients)  # type: ignore[arg-type]


def hermite(coefficients: npt.ArrayLike) -> Hermite:
    """σ(t) = Σ_k coefficients_k h_k(t), h_k = He_k/√k!, orthonormal under the standard normal law.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.hermite([0.0, 1.0])(3.0)
        3.0
    """
    return Hermite(coefficients)  # type: ignore[arg-type]


def get(name: str) -> Activation:
    """The activation object called `name`.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.get("relu")
        mf.activations.relu
    """
    found: Activation = globals()[check.choice(name, "activation", NAMES)]
    return found


def numbers(value: Any, name: str) -> tuple[float, ...]:
    return tuple(check.array(value, name, shape=(None,)).tolist())
