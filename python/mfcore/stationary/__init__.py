"""The end of the dynamics: stationary laws, least risks, and bounds on what is left to gain.

- `_gibbs`: `mf.gibbs`, ρ* ∝ exp(−βΨ_λ(·; ρ*)) by the concave dual of the free energy (`_stationary`: what it
  returns)
- `_optimum`: `mf.optimum`, the least risk of all measures
- `_certificate`: `mf.certificate`, how far a measure is at most from the best
- `_errors`: how far the numbers may be from those of the continuum, by `_continuum` (on `_panels`)
  and `_compact` (fewer nodes; `_combinations` of their features)
- `_fields`: a measure as searches see it; `_pair_search`: the search on closed pairs
- `_newton`, `_search`, `_simplex`, `_span`: minimisation; `_extent`, `_boxes`: where mass can be

May use measures, reductions. A theorem about fixed points (stability, say) goes to `theory`.
"""

from ._certificate import Certificate, certificate
from ._gibbs import gibbs, gibbs_path
from ._optimum import Optimum, optimum
from ._stationary import Stationary

__all__ = ["Certificate", "Optimum", "Stationary", "certificate", "gibbs", "gibbs_path", "optimum"]
