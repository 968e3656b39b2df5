"""Infinitely many neurons of an initial law: their kernel and what they predict at t = 0 (eq. (11.3)).

As w is Gaussian and x given, pre-activations are pairs of correlated Gaussians: the exact means over pairs of
neurons with the parts of inputs and weights exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..init import Constant, Normal, Points, Product, Radial, ScalarLaw, Sphere, Symmetric
from ..model import Model
from ._neurons import GivenNeurons, Speeds, speeds_of
from ._sphere import SphereMeans

_TOLERANCE = 1e-10  # relative error of quadrature over b
_ROUNDING = 1e-14  # of means that are 0 by symmetry
_BIASES = (12, 24, 48, 96, 192)  # Gauss nodes of b, tried one after the other
_INSTEAD = "give measure= instead, such as many neurons of the law: mf.init.….sample(network, d, count)"


@dataclass(frozen=True)
class _Bias:
    """b ~ N(mean, std²) with this share of the law."""

    share: float
    mean: float
    std: float


def infinite_width(model: Model, threads: int, speeds: Speeds | None = None) -> InfiniteWidth | GivenNeurons:
    """Infinitely many independent neurons of the initial law of a model."""
    if isinstance(model.init, Points):
        return GivenNeurons(model, model.init.theta, threads, speeds)
    return InfiniteWidth(model, threads, speeds)


class InfiniteWidth:
    """Means over the initial law of a model, a and b independent of w; `speeds` in place of its rates.

    Raises:
        ValueError: The law is not one of those whose means are known.
    """

    def __init__(self, model: Model, threads: int, speeds: Speeds | None = None) -> None:
        network = model.network
        if model.init is None:
            raise ValueError("init must be an initial law at infinite width, got None")
        law = model.init.parts(network)
        self._model, self._law, self._threads = model, law, threads
        self._speeds = speeds or speeds_of(model)
        self._square = 1.0 if law.a is None else law.a.second_moment
        self._mean_a = 1.0 if law.a is None else law.a.mean
        self._std, self._sphere = _law_of_w(model, law)
        sigma = network.activation._core
        if self._sphere is None and not _core.has_exact_pairs(sigma, sigma):
            raise ValueError(
                f"network must have an activation with exact pairs at infinite width, got "
                f"{network.activation!r}; {_INSTEAD}"
            )

    @property
    def centred(self) -> bool:
        """Whether E a = 0, so that f(x) = 0 and E⟨∇f(x; θ), θ⟩ = 0 over any blocks."""
        return self._mean_a == 0

    def kernel(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """K(x, y) for all pairs, eq. (11.3)."""
        network, (rate_a, rate_b, rate_w) = self._model.network, self._scaled_speeds()

        def means(biases: list[_Bias]) -> FloatArray:
            if self._sphere is None and 1e-100 < self._std < 1e100 and not any(b.std for b in biases):
                return self._in_one(X, Y, biases)
            values, slopes, normal = self._moments(X, Y, biases)
            out = X @ Y.T
            out *= rate_w
            out += rate_b
            out *= slopes
            if network.sphere:
                out -= rate_w * normal
            out *= self._square
            if rate_a:
                values *= rate_a
                out += values
            return np.asarray(out)

        return _converged(self._law.b, means, self._sphere is not None)

    def _scaled_speeds(self) -> Speeds:
        """The rates of a, b and w times the square of the scale of f."""
        square = self._model.network.scale**2
        rate_a, rate_b, rate_w = self._speeds
        return square * rate_a, square * rate_b, square * rate_w

    def _in_one(self, X: FloatArray, Y: FloatArray, biases: list[_Bias]) -> FloatArray:
        """The kernel of Gaussian w and biases that are points: E σσ' and E σ'σ'' of a pair at once."""
        rate_a, rate_b, rate_w = self._scaled_speeds()
        core, sums = self._unit_network(), None
        for bias in biases:
            rows = self._rows(X, bias)
            columns = rows if Y is X else self._rows(Y, bias)
            slope = bias.share * self._square
            part = _core.pair_kernel(
                core,
                rows,
                columns,
                bias.share * rate_a,
                slope * rate_b,
                slope * rate_w / self._std**2,
                self._threads,
            )
            sums = part if sums is None else sums + part
        return np.asarray(sums)

    def start(self, X: FloatArray) -> FloatArray:
        """f(x) at t = 0: α·E a·E σ(⟨w, x⟩ + b)."""
        if self.centred:
            return np.zeros(len(X))
        network = self._model.network
        norms = np.linalg.norm(X, axis=1)

        def means(biases: list[_Bias]) -> FloatArray:
            out = np.zeros(len(X))
            for bias in biases:
                if self._sphere is not None:
                    out += bias.share * self._sphere.value(norms, bias.mean)
                    continue
                spread = np.sqrt((self._std * norms) ** 2 + bias.std**2)
                shift = np.full(len(X), bias.mean)
                out += bias.share * _core.smooth(network.activation._core, shift, spread)[0]
            return out

        split = self._sphere is not None
        return np.asarray(network.scale * self._mean_a * _converged(self._law.b, means, split))

    def _moments(
        self, X: FloatArray, Y: FloatArray, biases: list[_Bias]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E σσ', E σ'σ'' and, on the sphere, E of slopes times ⟨w, x⟩⟨w, y⟩/|w|²."""
        sums = list[FloatArray]()
        for bias in biases:
            if self._sphere is not None:
                parts = self._sphere.pairs(X, Y, bias.mean)
            else:
                core = self._unit_network()
                rows, columns = (self._rows(Z, bias) for Z in (X, Y))
                values = _core.pair_matrix(core, rows, columns, self._threads)
                parts = values, _core.pair_slopes(core, rows, columns, self._threads), np.zeros((1, 1))
            shares = [part if bias.share == 1 else bias.share * part for part in parts]
            sums = [one + other for one, other in zip(sums, shares, strict=True)] if sums else shares
        return sums[0], sums[1], sums[2]

    def _unit_network(self) -> _core.Network:
        network = self._model.network
        return _core.Network(network.activation._core, output="one", bias=_stored(network.has_b))

    def _rows(self, X: FloatArray, bias: _Bias) -> FloatArray:
        """Inputs as neurons on (w/std, noise of b) ~ N(0, I): [mean of b, std·x, std of b]."""
        blocks = [self._std * X]
        if self._model.network.has_b:
            blocks = [np.full((len(X), 1), bias.mean), *blocks, np.full((len(X), 1), bias.std)]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1))


def _law_of_w(model: Model, law: Product) -> tuple[float, SphereMeans | None]:
    """The standard deviation of the coordinates of a Gaussian w, or the means over a sphere."""
    w, d, network = law.w, int(model.d), model.network
    if isinstance(w, Sphere) or network.sphere:
        centred = isinstance(w, Sphere | Radial) or (isinstance(w, Normal) and w.mean == 0)
        if not centred:
            raise ValueError(
                f"init must have a w without preferred direction at infinite width, got {w!r}; {_INSTEAD}"
            )
        radius = w.radius if isinstance(w, Sphere) and not network.sphere else 1.0
        return 0.0, SphereMeans(network.activation, d, radius, network.has_b)
    if isinstance(w, Radial):
        return w.norm / math.sqrt(d), None
    if isinstance(w, Normal) and w.mean == 0:
        return w.std, None
    raise ValueError(
        f"init must have a w that is mf.init.Radial(norm), Normal(0, std) or Sphere(radius) at infinite "
        f"width, got {w!r}; {_INSTEAD}"
    )


def _stored(has_b: bool) -> str:
    return "trained" if has_b else "none"


def _biases(law: ScalarLaw | None, nodes: int, split: bool) -> Iterator[_Bias]:
    """The law of b as Gaussians; with `split` as points."""
    if law is None:
        yield _Bias(1.0, 0.0, 0.0)
    elif isinstance(law, Constant):
        yield _Bias(1.0, law.mean, 0.0)
    elif isinstance(law, Normal) and not split:
        yield _Bias(1.0, law.mean, law.std)
    elif isinstance(law, Symmetric):
        for part in _biases(law.law, nodes, split):
            yield _Bias(part.share / 2, part.mean, part.std)
            yield _Bias(part.share / 2, -part.mean, part.std)
    else:
        for node, weight in zip(*law.quadrature(nodes), strict=True):
            yield _Bias(float(weight), float(node), 0.0)


def _converged(
    law: ScalarLaw | None, means: Callable[[list[_Bias]], FloatArray], split: bool = False
) -> FloatArray:
    """Means over b: with more and more nodes until they change no more, where it has no closed form."""
    before: FloatArray | None = None
    parts: list[_Bias] = []
    for nodes in _BIASES:
        more = list(_biases(law, nodes, split))
        if before is not None and len(more) == len(parts):
            return before  # no quadrature
        parts, now = more, means(more)
        if before is not None and np.abs(now - before).max() <= _TOLERANCE * np.abs(now).max() + _ROUNDING:
            return now
        before = now
    raise ValueError(
        f"init must have a law of b over which means converge to {_TOLERANCE:g} within {_BIASES[-1]} nodes "
        f"at infinite width, got {law!r}; mf.init.{'Constant needs' if split else 'Normal or Constant need'} "
        f"none, or {_INSTEAD}"
    )
