"""How the mean over the data law is taken: f_q = ∫Φ_q dρ at nodes q with weights p_q, or in closed form.

- `_rules`: `mf.Exact` and `mf.MonteCarlo`, the choice a user makes
- `_exact`: closed forms and quadrature for mixtures of Gaussians
- `_zonal`: series in the cosine, for inputs on the sphere (`_zonal_series`: how long they are;
  `_legendre`: their polynomials)
- `_nodes`: sums over nodes, of a finite law or of samples
- `_evaluator`: the interface of all, which V, U, Ψ, ∇Ψ and the risk are computed through

May use what is learned (data, network, model). A new closed form goes into `cpp/src/gaussian` and is chosen
in `_exact`.
"""

from ._rules import Exact, Expectation, MonteCarlo

__all__ = ["Exact", "Expectation", "MonteCarlo"]
