"""`quantise`: N neurons that stand for a measure, and what is promised of them (eqs. (13.9), (13.10))."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG
from ..expectations._evaluator import Evaluator
from ..expectations._rules import Expectation
from ..measures._evaluators import evaluator_of
from ..measures._measure import as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ._approximation import _own
from ._draws import generator_of
from ._linear import merged

_MOST = 1 << 25  # numbers of a matrix U of atoms that is kept


def quantise(
    model: AnyModel,
    measure: MeasureLike,
    neurons: int,
    method: str = "iid",
    *,
    expectation: Expectation | None = None,
    rng: RNG = None,
    threads: int | None = None,
) -> FloatArray:
    """Choose N neurons for a measure ρ, whose mean f_N approximates f_ρ: rows in its coordinates, (N, D).

    With gap = ∫U(θ, θ)dρ − ∫∫U dρdρ:

    - ``"iid"``: independent draws, E R_N = R(ρ) + gap/N exactly.
    - ``"stratified"``: one draw from each of N parts of ρ of mass 1/N, made of atoms that lie together along
      a space-filling curve; E R_N ≤ R(ρ) + gap/N, and less where f changes little within a part.
    - ``"greedy"``: points of the support, one after the other, each the best for the mean of R_N over
      independent draws of the rest; R_N ≤ R(ρ) + gap/N with certainty. No randomness. Where a part of the
      support does better than ρ they go there: R_N < R(ρ), and f_N is not near f_ρ.

    Args:
        model: A model, or a `ReducedModel`.
        measure: ρ: points, an `mf.Cloud`, or an `mf.Density`, which counts as the centres of its cells.
        neurons: N.
        method: How, as above.
        expectation: For ``"greedy"``: `mf.Exact()` (the default) or `mf.MonteCarlo(samples, rng)`.
        rng: For the other two.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(mf.data.Dataset([[1.0]], [0.5]), mf.Network(mf.activations.linear))
        >>> rho = mf.Cloud([[-1.0], [0.0], [2.0]], [0.25, 0.5, 0.25])
        >>> np.sort(theory.quantise(model, rho, 4, "stratified", rng=0), axis=0).ravel().tolist()
        [-1.0, 0.0, 0.0, 2.0]
        >>> best = theory.quantise(model, rho, 4, "greedy")
        >>> bool(mf.risk(model, best) <= mf.risk(model, rho) + theory.approximation_gap(model, rho) / 4)
        True
    """
    check.choice(method, "method", ("iid", "stratified", "greedy"))
    count = check.count(neurons, "neurons")
    target = target_of(model, measure)
    points, weights = merged(*as_measure(measure, "measure", row_of(target)))
    points, weights = points[weights > 0], weights[weights > 0] / weights.sum()
    check.memory(8.0 * count * points.shape[1], "neurons", count)
    if method == "greedy":
        taken = _greedy(evaluator_of(target, expectation, threads), points, weights, count)
        return np.ascontiguousarray(points[taken])
    generator = generator_of(rng)
    if method == "iid":
        return np.ascontiguousarray(points[generator.choice(len(points), size=count, p=weights)])
    order = _along_a_curve(points)
    levels = (np.arange(count) + generator.uniform(size=count)) / count
    tops = np.cumsum(weights[order])
    taken = order[np.searchsorted(tops / tops[-1], levels, side="right").clip(max=len(order) - 1)]
    return np.ascontiguousarray(points[taken])


def _greedy(evaluator: Evaluator, points: FloatArray, weights: FloatArray, count: int) -> list[int]:
    """Numbers of the atoms taken: each minimises E[R_N | atoms so far], the rest being drawn from ρ.

    With c_i the times that atom i was taken, N² times that is a constant plus, for the next atom,
    2N Ψ_i + 2Σ_j (c_j − n w_j) U_ij + U_ii − 2 (∫U dρ)_i: eq. (13.10).
    """
    m = len(points)
    psi = evaluator.psi(points, points, weights)
    mean = psi - evaluator.V(points)  # ∫U(θ_i, ·)dρ
    score = 2 * count * psi + _own(evaluator, points) - 2 * mean
    kept = evaluator.U(points, points) if m * m <= _MOST else None
    taken: list[int] = []
    for _ in range(count):
        best = int(score.argmin())
        taken.append(best)
        row = kept[best] if kept is not None else evaluator.U(points[best : best + 1], points)[0]
        score = score + 2 * (row - mean)
    return taken


def _along_a_curve(points: FloatArray) -> npt.NDArray[np.intp]:
    """The order of points along a curve in Z, on which neighbours are near: by their coordinates' ranks."""
    n, k = points.shape
    if k == 1:
        return np.argsort(points[:, 0], kind="stable")
    bits = max(1, min(62 // k, int(np.ceil(np.log2(n))) if n > 1 else 1))
    ranks = points.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    cells = (ranks * 2**bits // max(n, 1)).astype(np.int64)
    used = cells[:, : min(k, 62)]
    code = np.zeros(n, dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for c in range(used.shape[1]):
            code = (code << 1) | ((used[:, c] >> bit) & 1)
    return np.argsort(code, kind="stable")
