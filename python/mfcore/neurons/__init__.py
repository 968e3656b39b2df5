"""Networks in motion: finitely many neurons under SGD, gradient descent, gradient flow, or each on its own.

- `_methods`: `mf.SGD`, `mf.GD`, `mf.Particles`; `_independent`: `mf.Nonlinear`
- `_sgd`, `_flow`, `_nonlinear`: their rungs, which call the core
- `_population`: fixed steps on the population risk; `_step_clock`: step sizes and times of SGD
- `_integration`: one integrator after the other, where forces change with time
- `_layer_wise`: `mf.LayerWise`, the first layer alone, one coordinate after the other
- `_split`: the rung of networks on many processes
- `_update`: the update of neurons by residuals that were pulled back, also for `mf.steppers.SGD`

May use runs, measures, expectations, and atoms (which drive independent neurons). Another dynamics of
neurons is a method and a rung here, and kernels in `cpp/src/sgd` or `cpp/src/flow`.
"""

from ._independent import Nonlinear
from ._layer_wise import LayerWise
from ._methods import GD, SGD, Particles

__all__ = ["GD", "SGD", "LayerWise", "Nonlinear", "Particles"]
