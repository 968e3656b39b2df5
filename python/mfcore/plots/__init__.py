"""Pictures of runs (`risk`, `observable`), measures (`density`, `particles`, `animate`), budgets (`ladder`).

Every function returns matplotlib axes that can also be saved directly, ``mf.plots.risk(runs).savefig(path)``,
and draws on the axes given as ``ax=``. Colours can be told apart by the colour-blind, and curves are named at
their ends. Needs matplotlib, ``mfcore[plot]``, when a function is called; neither a display nor pyplot.

- `_series`: risks and observables over t; `_ladder`: error budgets
- `_density`, `_plane`: measures; `_animate`: measures over time
- `_runs`: what trajectories tell; `_sweeps`: the same of a table of a sweep
- `_coordinates`: coordinates by name
- `_axes`, `_labels`: what all pictures share
"""

from ._animate import animate
from ._axes import COLORS, new_axes
from ._density import density
from ._ladder import ladder
from ._plane import particles
from ._series import observable, risk

__all__ = ["COLORS", "animate", "density", "ladder", "new_axes", "observable", "particles", "risk"]
