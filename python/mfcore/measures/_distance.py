"""Distances between measures: Wasserstein distances (eq. (9.7)) and relative entropy."""

from __future__ import annotations

import importlib
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy import special

from .._base import check
from .._base.aside import aside
from .._base.check import FloatArray
from .._base.rng import RNG, seed_of
from ._measure import Cloud, Density, as_points
from ._place import MeasureLike

_SAFE_POWER = 900  # powers of 2 up to this exponent can be added and multiplied without overflow
MOST_PAIRS = 25_000_000  # most entries of a matrix of costs: 200 MB


def distance(
    a: MeasureLike,
    b: MeasureLike,
    p: float = 2.0,
    *,
    method: str = "exact",
    directions: int = 200,
    rng: RNG = 0,
) -> float:
    """The Wasserstein distance W_p between two measures.

    On a line it is exact between any two measures: W_p^p = ∫|Q_a(s) − Q_b(s)|^p ds with quantile functions
    that are steps (points) or piecewise linear (cells of a density). In more dimensions ``"exact"`` solves
    the transport problem between points, and ``"sliced"`` averages W_p^p over directions u of the sphere,
    the measures projected on u: another distance, at most W_p, that takes sorting only. There a density
    counts as points at the centres of its cells.

    Between weighted points of more than one dimension POT solves the transport problem, where it is installed
    (``pip install 'mfcore[transport]'``), and SciPy's linear programmes otherwise, 100 times as slowly.

    Args:
        a: An array of points of equal mass, an `mf.Cloud` or an `mf.Density`.
        b: Likewise, of the same dimension.
        p: The power ≥ 1.
        method: ``"exact"`` or ``"sliced"``; on a line both are the same.
        directions: Number of directions for ``"sliced"``.
        rng: Draws the directions.

    Examples:
        >>> import mfcore as mf
        >>> round(mf.distance([0.0, 1.0], mf.Cloud([[0.0], [3.0]], [0.25, 0.75]), p=1), 12)
        1.75
        >>> uniform = mf.Density(edges=[0.0, 1.0], mass=[1.0])
        >>> round(mf.distance(uniform, [0.5]) ** 2, 12)  # a variance of 1/12
        0.083333333333
        >>> mf.distance([[0.0, 0.0], [2.0, 0.0]], [[2.0, 1.0], [0.0, 1.0]])
        1.0
    """
    power = check.number(p, "p", at_least=1)
    check.choice(method, "method", ("exact", "sliced"))
    first, second = _law(a, "a"), _law(b, "b")
    if first.points.shape[1] != second.points.shape[1]:
        raise ValueError(
            f"b must have points of length {first.points.shape[1]} as a has, got {second.points.shape[1]}"
        )
    first, second, scale = _in_range(first, second)
    if first.points.shape[1] == 1:
        total, unit = _on_a_line(first, second, power)
    elif method == "sliced":
        number = check.count(directions, "directions")
        check.memory(16.0 * number * first.points.shape[1], "directions", number)
        total, unit = _sliced(first, second, power, number, rng)
    else:
        total, unit = aside(partial(_transport, first, second, power))
    found = float(max(total, 0.0) ** (1 / power)) * unit * scale
    if not math.isfinite(found):
        raise ValueError(f"b must be at a distance from a that is a number, got one beyond {scale:g}")
    return found


def kl(a: Density, b: Density) -> float:
    """KL(a‖b) = ∫ log(a/b) da between densities on the same grid; inf where b is empty and a is not.

    Examples:
        >>> import mfcore as mf
        >>> edges = [0.0, 1.0, 2.0]
        >>> round(mf.kl(mf.Density(edges, [1.0, 0.0]), mf.Density(edges, [0.5, 0.5])), 6)
        0.693147
    """
    check.instance(a, "a", Density, "an mf.Density")
    check.instance(b, "b", Density, "an mf.Density")
    same = a.mass.shape == b.mass.shape and all(map(np.array_equal, a.edges, b.edges))
    if not same:
        raise ValueError(f"b must be on the grid of a, {a!r}, got {b!r}")
    left, right = a.mass / a.mass.sum(), b.mass / b.mass.sum()  # masses sum to 1 within 1e-9 only
    return float(special.kl_div(left, right).sum())


class _Law(NamedTuple):
    """Points and masses of a measure; on a line, `width` > 0 makes them cells centred at the points."""

    points: FloatArray
    weights: FloatArray
    width: FloatArray | None = None


def _law(measure: Any, name: str) -> _Law:
    width = None
    if isinstance(measure, Density):
        width = np.diff(measure.edges[0]) if len(measure.edges) == 1 else None
        measure = measure.as_cloud()
    if not isinstance(measure, Cloud):
        measure = Cloud(as_points(measure, name))
    there = measure.weights > 0
    if not there.all():
        width = None if width is None else width[there]
        return _Law(measure.points[there], measure.weights[there] / measure.weights.sum(), width)
    return _Law(measure.points, measure.weights / measure.weights.sum(), width)


def _in_range(a: _Law, b: _Law) -> tuple[_Law, _Law, float]:
    """Both laws divided by a power of 2 (usually 1) such that squares of coordinates do not overflow."""
    size = max(float(np.abs(law.points).max()) for law in (a, b))
    if size == 0 or 1e-120 < size < 1e120:
        return a, b, 1.0
    scale = math.ldexp(1.0, max(min(math.frexp(size)[1], 1023), -1021))
    laws = [
        _Law(law.points / scale, law.weights, None if law.width is None else law.width / scale)
        for law in (a, b)
    ]
    return laws[0], laws[1], scale


def _unit(largest: float, p: float) -> float:
    """A power of 2 such that p-th powers of lengths up to `largest` do not overflow in that unit; 1 if
    possible.
    """
    return 1.0 if largest == 0 or abs(p * math.log2(largest)) < _SAFE_POWER else largest


def _on_a_line(a: _Law, b: _Law, p: float) -> tuple[float, float]:
    """∫|Q_a − Q_b|^p ds of eq. (9.7) over the jumps of both distribution functions, and its unit."""
    sorted_laws = [_sorted(a), _sorted(b)]
    tops = [np.cumsum(law.weights) for law in sorted_laws]
    for top in tops:
        top /= top[-1]
    s = np.unique(np.concatenate([[0.0], *tops]))
    begin, end = s[:-1], s[1:]
    gaps = []
    for law, top in zip(sorted_laws, tops, strict=True):
        at = np.searchsorted(top, 0.5 * (begin + end)).clip(max=len(top) - 1)
        center = law.points[at, 0]
        if law.width is None:
            gaps.append((center, center))
            continue
        bottom = np.concatenate([[0.0], top[:-1]])
        inside = [np.clip((x - bottom[at]) / (top - bottom)[at], 0.0, 1.0) - 0.5 for x in (begin, end)]
        gaps.append((center + law.width[at] * inside[0], center + law.width[at] * inside[1]))
    left, right = (gaps[0][i] - gaps[1][i] for i in (0, 1))
    unit = _unit(float(max(abs(left).max(), abs(right).max())), p)
    return float((end - begin) @ _mean_power(left / unit, right / unit, p)), unit


def _sorted(law: _Law) -> _Law:
    order = np.argsort(law.points[:, 0], kind="stable")
    return _Law(law.points[order], law.weights[order], None if law.width is None else law.width[order])


def _mean_power(x: FloatArray, y: FloatArray, p: float) -> FloatArray:
    """∫_0^1 |x + (y − x)t|^p dt."""
    if p == 2:
        return np.asarray((x * x + x * y + y * y) / 3)
    small, large = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
    unit = np.where(large > 0, large, 1.0)
    ratio = np.where(x * y < 0, -small, small) / unit  # the integral is large^p ∫ over [ratio, 1]
    # The antiderivative cancels if the ends are near to each other; a Gauss rule is exact to rounding there.
    near = ratio > 0.5
    far = (1 - np.sign(ratio) * abs(ratio) ** (p + 1)) / ((p + 1) * np.where(near, 1.0, 1 - ratio))
    t, w = np.polynomial.legendre.leggauss(14)
    nodes = ratio[:, None] + (1 - ratio[:, None]) * (1 + t) / 2
    return np.asarray(large**p * np.where(near, np.abs(nodes) ** p @ (w / 2), far))


def _sliced(a: _Law, b: _Law, p: float, directions: int, rng: RNG) -> tuple[float, float]:
    if not isinstance(rng, np.random.Generator):
        seed_of(rng)  # refuses what is no seed
    u = np.random.default_rng(rng).standard_normal((directions, a.points.shape[1]))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    if len(a.points) == len(b.points) and _equal(a) and _equal(b):
        parts = [_of_equals(a.points @ v, b.points @ v, p) for v in u]
    else:
        parts = [
            _on_a_line(_Law((a.points @ v)[:, None], a.weights), _Law((b.points @ v)[:, None], b.weights), p)
            for v in u
        ]
    unit = max(unit for _, unit in parts)
    return float(np.mean([total * (own / unit) ** p for total, own in parts])), unit


def _of_equals(a: FloatArray, b: FloatArray, p: float) -> tuple[float, float]:
    """W_p^p on a line between as many points of equal masses, and its unit."""
    gaps = np.abs(np.sort(a) - np.sort(b))
    unit = _unit(float(gaps.max()), p)
    return float(((gaps / unit) ** p).mean()), unit


def _equal(law: _Law) -> bool:
    return bool(np.ptp(law.weights) < 1e-14)


def _transport(a: _Law, b: _Law, p: float) -> tuple[float, float]:
    """min Σ π_ij |x_i − y_j|^p, by POT if installed, else as an assignment problem or linear programme."""
    n, m = len(a.points), len(b.points)
    if n * m > MOST_PAIRS:
        raise ValueError(
            f"method must be 'sliced' beyond {MOST_PAIRS:.0e} pairs of points, got 'exact' for {n} × {m}"
        )
    lengths = scipy.spatial.distance.cdist(a.points, b.points)
    unit = _unit(float(lengths.max()), p)
    cost = (lengths / unit) ** p
    if n == m and _equal(a) and _equal(b):
        rows, columns = scipy.optimize.linear_sum_assignment(cost)
        return float(cost[rows, columns].mean()), unit
    # Tolerances of both solvers are absolute, and from 1e20 on HiGHS takes costs for infinite.
    largest = math.ldexp(1.0, math.frexp(float(cost.max()))[1])
    cost /= largest
    try:
        ot = importlib.import_module("ot")
    except ImportError:
        return largest * _programme(cost, a.weights, b.weights), unit
    return largest * float(ot.emd2(a.weights, b.weights, cost, numItermax=10_000_000)), unit


def _programme(cost: FloatArray, a: FloatArray, b: FloatArray) -> float:
    n, m = cost.shape
    rows = scipy.sparse.kron(scipy.sparse.eye(n), np.ones((1, m)))
    columns = scipy.sparse.kron(np.ones((1, n)), scipy.sparse.eye(m))
    # One of the equations follows from the others; without it rounding of the masses cannot contradict them.
    equations = scipy.sparse.vstack([rows, columns], format="csr")[:-1]
    found = scipy.optimize.linprog(
        cost.ravel(), A_eq=equations, b_eq=np.concatenate([a, b])[:-1], method="highs"
    )
    if not found.success:
        raise RuntimeError(f"the transport problem was not solved: {found.message}")
    return float(found.fun)
