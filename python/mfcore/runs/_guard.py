"""Tell runs that have blown up: a risk beyond a stated multiple of its scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.course import largest
from .._base.rng import derive
from ..data import Teacher
from ..measures._tangent import LinearMeasure
from ..model import Model
from ..reductions._given import convex
from ..reductions._model import ReducedModel
from ._reduced import model_of
from ._rung import Rung

# A run has diverged when its risk is more than this times its scale, max(R(0), E y²). Growth on the way, as
# of large steps that settle at last, is far below: a network that leaves the stable range grows without end.
MOST_GROWTH = 1e6
_SAMPLES = 16  # on which the guard measures the risk of networks: a factor of 10⁶ needs no more


class Guard:
    """Compare risks with the scale of a run.

    With noise parameters may spread as free diffusion does, |θ|² by 2·rate·t·D/β, and outputs are products of
    two of them at most: the scale grows by the square of that.

    Features with weights of either sign have a risk without a scale: it may start at 0, and fall without end.
    Their runs end where numbers are no longer finite.
    """

    def __init__(self, model: Model | ReducedModel, reduced: ReducedModel | None) -> None:
        self._model = model
        self.start: Any = None  # R(0) as the guard measures it, or those of the replicas
        self._convex = reduced is None or convex(reduced)
        self.power: float  # E y²
        if reduced is not None:
            self.power = float(reduced.weights @ reduced.targets**2) + reduced.noise
        else:
            self._X, self._y = model_of(model).data._iid_sampler.draw(derive(0, _SAMPLES), 0, _SAMPLES)
            law = model_of(model).data
            # Teachers sum over pairs of neurons for their exact E y², which may take seconds.
            power = None if isinstance(law, Teacher) else law.target_power()
            self.power = float(np.square(self._y).mean()) if power is None else power
        rates = model.rates.values() if isinstance(model, Model) and model.rates else [1.0]
        row = len(reduced.coordinates) if reduced is not None else 1
        if reduced is not None and sum(reduced.volume) > 0:
            row += int(sum(reduced.volume))
        elif isinstance(model, Model) and model.row is not None:
            row = model.row
        self._temperature, self._spread = model.temperature, 2 * max(*rates, 1.0) * row

    def rough(self, theta: FloatArray | LinearMeasure) -> Any:
        """The risk of a network on few samples, or those of replicas."""
        if isinstance(theta, LinearMeasure):
            f = theta._predict(model_of(self._model), self._X, 0)
            return float(np.square(self._y - f).mean())
        if theta.ndim == 3:
            return np.array([self.rough(rows) for rows in theta])
        network, masses = model_of(self._model).network, np.full(len(theta), 1 / len(theta))
        return self.of(network.scale * _core.predict(network._core, theta, masses, self._X, 0))

    def rough_of(self, rung: Rung) -> Any:
        """The same of a run, by its method `predict` if it has one: of each replica, without a copy."""
        predict = getattr(rung, "predict", None)
        if predict is None:
            measure: Any = rung.measure()
            return self.rough(measure)
        risks = np.array([self.of(f) for f in predict(self._X)])
        return risks if len(risks) > 1 else float(risks[0])

    @property
    def inputs(self) -> FloatArray:
        """The few samples, of models of networks."""
        return self._X

    def of(self, f: FloatArray) -> float:
        """The risk of a network of these values at `inputs`."""
        return float(np.square(self._y - f).mean())

    def why(self, risk: Any, t: float) -> str:
        """Why a run of this risk has diverged; empty if it has not."""
        if not self._convex:
            return ""
        scale = np.maximum(self.start, self.power)
        with np.errstate(over="ignore"):  # a limit of infinity is none
            limit = MOST_GROWTH * scale * np.square(1 + self._spread * largest(self._temperature, t) * t)
        beyond = np.asarray(risk) > limit
        if not beyond.any():
            return ""
        k = int(np.argmax(beyond))
        size = float(np.ravel(scale)[k if np.ndim(scale) else 0])
        worst, of = float(np.ravel(risk)[k]), f" of replica {k}" if np.ndim(risk) else ""
        return (
            f"the risk{of} at t = {t:g}, {worst:.3g}, is more than {MOST_GROWTH:g} times its scale, the "
            f"larger of R(0) and E y², {size:.3g}. Try a smaller step"
        )
