"""`mf.JKO`: the gradient flow of the free energy by minimising movements."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy.typing as npt

from .._base import check
from .._base.registry import configurable, shown_call
from ..measures._measure import Cloud, Density, as_points
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._rung import Rung
from ._rung import JkoRung


@configurable
@dataclass(frozen=True, repr=False)
class JKO:
    """The limit ρ_t by minimising movements, in reduced coordinates: implicit Euler in the space of measures.

    ρ^{n+1} = argmin F(ρ) + W₂²(ρ, ρⁿ)/2τ on the clock t = n·τ, where F = R/2 + (λ/2)∫|z|²dρ + β⁻¹∫ρ log ρ and
    W₂ is measured in the metric of the rates. F decreases at every step, for every τ; as τ → 0 the measures
    are those of the limit, with an error of order τ. Where τ is too large for a convex problem (∂²Ψ_λ < −1/τ
    somewhere), a step ends at a stationary point below its start.

    Without noise ρ is a cloud of atoms in any number of coordinates, and a step is
    z' = z − τ·rate·∇Ψ_λ(z'; ρ'). At temperature > 0 one coordinate may move, and ρ is a density given by its
    quantile function: cells of fixed masses, the edges of which move. Masses are small at both ends, so that
    the error is of order count⁻². Coordinates of rate 0 are labels: each label has cells of its own.

    A save point is at the step nearest to it. `Trajectory.error` is how far the risk is from R(ρ_t) of the
    limit itself (τ → 0, count → ∞) at the time recorded. It comes from a run with steps 2τ and count/2, which
    takes about a quarter of the time. Features so dear that a step would take minutes, as in three
    coordinates with the default nodes, are refused: ``model.reduce(nodes=12)`` has fewer.
    `Trajectory.observed` has ``"free_energy"``, and `Trajectory.meta` the largest increase of F in a step:
    rounding, if positive at all.

    Args:
        tau: τ, the step on the clock t = n·τ: any τ is stable, and the error is of order τ. Each step is a
            minimisation, a few iterations of Newton's method, and costs far more than one of `mf.Atoms`.
        count: Atoms or cells: levels of ρ₀ where one coordinate is random, else at most as many Gauss nodes.
        start: ρ₀ in place of the model's: an `mf.Cloud`, an array of equal masses, or an `mf.Density`. Atoms
            that are given are used as they are, whatever `count`.
        tolerance: Stop with status ``"stationary"`` when W₂(ρ^{n+1}, ρⁿ)/τ, the size of the gradient of
            F, is below it.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import JKO
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, JKO(tau=0.1, count=50), horizon=1.0)
        >>> run.final
        Cloud(points=<array 50×1>, weights=<array 50>)
        >>> bool(run.risk[-1] < run.risk[0]), run.meta["largest_increase"] < 0
        (True, True)
    """

    tau: float
    _: KW_ONLY
    count: int = 400
    start: Cloud | Density | npt.ArrayLike | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.start is not None and not isinstance(self.start, Cloud | Density):
            object.__setattr__(self, "start", Cloud(as_points(self.start, "start")))
        object.__setattr__(self, "tau", check.number(self.tau, "tau", above=0))
        object.__setattr__(self, "count", check.integer(self.count, "count", at_least=8, at_most=100_000))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", check.number(self.tolerance, "tolerance", above=0))

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> Rung[Any]:
        """A run of this method at t = 0."""
        return JkoRung(self, model, threads)

    def __repr__(self) -> str:
        return shown_call(self)
