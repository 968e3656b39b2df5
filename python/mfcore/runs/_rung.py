"""The interface between `mf.solve` and the dynamics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np

from ..model import Model
from ..reductions._model import ReducedModel
from ._clock import Clock
from ._ends import Ended
from ._trajectory import M

State = dict[str, np.ndarray]


class Rung(Protocol[M]):
    """A run in progress. Its state is a function of (model, method, seed, time): how it got there, in one go,
    with stops or from a checkpoint, changes no bit. One with fixed steps has a `clock`, see `clock_of`."""

    @property
    def reduced(self) -> ReducedModel | None:
        """The features whose coordinates the measures live in, of a `LimitRung`; None for neurons."""
        ...

    @property
    def t(self) -> float:
        """The time reached."""
        ...

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t, or as near as steps allow, for about so many seconds; how that ended."""
        ...

    def measure(self) -> M:
        """ρ_t, not a view of memory that will move."""
        ...

    def state(self) -> State:
        """All that `restore` needs to go on to the same bits."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go to a state that `state` described, of a rung with the same arguments."""
        ...

    def meta(self) -> dict[str, Any]:
        """Return further facts to record beside model and method."""
        ...


class LimitRung(Rung[M], Protocol[M]):
    """A rung whose measures live in the reduced coordinates of a model."""

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates these are."""
        ...

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and the estimated error of the discretisation."""
        ...

    def observed(self) -> Mapping[str, float]:
        """Return further numbers to record at a save point: the same names at all of them."""
        ...


def clock_of(rung: Rung) -> Clock | None:
    """The clock of a rung with fixed steps, its attribute `clock`; None if it reaches any time."""
    clock: Clock | None = getattr(rung, "clock", None)
    return clock


def limit_of(rung: Rung) -> LimitRung | None:
    """The rung as one of the limit, if it is one."""
    return None if rung.reduced is None else cast(LimitRung, rung)


class Method(Protocol[M]):
    """A frozen description of a rung: `mf.SGD(…)`, `mf.Particles(…)`, …"""

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> Rung[M]:
        """A run of this method at t = 0."""
        ...


def labelled(label: str, state: State) -> State:
    """The state of a part of a run, as a part of the state of the whole: its names begin with the label."""
    return {f"{label}/{name}": values for name, values in state.items()}


def part_of(state: Mapping[str, np.ndarray], label: str) -> State:
    """The inverse of `labelled`: the state of the part of that label."""
    start = f"{label}/"
    return {name[len(start) :]: values for name, values in state.items() if name.startswith(start)}
