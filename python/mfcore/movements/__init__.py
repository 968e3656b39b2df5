"""Minimising movements: ρ_{k+1} = argmin F(ρ) + W₂²(ρ, ρ_k)/2τ, implicit Euler in the space of measures.

- `_jko`: `mf.JKO`, the method
- `_rung`: the run; `_start`: atoms or cells of the initial law; `_step`: one movement, by Newton steps
- `_field`: the free energy and its field; `_table`, `_bands`: from tables of features; `_choice` among these
- `_atoms`, `_cells`: a movement of atoms, and of cells with fixed masses

May use runs, atoms, grids, reductions.
"""

from ._jko import JKO

__all__ = ["JKO"]
