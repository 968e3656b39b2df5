"""The interface between `mf.solve` and the dynamics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np

from ..model import Model
from ..reductions._model import ReducedModel
from ._trajectory import Measure


class Rung(Protocol):
    """A run in progress. Its state is a function of (model, method, seed, time): how it got there, in one go,
    with stops or from a checkpoint, changes no bit."""

    @property
    def reduced(self) -> ReducedModel | None:
        """The features whose coordinates the measures live in, of a `LimitRung`; None for neurons."""
        ...

    @property
    def t(self) -> float:
        """The time reached."""
        ...

    @property
    def status(self) -> str:
        """``"running"``, or how the run ended: ``"diverged"``, ``"stationary"``, ``"interrupted"``."""
        ...

    @property
    def message(self) -> str:
        """One sentence on a run that ended by itself."""
        ...

    def advance(self, t: float, seconds: float) -> bool:
        """Go to time t, or as near as steps allow. False: `seconds` have passed, or see `status`."""
        ...

    def measure(self) -> Measure:
        """ρ_t, not a view of memory that will move."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to go on to the same bits."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a state that `state` described."""
        ...

    def meta(self) -> dict[str, Any]:
        """What is worth recording beside model and method."""
        ...


class LimitRung(Rung, Protocol):
    """A rung whose measures live in the reduced coordinates of a model."""

    @property
    def reduced(self) -> ReducedModel:
        """The features whose coordinates these are."""
        ...

    def risk(self) -> tuple[float, float]:
        """R(ρ_t) and the estimated error of the discretisation."""
        ...

    def observed(self) -> Mapping[str, float]:
        """What else is worth recording at a save point: the same names at all of them."""
        ...


def limit_of(rung: Rung) -> LimitRung | None:
    """The rung as one of the limit, if it is one."""
    return None if rung.reduced is None else cast(LimitRung, rung)


class Method(Protocol):
    """A frozen description of a rung: `mf.SGD(…)`, `mf.Particles(…)`, …"""

    def start(self, model: Model | ReducedModel, seed: int, threads: int) -> Rung:
        """A run of this method at t = 0."""
        ...
