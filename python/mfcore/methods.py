"""The rungs of the ladder as frozen descriptions: what moves, and how it is integrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import _check
from ._check import FloatArray
from ._registry import configurable
from ._rungs.sgd import SgdRung
from .model import Model

Schedule = Callable[[FloatArray], FloatArray]


@configurable
@dataclass(frozen=True)
class SGD:
    """One-pass stochastic gradient descent of N neurons on fresh samples.

    θ_i ← θ_i + h_k[(y_k − f_N(x_k))∇σ*(x_k; θ_i) − λθ_i] + √(2h_k/β) g, one step per `batch` samples, with
    the model's ridge λ, temperature 1/β and rates; t = Σ h_k. Finite datasets are passed through in random
    order, again and again. Steps are done in blocks, equal to the sequential algorithm up to rounding;
    Langevin noise is exact in law.

    Args:
        neurons: N.
        step: h.
        batch: Samples per step; their gradients are averaged.
        schedule: ξ, a vectorised function of k·h giving h_k = h·ξ(k·h).
        replicas: Independent networks, run in parallel. Replica 0 is the run without replicas.
        precision: ``"float64"`` or ``"float32"``.

    Examples:
        >>> import mfcore as mf
        >>> mf.SGD(neurons=800, step=1e-5)
        SGD(neurons=800, step=1e-05, batch=1, schedule=None, replicas=1, precision='float64')
    """

    neurons: int
    step: float
    batch: int = 1
    schedule: Schedule | None = None
    replicas: int = 1
    precision: str = "float64"

    def __post_init__(self) -> None:
        for name in ("neurons", "batch", "replicas"):
            object.__setattr__(self, name, _check.integer(getattr(self, name), name, at_least=1))
        object.__setattr__(self, "step", _check.number(self.step, "step", above=0))
        _check.choice(self.precision, "precision", ("float64", "float32"))
        if self.schedule is not None and not callable(self.schedule):
            raise TypeError(f"schedule must be a function of k·step, got {_check.shown(self.schedule)}")

    def start(self, model: Model, seed: int, threads: int) -> SgdRung:
        """A run of this method at t = 0."""
        return SgdRung(self, model, seed, threads)
