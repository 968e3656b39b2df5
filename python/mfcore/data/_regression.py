"""`Teacher` and `Linear`: Gaussian inputs with labels of a two-layer network or a linear function."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..network import Network
from ._covariance import check_definite, root_of
from ._law import DataLaw, noise_level, own_array, set_field
from ._multi_index import MultiIndex
from ._parts import GaussianPart, HermiteLabel, NetworkLabel
from ._symmetry import Part, Radius, Split, Symmetry

_DEPENDENT = 1e-12  # singular values below this share of the largest count as 0


@dataclass(frozen=True, eq=False, repr=False)
class Teacher(DataLaw):
    """x ~ N(0, I_d), y = (1/m) Σ_j σ*(x; θ_j): the labels come from a network with m neurons.

    Args:
        network: The teacher's `Network`.
        theta: Its parameters, rows [a, b, w…] as `network` lays them out, shape (m, D). d follows from D.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.Teacher(mf.Network(mf.activations.relu), theta=[[1.0, 0.0], [0.0, -2.0]])
        >>> law.d
        2
    """

    network: Network
    theta: FloatArray
    d: int = field(init=False)

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(self, network: Network, theta: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise TypeError(f"network must be a Network, got {self.network!r}")
        theta = own_array(self.theta, "theta", (None, None))
        d = theta.shape[1] - self.network.row(0)
        if d < 1:
            raise ValueError(f"theta must have at least {self.network.row(1)} columns, got {theta.shape[1]}")
        set_field(self, "theta", theta)
        set_field(self, "d", d)

    def target_power(self) -> float | Any:
        """E y² = (1/m²) Σ_ij E σ*(x; θ_i) σ*(x; θ_j); None if no exact expectation of pairs is known.

        Examples:
            >>> import mfcore as mf
            >>> relu = mf.Network(mf.activations.relu)
            >>> law = mf.data.Teacher(relu, theta=[[1.0, 0.0], [0.0, -2.0]])
            >>> round(law.target_power(), 12)  # (5/2 + 2/π)/4
            0.784154943092
        """
        return self._power

    @cached_property
    def _power(self) -> float | None:
        sigma, m = self.network.activation._core, len(self.theta)
        if not _core.has_exact_pairs(sigma, sigma):
            return None
        mean = np.full(m, 1 / m)
        there = _core.pair_potential(self.network._core, self.theta, self.theta, mean, False)[0]
        return self.network.scale**2 * float(mean @ there)

    def _make_sampler(self, d: int) -> _core.Sampler:
        link = _core.network_link(self.network._core, self.theta, d)
        law = _core.multi_index("gaussian", d, link)
        return law if self.network.scale == 1 else _core.scaled_labels(law, self.network.scale)

    def _parts(self) -> list[GaussianPart]:
        return [GaussianPart(1.0, lambda w: w, NetworkLabel(self.network, self.theta, self.network.scale))]

    @cached_property
    def _axes(self) -> FloatArray:
        """Orthonormal rows that span the w of the teacher: the first axes, where these do."""
        w = self.theta[:, self.network.row(0) :]
        size = np.linalg.norm(w, 2)
        values, rows = np.linalg.svd(w, full_matrices=False)[1:]
        p = int((values > _DEPENDENT * size).sum())
        if not np.any(w[:, p:]):
            return np.eye(p, self.d)
        if p == len(w):  # one direction after the other, as Gram and Schmidt make them
            q, r = np.linalg.qr(w.T)
            return np.ascontiguousarray((q * np.where(r.diagonal() < 0, -1.0, 1.0)).T)
        return np.ascontiguousarray(rows[:p])

    def _along(self) -> tuple[NetworkLabel, int]:
        first, axes = self.network.row(0), self._axes
        theta = np.concatenate([self.theta[:, :first], self.theta[:, first:] @ axes.T], axis=1)
        return NetworkLabel(self.network, theta, self.network.scale), len(axes)

    _plain_first: ClassVar[bool] = True

    def _symmetry(self) -> Symmetry:
        label, p = self._along()
        known, network = self.network.activation._core.facts, self.network
        link = _core.network_link(network._core, label.theta, p)
        part = Part(1.0, (1.0,) * (p + 1), lambda z: network.scale * link(z))
        degrees = (known.degree,) * p if known.is_polynomial else None
        return Symmetry(self._split().inside, (Radius("r", self.d - p),), (part,), degrees=degrees)

    def _split(self) -> Split:
        p = len(self._axes)
        first = np.array_equal(self._axes, np.eye(p, self.d))
        return Split(p if first else self._axes, False, tuple(f"s{j + 1}" for j in range(p)), "r")


@dataclass(frozen=True, eq=False, repr=False)
class Linear(DataLaw):
    """y = ⟨w, x⟩ + noise·g, x ~ N(0, cov).

    Args:
        w: Coefficients, shape (d,).
        cov: Covariance of x: symmetric positive definite (d, d), a number > 0 for a multiple of the identity,
            or None for the identity.
        noise: Standard deviation τ of the label noise.

    Examples:
        >>> import mfcore as mf
        >>> mf.data.Linear([3.0, 4.0], cov=2.0, noise=1.0).target_power()
        51.0
    """

    w: FloatArray
    cov: float | FloatArray | None = None
    noise: float = 0.0
    d: int = field(init=False)

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(
            self, w: npt.ArrayLike, cov: npt.ArrayLike | None = None, noise: float = 0.0
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field(self, "w", own_array(self.w, "w", (None,)))
        check.squares(self.w, "w")
        set_field(self, "d", len(self.w))
        set_field(self, "noise", noise_level(self.noise))
        if self.cov is not None:
            set_field(self, "cov", _covariance(self.cov, self.d))

    def target_power(self) -> float:
        """E y² = ⟨w, cov·w⟩ + τ².

        Examples:
            >>> import mfcore as mf
            >>> mf.data.Linear([3.0, 4.0]).target_power()
            25.0
        """
        w = self.w
        if isinstance(self.cov, np.ndarray):
            return float(w @ self.cov @ w) + self.noise_power()
        return float(w @ w) * (1.0 if self.cov is None else self.cov) + self.noise_power()

    @cached_property
    def _root(self) -> FloatArray | None:
        """The symmetric root of `cov`: (d, d), (1, 1) for a multiple of the identity, or None for it."""
        if self.cov is None:
            return None
        if not isinstance(self.cov, np.ndarray):
            return np.array([[math.sqrt(self.cov)]])
        return root_of(self.cov)

    def _pull_back(self, w: FloatArray) -> FloatArray:
        """Rows w to rows A w, A the symmetric root."""
        if self._root is None:
            return w
        return np.asarray(w @ self._root if isinstance(self.cov, np.ndarray) else w * self._root[0, 0])

    def _make_sampler(self, d: int) -> _core.Sampler:
        return _core.linear_law(self.w, self._root, self.noise)

    def _parts(self) -> list[GaussianPart]:
        # y = <w, A g> = |A w| h_1(<e, g>), e the direction of A w (any unit vector if w = 0).
        pulled = self._pull_back(self.w[None])
        size = float(np.linalg.norm(pulled))
        direction = pulled / size if size > 0 else np.eye(1, self.d)
        label = HermiteLabel(direction, {(1,): size})
        return [GaussianPart(1.0, self._pull_back, label, self.noise)]

    _reduced_if: ClassVar[str] = "with isotropic cov"

    def _symmetry(self) -> Symmetry | None:
        """y depends on one direction of x ~ N(0, c I): a single-index model in x/√c."""
        if isinstance(self.cov, np.ndarray):
            return None
        size = float(np.linalg.norm(self.w))
        direction = self.w / size if size > 0 else np.eye(self.d)[0]
        single = MultiIndex(self.d, [0.0, size], direction[None])
        scale = math.sqrt(1.0 if self.cov is None else float(self.cov))
        part = Part(1.0, (scale, scale), lambda z: single._link(z) * scale)
        symmetry = single._symmetry()
        assert symmetry is not None
        return replace(symmetry, parts=(part,))

    def _split(self) -> Split:
        size = np.linalg.norm(self.w)
        return Split((self.w / size)[None] if size > 0 else 1, False, ("s1",), "r")


def _covariance(value: Any, d: int) -> float | FloatArray:
    if check.as_numpy(value, "cov").ndim == 0:
        return check.number(value, "cov", above=0)
    cov = own_array(value, "cov", (d, d))
    check_definite(cov, "cov")
    return cov
