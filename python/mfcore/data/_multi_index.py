"""Labels that depend on a few directions of the input: multi-index models and staircases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from . import _links
from ._covariance import Subspace, along, covariance, first_axes, root_of, rooted, row_of_root, subspace
from ._law import DataLaw, check_orthonormal, dimension, noise_level, own_array, set_field
from ._parts import GaussianPart, HermiteLabel, Label, SphereLabel
from ._symmetry import INPUTS, Part, Radius, Split, Symmetry

MAX_ENUMERATED = 16  # hypercubes of up to 2^16 points are treated as finite laws


@dataclass(frozen=True, eq=False, repr=False)
class MultiIndex(DataLaw):
    """y = φ(Πx) + noise·g, where Π projects x on P orthonormal directions.

    Inputs are N(0, I_d) (``"gaussian"``), uniform on {−1, 1}^d (``"hypercube"``) or uniform on the sphere of
    radius √d (``"sphere"``): in each case coordinates have mean 0 and variance 1. Gaussian inputs may have
    another covariance.

    Args:
        d: Dimension; ``math.inf`` (with a count of directions) for the limit in high dimension.
        link: φ, as one of

            - a vectorised callable from z of shape (n, P) to (n,), or (n, 1) if P = 1;
            - for Gaussian inputs the coefficients in orthonormal Hermite polynomials h_k = He_k/√k!: a
              sequence c_0, c_1, … if P = 1, or a dict from tuples of P degrees, φ = Σ c_α Π_j h_{α_j}(z_j);
            - for the sphere the same polynomials (which are not orthonormal there);
            - for the hypercube Fourier coefficients: a dict from tuples of coordinates of z (counted from 0),
              φ = Σ c_S Π_{j∈S} z_j.
        directions: P for the first P coordinates, or orthonormal *rows* of shape (P, d).
        inputs: ``"gaussian"``, ``"hypercube"`` or ``"sphere"``.
        noise: Standard deviation τ of the label noise.
        covariance: C of Gaussian inputs x ~ N(0, C): a number c for c·I, d numbers for a diagonal, or a
            positive definite (d, d) matrix; by default the identity. A reduction exists where C is a multiple
            of the identity across a few directions, those of Π among them.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.MultiIndex(10, {(1, 0): 1.0, (0, 2): 0.5}, directions=2)
        >>> law
        MultiIndex(d=10, link={(1, 0): 1.0, (0, 2): 0.5}, directions=2)
        >>> law.target_power()
        1.25
    """

    d: float
    link: Any
    directions: int | FloatArray
    inputs: str = "gaussian"
    noise: float = 0.0
    covariance: float | FloatArray | None = None

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(
            self,
            d: float,
            link: Any,
            directions: int | npt.ArrayLike,
            inputs: str = "gaussian",
            noise: float = 0.0,
            covariance: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field(self, "d", dimension(self.d, infinite=True))
        check.choice(self.inputs, "inputs", INPUTS)
        set_field(self, "noise", noise_level(self.noise))
        set_field(self, "directions", self._checked_directions())
        set_field(self, "link", _links.canonical(self.link, self.P, self.inputs))
        if self.covariance is not None:
            if self.inputs != "gaussian":
                raise ValueError(f"covariance must come with inputs='gaussian', got inputs={self.inputs!r}")
            set_field(self, "covariance", covariance(self.covariance, "covariance", self.d))

    @property
    def P(self) -> int:
        """Number of directions the label depends on.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.Staircase(8, [(0,), (0, 2)]).P
            3
        """
        return len(self.directions) if isinstance(self.directions, np.ndarray) else int(self.directions)

    def target_power(self) -> float | None:
        """E y², noise included, by Parseval where the link has known coefficients; otherwise None.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.MultiIndex(8, {(0,): 1.0, (0, 1): 2.0}, 2, inputs="hypercube").target_power()
            5.0
        """
        terms: Mapping[tuple[int, ...], float] | None = None
        if self.inputs == "gaussian":
            terms = self._white[1]
        elif self.inputs == "hypercube" and isinstance(self.directions, int):
            if callable(self.link):
                return self._enumerated_power()
            terms = self.link
        if terms is None:
            return None
        return sum(c * c for c in terms.values()) + self.noise_power()

    def _enumerated_power(self) -> float | None:
        if self.P > MAX_ENUMERATED:
            return None
        _, y = _core.cube_nodes(self.P, self._link).draw(0, 0, 2**self.P)
        return float(y @ y) / len(y) + self.noise_power()

    def _checked_directions(self) -> int | FloatArray:
        if check.as_numpy(self.directions, "directions").ndim == 0:
            p = check.integer(self.directions, "directions", at_least=1)
            if p > self.d:
                raise ValueError(f"directions must be <= d = {self.d}, got {p}")
            return p
        if math.isinf(self.d):
            raise ValueError("directions must be a count when d=inf, got an array")
        rows = own_array(self.directions, "directions", (None, int(self.d)))
        check_orthonormal(rows, "directions", "rows")
        return rows

    @cached_property
    def _link(self) -> _core.Link:
        """φ as a compiled function of z, shape (n, P) to (n,), noise left out."""
        return _links.compile_link(self.link, self.P, self.inputs)

    @cached_property
    def _hermite(self) -> Mapping[tuple[int, ...], float] | None:
        """Hermite coefficients of φ if it is a polynomial."""
        if callable(self.link):
            return _links.hermite_coefficients(self.link, self.P)
        return self.link  # type: ignore[no-any-return]

    @cached_property
    def _root(self) -> FloatArray | None:
        """The symmetric root of `covariance`, or None for the identity."""
        return None if self.covariance is None else root_of(np.asarray(self.covariance))

    @cached_property
    def _white(self) -> tuple[FloatArray | None, Mapping[tuple[int, ...], float] | None]:
        """The root L of the covariance of Πx = L u, u ~ N(0, I_P) (None for I), and Hermite coefficients
        of φ(L u) if it is a polynomial.
        """
        if self.covariance is None:
            return None, self._hermite
        if np.ndim(self.covariance) == 0:
            L = math.sqrt(float(self.covariance)) * np.eye(self.P)
        else:
            L = root_of(along(self._axes(), np.asarray(self.covariance)))
        link = self._link
        terms = _links.hermite_coefficients(lambda u: link(np.ascontiguousarray(u @ L)), self.P)
        return L, terms

    @property
    def _rows(self) -> FloatArray | None:
        return self.directions if isinstance(self.directions, np.ndarray) else None

    def _make_sampler(self, d: int) -> _core.Sampler:
        root = None if self._root is None else row_of_root(self._root)
        return _core.multi_index(self.inputs, d, self._link, self._rows, self.noise, root)

    @cached_property
    def _node_sampler(self) -> _core.Sampler | None:
        if self.inputs != "hypercube" or self.d > MAX_ENUMERATED:
            return None
        return _core.cube_nodes(int(self.d), self._link, self._rows)

    def _parts(self) -> list[GaussianPart] | None:
        if self.inputs != "gaussian" or math.isinf(self.d):
            return None
        L, terms = self._white
        if terms is None:
            return None
        if L is None or self._root is None:
            return [GaussianPart(1.0, lambda w: w, HermiteLabel(self._axes(), terms), self.noise)]
        root = self._root
        directions = np.asarray(np.linalg.solve(L, rooted(root, self._axes())), dtype=np.float64)
        label = HermiteLabel(directions, terms)
        scales = ((int(self.d), float(root)),) if root.ndim == 0 else None
        return [GaussianPart(1.0, lambda w: rooted(root, w), label, self.noise, scales)]

    def _sphere(self) -> SphereLabel | None:
        if self.inputs != "sphere" or not 2 <= self.d < math.inf:
            return None
        return SphereLabel(int(self.d), self._axes(), self.link, self._hermite, self.noise)

    def _axes(self) -> FloatArray:
        """The directions as rows."""
        check.memory(8.0 * self.P * self.d, "directions", self.P)
        return np.eye(self.P, int(self.d)) if self._rows is None else self._rows

    _reduced_if: ClassVar[str] = "with a covariance that is isotropic across a few directions"

    def _symmetry(self) -> Symmetry | None:
        link, found = self._link, self._subspace
        if self.covariance is None:
            part = Part(1.0, (1.0,) * (self.P + 1), link)
        elif np.ndim(self.covariance) == 0:
            s = math.sqrt(float(self.covariance))
            part = Part(1.0, (s,) * (self.P + 1), lambda z: link(z * s))
        elif found is None:
            return None
        else:
            seen = found.roots[0] @ found.axes @ self._axes().T  # Πx of the directions before they are mixed
            stretch = (1.0,) * len(found.axes) + found.outside
            part = Part(1.0, stretch, lambda z: link(np.ascontiguousarray(z @ seen)), found.roots[0])
        p = len(self._names)
        return Symmetry(self._names, (Radius("r", self.d - p),), (part,), self.inputs, self._degrees())

    @cached_property
    def _subspace(self) -> Subspace | None:
        """Where the covariance is not a multiple of the identity, with the directions of the label."""
        cov = np.asarray(1.0 if self.covariance is None else self.covariance)
        return None if cov.ndim == 0 else subspace(self._axes(), [cov], self.d)

    def _degrees(self) -> tuple[int, ...] | None:
        """The degree of φ in each direction; None if φ is no polynomial, or on the hypercube."""
        if self.inputs == "hypercube" or self._hermite is None:
            return None
        terms = [alpha for alpha, c in self._hermite.items() if c]
        if self._subspace is not None:  # each direction of it may have the whole degree
            return (max(map(sum, terms), default=0),) * len(self._names)
        return tuple(max((alpha[j] for alpha in terms), default=0) for j in range(self.P))

    def _along(self) -> tuple[Label, int] | None:
        if self.inputs != "gaussian" or self.covariance is not None or self._hermite is None:
            return None
        return HermiteLabel(np.eye(self.P), self._hermite), self.P

    def _split(self) -> Split | None:
        if not isinstance(self.covariance, np.ndarray):
            return Split(self.directions, False, self._names, "r")
        found = self._subspace
        return None if found is None else Split(first_axes(found.axes), False, self._names, "r")

    @property
    def _names(self) -> tuple[str, ...]:
        p = self.P if self._subspace is None else len(self._subspace.axes)
        return tuple(f"s{j + 1}" for j in range(p))


Monomials = Sequence[tuple[int, ...]] | Mapping[tuple[int, ...], float]


@dataclass(frozen=True, eq=False, repr=False)
class Staircase(MultiIndex):
    """y = Σ_S c_S Π_{j∈S} x_j with x uniform on the hypercube {−1, 1}^d.

    A `MultiIndex` on the hypercube, whose directions are the coordinates up to the largest that occurs.

    Args:
        d: Dimension; ``math.inf`` for the limit in high dimension.
        monomials: Tuples of coordinates counted from 0, such as ``[(0,), (0, 1)]`` for x_0 + x_0·x_1, or a
            dict from such tuples to coefficients c_S.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.Staircase(30, [(0,), (0, 1), (0, 1, 2)])
        >>> law.P, law.target_power()
        (3, 3.0)
    """

    link: Any = field(init=False)
    directions: int = field(init=False)
    inputs: str = field(init=False, default="hypercube")
    noise: float = field(init=False, default=0.0)
    covariance: None = field(init=False, default=None)
    monomials: Monomials

    _reduced_if: ClassVar[str] = ""

    def __post_init__(self) -> None:
        set_field(self, "d", dimension(self.d, infinite=True))
        set_field(self, "monomials", _monomials(self.monomials, self.d))
        set_field(self, "link", self.monomials)
        set_field(self, "directions", 1 + max(j for key in self.monomials for j in key))
        super().__post_init__()


def _monomials(given: Any, d: float) -> dict[tuple[int, ...], float]:
    if isinstance(given, Mapping):
        pairs = [(key, check.number(c, f"monomials[{key!r}]")) for key, c in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = [(key, 1.0) for key in given]
    else:
        raise TypeError(f"monomials must be a sequence of tuples or a dict, got {given!r}")
    terms: dict[tuple[int, ...], float] = {}
    for key, c in pairs:
        clean = _links.fourier_key(key, None, "monomials")
        if clean and clean[-1] >= d:
            raise ValueError(f"monomials: coordinates must be < d = {d}, got {key!r}")
        if clean in terms:
            raise ValueError(f"monomials must name every monomial once, got {clean} twice")
        terms[clean] = c
    if not any(terms):
        raise ValueError(f"monomials must hold one with a coordinate, got {given!r}")
    return terms
