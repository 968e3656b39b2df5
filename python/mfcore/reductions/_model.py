"""Models in the few coordinates that symmetry leaves: features Φ_q(z) at data nodes q.

Everything a solver needs is here: with weights p_q and targets y_q,
f_q = ∫Φ_q dρ, Ψ(z) = Σ p_q (f_q − y_q) Φ_q(z) and R = Σ p_q (y_q − f_q)² + τ²: eqs. (2.1) to (2.4).
`model.reduce()` makes a `ReducedModel` from a model; `ReducedModel(…)` makes one from any features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check, course
from .._base.check import FloatArray
from .._base.course import Course, Force, forces_at
from ._given import Batched, flags, frozen, names_of, numbers
from ._pairs import no_features
from ._tables import LowRank, Table

if TYPE_CHECKING:
    from ._inputs import Inputs
    from ._pairs import Pairs

__all__ = ["LowRank", "ReducedModel", "Table"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReducedModel:
    """Features Φ_q(z) at Q nodes, as functions of k coordinates z; accepted wherever a model is.

    Points are arrays of shape (n, k); (n,) will do if k = 1. Methods return what floating point gives, inf
    beyond the largest number; `mf.psi` and the like refuse such points by name.

    Args:
        coordinates: Names of the k coordinates.
        weights: p_q > 0 of the nodes, sum 1. Or of either sign, with any sum but no 0, such as of particles
            that attract each other: then R is not convex, and what rests on that refuses; `mf.Atoms` runs.
        targets: y_q.
        features: Callable from z, shape (n, k), to Φ_q(z), shape (n, Q).
        gradients: Callable from z to ∂Φ_q/∂z_c, shape (n, Q, k). None: whatever needs gradients is refused.
        noise: τ² = E Var(y | q), part of the risk that no network can explain.
        ridge: λ ≥ 0, or a function of t, as of an `mf.Model`.
        temperature: 1/β ≥ 0, or a function of t.
        volume: Exponents e_c of the volume element Π z_c^{e_c} dz, such as d − 1 for a radius in R^d. They
            matter with noise only.
        log_volume: Log of a constant in front of that volume element, such as the area of a unit sphere: it
            makes entropies those of full-dimensional laws.
        nonnegative: Which coordinates are radii, ≥ 0. Features of a reduced model end at 0: a negative radius
            counts as 0.
        rates: Speed of each coordinate; 0 for one that does not move.
        decays: Which coordinates weight decay acts on; by default those that move.
        initial: The law ρ₀ of z: has ``sample(n, rng)``, shape (n, k), and ``quadrature(n)``, points and
            weights, such as `ReducedInit`. None if there is none in these coordinates.
        curved: The coordinates are those of a curved space, such as the unit sphere, and `gradients` are
            the directions that atoms descend, not derivatives. What needs derivatives refuses the model.
        d: Dimension of the inputs, where it means something.
        node_error: Measured error of V from summing over nodes, and of U where more nodes show it, relative
            to the features; None if unknown.
        inputs: How features depend on inputs, of a reduction that mfcore made: what `nodes` and `mf.predict`
            need.
        pairs: V and U in closed form in place of features, of a reduction that mfcore made (see
            `Model.reduce`): then there is one node, which holds E y² alone, and features are refused.

    Examples:
        One coordinate z and one node with target 1, Φ(z) = z²:

        >>> import numpy as np, mfcore as mf
        >>> square = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[1.0],
        ...     features=lambda z: z**2, gradients=lambda z: 2 * z[:, None, :],
        ... )
        >>> square
        ReducedModel(coordinates=(z,), nodes=1)
        >>> mf.V(square, [1.0, 2.0])
        array([-1., -4.])
        >>> float(mf.risk(square, mf.Cloud([[2.0]])))
        9.0
    """

    coordinates: tuple[str, ...]
    weights: FloatArray
    targets: FloatArray
    features: Callable[..., FloatArray]  # of points z
    gradients: Callable[..., FloatArray] | None = None
    noise: float = 0.0
    ridge: Force = 0.0
    temperature: Force = 0.0
    volume: tuple[float, ...] = ()
    log_volume: float = 0.0
    nonnegative: tuple[bool, ...] = ()
    rates: tuple[float, ...] = ()
    decays: tuple[bool, ...] = ()
    initial: Any = None
    curved: bool = False
    d: float | None = None
    node_error: float | Any = None
    inputs: Inputs | None = None
    pairs: Pairs | None = None

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(
            self,
            *,
            coordinates: Sequence[str],
            weights: npt.ArrayLike,
            targets: npt.ArrayLike,
            features: Callable[[FloatArray], npt.ArrayLike],
            gradients: Callable[[FloatArray], npt.ArrayLike] | None = None,
            noise: float = 0.0,
            ridge: Force = 0.0,
            temperature: Force = 0.0,
            volume: Sequence[float] = (),
            log_volume: float = 0.0,
            nonnegative: Sequence[bool] = (),
            rates: Sequence[float] = (),
            decays: Sequence[bool] = (),
            initial: Any = None,
            curved: bool = False,
            d: float | None = None,
            node_error: float | None = None,
            inputs: Inputs | None = None,
            pairs: Pairs | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("coordinates", names_of(self.coordinates))
        k = len(self.coordinates)
        weights = check.array(self.weights, "weights", shape=(None,))
        if not weights.all() or (weights.min() > 0 and abs(weights.sum() - 1) > 1e-9):
            raise ValueError(
                "weights must be > 0 and sum to 1, or of either sign without 0, got smallest "
                f"{weights.min():g}, sum {weights.sum():.12g}"
            )
        put("weights", frozen(weights))
        put("targets", frozen(check.array(self.targets, "targets", shape=weights.shape)))
        put("features", Batched(self.features, "features", k, (len(weights),)))
        put("gradients", Batched(self.gradients, "gradients", k, (len(weights), k)))
        put("noise", check.number(self.noise, "noise", at_least=0))
        for name in ("ridge", "temperature"):
            put(name, course.force(getattr(self, name), name))
        put("volume", numbers(self.volume, "volume", k, 0.0))
        put("log_volume", check.number(self.log_volume, "log_volume"))
        if min(self.volume) <= -1:
            raise ValueError(f"volume must be > -1, or 0 would have infinite volume, got {list(self.volume)}")
        put("nonnegative", flags(self.nonnegative, "nonnegative", k))
        put("rates", numbers(self.rates, "rates", k, 1.0))
        if min(self.rates) < 0:
            raise ValueError(f"rates must be >= 0, got {list(self.rates)}")
        put("decays", flags(self.decays or [rate > 0 for rate in self.rates], "decays", k))
        put("curved", check.boolean(self.curved, "curved"))
        if self.d is not None:
            put("d", check.number(self.d, "d", above=0, finite=False))
        if self.node_error is not None:
            put("node_error", check.number(self.node_error, "node_error", at_least=0))
        if self.initial is not None and not (
            hasattr(self.initial, "sample") and hasattr(self.initial, "quadrature")
        ):
            raise TypeError(
                f"initial must have sample(n, rng) and quadrature(n), as mf.ReducedInit, got {self.initial!r}"
            )
        if hasattr(self.initial, "support") and (found := len(self.initial.support())) != k:
            raise ValueError(f"initial must be a law of {k} coordinates, as there are, got one of {found}")

    @property
    def nodes(self) -> FloatArray:
        """The positions of the nodes, shape (Q, m), in coordinates of the input x that the data law chooses.

        Πx along the directions of the law (`MultiIndex`, `Staircase`, `Linear`, `GaussianMixture`), then |x|
        of what is across;
        |x| alone (`IsotropicGaussians`), or inside and outside the subspace (`AnisotropicGaussians`); x
        itself where the coordinates are those of θ. At d = ∞ norms are divided by √d.

        Examples:
            >>> import math, mfcore as mf
            >>> law = mf.data.Staircase(math.inf, [(0,), (0, 1)])
            >>> mf.Model(law, mf.Network(mf.activations.tanh)).reduce().nodes.tolist()
            [[-1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.0]]
        """
        if self.pairs is not None:
            no_features(self.weights)
        if self.inputs is None:
            raise ValueError("nodes must be those of a reduction that mfcore made, got features by hand")
        return self.inputs.nodes

    def at(self, t: float) -> ReducedModel:
        """With the numbers that temperature and ridge are at time t: see `Model.at`.

        Examples:
            >>> import mfcore as mf
            >>> square = mf.ReducedModel(
            ...     coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z**2,
            ...     temperature=lambda t: 1 / (1 + t),
            ... )
            >>> square.at(1.0).temperature
            0.5
        """
        return forces_at(self, check.number(t, "t", at_least=0))

    def replace(self, **changes: Any) -> ReducedModel:
        """A copy with some fields changed, checked anew.

        Other features come without gradients, without `inputs` and with unknown `node_error`, unless these
        are given too; so do other weights and targets as far as they matter.

        Examples:
            >>> import mfcore as mf
            >>> law = mf.data.IsotropicGaussians(d=40, delta=0.5)
            >>> reduced = mf.Model(law, mf.Network(mf.activations.relu)).reduce()
            >>> reduced.replace(ridge=0.1).ridge
            0.1
        """
        known = [entry.name for entry in fields(self)]
        for name in changes:
            if name not in known:
                hint = check.did_you_mean(name, known)
                raise TypeError(
                    f"replace takes the fields of a reduced model ({', '.join(known)}), got {name!r}{hint}"
                )
        stale = {
            "gradients": {"features"},
            "inputs": {"features", "weights", "coordinates"},
            "pairs": {"features", "weights", "targets", "coordinates"},
            "node_error": {"features", "weights", "targets"},
        }
        unknown = {name: None for name, of in stale.items() if of & changes.keys()}
        return replace(self, **{**unknown, **changes})

    def V(self, theta: FloatArray) -> FloatArray:
        """V(z) = −Σ p_q y_q Φ_q(z) for every row, shape (n,)."""
        if self.pairs is not None:
            return self.pairs.V(self._points(theta))
        return -self.features(theta) @ (self.weights * self.targets)

    def U(self, theta: FloatArray, other: FloatArray) -> FloatArray:
        """U(z_i, z'_j) = Σ p_q Φ_q(z_i) Φ_q(z'_j), shape (n, m)."""
        if self.pairs is not None:
            return self.pairs.U(self._points(theta), self._points(other))
        left = self.features(theta)
        right = left if other is theta else self.features(other)
        return (left * self.weights) @ right.T

    def psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Ψ(z; ρ) = Σ p_q (f_q − y_q) Φ_q(z) for every row, shape (n,), without weight decay."""
        if self.pairs is not None:
            return self.pairs.psi(self._points(theta), self._points(points), weights)
        there = self.features(points)
        here = there if theta is points else self.features(theta)
        return here @ self._residual(check.array(weights, "weights", shape=(len(there),)) @ there)

    def grad_psi(self, theta: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """∇Ψ(z; ρ) for every row, shape (n, k), without weight decay and rates."""
        if self.pairs is not None:
            return self.pairs.grad_psi(self._points(theta), self._points(points), weights)
        residual = self._residual(self._mean(points, weights))
        gradients: FloatArray = np.einsum("nqk,q->nk", self._gradients(theta), residual)
        return gradients

    def _mean(self, points: FloatArray, weights: FloatArray) -> FloatArray:
        """f_q of weighted points."""
        phi = self.features(points)
        return np.asarray(check.array(weights, "weights", shape=(len(phi),)) @ phi)

    def risk(self, points: FloatArray, weights: FloatArray) -> float:
        """R(ρ) = Σ p_q (y_q − f_q)² + τ²."""
        if self.pairs is not None:
            return self.pairs.risk(self._points(points), weights)
        f = self._mean(points, weights)
        return float(self.weights @ (self.targets - f) ** 2) + self.noise

    def risk_node_error(self, size: float) -> float:
        """Bound the effect of `node_error` on R of a measure whose predictions have this size.

        V is off by `node_error` times the size of a feature, U by that times the size once more; f is an
        average of features.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> square = mf.ReducedModel(
            ...     coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z**2, node_error=1e-6
            ... )
            >>> round(square.risk_node_error(1.0), 12)
            3e-06
        """
        largest = check.number(size, "size", at_least=0, at_most=1e150)  # has a square
        return (self.node_error or 0.0) * (2 * largest + largest**2)

    def table(self, *axes: npt.ArrayLike) -> Table:
        """Features on a tensor grid, one axis of coordinate values per coordinate.

        Examples:
            >>> import math, numpy as np, mfcore as mf
            >>> law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
            >>> reduced = mf.Model(data=law, network=mf.Network(mf.activations.relu)).reduce()
            >>> reduced.table(np.linspace(0, 2, 5), np.linspace(0, 1, 3))
            Table(5×3 cells, 2 nodes)
        """
        if len(axes) != len(self.coordinates):
            raise ValueError(f"axes must be {len(self.coordinates)}, one per coordinate, got {len(axes)}")
        values = [check.array(a, f"axes[{c}]", shape=(None,)) for c, a in enumerate(axes)]
        grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1)
        flat = self.features(grid.reshape(-1, len(values)))
        return Table(tuple(values), flat.reshape(*grid.shape[:-1], -1), self.weights)

    @property
    def _compiled(self) -> _core.ReducedFeatures | None:
        """The compiled features, for solvers in the core; None for features by hand."""
        function: Any = self.features
        owner = getattr(function.function, "__self__", None)
        return owner if isinstance(owner, _core.ReducedFeatures) else None

    @property
    def _apex(self) -> _core.Apex:
        """The kinks at which points can come to rest, of pairs and of compiled features off a sphere."""
        known = None if self.curved else getattr(self.pairs or self._compiled, "apex", None)
        return _core.Apex() if known is None else known(self.rates)

    def _points(self, z: FloatArray) -> FloatArray:
        """Rows of coordinates, radii not below 0."""
        points = check.array(z, "z", shape=(None, len(self.coordinates)), empty=True)
        return np.where(self.nonnegative, np.maximum(points, 0.0), points)

    def _residual(self, f: FloatArray) -> FloatArray:
        return np.asarray(self.weights * (f - self.targets))

    def _gradients(self, z: FloatArray) -> FloatArray:
        assert self.gradients is not None  # wrapped by __post_init__
        return self.gradients(z)

    def __repr__(self) -> str:
        shown = [f"coordinates=({', '.join(self.coordinates)}{',' * (len(self.coordinates) == 1)})"]
        shown.append(f"nodes={len(self.weights)}" if self.pairs is None else f"pairs={self.pairs!r}")
        for name in ("d", "noise", "ridge", "temperature", "node_error"):
            value = getattr(self, name)
            if isinstance(value, Course):
                shown.append(f"{name}={value!r}")
            elif value:
                shown.append(f"{name}={value:.0e}" if name == "node_error" else f"{name}={value:g}")
        return f"ReducedModel({', '.join(shown)})"
