"""The update of neurons by residuals that were pulled back to them, in place and piece by piece.

For the neurons of a split network, whose noise has the address of its neuron in the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..network import Network

_PIECE = 1 << 16  # entries of θ that are handled together: they stay in the cache


@dataclass(frozen=True)
class Update:
    """θ ← θ + h·rate·(pull − λθ) + √(2h·rate/β) g: eqs. (6.1) and (6.9), of a network of scale 1.

    Args:
        network: The network.
        d: Dimension of the inputs.
        ridge: λ.
        temperature: 1/β.
        rates: Speeds of a, b and w.
        seed: Seed of the noise.
        first: Number of the first of these neurons in the whole network.
        tangent: On the sphere, take the part of the velocity along w away, as all schemes but Euler's do.
    """

    network: Network
    d: int
    ridge: float
    temperature: float
    rates: tuple[float, float, float]
    seed: int
    first: int = 0
    tangent: bool = False

    def velocity(self, theta: FloatArray, pull: FloatArray) -> FloatArray:
        """Turn `pull` in place into the velocity rate·(pull − λθ)."""
        speed, w = self._speed, self.network.blocks(self.d)["w"]
        for rows in self._pieces(theta):
            v, here = pull[rows], theta[rows]
            if self.ridge > 0:
                v -= self.ridge * here
            v *= speed
            if self.network.sphere and self.tangent:
                along = (v[:, w] * here[:, w]).sum(axis=1) / np.square(here[:, w]).sum(axis=1)
                v[:, w] -= along[:, np.newaxis] * here[:, w]
        return pull

    def step(
        self,
        theta: FloatArray,
        velocity: FloatArray,
        h: float,
        step: int,
        *,
        noise_of: float | None = None,
        project: bool = True,
    ) -> FloatArray:
        """Turn `velocity` in place into θ + h·velocity and the noise of that step.

        Args:
            theta: The neurons, not changed.
            velocity: Theirs, or the sum of those of stages.
            h: Factor of the velocity.
            step: Number of the step, the address of its noise.
            noise_of: Size of the step that the noise belongs to, if it is not h.
            project: Put neurons on the sphere back to it.
        """
        w = self.network.blocks(self.d)["w"]
        amplitude = np.sqrt(2 * (h if noise_of is None else noise_of) * self.temperature * self._speed)
        for rows in self._pieces(theta):
            moved = velocity[rows]
            moved *= h
            moved += theta[rows]
            if self.temperature > 0:
                first = (self.first + rows.start) * moved.shape[1]
                noise = _core.normals(self.seed, "langevin", step, first, moved.size)
                moved += amplitude * noise.reshape(moved.shape)
            if self.network.sphere and project:
                moved[:, w] /= np.linalg.norm(moved[:, w], axis=1, keepdims=True)
        return velocity

    @property
    def _speed(self) -> FloatArray:
        """The speed of each entry of a row, 0 where it is not trained."""
        speed = np.zeros(self.network.row(self.d))
        rates = dict(zip(("a", "b", "w"), self.rates, strict=True))
        for block, where in self.network.blocks(self.d).items():
            speed[where] = rates[block] if block in self.network.trained else 0.0
        return speed

    def _pieces(self, theta: FloatArray) -> Iterator[slice]:
        count, length = len(theta), max(1, _PIECE // theta.shape[1])
        return (slice(k, min(k + length, count)) for k in range(0, count, length))
