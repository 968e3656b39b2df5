"""Check and begin what `mf.GD` and `mf.Particles` share: runs of fixed steps on the population risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._base import check
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..model import Model
from ..runs._ranks import check_comm
from ._flow import FlowRung
from ._split import SplitRung, refuse

if TYPE_CHECKING:
    from ._methods import GD, Particles

FIXED = ("euler", "heun", "rk4")


def fixed(
    method: GD | Particles, scheme: str, step: float, model: Model, seed: int, threads: int, followers: int
) -> FlowRung | SplitRung:
    check_noise(method, scheme, model)
    if method.comm is not None:
        if followers:
            raise ValueError(f"driver must be a network of one process, without comm, got {method!r}")
        return SplitRung(method, scheme, step, model, seed, threads)

    def integrator(system: _core.System, start: FloatArray) -> _core.Flow:
        return _core.Flow.fixed(
            system,
            start,
            scheme,
            step,
            temperature=model._unit.temperature,
            seed=seed,
            tolerance=(method.tolerance or 0.0) / model.network.scale**2,
            threads=threads,
        )

    return FlowRung(
        model,
        method.neurons,
        method.expectation,
        seed,
        threads,
        integrator,
        method.tolerance,
        followers,
        step,
    )


def check_population(method: GD | Particles) -> None:
    object.__setattr__(method, "neurons", check.count(method.neurons, "neurons"))
    if method.expectation is not None:
        what = "mf.Exact() or mf.MonteCarlo(samples, rng)"
        check.instance(method.expectation, "expectation", Expectation, what)  # type: ignore[arg-type]
    if method.tolerance is not None:
        object.__setattr__(method, "tolerance", check.number(method.tolerance, "tolerance", above=0))
    check_comm(method.comm)
    refuse(method.comm, tolerance=(method.tolerance, None, "where no rank knows the gradient of all"))


def check_noise(method: GD | Particles, scheme: str, model: Model) -> None:
    """Refuse schemes and tolerances that have no meaning with noise."""
    if model.temperature == 0:
        return
    if scheme not in ("euler", "heun"):
        raise ValueError(
            f"method must be 'euler' or 'heun', with a step, at temperature = {model.temperature:g}, "
            f"got {scheme!r}"
        )
    if method.tolerance is not None:
        raise ValueError(
            f"tolerance must be left out at temperature = {model.temperature:g}, where nothing comes to "
            f"rest, got {method.tolerance:g}"
        )
