"""Measures ρ over neurons or reduced coordinates, and the functions of them: V, U, Ψ, ∇Ψ, R, F, f, distances.

- `_measure`: `Cloud` and `Density`
- `_functions`: `mf.V`, `U`, `psi`, `grad_psi`, `risk`, `predict`; `_evaluators`: what averages for them
- `_classification`: `mf.classification_error`
- `_estimate`: the same by streaming Monte Carlo, with standard errors
- `_energy`: `mf.free_energy` and `dissipation`
- `_pull`: `mf.pull`, the gradient half of a step of SGD
- `_replicas`: the same for several networks at once; `_tangent`: what linearised training returns
- `_distance`: Wasserstein distances and relative entropy
- `_place`: whose coordinates arguments are in, those of neurons or reduced ones
- `_results`: what is returned is finite, and in the caller's array if there is one
- `_cells`: volumes of grid cells in reduced coordinates

May use models, reductions, expectations. A new function of a measure is one file here.
"""

from ._classification import classification_error
from ._distance import distance, kl
from ._energy import dissipation, free_energy
from ._estimate import Estimate, estimate
from ._functions import U, V, grad_psi, predict, psi, risk
from ._measure import Cloud, Density

__all__ = [
    "Cloud",
    "Density",
    "Estimate",
    "U",
    "V",
    "classification_error",
    "dissipation",
    "distance",
    "estimate",
    "free_energy",
    "grad_psi",
    "kl",
    "predict",
    "psi",
    "risk",
]
