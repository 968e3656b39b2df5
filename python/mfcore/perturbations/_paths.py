"""`along`: the risk along a segment of mixtures, or of displaced neurons (eqs. (13.14), (13.15))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from .._base import check
from .._base.check import FloatArray
from .._base.places import places
from ..expectations._rules import Expectation
from ..measures._functions import predict, risk
from ..measures._measure import Cloud, as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..model import Model
from ..reductions._given import convex
from ._linear import at_atoms

_MOST = 4_000_000  # most pairs of atoms of a transport problem with unequal masses
_EQUAL = 1e-14  # masses that differ by less are equal
_EMPTY = 1e-14  # masses of a plan below this are rounding


@dataclass(frozen=True, eq=False, repr=False)
class RiskPath:
    """The risk along a path of measures, as `along` returns it.

    Attributes:
        s: From 0 (first) to 1 (second).
        risk: R(ρ_s).
        slope: dR/ds.
        second: d²R/ds²: ≥ 0 everywhere if R is convex along the path. Along mixtures it is constant.
        f: f_{ρ_s} at the inputs asked for, shape (len(s), n); None if there were none.
        length: W₂ of the two ends along the geodesic; nan for mixtures.
        path: Which path it is.
    """

    s: FloatArray
    risk: FloatArray
    slope: FloatArray
    second: FloatArray
    f: FloatArray | None
    length: float
    path: str
    _pieces: tuple[FloatArray, FloatArray, FloatArray]

    @property
    def convexity(self) -> float:
        """The constant κ of displacement convexity at the places s: the least of (d²R/ds²)/W₂².

        Between these places, and along other geodesics, it may be smaller.

        R along this geodesic is at most (1 − s)R(ρ₀) + sR(ρ₁) − κs(1 − s)W₂²/2; nan for mixtures, and where
        both ends are one.

        Examples:
            >>> import mfcore as mf
            >>> law = mf.data.Linear([1.0, 0.0], cov=[[0.5, 0.0], [0.0, 2.0]])
            >>> model = mf.Model(law, mf.Network(mf.activations.linear))  # R = ⟨w̄ − w*, Σ(w̄ − w*)⟩
            >>> path = mf.theory.along(model, [[0.0, 0.0]], [[3.0, 0.0]], "wasserstein")
            >>> round(path.convexity, 6)
            1.0
        """
        return float(self.second.min()) / self.length**2 if self.length > 0 else float("nan")

    def measure(self, s: float) -> Cloud:
        """ρ_s."""
        at = check.number(s, "s", at_least=0, at_most=1)
        start, end, mass = self._pieces
        if self.path == "wasserstein":
            return Cloud(start + at * (end - start), mass)
        weights = np.concatenate([(1 - at) * mass[: len(start)], at * mass[len(start) :]])
        return Cloud(np.concatenate([start, end]), weights)

    def __repr__(self) -> str:
        return (
            f"RiskPath({self.path}, risk={self.risk[0]:.6g} … {self.risk[-1]:.6g}, "
            f"least second derivative={self.second.min():.6g} of {len(self.s)} places)"
        )


def along(
    model: AnyModel,
    first: MeasureLike,
    second: MeasureLike,
    path: str = "mixture",
    *,
    points: int | npt.ArrayLike = 41,
    X: npt.ArrayLike | None = None,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> RiskPath:
    """The risk on a path between two measures: mixtures (1 − s)ρ₀ + sρ₁, or neurons that move straight on.

    R is convex along mixtures, always: d²R/ds² = 2‖f_{ρ₁} − f_{ρ₀}‖². The flow moves neurons, and there R
    need not be convex: on the geodesic, with an optimal plan of (θ, θ'), ρ_s is the law of θ + s(θ' − θ).

    Args:
        model: A model, or a `ReducedModel`.
        first: ρ₀: points, an `mf.Cloud` or an `mf.Density`, which counts as the centres of its cells.
        second: ρ₁, in the same coordinates.
        path: ``"mixture"`` or ``"wasserstein"``.
        points: Places s, or how many, evenly.
        X: Inputs at which to return f.
        expectation: As in `stability`.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        One neuron 1 and one neuron −1 fit y = 0 as a mixture; half-way of the geodesic is one neuron 0.

        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> square = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[1.0],
        ...     features=lambda z: z**2, gradients=lambda z: 2 * z[:, None, :],
        ... )
        >>> theory.along(square, [-1.0], [1.0], points=[0.0, 0.5, 1.0]).risk.tolist()
        [0.0, 0.0, 0.0]
        >>> theory.along(square, [-1.0], [1.0], "wasserstein", points=[0.0, 0.5, 1.0]).risk.tolist()
        [0.0, 1.0, 0.0]
    """
    check.choice(path, "path", ("mixture", "wasserstein"))
    s = places(points, "points", 1.0, increasing=False)
    target = target_of(model, first, "first")
    row = row_of(target)
    if path == "wasserstein" and isinstance(target, Model) and target.network.sphere:
        raise ValueError("network must have sphere=False for geodesics: straight lines leave the sphere")
    start, here = as_measure(first, "first", row)
    end, there = as_measure(second, "second", row)
    options: dict[str, Any] = {"expectation": expectation, "threads": threads}
    if path == "mixture":
        pieces = (start, end, np.concatenate([here, there]))
        both = [risk(target, Cloud(*rho), **options) for rho in ((start, here), (end, there))]
        half = np.concatenate([here / 2, there / 2])
        middle = risk(target, Cloud(np.concatenate([start, end]), half), **options)
        bend = 4 * (both[0] + both[1] - 2 * middle)  # R is a parabola in s
        if isinstance(target, Model) or convex(target):
            bend = max(bend, 0.0)  # but for rounding
        risks = (1 - s) * both[0] + s * both[1] - 0.5 * bend * s * (1 - s)
        slopes, seconds = both[1] - both[0] + bend * (s - 0.5), np.full(len(s), bend)
        length = float("nan")
    else:
        pieces = plan(start, here, end, there)
        moves, mass = pieces[1] - pieces[0], pieces[2]
        length = float(np.sqrt(mass @ np.square(moves).sum(axis=1)))
        risks, slopes, seconds = (np.empty(len(s)) for _ in range(3))
        for k, at in enumerate(s):
            rows = pieces[0] + at * moves
            linear = at_atoms(target, rows, mass, expectation, threads)
            risks[k] = risk(target, Cloud(rows, mass), **options)
            slopes[k] = 2 * mass @ np.sum(linear.products.gradient * moves, axis=1)
            seconds[k] = 2 * mass @ np.sum(linear.products.coupled(moves) * moves, axis=1)
    found = RiskPath(s, risks, slopes, seconds, None, length, path, pieces)
    if X is None:
        return found
    f = np.array([predict(model, found.measure(float(at)), X, threads=threads) for at in s])
    return RiskPath(s, risks, slopes, seconds, f, length, path, pieces)


def plan(
    x: FloatArray, a: FloatArray, y: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An optimal plan of W₂ as pairs: where mass comes from, where it goes to, and how much of it.

    Examples:
        >>> import numpy as np
        >>> from mfcore.perturbations._paths import plan
        >>> x, y = np.array([[0.0], [1.0]]), np.array([[3.0], [2.0]])
        >>> _, end, mass = plan(x, np.array([0.5, 0.5]), y, np.array([0.25, 0.75]))
        >>> end.ravel().tolist(), mass.tolist()
        ([2.0, 2.0, 3.0], [0.5, 0.25, 0.25])
    """
    if x.shape[1] == 1:
        i, j, mass = _on_a_line(x[:, 0], a, y[:, 0], b)
        return x[i], y[j], mass
    cost = scipy.spatial.distance.cdist(x, y, "sqeuclidean")
    if len(x) == len(y) and np.ptp(a) < _EQUAL and np.ptp(b) < _EQUAL:
        i, j = scipy.optimize.linear_sum_assignment(cost)
        return x[i], y[j], a
    if cost.size > _MOST:
        raise ValueError(
            f"second must have as many points of equal mass as first beyond {_MOST:.0e} pairs, got "
            f"{len(y)} and {len(x)}"
        )
    flow = _programme(cost, a / a.sum(), b / b.sum())
    i, j = np.nonzero(flow > _EMPTY)
    mass = flow[i, j]
    return x[i], y[j], mass / mass.sum()


def _on_a_line(
    x: FloatArray, a: FloatArray, y: FloatArray, b: FloatArray
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]:
    """The monotone plan: pairs of atoms at the same levels of both distribution functions."""
    left, right = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    tops = [np.cumsum(w[order]) / w.sum() for w, order in ((a, left), (b, right))]
    levels = np.unique(np.concatenate([[0.0], *tops]))
    levels = levels[np.concatenate([[True], np.diff(levels) > _EMPTY])]
    middle = 0.5 * (levels[1:] + levels[:-1])
    i, j = (
        order[np.searchsorted(top, middle).clip(max=len(order) - 1)]
        for order, top in zip((left, right), tops, strict=True)
    )
    mass = np.diff(levels)
    return i, j, mass / mass.sum()


def _programme(cost: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """The optimal plan by linear programming, (n, m)."""
    n, m = cost.shape
    rows = scipy.sparse.kron(scipy.sparse.eye(n), np.ones((1, m)))
    columns = scipy.sparse.kron(np.ones((1, n)), scipy.sparse.eye(m))
    equations = scipy.sparse.vstack([rows, columns], format="csr")[:-1]  # the last follows from the others
    unit = max(float(cost.max()), 1e-300)
    found = scipy.optimize.linprog(
        cost.ravel() / unit, A_eq=equations, b_eq=np.concatenate([a, b])[:-1], method="highs"
    )
    if not found.success:
        raise RuntimeError(f"the transport problem was not solved: {found.message}")
    return np.asarray(found.x).reshape(n, m)
