"""`stability`: the spectra of the flow linearised at a measure of atoms (section 13 of the mathematics)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base import check, factors
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..measures._measure import Cloud
from ..measures._place import AnyModel, MeasureLike
from ..reductions._model import ReducedModel
from ._linear import Linearisation, linearise
from ._spectra import DENSE, FEW, of_atoms, of_cloud

_ROUNDING = 1e-12  # of eigenvalues, relative to the largest


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """Spectra of the flow at a measure of atoms, as `stability` returns them. Positive eigenvalues decay.

    Attributes:
        atoms: The measure; points that coincide are one atom.
        residual: √∫|∇Ψ_λ|²dρ over what moves: 0 at a fixed point.
        spread: Eigenvalues of the Hessian H of Ψ_λ at each atom, shape (m, k), ascending: how an atom that is
            split in two comes together again. A radius held at 0 by a kink has the eigenvalue inf.
        mean: Eigenvalues of the linearised flow of all atoms of positive mass, ascending.
        transverse: ∂_rΨ_λ/r for each radius of a reduced model, shape (m, radii): eigenvalues of H across the
            part of w that the radius is the norm of; 0 at a fixed point with r > 0, whose directions rest.
        multiplicities: How often each of them occurs; inf at d = ∞.
        stable: True at a fixed point, a residual of at most `tolerance`, with `rate` > `error`. None at one
            whose `rate` is 0 up to `error`, where higher orders decide: as along a symmetry, such as
            translations of particles that attract each other, or at a degenerate minimum. Else False.
        rate: The lowest eigenvalue: small perturbations decay like e^{−rate·t}, or grow.
        error: Of the eigenvalues, as two steps of differences show it; rounding where derivatives are exact.
    """

    atoms: Cloud
    residual: float
    spread: FloatArray
    mean: FloatArray
    transverse: FloatArray
    multiplicities: tuple[float, ...]
    stable: bool | None
    rate: float
    error: float
    _split: tuple[int, FloatArray]
    _shift: FloatArray

    def split(self, size: float) -> Cloud:
        """The measure with one atom in two halves, `size` to both sides along the lowest of `spread`.

        Where `rate` < 0 the halves part like e^{−rate·t}: a start to follow an instability from.
        """
        length = check.number(size, "size", above=0)
        i, direction = self._split
        points, weights = self.atoms.points, self.atoms.weights
        halves = points[i] + np.multiply.outer([-length, length], direction)
        rows = np.concatenate([np.delete(points, i, axis=0), halves])
        return Cloud(rows, np.concatenate([np.delete(weights, i), [weights[i] / 2] * 2]))

    def shifted(self, size: float) -> Cloud:
        """The measure with all atoms moved along the lowest direction of `mean`, √∫|δθ|²dρ = `size`."""
        length = check.number(size, "size", above=0)
        return Cloud(self.atoms.points + length * self._shift, self.atoms.weights)

    def __repr__(self) -> str:
        return (
            f"Stability(stable={self.stable}, rate={self.rate:.6g}, residual={self.residual:.2g}, "
            f"atoms={len(self.atoms)}, spread={_ends(self.spread)}, mean={_ends(self.mean)}, "
            f"error={self.error:.1e})"
        )


def stability(
    model: AnyModel,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    lowest: int | None = None,
    tolerance: float = 1e-6,
    threads: int | None = None,
) -> Stability:
    """The attraction of a measure of atoms for measures near it, and its rate: the spectra of H and H + K.

    A neuron that is η away from atom i of a fixed point Σ_j w_j δ_{θ_j} moves by −H_i η − Σ_j w_j K_ij η̄_j,
    with η̄_j the mean of atom j. Means follow H + K, and differences within an atom H alone. The measure is
    stable if both are ≻ 0. K ⪰ 0 where the weights of the data are positive: then H decides.

    Args:
        model: Without noise; or a `ReducedModel`.
        measure: Neurons, an `mf.Cloud`, or atoms in reduced coordinates. There the linearisation is that of
            laws that keep the symmetry.
        expectation: `mf.Exact()` (the default) or `mf.MonteCarlo(samples, rng)`. On nodes and samples
            derivatives are exact, and of a kinked σ almost everywhere: H has no part from the kinks. Under
            Gaussian laws and in reduced coordinates they are differences of exact gradients.
        lowest: Number of eigenvalues of each kind. None: all of them, or 6 where there are more than 1200.
        tolerance: Residual up to which a measure counts as a fixed point.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Raises:
        ValueError: The model has noise, under which no measure of atoms rests.

    Examples:
        Features z and z² with targets 0 and 1, at weights ½: atoms at ±1 fit both, and one atom does not.

        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.ReducedModel(
        ...     coordinates=["z"], weights=[0.5, 0.5], targets=[0.0, 1.0], ridge=0.1,
        ...     features=lambda z: np.concatenate([z, z**2], axis=1),
        ...     gradients=lambda z: np.stack([np.ones_like(z), 2 * z], axis=1),
        ... )
        >>> found = theory.stability(model, [0.0])
        >>> found.stable, found.spread.round(6).tolist(), found.mean.round(6).tolist()
        (False, [[-0.9]], [-0.4])
        >>> a = 0.9**0.5
        >>> degenerate = theory.stability(model, [-a, a])  # H = 0
        >>> degenerate.mean.round(6).tolist(), degenerate.stable
        ([0.5, 1.8], None)
    """
    if lowest is not None:
        lowest = check.count(lowest, "lowest")
    allowed = check.number(tolerance, "tolerance", at_least=0)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        linear = linearise(model, measure, expectation, threads)
    if linear.model.temperature > 0:
        raise ValueError(
            f"model must have temperature 0 for stability of atoms, got {linear.model.temperature:g}: noise "
            "spreads them; mf.gibbs finds the law that rests, theory.relaxation its rates"
        )
    m, k = linear.free.shape
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            residual = residual_of(linear)
            spread, atom, direction = of_atoms(linear, FEW if lowest is None and k > DENSE else lowest)
            mean, shift = of_cloud(linear, lowest)
        if not math.isfinite(residual):
            raise factors.NotFiniteError("slopes have squares beyond the largest float")
    except factors.NotFiniteError:
        raise ValueError(
            "measure must hold atoms at which the derivatives of Ψ are finite, got coordinates up to "
            f"{np.abs(linear.points).max():.3g}"
        ) from None
    with_mass = spread[linear.weights > 0]
    rate = float(min(with_mass.min(initial=np.inf), mean.min(initial=np.inf)))
    finite = np.concatenate([with_mass[np.isfinite(with_mass)], mean])
    error = linear.error + _ROUNDING * float(np.abs(finite).max(initial=0.0))
    transverse, multiplicities = _transverse(linear)
    return Stability(
        atoms=Cloud(linear.points, linear.weights),
        residual=residual,
        spread=spread,
        mean=mean,
        transverse=transverse,
        multiplicities=multiplicities,
        stable=_verdict(rate, error) if residual <= allowed else False,
        rate=rate,
        error=error,
        _split=(atom, _row(linear, np.tile(direction, (m, 1)))[atom]),
        _shift=_unit(_row(linear, shift), linear.weights),
    )


def _verdict(rate: float, error: float) -> bool | None:
    """Tell whether perturbations decay at a lowest eigenvalue known to `error`; None where it may be 0."""
    return None if abs(rate) <= error else rate > 0


def residual_of(linear: Linearisation) -> float:
    """√∫|∇Ψ_λ|²dρ over the coordinates that move."""
    slopes = linear.frames.down(linear.gradient)
    return math.sqrt(float(linear.weights @ np.square(slopes).sum(axis=1)))


def _transverse(linear: Linearisation) -> tuple[FloatArray, tuple[float, ...]]:
    """∂_rΨ_λ/r at every atom for every radius that moves, its limit at r = 0, and multiplicities."""
    model = linear.model
    if not isinstance(model, ReducedModel):
        return np.empty((len(linear.points), 0)), ()
    moving = np.flatnonzero(np.array(model.rates) > 0)
    radii = [int(c) for c in moving if model.nonnegative[c]]
    out = np.empty((len(linear.points), len(radii)))
    for j, c in enumerate(radii):
        place = int(np.flatnonzero(moving == c)[0])
        r = linear.points[:, c]
        unit = np.zeros(linear.free.shape)
        unit[:, place] = 1.0
        limit = np.where(linear.free[:, place], linear.own(unit)[:, place], np.inf)
        out[:, j] = np.where(r > 0, linear.gradient[:, c] / np.where(r > 0, r, 1.0), limit)
    whole = model.d is not None and math.isinf(model.d)
    return out, tuple(math.inf if whole else model.volume[c] for c in radii)


def _row(linear: Linearisation, c: FloatArray) -> FloatArray:
    """Directions in frames as unit rows of parameters."""
    rows = linear.frames.up(c)
    size = np.linalg.norm(rows)
    return rows / size if size > 0 else rows


def _unit(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """The same with ∫|δθ|²dρ = 1."""
    size = math.sqrt(float(weights @ np.square(rows).sum(axis=1)))
    return rows / size if size > 0 else rows


def _ends(values: FloatArray) -> str:
    """The range of numbers."""
    if not values.size:
        return "none"
    return f"[{values.min():.6g} … {values.max():.6g}]"
