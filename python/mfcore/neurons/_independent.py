"""`mf.Nonlinear`: N independent neurons in the field of the limit, as a frozen description."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from .._base.rng import derive
from ..atoms._atoms import Atoms
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._reduced import model_of, reduced_of
from ..runs._rung import Rung, limit_of
from ._flow import DRIVER
from ._methods import GD, SGD, Particles
from ._nonlinear import NonlinearRung
from ._sgd import start_of

_DRIVERS = (
    "a method of the limit, such as mf.Atoms(…) or mf.PDE(…), or an auxiliary network, mf.Particles(…) or "
    "mf.GD(…)"
)


@configurable
@dataclass(frozen=True)
class Nonlinear:
    """N independent neurons in the field of the limit: θ̇_i = −rate·∇Ψ_λ(θ_i; ρ_t), with noise or without.

    Nothing that they do acts back on ρ_t, the law of each of them, which comes from the driver: a method of
    the limit, looked at as densely in time as needed, or an auxiliary network much wider than N, with a start
    of its own, in whose field they move. They start where N neurons of every other method with the same `rng`
    do, so that the distance of neuron i to its twin is what propagation of chaos bounds.

    In the field of the limit and without noise, directions are frozen and the reduced coordinates of each
    neuron follow the characteristics of the density, by Dormand–Prince steps or, given `step`, by Runge–Kutta
    steps of order 4. At temperature > 0 `step` is needed: Euler–Maruyama, with the increments of `mf.GD`,
    ``mf.Particles(method="euler")`` and ``mf.SGD(coupled=True)`` with the same `rng` and step. In the field
    of a network the scheme is the network's.

    Args:
        neurons: N. They do not act on each other, so that N is the number of draws of the limit's law alone:
            what is averaged over them has an error of 1/√N.
        driver: The method that gives ρ_t; by default ``mf.Atoms()``, with noise
            ``mf.Atoms(method="heun", step=step)``.
        step: Step size h in the field of the limit; the clock is t = k·h. None: steps are chosen, which noise
            does not allow.
        rtol: Relative error of each entry of θ per step, where steps are chosen.
        atol: Absolute error per step, for entries near 0.

    Examples:
        >>> import mfcore as mf, numpy as np
        >>> from mfcore import Nonlinear
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> one = mf.solve(model, mf.Particles(50), horizon=1.0, rng=0)
        >>> other = mf.solve(model, Nonlinear(50), horizon=1.0, rng=0)
        >>> bool(np.abs(one.final - other.final).max() < 0.1)
        True
    """

    neurons: int
    driver: Any = None
    _: KW_ONLY
    step: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9

    def __post_init__(self) -> None:
        object.__setattr__(self, "neurons", check.count(self.neurons, "neurons"))
        if isinstance(self.driver, type | SGD | Nonlinear) or not (
            self.driver is None or hasattr(self.driver, "begin")
        ):
            raise TypeError(f"driver must be {_DRIVERS}, got {check.shown(self.driver)}")
        for name in ("rtol", "atol"):
            object.__setattr__(self, name, check.number(getattr(self, name), name, above=0))
        if self.step is not None:
            object.__setattr__(self, "step", check.number(self.step, "step", above=0))
            if isinstance(self.driver, GD | Particles):
                raise ValueError(
                    "step must be left out in the field of a network, whose scheme moves all, got "
                    f"{self.step:g} with driver={self.driver!r}"
                )

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> Rung[FloatArray]:
        """A run of this method at t = 0."""
        full = model_of(model)
        if isinstance(self.driver, GD | Particles):
            return self.driver.begin(full, seed, threads, self.neurons)
        if full.temperature > 0 and self.step is None:
            raise ValueError(f"step must be given at temperature = {full.temperature:g}, got None")
        start_of(full, self.neurons, seed)  # what it refuses comes first
        method = self.driver or _default(full, self.step)
        try:
            full._kept["reduction"] = reduced_of(full)  # which the driver takes from there
        except ValueError as error:
            raise ValueError(
                f"driver must be an auxiliary network, such as mf.Particles({20 * self.neurons}), where the "
                f"limit has no reduction, got {check.shown(method)}: {error}"
            ) from None
        driver = limit_of(method.begin(full, derive(seed, DRIVER), threads))
        if driver is None:
            raise TypeError(f"driver must be {_DRIVERS}, got {check.shown(self.driver)}")

        def integrator(system: _core.System, start: FloatArray) -> _core.Flow:
            if self.step is None:
                return _core.Flow.dopri5(system, start, rtol=self.rtol, atol=self.atol)
            scheme, temperature = ("euler", full.temperature) if full.temperature > 0 else ("rk4", 0.0)
            return _core.Flow.fixed(
                system, start, scheme, self.step, temperature=temperature, seed=seed, threads=threads
            )

        return NonlinearRung(full, self.neurons, driver, seed, threads, integrator, self.step)


def _default(model: Model, step: float | None) -> Atoms:
    return Atoms() if model.temperature == 0 else Atoms(method="heun", step=step)
