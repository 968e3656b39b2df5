"""`mf.Linearized`: a network linear in its parameters, trained exactly in time (eqs. (11.4) to (11.6))."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from ..expectations._nodes import Nodes
from ..expectations._rules import Exact, Expectation
from ..measures._tangent import Tangent, TangentLimit
from ..model import Model
from ..network import Network
from ..neurons._sgd import check_memory, start_of
from ..reductions._model import ReducedModel
from ..runs._ends import End, Ended
from ..runs._reduced import model_of
from ..runs._rung import Rung, State
from ._infinite import infinite_width
from ._modes import Modes, modes_of
from ._neurons import of_neurons

_COPIES = 5  # of the neurons
_MOST_ERROR = 1e-9  # of the residual, relative to its start, by Krylov


@configurable
@dataclass(frozen=True)
class Linearized:
    """Train a network linearised at its start, f(θ₀) + ⟨∇f(θ₀), θ − θ₀⟩: the lazy limit, exact in time.

    Residuals on the nodes of the data follow ṙ = −K P r with the tangent kernel K of the start. They are
    solved by all modes of the kernel up to 4000 nodes, by Krylov's beyond. The neurons begin as those of
    every other method with the same `rng`. As the scale α of the network grows, `mf.Particles` tends to
    this at times t/α² if f − y is bounded at the start: if f is 0 there (`mf.init.Paired`), as else f ∝ α.

    Args:
        neurons: N, or ``math.inf``: the kernel of infinite width.
        expectation: For laws without nodes `mf.MonteCarlo(samples, rng)`, a fixed set of samples.

    Examples:
        >>> import math, numpy as np, mfcore as mf
        >>> rng = np.random.default_rng(0)
        >>> model = mf.Model(
        ...     data=mf.data.Dataset(rng.normal(size=(20, 3)), rng.normal(size=20)),
        ...     network=mf.Network(mf.activations.relu, output="trained", scale=100.0),
        ...     init=mf.init.Paired(mf.init.Product(a=mf.init.Constant(1.0), w=mf.init.Radial(1.0))),
        ... )
        >>> lazy = mf.solve(model, mf.Linearized(200), horizon=1e-3, rng=0)
        >>> full = mf.solve(model, mf.Particles(200), horizon=1e-3, rng=0)
        >>> bool(abs(lazy.risk - full.risk).max() < 0.1)
        True
        >>> mf.solve(model, mf.Linearized(math.inf), horizon=1e-3).status
        'completed'
    """

    neurons: float
    expectation: Expectation | None = None

    def __post_init__(self) -> None:
        infinite = isinstance(self.neurons, float) and self.neurons == math.inf
        object.__setattr__(self, "neurons", math.inf if infinite else check.count(self.neurons, "neurons"))
        if self.expectation is not None and not isinstance(self.expectation, Expectation):
            raise TypeError(
                f"expectation must be mf.Exact() or mf.MonteCarlo(samples, rng), got "
                f"{check.shown(self.expectation)}"
            )

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> Rung[Any]:
        """A run of this method at t = 0."""
        return LinearizedRung(self, model_of(model), seed, threads)


class LinearizedRung:
    """A run of a linearised network. All of it is known at t = 0: the state is the time."""

    reduced: ReducedModel | None = None

    def __init__(self, method: Linearized, model: Model, seed: int, threads: int) -> None:
        self._model, self._threads, self._t = model, threads, 0.0
        self._ridge = _decay(model, method)
        self._X, y = nodes_of(model, method.expectation)
        n = len(self._X)
        check.memory(24.0 * n * n, "data" if method.expectation is None else "samples", n)
        if math.isinf(method.neurons):
            limit = infinite_width(model, threads)
            if self._ridge and not limit.centred:
                raise ValueError(
                    "ridge must be 0 for infinitely many neurons unless their a has mean 0 and is "
                    f"independent of b and w (mf.init.Paired), got {model.ridge:g} with {model.init!r}"
                )
            self._start = None
            kernel, f = limit.kernel(self._X, self._X), limit.start(self._X)
            pulled = np.zeros(n)
        else:
            check_memory(_COPIES * method.neurons, model, "neurons", method.neurons)
            self._start = start_of(model, int(method.neurons), seed)
            kernel = of_neurons(model, self._start, None, self._X, None, threads)
            f = Tangent(self._start, self._start)._predict(model, self._X, threads)
            pulled = self._decaying_part() if self._ridge else np.zeros(n)
        if not (np.isfinite(kernel).all() and np.isfinite(f).all()):
            raise ValueError(f"init must give a network with a finite kernel on the data, got {model.init!r}")
        kernel /= n
        residual, target = f - y, f - y - pulled
        wanted = [residual, target] if self._ridge else [residual]
        self._residual, *rest = modes_of(kernel, wanted)
        self._target: Modes | None = rest[0] if rest else None
        self._size = float(np.linalg.norm(residual))

    @property
    def t(self) -> float:
        """The time reached."""
        return self._t

    def advance(self, t: float, seconds: float) -> Ended:
        """Go to time t, at once."""
        error = self._residual.decay_error(t) + (self._target.decay_error(t) if self._target else 0.0)
        if error > _MOST_ERROR * self._size:
            return Ended(
                End.diverged,
                f"the {len(self._residual.values)} modes of so many samples do not reach t = {t:g}: the "
                f"residual would be wrong by {error / self._size:.1e} of its start. Try a shorter horizon, "
                "or fewer samples",
            )
        self._t = t
        return Ended(End.reached)

    def measure(self) -> Tangent | TangentLimit:
        """Start and present neurons; of infinitely many, coefficients of the nodes."""
        passed = self._passed(self._t) / len(self._X)
        if self._start is None:
            return TangentLimit(self._X, passed)
        theta = self._start - self._pull(passed)
        if self._ridge:
            moved = self._model._entry_speeds > 0
            theta[:, moved] += math.expm1(-self._ridge * self._t) * self._start[:, moved]
        return Tangent(self._start.copy(), theta)

    def state(self) -> State:
        """The time."""
        return {"t": np.array([self._t])}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go to the time of a state."""
        self._t = float(state["t"][0])

    def meta(self) -> dict[str, Any]:
        """Nodes of the data, and the extreme values of the kernel on them (over their number)."""
        values = self._residual.values
        return {"samples": len(self._X), "modes": len(values), "largest": float(values.max())}

    def _passed(self, t: float) -> FloatArray:
        """∫₀ᵗ e^{−μ(t − s)} r(s) ds on the nodes, μ the rate of decay: eq. (11.5)."""
        mu = self._ridge
        if self._target is None:
            return self._residual.apply(lambda values: _grown(values, t))
        shrunk = math.exp(-mu * t)
        transient = self._residual.apply(lambda values: shrunk * _grown(values, t))
        lasting = self._target.apply(
            lambda values: (-math.expm1(-mu * t) - mu * shrunk * _grown(values, t)) / (values + mu)
        )
        return transient + lasting

    def _pull(self, coefficients: FloatArray) -> FloatArray:
        """α·rate·Σ_q c_q ∇σ*(x_q; θ₀) for every neuron."""
        model, start, n = self._model, self._start, len(self._X)
        assert start is not None
        network = model.network
        nodes = _core.finite_law(self._X, -n * coefficients)
        _, pull, _ = _core.potential(
            network._core, start, None, None, nodes, 0, n, value=False, gradient=True, threads=self._threads
        )
        row = network.row(0)
        if network.sphere:
            w, along = start[:, row:], pull[:, row:]
            along -= w * (np.sum(along * w, axis=1) / np.sum(w * w, axis=1))[:, None]
        return np.asarray(pull * (network.scale * model._entry_speeds))

    def _decaying_part(self) -> FloatArray:
        """⟨∇f(x; θ₀), θ₀⟩ over trained blocks, on the nodes."""
        start = self._start
        assert start is not None
        twice = start.copy()
        twice[:, self._model._entry_speeds > 0] *= 2
        still = Tangent(start, start)._predict(self._model, self._X, self._threads)
        return Tangent(start, twice)._predict(self._model, self._X, self._threads) - still


def _grown(values: FloatArray, t: float) -> FloatArray:
    """(1 − e^{−λt})/λ, t where λ = 0."""
    with np.errstate(all="ignore"):
        return np.where(values * t > 0, -np.expm1(-values * t) / values, t)


def _decay(model: Model, method: Linearized) -> float:
    """The rate at which all that moves decays, rate·ridge; refuses what has no closed form."""
    if model.temperature > 0:
        raise ValueError(
            f"temperature must be 0 for mf.Linearized, got {model.temperature:g}: noise "
            "leaves the tangent space"
        )
    if model.ridge == 0:
        return 0.0
    found = set(model._speeds.values()) - {0.0}  # of blocks that do not move
    if len(found) > 1 or model.network.sphere:
        why = "on the sphere" if model.network.sphere else f"with rates {dict(model.rates or {})}"
        raise ValueError(
            f"ridge must be 0 for {method!r} {why}, got {model.ridge:g}: all that moves "
            "has to decay at one rate"
        )
    return model.ridge * found.pop()


def nodes_of(model: Model, expectation: Expectation | None) -> tuple[FloatArray, FloatArray]:
    """Inputs and labels of the nodes, all of one weight."""
    law = model.data
    if expectation is not None and not isinstance(expectation, Expectation):
        what = "mf.Exact() or mf.MonteCarlo(samples, rng)"
        raise TypeError(f"expectation must be {what}, got {check.shown(expectation)}")
    if not isinstance(expectation, Exact | None):
        plain = Model(law, Network(model.network.activation))
        found = expectation.evaluator(plain)
        assert isinstance(found, Nodes)
        return found.sampler.draw(found.seed, 0, found.count)
    nodes = law._node_sampler
    if nodes is None:
        raise ValueError(
            f"expectation must be mf.MonteCarlo(samples, rng) for mf.Linearized on a law without nodes, got "
            f"{expectation!r} with {law!r}"
        )
    check.memory(8.0 * nodes.size * (nodes.dimension + nodes.size), "data", nodes.size)
    return nodes.draw(0, 0, nodes.size)
