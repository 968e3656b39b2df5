"""Data laws P(x, y): what the network is trained on.

Every law draws samples by number (`draw`), and tells what it knows in closed form (`target_power`,
`noise_power`). ``d=math.inf`` is allowed where a reduction to a few coordinates exists.

- `_law`: `DataLaw`, the base class; `_config`: laws from files
- `_gaussians`: two classes; `_mixture`: any number of them, with means; `_multi_index`, with the links of
  `_links`: labels of a few directions; `_regression`: `Teacher` and `Linear`; `_finite`: `Dataset`, `Stream`
- `_rescaled`: a law with its labels times a factor
- `_covariance`: covariances of inputs, and where they are isotropic
- `_parts`, `_symmetry`: what a law tells the exact expectations and the reductions
"""

from ._config import KINDS as KINDS
from ._config import from_config
from ._finite import Dataset, Stream
from ._gaussians import AnisotropicGaussians, IsotropicGaussians
from ._law import DataLaw
from ._mixture import GaussianMixture
from ._multi_index import MultiIndex, Staircase
from ._regression import Linear, Teacher

__all__ = [
    "AnisotropicGaussians",
    "DataLaw",
    "Dataset",
    "GaussianMixture",
    "IsotropicGaussians",
    "Linear",
    "MultiIndex",
    "Staircase",
    "Stream",
    "Teacher",
    "from_config",
]
