"""Many runs: the cases of a sweep, the processes that do them, and a table of the results.

- `_sweep`: `mf.sweep`
- `_cases`: grids, lists, and `mf.Bisection`, which chooses its cases by the results
- `_work`: one case, and those that do many: this process, a pool of them, a client
- `_store`: a folder of results, which a sweep that starts again takes from it; `_record`: what the folder
  says of the sweep; `_folder`: a folder read without the function that made it
- `_identity`: what the results of a function rest on; `_code`: the code of one function, and what of it has
  changed
- `_table`: results side by side, labelled, as an `xarray.Dataset`

Calls functions of its users and knows no dynamics; runs know nothing of it.
"""

from ._cases import Bisection
from ._sweep import sweep

__all__ = ["Bisection", "sweep"]
