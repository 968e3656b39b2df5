"""The tangent kernel of given neurons (eq. (11.2)), and what infinitely many draws of them have."""

from __future__ import annotations

from .. import _core
from .._base.check import FloatArray
from ..model import Model

Speeds = tuple[float, float, float]  # of a, b and w


def of_neurons(
    model: Model,
    points: FloatArray,
    weights: FloatArray | None,
    rows: FloatArray,
    columns: FloatArray | None,
    threads: int,
    speeds: Speeds | None = None,
) -> FloatArray:
    """The kernel of neurons with masses (None: equal ones) on checked arrays, with rates of a, b and w."""
    speeds = speeds or speeds_of(model)
    kernel = _core.tangent_kernel(model.network._core, points, weights, speeds, rows, columns, threads)
    if model.network.scale != 1:
        kernel *= model.network.scale**2
    return kernel


def speeds_of(model: Model) -> Speeds:
    """The rates of a, b and w, 0 of a block that is absent or fixed."""
    a, b, w = model._speeds.values()
    return a, b, w


class GivenNeurons:
    """Infinitely many neurons that are draws of given ones (`mf.init.Points`), as `InfiniteWidth`."""

    centred = False

    def __init__(self, model: Model, points: FloatArray, threads: int, speeds: Speeds | None = None) -> None:
        self._model, self._points, self._threads, self._speeds = model, points, threads, speeds

    def kernel(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """K(x, y) for all pairs."""
        columns = None if Y is X else Y
        return of_neurons(self._model, self._points, None, X, columns, self._threads, self._speeds)

    def start(self, X: FloatArray) -> FloatArray:
        """f(x) at t = 0."""
        network = self._model.network
        return network.scale * _core.predict(network._core, self._points, None, X, self._threads)
