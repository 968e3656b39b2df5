"""Random problems for SGD, and the loop that solves each as one writes it down.

    PYTHONPATH=python:tests/python python -m neurons.random_sgd FIRST COUNT

compares COUNT problems from number FIRST on, by every method here, and shows those that differ.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import mfcore as mf
import numpy as np
from mfcore import _core
from mfcore._base.rng import Seed
from scipy.special import erf, expit, ndtr

NUMBERS = [0.3, -0.5, 0.25]  # of a polynomial and a Hermite series

# σ with its value and slope.
ACTIVATIONS = [
    (mf.activations.relu, lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0),
    (mf.activations.linear, lambda z: z, np.ones_like),
    (mf.activations.tanh, np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    (mf.activations.sigmoid, expit, lambda z: expit(z) * expit(-z)),
    (mf.activations.erf, erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-z * z)),
    (mf.activations.softplus, lambda z: np.logaddexp(0, z), expit),
    (
        mf.activations.gelu,
        lambda z: z * ndtr(z),
        lambda z: ndtr(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi),
    ),
    (
        mf.activations.polynomial(NUMBERS),
        lambda z: NUMBERS[0] + NUMBERS[1] * z + NUMBERS[2] * z * z,
        lambda z: NUMBERS[1] + 2 * NUMBERS[2] * z,
    ),
    (
        mf.activations.hermite(NUMBERS),
        lambda z: NUMBERS[0] + NUMBERS[1] * z + NUMBERS[2] * (z * z - 1) / np.sqrt(2),
        lambda z: NUMBERS[1] + NUMBERS[2] * np.sqrt(2) * z,
    ),
    (
        mf.activations.piecewise_linear(knots=[-0.5, 0.5], values=[-0.3, 1.0]),
        lambda z: np.interp(z, [-0.5, 0.5], [-0.3, 1.0]),
        lambda z: ((z > -0.5) & (z < 0.5)) * 1.3,
    ),
]

EPS = np.finfo(float).eps
RESERVE = 100  # larger terms of sums, in sizes of what they add up to
MOST = 1e9  # entries that a problem may reach


@dataclass(frozen=True)
class Problem:
    """A network with its samples and what SGD does to it."""

    number: int
    network: mf.Network
    value: object
    slope: object
    theta: np.ndarray
    X: np.ndarray  # of all steps, one mini-batch after the other
    y: np.ndarray
    batch: int
    sizes: np.ndarray  # h of each step
    ridge: float
    temperature: float
    rates: dict[str, float]

    @property
    def steps(self):
        return len(self.sizes)

    def plain(self, theta=None):
        """The neurons after the last step, by a loop over steps."""
        theta = (self.theta if theta is None else theta).copy()
        network, n, alpha = self.network, len(theta), self.network.scale
        blocks = network.blocks(self.X.shape[1])
        speeds = {block: self.rates.get(block, 1.0) for block in network.trained}
        for k, h in enumerate(self.sizes):
            batch = slice(k * self.batch, (k + 1) * self.batch)
            x, w = self.X[batch], theta[:, blocks["w"]]
            a = theta[:, 0] if network.has_a else np.ones(n)
            z = x @ w.T + (theta[:, blocks["b"]].T if network.has_b else 0.0)
            e = (self.y[batch] - alpha * self.value(z) @ a / n) / self.batch
            back = (e[:, None] * self.slope(z)) * a
            forces = {"a": (e @ self.value(z))[:, None], "b": back.sum(axis=0)[:, None], "w": back.T @ x}
            moved = theta.copy()
            for block, speed in speeds.items():
                at = blocks[block]
                moved[:, at] += h * speed * (alpha * forces[block] - self.ridge * theta[:, at])
                if self.temperature:
                    moved[:, at] += math.sqrt(2 * h * speed * self.temperature) * self.noise(k)[:, at]
            if network.sphere:
                moved[:, blocks["w"]] /= np.linalg.norm(moved[:, blocks["w"]], axis=1, keepdims=True)
            theta = moved
        return theta

    def tolerance(self, end):
        """What rounding may do: sums of N + d + B terms at every step, grown as a perturbation does.

        A second start, 1e-7 of their size away, shows that growth. RESERVE is for sums that cancel.
        """
        rng = np.random.default_rng(self.number)
        size = max(np.abs(self.theta).max(), np.abs(end).max())
        nudged = self.theta + 1e-7 * size * rng.uniform(-1, 1, self.theta.shape) * self.moving()
        growth = max(1.0, np.abs(self.plain(nudged) - end).max() / (1e-7 * size))
        terms = len(self.theta) + self.X.shape[1] + self.batch
        return RESERVE * EPS * self.steps * terms * growth * size

    def noise(self, step):
        """The normal numbers of a step, those of all rungs with this seed."""
        numbers = _core.normals(self.number, "langevin", step, 0, self.theta.size)
        return numbers.reshape(self.theta.shape)

    def moving(self):
        """1 for the entries that are trained, 0 for the others."""
        mask = np.ones(self.theta.shape[1])
        mask[list(self.network.still)] = 0
        return mask

    def model(self):
        law = mf.data.Stream(self._source, d=self.X.shape[1])
        init = mf.init.Points(self.theta)
        forces = {"ridge": self.ridge, "temperature": self.temperature, "rates": self.rates}
        return mf.Model(law, self.network, init, **forces)

    def _source(self, n, rng):
        """The samples of this problem for the first block of the stream that asks; none of them is random."""
        block = int(rng.bit_generator.state["state"]["counter"][3])
        first = np.arange(block * n, block * n + n) % len(self.X)
        return self.X[first], self.y[first]


def problem(number):
    """Problem number so and so; its numbers stay within MOST."""
    rng = np.random.default_rng([27, number])
    sigma, value, slope = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    network = mf.Network(
        sigma,
        output=rng.choice(["one", "fixed", "trained"]).item(),
        bias=rng.choice(["none", "fixed", "trained"]).item(),
        sphere=bool(rng.random() < 0.25),
        scale=float(rng.choice([1.0, 1.0, 3.7, 0.2])),
    )
    n = int(rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 130, 300]))
    d = int(rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 63, 64, 65, 130]))
    batch = int(rng.choice([1, 1, 1, 1, 2, 3, 7, 8, 16, 33, 70]))
    steps = int(rng.integers(1, 90 if batch < 8 else 20))
    theta = rng.normal(size=(n, network.row(d))) * rng.choice([1e-6, 0.1, 1.0, 1.0, 5.0])
    w = theta[:, network.row(0) :]
    w /= np.linalg.norm(w, axis=1, keepdims=True) if network.sphere else np.sqrt(d)
    X = rng.normal(size=(steps * batch, d)) * rng.choice([1e-3, 1.0, 1.0, 1.0, 30.0])
    y = rng.choice([1e-4, 1.0, 1.0, 20.0]) * (np.sign(X[:, 0]) + 0.1 * rng.normal(size=len(X)))
    ridge = float(rng.choice([0.0, 0.1, 2.0, 30.0]))
    rates = {b: float(10 ** rng.uniform(-2, 1)) for b in network.trained if rng.random() < 0.5}
    fastest = max([1.0, *rates.values()])
    h = float(rng.choice([1e-6, 0.01, 0.1, 0.9])) / fastest / max(1.0, ridge)
    factors = (1.0 + np.arange(steps)) ** -float(rng.choice([0.0, 0.0, 0.25, 1.0]))
    temperature = float(rng.choice([0.0, 0.0, 0.0, 1e-3, 1.0]))
    while True:
        made = Problem(
            number, network, value, slope, theta, X, y, batch, h * factors, ridge, temperature, rates
        )
        with np.errstate(all="ignore"):
            end = made.plain()
            size = np.abs(end).max()
            if np.isfinite(end).all() and size < MOST and made.tolerance(end) < 1e-7 * size:
                return made, end
        h /= 10


def by_method(problem, **options):
    """The end of a run of `mf.SGD`, which is looked at on the way."""
    h, times = problem.sizes, np.cumsum(problem.sizes)
    schedule = None if h[0] == h[-1] else lambda t: np.interp(t, h[0] * np.arange(len(h)), h / h[0])
    coupled = problem.temperature > 0
    method = mf.SGD(len(problem.theta), float(h[0]), problem.batch, schedule, coupled=coupled, **options)
    run = method.begin(problem.model(), problem.number, 1 + problem.number % 3)
    for t in (times[problem.number % len(h)], times[-1]):
        assert run.advance(float(t), math.inf).reached
        state = run.measure()
    assert run.meta()["steps"] == problem.steps
    return state


def stepper_of(problem, theta, **options):
    return mf.steppers.SGD(
        problem.network,
        theta,
        ridge=problem.ridge,
        temperature=problem.temperature,
        rates=problem.rates,
        rng=Seed(problem.number),
        **options,
    )


def batches(problem):
    for k, h in enumerate(problem.sizes):
        rows = slice(k * problem.batch, (k + 1) * problem.batch)
        yield problem.X[rows], problem.y[rows], float(h)


def by_steps(problem):
    """The end of a loop over `steppers.SGD.step`."""
    theta = problem.theta.copy()
    stepper = stepper_of(problem, theta)
    for X, y, h in batches(problem):
        stepper.step(X, y, h)
    return theta


def by_halves(problem):
    """The end of a loop over two steppers that have half of the neurons each."""
    middle, total = len(problem.theta) // 2, len(problem.theta)
    parts = [p for p in (problem.theta[:middle].copy(), problem.theta[middle:].copy()) if len(p)]
    firsts = [0, middle] if middle else [0]
    steppers = [
        stepper_of(problem, part, first_neuron=first, total=total)
        for part, first in zip(parts, firsts, strict=True)
    ]
    for X, y, h in batches(problem):
        residual = y - sum(s.forward(X) for s in steppers)
        for s in steppers:
            s.backward(residual, h)
    return np.concatenate(parts)


def by_run(problem):
    """The end of `steppers.SGD.run`, which takes one sample a step."""
    theta = problem.theta.copy()
    stepper_of(problem, theta).run(problem.X, problem.y, problem.sizes)
    return theta


def differences(number):
    """By every way of solving a problem, its difference to the plain loop over what rounding may do."""
    asked, end = problem(number)
    allowed = asked.tolerance(end)
    ways = {"SGD": by_method, "step": by_steps, "halves": by_halves}
    if asked.batch == 1:
        ways["run"] = by_run
    return {name: float(np.abs(way(asked) - end).max() / allowed) for name, way in ways.items()}


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    largest = 0.0
    for k in range(first, first + count):
        found = differences(k)
        largest = max(largest, *found.values())
        if max(found.values()) > 1:
            print(k, found)
    print(f"{count} problems, the largest difference is {largest:.2g} of what rounding may do")
