"""Many clouds at once, each in its own field, all under one noise: for derivatives by the initial law."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from .._base.check import FloatArray
from ..model import Model
from ..reductions._model import ReducedModel

FIRST_STEPS = 32  # of the whole run
_MOST_STEPS = 1 << 15
_JUDGED = 128  # steps from which on the changes of f tell how many more there must be
_NANOSECONDS, _MOST_SECONDS = 12.0, 600.0  # of an atom at a node; of a call
ENOUGH = 1e-9  # change of f, relative to 1 + |f|, when steps are halved


class Field(Protocol):
    """Velocities of clouds (B, m, D) with masses (B, m), and their predictions at the nodes."""

    weights: FloatArray  # p_q
    targets: FloatArray  # y_q
    noise: float  # τ²
    numbers: int  # held for each atom of each cloud

    def __call__(self, theta: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """dθ/dt, (B, m, D), and f, (B, Q)."""
        ...

    def settled(self, theta: FloatArray) -> FloatArray:
        """Rows after a step, in the domain again."""
        ...

    def kicked(self, theta: FloatArray, h: float, rng: np.random.Generator) -> FloatArray:
        """Rows after the noise of a time h, the same in every cloud."""
        ...


class NeuronField:
    """The field of neurons on nodes x_q, of weight 1/n where no weights are given."""

    def __init__(
        self,
        model: Model,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        noise: float | None = None,
    ) -> None:
        network = model.network
        self.network, self.X, self._row = network, X, network.row(0)
        self.weights, self.targets = np.full(len(y), 1 / len(y)) if weights is None else weights, y
        self.noise, self.numbers = model.data.noise_power() if noise is None else noise, 4 * len(y)
        self.rates = model._entry_speeds
        self.ridge, self._temperature = model.ridge, model.temperature

    @property
    def smooth(self) -> bool:
        """Tell whether the velocity has derivatives that `_variations` knows."""
        return not self.network.activation.kinks and not self.network.sphere

    def __call__(self, theta: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """dθ/dt and f."""
        network, row = self.network, self._row
        a = theta[..., :1] if network.has_a else np.ones((*theta.shape[:2], 1))
        z = theta[..., row:] @ self.X.T
        if network.has_b:
            z += theta[..., row - 1, None]
        value, slope = network.activation(z), a * network.activation.derivative(z)
        f = network.scale * np.matmul((masses * a[..., 0])[:, None], value)[:, 0]
        residual = network.scale * self.weights * (f - self.targets)
        slope *= residual[:, None]
        velocity = self.ridge * theta
        velocity[..., row:] += slope @ self.X
        if network.has_b:
            velocity[..., row - 1] += slope.sum(axis=-1)
        if network.has_a:
            velocity[..., 0] += np.matmul(value, residual[..., None])[..., 0]
        velocity *= -self.rates
        if network.sphere:
            w, along = theta[..., row:], velocity[..., row:]
            along -= w * (np.sum(along * w, axis=-1) / np.sum(w * w, axis=-1))[..., None]
        return velocity, f

    def settled(self, theta: FloatArray) -> FloatArray:
        """The rows; weights on the sphere have norm 1 again."""
        if self.network.sphere:
            w = theta[..., self._row :]
            w /= np.linalg.norm(w, axis=-1)[..., None]
        return theta

    def kicked(self, theta: FloatArray, h: float, rng: np.random.Generator) -> FloatArray:
        """θ + √(2h·rate·temperature) g."""
        return theta + np.sqrt(2 * h * self.rates * self._temperature) * rng.normal(size=theta.shape[-2:])

    def slopes(self, theta: FloatArray) -> FloatArray:
        """rate·∇σ*(x_q; θ_i), (Q, m, D): a step of SGD on one sample is h·(y − f) times it."""
        network, row = self.network, self._row
        a = theta[:, :1] if network.has_a else np.ones((len(theta), 1))
        z = theta[:, row:] @ self.X.T
        if network.has_b:
            z += theta[:, row - 1, None]
        gain = (a * network.activation.derivative(z)).T
        out = np.empty((len(self.X), *theta.shape))
        out[..., row:] = gain[..., None] * self.X[:, None]
        if network.has_b:
            out[..., row - 1] = gain
        if network.has_a:
            out[..., 0] = network.activation(z).T
        return network.scale * self.rates * out

    def decay(self, theta: FloatArray) -> FloatArray:
        """The velocity by weight decay, −rate·λθ."""
        return -self.rates * self.ridge * theta


class FeatureField:
    """The field of points of a reduced model."""

    def __init__(self, reduced: ReducedModel) -> None:
        self._reduced = reduced
        self.weights, self.targets, self.noise = reduced.weights, reduced.targets, reduced.noise
        self.numbers = len(self.weights) * (2 + len(reduced.coordinates))
        self._rates, self._radii = np.array(reduced.rates), np.array(reduced.nonnegative)
        self._decay = np.where(reduced.decays, reduced.ridge, 0.0)
        self._temperature, self._volume = reduced.temperature, np.array(reduced.volume)

    def __call__(self, theta: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """dz/dt and f."""
        flat = self.settled(theta).reshape(-1, theta.shape[-1])
        phi = self._reduced.features(flat).reshape(*theta.shape[:2], -1)
        f = np.matmul(masses[:, None], phi)[:, 0]
        slopes = self._reduced._gradients(flat).reshape(*phi.shape, theta.shape[-1])
        gradient = np.einsum("bmqk,bq->bmk", slopes, self.weights * (f - self.targets))
        velocity = -self._rates * (gradient + self._decay * theta)
        return np.where(self._radii & (theta <= 0), np.maximum(velocity, 0.0), velocity), f

    def settled(self, theta: FloatArray) -> FloatArray:
        """The points; radii stop at 0."""
        return np.where(self._radii, np.maximum(theta, 0.0), theta)

    def kicked(self, theta: FloatArray, h: float, rng: np.random.Generator) -> FloatArray:
        """Points after the noise; of a radius r in R^{e+1} the norm of r + noise: eq. (6.10)."""
        spread = np.sqrt(2 * h * self._rates * self._temperature)
        moved = theta + spread * rng.normal(size=theta.shape[-2:])
        for c in np.flatnonzero(self._radii):
            across = rng.chisquare(self._volume[c], size=theta.shape[-2]) if self._volume[c] > 0 else 0.0
            moved[..., c] = np.sqrt(moved[..., c] ** 2 + spread[c] ** 2 * across)
        return moved


def predictions(
    field: Field,
    start: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    steps: int,
    *,
    now: float = 0.0,
    noise: int | None = None,
) -> FloatArray:
    """f at the nodes at given times, (B, times, Q), for clouds of masses (B, m) that are at `start` at time
    `now`: at the same atoms, (m, D), or each at its own, (B, m, D).

    The classical Runge–Kutta scheme, `steps` steps for the whole run, at least one between two times. It is
    a smooth function of the masses, so that differences in them are accurate. With noise, of the seed
    `noise`, half of that of a step comes before its drift and half after it.
    """
    theta = np.repeat(start[None], len(masses), axis=0) if start.ndim == 2 else start
    found = np.empty((len(masses), len(times), len(field.targets)))
    done = 0
    for k, t in enumerate(times):
        count = int(np.ceil(steps * (t - now) / times[-1])) if t > now else 0
        h = (t - now) / max(count, 1)
        for _ in range(count):
            if noise is None:
                theta = drifted(field, theta, masses, h)
            else:
                rng = np.random.default_rng([noise, done])
                theta = drifted(field, field.kicked(theta, 0.5 * h, rng), masses, h)
                theta = field.kicked(theta, 0.5 * h, rng)
            done += 1
        found[:, k] = field(theta, masses)[1]
        now = float(t)
    return found


def drifted(field: Field, theta: FloatArray, masses: FloatArray, h: float) -> FloatArray:
    """Atoms after one step of the noiseless flow, forwards or back."""
    one = field(theta, masses)[0]
    two = field(theta + 0.5 * h * one, masses)[0]
    three = field(theta + 0.5 * h * two, masses)[0]
    four = field(theta + h * three, masses)[0]
    return field.settled(theta + (h / 6) * (one + 2 * two + 2 * three + four))


def steps_for(
    field: Field,
    start: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    enough: float = ENOUGH,
    first: int = FIRST_STEPS,
) -> int:
    """Steps at which f no longer changes; a ValueError as soon as it is clear that they are too many."""
    if times[-1] == 0:
        return 1
    steps, before = first, math.inf
    coarse = predictions(field, start, masses[None], times, steps)
    while steps < _MOST_STEPS:
        steps *= 2
        fine = predictions(field, start, masses[None], times, steps)
        change, most = float(np.abs(fine - coarse).max()), enough * (1 + float(np.abs(fine).max()))
        if change <= most:
            return steps
        if steps >= _JUDGED and change < before:  # it falls by the same factor with each halving
            halvings = math.log(change / most) / math.log(before / change)
            if steps * 2**halvings > _MOST_STEPS:
                break
        coarse, before = fine, change
    raise ValueError(
        f"horizon must be reached by {_MOST_STEPS} steps with f accurate to {enough:.0e}, got {times[-1]:g}, "
        f"where f changes by {change:.1e} from {steps // 2} to {steps} steps; try a shorter one, or a smooth "
        "activation"
    )


def check_cost(sources: int, atoms: int, field: Field, steps: int) -> None:
    """Refuse differences that would take too long, by a count of operations, not by a measured time."""
    nodes = len(field.targets)
    seconds = 1e-9 * _NANOSECONDS * 16.0 * sources * atoms * nodes * steps
    if seconds > _MOST_SECONDS:
        raise ValueError(
            f"atoms must be fewer for fluctuations by differences, which take about {seconds:.0f} s here "
            f"({sources} directions, {atoms} atoms, {nodes} nodes, at least {steps} steps), got {atoms}. The "
            "start of neurons off the sphere whose activation is smooth needs no differences"
        )
