"""Models in the few coordinates that symmetry leaves, such as r = |w|: features Φ_q(z) at data nodes q.

- `_model`: `ReducedModel`, what all rungs of the limit work on
- `_given`: checks of one made by hand
- `_pairs`: V and U in closed form, in the place of features
- `_of_laws`: `Model.reduce`: features at the nodes of a law, and the error of those nodes
- `_nodes`: data nodes from the symmetry that a law describes
- `_rows`: which quadrature rule each direction and each norm gets
- `_node_rules`: the rules, and how many nodes they need
- `_inputs`: inputs as a reduction looks at them
- `_sphere`: features of networks with |w| = 1
- `_project`: from neurons to reduced coordinates and back
- `_init`: initial laws in reduced coordinates
- `_tables`: features on a grid, compressed

May use what is learned, and expectations.
A data law with a new symmetry describes it in its own file
(`data/_symmetry.py`).
"""

from ._init import ReducedInit
from ._model import ReducedModel

__all__ = ["ReducedInit", "ReducedModel"]
