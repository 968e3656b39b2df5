"""The next task of a density, and all that its run knows between two calls."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ..runs._ends import End
from ._companions import Solvers

FIRST_RECORD = 2.0**-20  # time at which the error is first recorded


class Phase(Enum):
    """The next task of a density."""

    MOVE = auto()  # goes on, until a time that matters or the end of its grid
    MEET = auto()  # waits for the coarser ones
    GROW = auto()  # continues on a longer grid
    COMPARE = auto()  # compares itself with the coarser ones


class Past(NamedTuple):
    """The errors recorded last, one whenever t has doubled."""

    errors: tuple[float, float] = (0.0, 0.0)
    next: float = FIRST_RECORD  # time of the next record

    def seen(self, error: float, everything: bool) -> Past:
        """Record the error measured now; keep the last two records or, with `everything`, the largest
        ever.
        """
        return Past((max(self.errors) if everything else self.errors[1], error), 2 * self.next)


class DensityState(NamedTuple):
    """The state between two calls, replaced as a whole so that Ctrl-C finds the old or the new one."""

    solvers: Solvers
    end: End = End.reached  # of the last stretch of the run itself; after End.open_end the grid must grow
    grown: int = 0
    # steps, refused steps and evaluations on the grids before this one
    before: tuple[int, int, int] = (0, 0, 0)
    rise: float = 0.0  # largest rise of the free energy in a step on these grids, with noise
    past: Past = Past()
