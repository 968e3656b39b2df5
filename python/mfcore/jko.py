"""`mf.JKO`: the gradient flow of the free energy by minimising movements."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy.typing as npt

from . import _check
from ._registry import configurable
from ._rungs.jko import JkoRung
from .measure import Cloud, Density
from .model import Model
from .reduce import ReducedModel


@configurable
@dataclass(frozen=True)
class JKO:
    """The limit ρ_t by minimising movements, in reduced coordinates: implicit Euler in the space of measures.

    ρ^{n+1} = argmin F(ρ) + W₂²(ρ, ρⁿ)/2τ on the clock t = n·τ, F = R/2 + (λ/2)∫|z|²dρ + β⁻¹∫ρ log ρ, W₂
    measured in the metric of the rates. F decreases at every step, for every τ; as τ → 0 the measures are
    those of the limit, with an error of order τ. Where τ is too large for a convex problem (∂²Ψ_λ < −1/τ
    somewhere), a step ends at a stationary point below its start.

    Without noise ρ is a cloud of atoms in any number of coordinates, and a step is z' = z − τ·rate·∇Ψ_λ(z'; ρ').
    At temperature > 0 one coordinate may move. ρ is then a density, given by its quantile function: the
    edges of cells of fixed masses, which move. Masses are small at both ends, so that the error is of order
    count⁻².

    Each save point is at the step nearest to it. The error stated for the risk is the distance from a run
    with steps 2τ and count/2, which costs about a quarter of the time.

    Args:
        tau: τ, the step.
        count: Atoms or cells: levels of ρ₀ in one coordinate, at most as many Gauss nodes of ρ₀ in several.
        initial: ρ₀, in place of the model's: an `mf.Cloud`, an array of equal masses or an `mf.Density`. Atoms
            that are given are used as they are, whatever `count`.
        tolerance: Stop when W₂(ρ^{n+1}, ρⁿ)/τ, the size of the gradient of F, is below it.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore.jko import JKO
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, JKO(0.1, count=50), horizon=1.0)
        >>> bool(run.risk[-1] < run.risk[0]), bool((run.observed["free_energy"][1:] <= run.observed["free_energy"][:-1]).all())
        (True, True)
        >>> run.final
        Cloud(points=<array 50×1>, weights=<array 50>)
    """

    tau: float
    _: KW_ONLY
    count: int = 400
    initial: Cloud | Density | npt.ArrayLike | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", _check.number(self.tau, "tau", above=0))
        object.__setattr__(self, "count", _check.integer(self.count, "count", at_least=8, at_most=100_000))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", _check.number(self.tolerance, "tolerance", above=0))

    def start(self, model: Model | ReducedModel, seed: int, threads: int) -> JkoRung:
        """A run of this method at t = 0."""
        return JkoRung(self, model, threads)
