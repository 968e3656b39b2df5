"""The limit ρ_t as a density on a grid: ∂ρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ in finite volumes.

- `_pde`: `mf.PDE`, the method
- `_rung`: the run on a grid that grows; `_phases`: what it does next, and its state
- `_companions`: the same run on coarser grids beside it, to estimate the error of its risk
- `_cells`: the first grid and its masses; `_gathered`: where mass gathers in single cells
- `_steppers`: one step at a time, for foreign loops

May use runs, grids, reductions. The fluxes themselves are in `cpp/src/density`.
"""

from ._pde import PDE

__all__ = ["PDE"]
