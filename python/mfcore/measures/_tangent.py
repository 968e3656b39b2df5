"""`Tangent` and `TangentLimit`: what linearised training returns, in the place of a measure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ..expectations._rules import Expectation, MonteCarlo

if TYPE_CHECKING:
    from ..model import Model

_PASS = 4096  # inputs of one pass of a risk
_CHUNK = 1 << 20  # numbers of one pass over inputs and neurons


class LinearMeasure(ABC):
    """A predictor by a network that is linear in its parameters. Base class of the two."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory of its arrays."""

    @abstractmethod
    def _predict(self, model: Model, X: FloatArray, threads: int) -> FloatArray:
        """f(x) for the rows of X, without checks."""


@dataclass(frozen=True, eq=False, repr=False)
class Tangent(LinearMeasure):
    """Neurons of a linearised network: f(x) = f(x; θ₀) + ⟨∇f(x; θ₀), θ − θ₀⟩.

    `mf.predict` and `mf.risk` take it in the place of a measure.

    Attributes:
        start: θ₀, where the gradients are taken, shape (N, D).
        theta: θ, shape (N, D).

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> law = mf.data.Dataset([[1.0], [2.0]], [1.0, 0.0])
        >>> model = mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Radial(1.0))
        >>> start = np.array([[0.0]])
        >>> mf.predict(model, mf.Tangent(start, start + 0.5), [[2.0]]).tolist()  # tanh' = 1 at 0
        [1.0]
    """

    start: FloatArray
    theta: FloatArray

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(self, start: npt.ArrayLike, theta: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        start = check.array(self.start, "start", shape=(None, None))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "theta", check.array(self.theta, "theta", shape=start.shape))

    @property
    def nbytes(self) -> int:
        """Memory of both arrays."""
        return self.start.nbytes + self.theta.nbytes

    def __len__(self) -> int:
        return len(self.theta)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tangent):
            return False
        return np.array_equal(self.start, other.start) and np.array_equal(self.theta, other.theta)

    __hash__ = None  # type: ignore[assignment]  # arrays may change

    def __repr__(self) -> str:
        n, columns = self.theta.shape
        return f"Tangent(start=<array {n}×{columns}>, theta=<array {n}×{columns}>)"

    def _predict(self, model: Model, X: FloatArray, threads: int) -> FloatArray:
        """α N⁻¹Σ [(a + δa) σ(z) + a σ'(z)(δb + ⟨δw, x⟩)], neurons in blocks."""
        network, row = model.network, model.network.row(0)
        total, step = np.zeros(len(X)), max(1, _CHUNK // max(1, len(X)))
        change = self.theta - self.start
        for i in range(0, len(self.start), step):
            at, by = self.start[i : i + step], change[i : i + step]
            a = at[:, 0] if network.has_a else np.ones(len(at))
            z, along = X @ at[:, row:].T, X @ by[:, row:].T
            if network.has_b:
                z += at[:, row - 1]
                along += by[:, row - 1]
            total += network.activation(z) @ (a + by[:, 0] if network.has_a else a)
            total += (network.activation.derivative(z) * along) @ a
        return np.asarray(network.scale / len(self.start) * total)


@dataclass(frozen=True, eq=False, repr=False)
class TangentLimit(LinearMeasure):
    """Infinitely many linearised neurons: f(x) = f₀(x) − Σ_q K(x, x_q) c_q, K the kernel of the initial law.

    Attributes:
        inputs: x_q, shape (n, d).
        coefficients: c_q, shape (n,).

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.Dataset([[1.0], [2.0]], [1.0, 0.0])
        >>> model = mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0))
        >>> mf.predict(model, mf.TangentLimit([[1.0]], [0.0]), [[2.0]]).round(6).tolist()  # E relu(2g)
        [0.797885]
    """

    inputs: FloatArray
    coefficients: FloatArray

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(self, inputs: npt.ArrayLike, coefficients: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        inputs = check.array(self.inputs, "inputs", shape=(None, None))
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(
            self, "coefficients", check.array(self.coefficients, "coefficients", shape=(len(inputs),))
        )

    @property
    def nbytes(self) -> int:
        """Memory of both arrays."""
        return self.inputs.nbytes + self.coefficients.nbytes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TangentLimit) or not np.array_equal(self.inputs, other.inputs):
            return False
        return np.array_equal(self.coefficients, other.coefficients)

    __hash__ = None  # type: ignore[assignment]  # arrays may change

    def __repr__(self) -> str:
        n, d = self.inputs.shape
        return f"TangentLimit(inputs=<array {n}×{d}>, coefficients=<array {n}>)"

    def _predict(self, model: Model, X: FloatArray, threads: int) -> FloatArray:
        from ..lazy._infinite import infinite_width  # a room below

        limit, out = infinite_width(model, threads), np.empty(len(X))
        step = max(1, _CHUNK // len(self.inputs))
        for i in range(0, len(X), step):
            rows = X[i : i + step]
            out[i : i + step] = limit.start(rows) - limit.kernel(rows, self.inputs) @ self.coefficients
        return out


def linear_risk(
    model: Model, measure: LinearMeasure, expectation: Expectation | None, threads: int
) -> tuple[float, float]:
    """R of a linearised network and its standard error: over the nodes of the data, or over samples."""
    law, sampled = model.data, isinstance(expectation, MonteCarlo)
    sampler = law._iid_sampler if sampled else law._node_sampler
    if sampler is None:
        raise ValueError(
            "expectation must be mf.MonteCarlo(samples, rng) for a linearised network on a law without nodes,"
            f" got {expectation!r} with {law!r}"
        )
    seed, count = 0, int(sampler.size)
    if isinstance(expectation, MonteCarlo):
        seed, count = int(expectation.seed or 0), expectation.samples
    squares = np.empty(count)
    for first in range(0, count, _PASS):
        X, y = sampler.draw(seed, first, min(_PASS, count - first))
        squares[first : first + len(y)] = (y - measure._predict(model, X, threads)) ** 2
    mean = float(squares.mean())
    if not sampled:
        return mean + law.noise_power(), 0.0
    return mean, float(squares.std(ddof=1) / math.sqrt(count)) if count > 1 else math.inf
