"""The limit ρ_t as weighted atoms in reduced coordinates, each moving by −∇Ψ_λ in the field of all.

- `_atoms`: `mf.Atoms`, the method
- `_rung`: the run; `_companions`: coarser runs beside it, which tell its error
- `_carried`: one integration after another, as atoms are split
- `_starts`: from ρ₀ to atoms; `_panels`: Gauss nodes on panels that are halved where the flow tears them
- `_fits`: how well atoms fit the data
- `_field`: sums over atoms; `_boxes`: boxes on which dear features are made separable

May use runs, grids, reductions.
"""

from ._atoms import Atoms

__all__ = ["Atoms"]
