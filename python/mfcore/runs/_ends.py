"""How a stretch of a run ended: the record that every rung returns, and its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from ._stiff import ImplicitFlow

End = _core.End

GOES_ON = (End.reached, End.out_of_time, End.interrupted)  # a run can, from there
_REMEDY = "Try method='lsoda', or fixed steps such as method='rk4', step=…"


@dataclass(frozen=True)
class Ended:
    """How a stretch of a run ended.

    Args:
        end: As the core says it.
        message: One sentence, where the run cannot go on.
    """

    end: End
    message: str = ""

    @property
    def reached(self) -> bool:
        """Tell whether the run is at the time asked for."""
        return self.end is End.reached

    @property
    def status(self) -> str:
        """The word for it in `Trajectory.status`, where the run ends by it."""
        return "diverged" if self.end is End.stuck else self.end.name.replace("_", " ")


def ended(
    end: End,
    flow: _core.Flow | ImplicitFlow,
    tolerance: float | None = None,
    *,
    since: float = 0.0,
    done: int = 0,
    remedy: str = _REMEDY,
    name: Callable[[int], str] | None = None,
) -> Ended:
    """Describe how a flow of the core or of SciPy ended, which began at time `since` after `done` steps.

    `name` describes a row by its number, such as the one whose error makes steps too short.
    """
    if end in GOES_ON:
        return Ended(end)
    if end is End.stuck and name is not None and isinstance(flow, _core.Flow):
        remedy = f"The largest error is that of {name(flow.limiting_row)}. {remedy}"
    return Ended(end, _message(end, flow, tolerance, since, done, remedy))


def _message(
    end: End, flow: _core.Flow | ImplicitFlow, tolerance: float | None, since: float, done: int, remedy: str
) -> str:
    if end is End.diverged and not isinstance(flow, _core.Flow):
        return flow.failure
    t, h, steps = since + flow.t, flow.step_size, done + flow.steps
    if end is End.stationary:
        return f"stationary: the root mean square of the gradient fell below {tolerance:g} at t = {t:g}"
    if end is End.stuck:
        return (
            f"the step size fell to {h:.1e} and stayed small until step {steps} (t = {t:g}): the velocity is "
            f"singular there, or jumps (a kink of the activation on finite data or nodes), or the problem is "
            f"stiff. {remedy}"
        )
    return (
        f"the state was no longer finite at step {steps + 1} (t = {t + h:g}); the state returned is that of "
        f"step {steps}. Try a smaller step" + (f" than {h:g}" if h > 0 else "")
    )
