"""Places on an interval, such as save points: a list of them, or how many even ones there are to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import check
from .check import FloatArray


def places(value: Any, name: str, end: float, *, increasing: bool = True) -> FloatArray:
    """Check places between 0 and the end; an integer is a number of even ones, both ends included."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        count = check.integer(value, name, at_least=2)
        check.memory(64.0 * count, name, value)
        return np.linspace(0.0, end, count)
    return check.times(value, name, end, increasing=increasing)
