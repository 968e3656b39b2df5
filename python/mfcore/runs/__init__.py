"""The common part of all runs: save points, records, checkpoints, how it ended, and the file it is kept in.

- `_solve`: `mf.solve`, `resume`, `log_times`; `_plan`, `_arguments`: what its arguments ask for
- `_run`: from save point to save point
- `_rung`: the interface that each kind of dynamics implements
- `_changing`: a rung begun anew where temperature or ridge, functions of t, have changed
- `_trajectory`: `Trajectory`, what a run returns, in memory and on disk
- `_observe`: what is recorded by default; `_records`: where it is kept; `_meters`: risks beside it
- `_clock`: the times of fixed steps; `_length`: horizons in steps and epochs; `_stopping`: `stop=`
- `_guard`: runs that have blown up; `_advice`: what is provable about a run and easily overlooked
- `_checkpoint`: the file that a run can go on from
- `_split`, `_ranks`, `_pieces`: runs of networks that are split over processes, and `gather`
- `_ends`, `_stiff`, `_reduced`, `_difference`: shared by the rooms of the rungs: how integrations end in
  words, SciPy's stiff solvers, what a rung starts from, and how far two runs are apart

Knows no dynamics: neurons, density, atoms and movements use this room, never the other way round.
"""

from ._solve import log_times, resume, solve
from ._split import gather
from ._trajectory import Trajectory, load

__all__ = ["Trajectory", "gather", "load", "log_times", "resume", "solve"]
