"""`relaxation`: how fast laws near a stationary law return to it under noise (eqs. (13.18), (13.19))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from .._base import check
from .._base.check import FloatArray
from ..measures._cells import log_volumes, reduction_for
from ..measures._measure import Density
from ..measures._place import AnyModel
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel

_MOST = 3000  # cells with mass up to which matrices are stored
_EMPTY = 1e-13  # cells with less than this share of the largest mass per volume are left out


@dataclass(frozen=True, eq=False, repr=False)
class Relaxation:
    """Modes of the linearised Fokker–Planck equation at a law on a grid, as `relaxation` returns them.

    Attributes:
        rates: μ_k > 0, ascending: a small perturbation along mode k decays like e^{−μ_k t}.
        modes: Changes of mass along the modes, shape (number, cells…); each has sum 0 and Σ|δM| = 1. Where a
            coordinate is at rest the sum is 0 at each of its values, whose masses do not change.
        rate: The smallest of the rates, with which laws near the stationary one converge.
        residual: Largest difference of Ψ_λ + β⁻¹log(ρ/v) between cells next to each other, times their share
            of the largest mass per length: 0 at a stationary law. Elsewhere the modes mean nothing.
        covered: Share of the mass in the cells that were used.
    """

    rates: FloatArray
    modes: FloatArray
    rate: float
    residual: float
    covered: float

    def __repr__(self) -> str:
        shown = ", ".join(f"{rate:.6g}" for rate in self.rates[:4])
        more = ", …" if len(self.rates) > 4 else ""
        return f"Relaxation(rates=[{shown}{more}], residual={self.residual:.1e}, covered={self.covered:.6g})"


def relaxation(model: AnyModel, density: Density, *, lowest: int = 6) -> Relaxation:
    """The rates at which laws near the stationary law ρ* return to it: the spectrum of the linearised flow.

    Without data and with decay they are those of the Ornstein–Uhlenbeck process. The data add U ⪰ 0 to
    β⁻¹/ρ*, which makes no mode slower. On the grid the operator is the derivative of the
    Scharfetter–Gummel fluxes of `mf.PDE`, and as accurate: of second order in the cells.

    Args:
        model: With temperature > 0, and a reduction; or a `ReducedModel`.
        density: The stationary law on a grid, such as ``mf.gibbs(model).measure``.
        lowest: Number of rates.

    Raises:
        ValueError: The model has no noise or weights of either sign, or the grid too many cells with mass.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[0.0], ridge=1.0, temperature=0.5,
        ...     features=lambda z: z, gradients=lambda z: np.ones((len(z), 1, 1)),
        ... )
        >>> edges = np.linspace(-5, 5, 401)
        >>> z = 0.5 * (edges[1:] + edges[:-1])
        >>> rho = np.exp(-(z**2))
        >>> found = theory.relaxation(model, mf.Density(edges, rho / rho.sum()), lowest=3)
        >>> found.rates.round(2).tolist()  # the mean at λ + 1, the others at 2λ and 3λ
        [2.0, 2.0, 3.0]
    """
    check.instance(density, "density", Density, "an mf.Density, such as mf.gibbs(model).measure")
    reduced = reduction_for(model, density, "density")
    assert reduced is not None  # a density is in reduced coordinates
    if reduced.temperature == 0:
        raise ValueError(
            "model must have temperature > 0 for the relaxation of a density, got 0; theory.stability is for "
            "atoms"
        )
    require_convex(reduced, "theory.relaxation")
    number = check.count(lowest, "lowest")
    volumes = np.exp(log_volumes(density.edges, reduced.volume))
    height = density.mass / volumes
    used = height > _EMPTY * height.max()
    count = int(used.sum())
    if count > _MOST:
        raise ValueError(f"density must have at most {_MOST} cells with mass, got {count}")
    if count < 2:
        raise ValueError(f"density must have mass in at least 2 cells, got {count}")
    mass = density.mass[used]
    points = density.as_cloud().points[used.ravel()]
    phi = reduced.features(points) * np.sqrt(reduced.weights)
    potential = _potential(reduced, points, mass / mass.sum())
    chemical = np.full(density.mass.shape, np.nan)
    chemical[used] = potential + reduced.temperature * np.log(height[used])
    graph, residual = _conductances(reduced, density, height, used, chemical)
    slices = _slices(reduced, used)
    kept = int(slices.max()) + 1
    if count == kept:
        raise ValueError(
            f"density must have mass in at least 2 cells between which it moves, got {count} cells apart"
        )
    # dδM/dt = −G A δM with A = β⁻¹/M + U; in x = A^{1/2} δM it is symmetric.
    inner = phi @ phi.T
    inner[np.diag_indices(count)] += reduced.temperature / mass
    lower = scipy.linalg.cholesky(inner, lower=True)
    last = min(number + kept, count) - 1
    values, vectors = scipy.linalg.eigh(lower.T @ graph @ lower, subset_by_index=[0, last])
    values, vectors = values[kept:], vectors[:, kept:]  # the first are the masses of slices, conserved
    modes = np.zeros((len(values), *density.mass.shape))
    share = mass / np.bincount(slices, weights=mass)[slices]
    for k, vector in enumerate(vectors.T):
        change = scipy.linalg.solve_triangular(lower, vector, lower=True, trans="T")
        change -= share * np.bincount(slices, weights=change)[slices]  # rounding
        modes[k][used] = change / np.abs(change).sum()
    return Relaxation(values, modes, float(values[0]), residual, float(mass.sum()))


def _slices(reduced: ReducedModel, used: FloatArray) -> npt.NDArray[np.intp]:
    """The number of the slice of each cell that is used: mass moves within slices, where what rests has one
    value.
    """
    still = [rate == 0 for rate in reduced.rates]
    shape = [size if rests else 1 for size, rests in zip(used.shape, still, strict=True)]
    number = np.arange(np.prod(shape)).reshape(shape)
    return np.unique(np.broadcast_to(number, used.shape)[used], return_inverse=True)[1]


def _potential(reduced: ReducedModel, points: FloatArray, mass: FloatArray) -> FloatArray:
    """Ψ_λ of the law at its own cells."""
    kept = points[:, np.array(reduced.decays, dtype=bool)]
    return np.asarray(reduced.psi(points, points, mass) + 0.5 * reduced.ridge * np.square(kept).sum(axis=1))


def _conductances(
    reduced: ReducedModel, density: Density, height: FloatArray, used: FloatArray, chemical: FloatArray
) -> tuple[FloatArray, float]:
    """The matrix G of eq. (13.19) over the cells that are used, and the residual."""
    count = int(used.sum())
    number = np.full(used.shape, -1)
    number[used] = np.arange(count)
    graph, residual = np.zeros((count, count)), 0.0
    for c, rate in enumerate(reduced.rates):
        if rate == 0:
            continue
        centers = density.centers[c]
        width, gap = np.diff(density.edges[c]), np.diff(centers)
        cells = np.moveaxis(number, c, 0)
        per_length = np.moveaxis(density.mass, c, 0) / width.reshape(-1, *[1] * (used.ndim - 1))
        level = np.moveaxis(chemical, c, 0)
        for i, distance in enumerate(gap):
            both = (cells[i] >= 0) & (cells[i + 1] >= 0)
            one, two = cells[i][both], cells[i + 1][both]
            left, right = per_length[i][both], per_length[i + 1][both]
            conductance = rate / distance * _at_face(left, right)
            np.add.at(graph, (one, one), conductance)
            np.add.at(graph, (two, two), conductance)
            np.add.at(graph, (one, two), -conductance)
            np.add.at(graph, (two, one), -conductance)
            share = np.minimum(left, right) / per_length.max()
            jump = np.abs(level[i][both] - level[i + 1][both]) * share
            residual = max(residual, float(jump.max(initial=0.0)))
    return graph, residual


def _at_face(a: FloatArray, b: FloatArray) -> FloatArray:
    """B(δ)a = B(−δ)b of Scharfetter and Gummel's flux at rest, δ = log(a/b): ab·log(a/b)/(a − b)."""
    ratio = np.log(a / b)
    near = np.abs(ratio) < 1e-4
    middle = np.sqrt(a * b) * (1 - ratio**2 / 24)
    return np.where(near, middle, a * b * ratio / np.where(near, 1.0, a - b))
