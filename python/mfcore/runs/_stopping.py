"""Ask the user's function `stop` whether a run is to end at a save point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import check
from ._trajectory import Trajectory

Stopper = Callable[[Trajectory[Any]], Any]


def met(stop: Stopper, run: Trajectory, t: float) -> bool:
    """What `stop` answers to the run so far, at time t."""
    try:
        answer = stop(run)
    except Exception as error:
        error.add_note(f"This was stop at t = {t:g}.")
        raise
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    if isinstance(answer, np.ndarray) and answer.dtype == bool:
        if answer.ndim == 0:
            return bool(answer)
        raise TypeError(
            f"stop must return one answer, got an array of shape {answer.shape} at t = {t:g}; for several "
            "replicas say of which, as in (run.risk[-1] < 1e-3).all()"
        )
    raise TypeError(f"stop must return True or False, got {check.shown(answer)} at t = {t:g}")
