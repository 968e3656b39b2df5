"""How long a run is: to a time T, for so many steps, or for so many passes through a dataset."""

from __future__ import annotations

import math
from typing import Any

from .._base import check
from ..data import Dataset
from ..model import Model

_MOST_STEPS = 2**53  # that a clock counts
_ROUNDING = 1e-9  # of a number of steps: a rest of less than this begins no step


def horizon_of(model: Any, method: Any, horizon: Any = None, steps: Any = None, epochs: Any = None) -> Any:
    """The time T of a run, of which exactly one of the three is given.

    Raises:
        TypeError: None of them is given, or several.
        ValueError: The method has no fixed step, or there are no epochs.
    """
    lengths = {"horizon": horizon, "steps": steps, "epochs": epochs}
    given = [name for name, value in lengths.items() if value is not None]
    if len(given) != 1:
        raise TypeError(
            f"solve needs one of horizon, steps and epochs, got {' and '.join(given) or 'none of them'}"
        )
    if horizon is not None:
        return horizon
    if steps is not None:
        return _time_after(method, check.integer(steps, "steps", at_least=1, at_most=_MOST_STEPS), "steps")
    return _time_after(method, _steps_of(model, method, epochs), "epochs")


def _time_after(method: Any, steps: int, name: str) -> float:
    """The time after so many steps of the method, or of the driver that has its clock."""
    for stepping in (method, getattr(method, "driver", None)):
        time_after = getattr(stepping, "time_after", None)  # of steps of several sizes
        if time_after is not None:
            return float(time_after(steps))
        for field in ("step", "tau"):
            step = getattr(stepping, field, None)
            if step is not None:
                return float(steps * step)
    raise ValueError(
        f"{name} must be left out for a method that has no fixed step, got {method!r}: give horizon=, the "
        "time T to run to"
    )


def _steps_of(model: Any, method: Any, epochs: Any) -> int:
    """The steps of so many passes through a dataset: the last one is done where a sample is left for it."""
    passes = check.number(epochs, "epochs", above=0)
    law = model.data if isinstance(model, Model) else None
    if not isinstance(law, Dataset):
        raise ValueError(
            "epochs must be left out where samples are fresh: only an mf.data.Dataset is passed through, got "
            f"{model!r}. Give steps= or horizon="
        )
    batch = getattr(method, "batch", None)
    if batch is None:
        raise ValueError(
            f"epochs must be left out for a method without batches, got {method!r}, of which each step takes "
            "all samples: give steps= or horizon="
        )
    steps = passes * len(law.y) / batch
    return check.integer(max(1, math.ceil(steps * (1 - _ROUNDING))), "epochs", at_most=_MOST_STEPS)
