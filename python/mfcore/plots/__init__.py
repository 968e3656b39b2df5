"""Pictures of runs (`risk`, `observable`, `final_risk`), measures (`density`, `particles`, `animate`) and
budgets (`ladder`).

Every function returns matplotlib axes that can also be saved directly, ``mf.plots.risk(runs).savefig(path)``,
and draws on the axes given as ``ax=``. Colours can be told apart by the colour-blind, those of widths and
times in grey too, and curves are named at their ends. Needs matplotlib, ``mfcore[plot]``, when a function is
called; neither a display nor pyplot.

- `_series`: risks and observables over t; `_curves`: one of them; `_widths`: risks over N; `_ladder`: budgets
- `_density`, `_plane`: measures; `_laws`: one law; `_images`: two coordinates; `_animate`: over time
- `_runs`: what trajectories tell; `_sweeps`: the same of a sweep; `_measures`: measures beside runs
- `_coordinates`: coordinates by name
- `_axes`, `_labels`, `_shades`: what all pictures share
"""

from ._animate import animate
from ._axes import COLORS, new_axes
from ._density import density
from ._ladder import ladder
from ._plane import particles
from ._series import observable, risk
from ._widths import final_risk

__all__ = [
    "COLORS",
    "animate",
    "density",
    "final_risk",
    "ladder",
    "new_axes",
    "observable",
    "particles",
    "risk",
]
