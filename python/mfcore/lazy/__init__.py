"""The lazy regime: tangent kernels of neurons and at infinite width, and the rung of linearised training.

Public names are `mfcore.Linearized`, `mfcore.theory.tangent_kernel`, `mfcore.theory.laziness` and
`mfcore.theory.lazy_bounds`.

- `_linearized`: `mf.Linearized`, the method and its rung; `_modes`: its decay, exactly in time
- `_kernel`: `tangent_kernel`, by `_neurons` of given neurons, by `_infinite` of a law (on spheres `_sphere`,
  `_sphere_kinks`)
- `_laziness`, `_bounds`: `laziness`, `lazy_bounds`
"""
