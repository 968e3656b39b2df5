"""The lazy regime: tangent kernels of neurons and at infinite width, and the rung of linearised training.

Public names are `mfcore.Linearized`, `mfcore.theory.tangent_kernel`, `mfcore.theory.laziness` and
`mfcore.theory.lazy_bounds`.
"""
