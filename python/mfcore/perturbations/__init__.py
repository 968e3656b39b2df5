"""A measure and those near it: does it attract them, and how close to it are N neurons?

- `_stability`: `mf.theory.stability`, spectra of the flow linearised at atoms (`_spectra`)
- `_relaxation`: `relaxation`, rates of return to a stationary law under noise, on its grid
- `_fixed_points`: `fixed_points`, stationary measures of few atoms
- `_approximation`: `approximation_gap` and `path_norm`; `_quantise`: `quantise`, N neurons for a measure
- `_fluctuations`: `fluctuations`, N neurons beside their limit over time (`_moments`: by `_variations`,
  variational equations, or by runs of `_ensembles`, many clouds at once; `_sgd_noise`: what SGD adds)
- `_paths`: `along`, the risk along mixtures and geodesics of W₂
- `_diagnose`: `diagnose`, the conditions of a global minimum
- `_bounds`: `bounds`, theorems as tables of both their sides (`_theorem`: a row; `_hypotheses`: constants
  that theorems ask for; `_run_bounds`: theorems about runs)
- `_linear`: products with H and K by which all linearised flows here go: sums over the data's nodes
  (`_on_nodes`), features of reduced models (`_features`), differences of exact gradients (`_differences`);
  `_frames`: the directions in which atoms move
- `_draws`: rows of initial laws; `_start_nodes`: Gauss nodes of them

May use measures, atoms, networks, and where they end. Public names are in `mfcore.theory`; a theorem about
perturbations of a measure is one file here.
"""
