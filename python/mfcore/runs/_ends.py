"""Word for `Trajectory.message` how an integration ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from ._stiff import ImplicitFlow

    Integrator = _core.Flow | ImplicitFlow

_REMEDY = "Try method='lsoda', or fixed steps such as method='rk4', step=…"


def message_of(
    end: str,
    flow: Integrator,
    tolerance: float | None = None,
    *,
    since: float = 0.0,
    done: int = 0,
    remedy: str = _REMEDY,
) -> str:
    """One sentence on a flow that ended by itself, begun at time `since` after `done` steps."""
    if end == "diverged" and not isinstance(flow, _core.Flow):
        return flow.failure
    t, h, steps = since + flow.t, flow.step_size, done + flow.steps
    if end == "stationary":
        return f"stationary: the root mean square of the gradient fell below {tolerance:g} at t = {t:g}"
    if end == "stuck":
        return (
            f"the step size fell to {h:.1e} after step {steps} (t = {t:g}): the velocity is singular there, "
            f"or jumps (a kink of the activation on finite data), or the problem is stiff. {remedy}"
        )
    return (
        f"the state was no longer finite at step {steps + 1} (t = {t + h:g}); the state returned is that of "
        f"step {steps}. Try a smaller step" + (f" than {h:g}" if h > 0 else "")
    )
