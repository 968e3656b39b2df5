"""The free energy of a measure, and the rate at which the dynamics lower it."""

from __future__ import annotations

import dataclasses

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..reductions._given import require_flat
from ..reductions._model import ReducedModel
from ._cells import check_density, log_volumes, reduction_for
from ._functions import grad_psi, psi, risk
from ._measure import Density, as_measure
from ._place import AnyModel, MeasureLike
from ._replicas import per_replica


@per_replica
def free_energy(
    model: AnyModel,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> float:
    """F(ρ) = R/2 + (λ/2)∫|θ|²dρ + β⁻¹∫ρ log ρ, what the dynamics at temperature 1/β lower.

    Decay acts on trained blocks only, as in `mf.psi`. The entropy is that of the full-dimensional law: in
    reduced coordinates ∫ρ log(ρ/v) with the volume element v = e^{log_volume} Π z_c^{e_c}.

    Args:
        model: A `Model` or `ReducedModel`.
        measure: Neurons or points in reduced coordinates at temperature 0; at temperature > 0 an `mf.Density`
            in the coordinates of the reduced model, or of ``model.reduce()``.
        expectation: For neurons, as in `mf.risk`.
        threads: As in `mf.risk`.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> noise = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[0.0], features=np.zeros_like, temperature=0.5
        ... )
        >>> float(mf.free_energy(noise, mf.Density(edges=[0.0, 1.0, 2.0], mass=[0.5, 0.5])) / np.log(2))
        -0.5
    """
    reduced = reduction_for(model, measure)
    target = model if reduced is None else reduced
    entropy = 0.0
    if target.temperature > 0:
        if not isinstance(measure, Density) or reduced is None:
            raise ValueError(
                f"measure must be an mf.Density on reduced coordinates at temperature = "
                f"{target.temperature:g}: the entropy ∫ρ log ρ of points is infinite, "
                f"got {check.shown(measure)}"
            )
        entropy = relative_entropy(reduced, measure)
    value = 0.5 * risk(target, measure, expectation=expectation, threads=threads)
    if target.ridge:
        points, weights = as_measure(measure, "measure", _columns(target))
        kept = points[:, decaying(target)]
        value += 0.5 * target.ridge * float(weights @ np.square(kept).sum(axis=1))
    return value + target.temperature * entropy


def relative_entropy(reduced: ReducedModel, density: Density) -> float:
    """∫ρ log(ρ/v) of a density whose ratio to v is constant in every cell: Σ M_i log(M_i/|C_i|)."""
    check_density(density, reduced)
    mass = density.mass.ravel()
    logs = log_volumes(density.edges, reduced.volume).ravel()
    there = mass > 0
    return float(mass[there] @ (np.log(mass[there]) - logs[there])) - reduced.log_volume


@per_replica
def dissipation(
    model: AnyModel,
    measure: MeasureLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> float:
    """−dF/dt along the dynamics: ∫ Σ_c rate_c (∂_c(Ψ_λ + β⁻¹ log(ρ/v)))² dρ.

    Without noise and decay F = R/2, so that this is −(dR/dt)/2. A radius held at the wall r = 0 rests. With
    noise, for an `mf.Density`, it is the decrease of the discrete F under the Scharfetter–Gummel fluxes of
    the density solvers, ≥ 0 and 0 for the discrete Gibbs law alone; empty cells count as almost empty.

    Arguments are those of `free_energy`.

    Examples:
        >>> import mfcore as mf
        >>> square = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[0.0], features=lambda z: z,
        ...     gradients=lambda z: 1 + 0 * z[:, None, :],
        ... )
        >>> mf.dissipation(square, mf.Cloud([[2.0]]))  # Ψ = 2z
        4.0
    """
    reduced = reduction_for(model, measure)
    if reduced is not None:
        require_flat(reduced, "mf.dissipation")
    target = model if reduced is None else reduced
    if target.temperature > 0:
        if not isinstance(measure, Density) or reduced is None:
            raise ValueError(
                f"measure must be an mf.Density on reduced coordinates at temperature = "
                f"{target.temperature:g}: points have no log-density, got {check.shown(measure)}"
            )
        return _flux_dissipation(reduced, measure)
    points, weights = as_measure(measure, "measure", _columns(target))
    gradient = grad_psi(target, points, measure, expectation=expectation, threads=threads)
    if isinstance(target, ReducedModel):
        held = np.asarray(target.nonnegative) & (points <= 0) & (gradient > 0)
        gradient = np.where(held, 0.0, gradient)
    return float(weights @ (np.square(gradient) @ _rates(target)))


def _flux_dissipation(reduced: ReducedModel, density: Density) -> float:
    """Σ over faces of J (μ_i − μ_{i+1}) with the J of eq. (7.8), μ = Ψ_λ + β⁻¹ log(M/|C|): eq. (7.13)."""
    check_density(density, reduced)
    temperature, mass = reduced.temperature, density.mass
    free = dataclasses.replace(reduced, temperature=0.0)
    potential = psi(free, density.as_cloud().points, density).reshape(mass.shape)
    logs = log_volumes(density.edges, reduced.volume)
    first_variation = potential + temperature * (np.log(np.maximum(mass, np.finfo(float).tiny)) - logs)
    total = 0.0
    for c, (edges, centers, rate) in enumerate(
        zip(density.edges, density.centers, reduced.rates, strict=True)
    ):
        if rate == 0 or len(centers) == 1:
            continue
        width = np.diff(edges)
        m, u, mu = (np.moveaxis(x, c, -1) for x in (mass, potential, first_variation))
        ratio = np.moveaxis(logs, c, -1) - np.log(width)  # log of the mean of v over the cell
        delta = np.diff(u) / temperature - np.diff(ratio)
        per_length = m / width
        forth = _bernoulli(delta) * per_length[..., :-1] - _bernoulli(-delta) * per_length[..., 1:]
        flux = rate * temperature / np.diff(centers) * forth
        total += float((flux * -np.diff(mu)).sum())
    return total


def _bernoulli(x: FloatArray) -> FloatArray:
    """x/(eˣ − 1)."""
    far = np.clip(x, -700.0, 700.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(x < -700, -x, far / np.expm1(far))
    return np.where(np.abs(x) < 1e-8, 1 - 0.5 * x, value)


def decaying(model: AnyModel) -> list[int]:
    """Numbers of the columns that weight decay acts on."""
    if isinstance(model, ReducedModel):
        return [c for c, there in enumerate(model.decays) if there]
    return [c for c in range(_columns(model)) if c not in model.network.still]


def _columns(model: AnyModel) -> int:
    if isinstance(model, ReducedModel):
        return len(model.coordinates)
    assert model.row is not None  # neurons: see reduction_for
    return model.row


def _rates(model: AnyModel) -> FloatArray:
    if isinstance(model, ReducedModel):
        return np.asarray(model.rates)
    return model._entry_speeds
