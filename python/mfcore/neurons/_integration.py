"""The integration of neurons, whose integrator is begun anew where forces change with time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..runs._clock import FixedClock
from ..runs._ends import End
from ..runs._rung import State

if TYPE_CHECKING:
    from ..runs._stiff import ImplicitFlow

    Integrator: TypeAlias = _core.Flow | ImplicitFlow

_NAMES = ("steps", "rejected", "evaluations")  # what is counted


class Integration:
    """Time and counts of a run, which go on from one integrator to the next.

    Args:
        begin: Makes an integrator at t = 0 of its own from a state.
        start: The state at t = 0.
        clock: Of fixed steps; None: the integrator chooses its steps.
    """

    def __init__(
        self, begin: Callable[[FloatArray], Integrator], start: FloatArray, clock: FixedClock | None
    ) -> None:
        self._begin, self._shape, self._clock = begin, start.shape, clock
        self.flow = begin(start)
        self.since = 0.0  # where the present integrator began
        self._before = (0, 0, 0)  # counts until then

    @property
    def t(self) -> float:
        """The time reached."""
        return self.since + self.flow.t

    @property
    def done(self) -> int:
        """Steps done before the present integrator."""
        return self._before[0]

    def values(self) -> FloatArray:
        """The present state."""
        return self.flow.values().reshape(self._shape)

    def advance(self, t: float, seconds: float) -> End:
        """Go to time t; with fixed steps, to the step nearest to it."""
        if self._clock is None or not isinstance(self.flow, _core.Flow):
            return self.flow.advance(t - self.since, seconds)
        return self._clock.advance(self.flow, t, seconds)

    def step_end(self, t: float) -> float:
        """The time nearest to t at which forces may change: t or, with fixed steps, the end of one."""
        return t if self._clock is None else round(t / self._clock.step) * self._clock.step

    def take_over(self, earlier: Integration) -> None:
        """Go on from where one with other forces is: at the same step, or with steps chosen anew."""
        if self._clock is not None:
            self.restore(earlier.state())
            return
        self.flow = self._begin(earlier.values())
        self.since, self._before = earlier.t, earlier._counts()

    def state(self) -> State:
        """Numbers and vectors of the integrator, and where it began if that was on the way."""
        state = self.flow.state()
        if self.since > 0:
            state["since"] = np.array([self.since, *self._before])
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to a saved state."""
        vectors = dict(state)
        since, *before = vectors.pop("since", np.zeros(4)).tolist()
        self.flow.restore(vectors)
        self.since, self._before = since, (int(before[0]), int(before[1]), int(before[2]))

    def meta(self) -> dict[str, Any]:
        """Steps done and refused, and evaluations of the velocity."""
        return dict(zip(_NAMES, self._counts(), strict=True))

    def _counts(self) -> tuple[int, int, int]:
        flow, (steps, rejected, evaluations) = self.flow, self._before
        return steps + flow.steps, rejected + flow.rejected, evaluations + flow.evaluations
