"""First and second variations of f by the initial law, for neurons of smooth σ: eqs. (13.23) to (13.25).

Each source, one more neuron at an atom of ρ₀, displaces all atoms. The displacements of first order of many
sources go side by side, by products of matrices. Of those of second order only the mean over the sources is
needed, and it solves one equation, in which the first ones are a force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray
from ._ensembles import NeuronField

_THIRD = 2e-3  # distance of the differences that give σ'''


class Moved(NamedTuple):
    """Atoms, their displacements by each source, and their mean second displacement."""

    theta: FloatArray  # (m, D)
    first: FloatArray  # (J, m, D)
    second: FloatArray  # (m, D)

    def along(self, other: Moved, h: float) -> Moved:
        """These, moved by h times the others."""
        return Moved(
            self.theta + h * other.theta, self.first + h * other.first, self.second + h * other.second
        )


class Answers(NamedTuple):
    """The predictions f at the nodes, and their derivatives."""

    f: FloatArray  # (Q,)
    first: FloatArray  # D f, (J, Q)
    second: FloatArray  # Σ_j w_j D² f, (Q,)


class Variations:
    """The variational equations of a cloud in its own field.

    Args:
        field: The field of the neurons; σ must have three derivatives, and w must not be on a sphere.
        masses: w_i of the atoms.
        sources: Numbers of the atoms that are sources.
    """

    def __init__(self, field: NeuronField, masses: FloatArray, sources: npt.NDArray[np.intp]) -> None:
        self.field, self._masses, self._sources = field, masses, sources
        network = field.network
        self._a = int(network.has_a)  # entries of a row before (b, w)
        self._x = np.concatenate([np.ones((len(field.X), int(network.has_b))), field.X], axis=1)
        k = self._x.shape[1]
        self._xx = (self._x[:, :, None] * self._x[:, None, :]).reshape(-1, k * k)

    def answers(self, state: Moved) -> Answers:
        """f, and its variations."""
        return self._velocity(state)[1]

    def step(self, state: Moved, h: float) -> Moved:
        """One step of the classical Runge–Kutta scheme."""
        one = self._velocity(state)[0]
        two = self._velocity(state.along(one, 0.5 * h))[0]
        three = self._velocity(state.along(two, 0.5 * h))[0]
        four = self._velocity(state.along(three, h))[0]
        for slope, share in ((one, 1.0), (two, 2.0), (three, 2.0), (four, 1.0)):
            state = state.along(slope, share * h / 6)
        return state

    def _velocity(self, state: Moved) -> tuple[Moved, Answers]:
        field, x, w, first = self.field, self._x, self._masses, state.first
        network, scale, m, k = field.network, field.network.scale, len(state.theta), self._x.shape[1]
        rows = state.theta.shape[1]
        sigma = network.activation
        a = state.theta[:, :1] if network.has_a else np.ones((m, 1))
        z = state.theta[:, self._a :] @ x.T  # (m, Q), as all that follows
        value, one, two = sigma(z), sigma.derivative(z), sigma.second_derivative(z)
        h = _THIRD * (1 + np.abs(z))
        far, near = (
            (sigma.second_derivative(z + d) - sigma.second_derivative(z - d)) / (2 * d) for d in (2 * h, h)
        )
        three = near + (near - far) / 3
        slopes = np.empty((m, rows, len(x)))  # ∇σ*(x_q; θ_i)
        np.multiply((a * one)[:, None], x.T, out=slopes[:, self._a :])
        if network.has_a:
            slopes[:, 0] = value
        flat = slopes.reshape(m * rows, -1)
        phi = a * value
        mean = w @ phi
        f, c = scale * mean, scale * field.weights * (scale * mean - field.targets)
        # First order: what each source adds, and what the displaced atoms do.
        g = scale * (phi[self._sources] - mean + (first * w[:, None]).reshape(len(first), -1) @ flat)
        hessians = np.zeros((m, rows, rows))
        hessians[:, self._a :, self._a :] = ((c * a * two) @ self._xx).reshape(m, k, k)
        if network.has_a:
            mixed = (c * one) @ x
            hessians[:, 0, 1:], hessians[:, 1:, 0] = mixed, mixed
        pull = scale * ((g * field.weights) @ flat.T).reshape(first.shape)
        push = np.einsum("jmd,mde->jme", first, hessians, optimize=True) + field.ridge * first + pull
        # Second order, averaged over the sources.
        share = w[self._sources]
        spread = np.einsum("j,jmd,jme->mde", share, first, first, optimize=True)
        curved = spread[:, self._a :, self._a :].reshape(m, k * k) @ self._xx.T
        force = c * a * three * curved
        met = ((first * share[:, None, None]).reshape(len(first), -1).T @ g).reshape(m, rows, -1)
        turned = np.einsum("mkq,qk->mq", met[:, self._a :], x, optimize=True)
        force += 2 * scale * field.weights * (a * two) * turned
        bent = a * two * curved
        if network.has_a:
            tied = spread[:, 0, 1:] @ x.T
            force += 2 * c * two * tied + 2 * scale * field.weights * one * met[:, 0]
            bent += 2 * one * tied
        own = np.einsum("jdq,jd->jq", slopes[self._sources], first[np.arange(len(first)), self._sources])
        answer = (w[:, None] * state.second).ravel() @ flat + w @ bent + 2 * share @ own
        answer *= scale
        bias = np.einsum("md,mde->me", state.second, hessians) + field.ridge * state.second
        bias[:, self._a :] += force @ x
        if network.has_a:
            bias[:, 0] += (c * two * curved + 2 * scale * field.weights * one * turned).sum(axis=1)
        bias += scale * (flat @ (field.weights * answer)).reshape(m, rows)
        drift = field.ridge * state.theta + (flat @ c).reshape(m, rows)
        rates = -field.rates
        return Moved(rates * drift, rates * push, rates * bias), Answers(f, g, answer)


def variations(
    field: NeuronField,
    points: FloatArray,
    masses: FloatArray,
    sources: npt.NDArray[np.intp],
    times: FloatArray,
    steps: int,
    *,
    noise: int | None,
    coarse: bool = False,
) -> list[Answers]:
    """The answers at given times to sources at t = 0, by about `steps` steps for the whole run, an even
    number between two times; `coarse`: by half as many, on the same Brownian path.
    """
    equations = Variations(field, masses, sources)
    state = Moved(points, np.zeros((len(sources), *points.shape)), np.zeros(points.shape))
    found, now, done = [], 0.0, 0
    for t in times:
        pairs = int(np.ceil(0.5 * steps * (t - now) / times[-1])) if t > now else 0
        h = 0.5 * (t - now) / max(pairs, 1)
        for _ in range(pairs):
            state = _pair(equations, state, h, noise, done, coarse)
            done += 1
        found.append(equations.answers(state))
        now = float(t)
    return found


def _pair(equations: Variations, state: Moved, h: float, noise: int | None, done: int, coarse: bool) -> Moved:
    """Two steps of length h, or one of length 2h with their noise: half of a step's before it, half after."""
    if noise is None:
        return equations.step(state, 2 * h) if coarse else equations.step(equations.step(state, h), h)
    rng = np.random.default_rng([noise, done])

    def kicked(state: Moved) -> Moved:
        return state._replace(theta=equations.field.kicked(state.theta, 0.5 * h, rng))

    state = kicked(state)
    if not coarse:
        state = equations.step(state, h)
    state = kicked(state)
    if coarse:
        state = equations.step(state, 2 * h)
    state = kicked(state)
    if not coarse:
        state = equations.step(state, h)
    return kicked(state)
