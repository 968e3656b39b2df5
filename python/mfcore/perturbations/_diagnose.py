"""`diagnose`: is a limit point the global one? Ψ_λ on the support and beyond it (eqs. (13.16), (13.17))."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG
from ..expectations._rules import Expectation
from ..measures._functions import grad_psi, psi, risk
from ..measures._measure import Cloud, as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..model import Model
from ..stationary._certificate import Certificate, certificate
from ._draws import generator_of
from ._linear import merged

_SAME = 1e-9  # size of kinks and values at 0 of σ that count as none


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The conditions of a global minimum at a measure, as `diagnose` finds them.

    Attributes:
        risk: R of the measure.
        residual: √∫|∇Ψ_λ|²dρ over trained entries: 0 at a limit point of the flow.
        on_support: Least, mean and largest Ψ_λ on the atoms; equal numbers at a minimum over all measures. Of
            homogeneous networks they are those of atoms scaled to |θ| = 1, and 0 at a minimum.
        lowest: The least Ψ_λ found anywhere, on |θ| = 1 for homogeneous networks. Without a certificate that
            is a search from some starts: nothing lower is excluded, and `gap` is then no proven bound.
        argmin: Where; what is missing in the support if `depth` > 0.
        depth: How far `lowest` is below the mean on the support, or below 0 for homogeneous networks: a
            minimum has 0.
        gap: How far R (½R + (λ/2)∫|θ|²dρ with decay) is at most above the least value over all measures, with
            what `certificate` says of it; of homogeneous networks without decay over those with
            ∫|θ|²dρ at most that of the measure, if `lowest` is the least of all. nan where nothing is known.
        homogeneous: Whether σ*(x; sθ) = s²σ*(x; θ).
        hole: The largest angle between a direction of (b, w) and the nearest atom with that sign of a, in one
            and two dimensions: a start whose support separates has 0. nan in more dimensions.
        certificate: That of the measure, where there is one.
    """

    risk: float
    residual: float
    on_support: tuple[float, float, float]
    lowest: float
    argmin: FloatArray
    depth: float
    gap: float
    homogeneous: bool
    hole: float
    certificate: Certificate | None

    def __repr__(self) -> str:
        low, mean, high = self.on_support
        return (
            f"Diagnosis(risk={self.risk:.6g}, residual={self.residual:.2g}, depth={self.depth:.3g}, "
            f"gap={self.gap:.3g}, on_support=[{low:.6g}, {mean:.6g}, {high:.6g}], lowest={self.lowest:.6g}, "
            f"homogeneous={self.homogeneous}, hole={self.hole:.3g}, "
            f"lowest by {'mf.certificate' if self.certificate is not None else 'a search: no proof'})"
        )


def diagnose(
    model: AnyModel,
    measure: MeasureLike,
    *,
    starts: int = 32,
    expectation: Expectation | None = None,
    rng: RNG = 0,
    threads: int | None = None,
) -> Diagnosis:
    """Check the conditions of a global minimum: Ψ_λ is constant on the support, and nowhere lower.

    Where the model is homogeneous (output trained, σ(st) = sσ(t) for s > 0) Ψ_λ is |θ|² times its value in
    the direction of θ, which is searched on the sphere of directions: Chizat and Bach's condition. Else, in
    reduced coordinates, the search is that of `mf.certificate`. All other Ψ_λ are descended from the atoms
    and from `starts` points around them, which proves nothing. Measures with another law of what a row stores
    and does not train compete, too: the best that training can reach may have `depth` > 0.

    Args:
        model: A model, or a `ReducedModel`, without noise.
        measure: Neurons, or a measure in reduced coordinates.
        starts: Number of random directions, or points, from which Ψ_λ is descended.
        expectation: As in `mf.psi`.
        rng: Draws them.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        A teacher relu(x) − relu(−x)/2 in one dimension, and neurons that have found its first half only:

        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> network = mf.Network(mf.activations.relu, output="trained")
        >>> law = mf.data.Teacher(network, [[2.0, 1.0], [-1.0, -1.0]])
        >>> found = theory.diagnose(mf.Model(law, network), [[1.0, 1.0]])
        >>> found.homogeneous, found.residual < 1e-12, round(found.depth, 6), round(found.hole, 6)
        (True, True, 0.125, 3.141593)
        >>> found.argmin.round(3).tolist()
        [-0.707, -0.707]
    """
    target = target_of(model, measure)
    if target.temperature > 0:
        raise ValueError(f"model must have temperature 0 to be diagnosed, got {target.temperature:g}")
    number = check.count(starts, "starts")
    check.memory(64.0 * number * row_of(target), "starts", starts)
    generator = generator_of(rng)
    points, weights = merged(*as_measure(measure, "measure", row_of(target)))
    points, weights = points[weights > 0], weights[weights > 0] / weights.sum()
    rho = Cloud(points, weights)
    slopes = grad_psi(target, points, rho, expectation=expectation, threads=threads)
    if not isinstance(target, Model):
        slopes = slopes * (np.array(target.rates) > 0)
    residual = math.sqrt(float(weights @ np.square(slopes).sum(axis=1)))
    scaled = isinstance(target, Model) and _homogeneous(target)
    bound = None if scaled else _certified(model, measure)
    size = np.linalg.norm(points, axis=1)
    there = points / np.where(size > 0, size, 1.0)[:, None] if scaled else points
    values = psi(target, there, rho, expectation=expectation, threads=threads)
    mean = float(weights @ values)
    on_support = float(values.min()), mean, float(values.max())
    total = risk(target, rho, expectation=expectation, threads=threads)

    def height(theta: FloatArray) -> tuple[float, FloatArray]:
        """Ψ_λ, or its value in the direction of θ, and the gradient."""
        r = float(np.linalg.norm(theta)) if scaled else 1.0
        row = (theta / r)[None]
        value = float(psi(target, row, rho, expectation=expectation, threads=threads)[0])
        slope = grad_psi(target, row, rho, expectation=expectation, threads=threads)[0]
        return value, (slope - (slope @ row[0]) * row[0]) / r if scaled else slope

    gap, reference = math.nan if bound is None else bound.gap, mean
    if bound is not None and not isinstance(target, Model):
        assert bound.argmin is not None  # there is no noise
        argmin = bound.argmin
        lowest = float(psi(target, argmin[None], rho)[0])
    else:
        drawn = generator.normal(size=(number, points.shape[1]))
        if not scaled:
            drawn = points[generator.integers(len(points), size=number)] + (1 + points.std()) * drawn
        lowest, argmin = _descend(height, np.concatenate([there[:number], drawn]), scaled)
    if scaled:
        reference = 0.0
        if target.ridge == 0:  # 2∫Ψdρ − 2 inf ∫Ψdρ' over ∫|θ|²dρ' ≤ ∫|θ|²dρ
            gap = 2 * float(weights @ (size**2 * (values - min(lowest, 0.0))))
    return Diagnosis(
        risk=total,
        residual=residual,
        on_support=on_support,
        lowest=lowest,
        argmin=argmin,
        depth=max(reference - lowest, 0.0),
        gap=gap,
        homogeneous=scaled,
        hole=_hole(target, points) if isinstance(target, Model) else math.nan,
        certificate=bound,
    )


def _certified(model: AnyModel, measure: MeasureLike) -> Certificate | None:
    """The certificate of the measure, None where no reduction is known."""
    try:
        return certificate(model, measure)
    except ValueError:
        return None


def _homogeneous(model: Model) -> bool:
    """Whether σ*(x; sθ) = s²σ*(x; θ) for s > 0, all of θ being trained."""
    network, sigma = model.network, model.network.activation
    if network.sphere or network.output != "trained" or network.bias == "fixed":
        return False
    pieces = sigma.pieces
    if pieces is None:
        return False
    kinks = [knot for knot, jump in zip(pieces.knots, pieces.jumps, strict=True) if abs(jump) > _SAME]
    return abs(sigma(0.0)) <= _SAME and all(abs(knot) <= _SAME for knot in kinks)


def _descend(
    height: Callable[[FloatArray], tuple[float, FloatArray]], starts: FloatArray, scaled: bool
) -> tuple[float, FloatArray]:
    """The lowest end of descents from several points, on the sphere of directions if `scaled`."""
    best = (math.inf, starts[0])
    for start in starts:
        found = scipy.optimize.minimize(height, start, jac=True, method="L-BFGS-B")
        if found.fun < best[0]:
            best = (float(found.fun), found.x)
    lowest, argmin = best
    return lowest, argmin / np.linalg.norm(argmin) if scaled else argmin


def _hole(model: Model, points: FloatArray) -> float:
    """The largest angle from a direction of (b, w), with either sign of a, to the nearest atom."""
    network = model.network
    first = int(network.has_a)
    rows = points[:, first:]
    signs = np.sign(points[:, 0]) if network.has_a else np.ones(len(points))
    holes = []
    for sign in (1.0, -1.0) if network.has_a else (1.0,):
        own = rows[(signs == sign) & (np.linalg.norm(rows, axis=1) > 0)]
        if rows.shape[1] == 1:
            holes.append(0.0 if len(np.unique(np.sign(own))) == 2 else math.pi)
        elif rows.shape[1] == 2:
            angles = np.sort(np.arctan2(own[:, 1], own[:, 0]))
            gaps = np.diff(np.concatenate([angles, angles[:1] + 2 * math.pi]))
            holes.append(0.5 * float(gaps.max()) if len(own) else math.pi)
        else:
            return math.nan
    return max(holes)
