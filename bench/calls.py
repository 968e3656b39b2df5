"""What a call costs beside its arithmetic: every public function at N = 4, d = 2, one thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mfcore as mf
import numpy as np

N, D, SAMPLES = 4, 2, 16
BARS = {f"mf.grad_psi · Dataset of {SAMPLES}": 8e-6, "steppers.SGD.step · one sample": 8e-6}  # seconds


@dataclass
class Cost:
    """Seconds of a call: the shortest average of a few rounds."""

    call: str
    seconds: float
    bar: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it holds its bar."""
        return self.bar is None or self.seconds <= self.bar


def _calls() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    theta, X, y = rng.normal(size=(N, D)), rng.normal(size=(SAMPLES, D)), rng.normal(size=SAMPLES)
    network = mf.Network(mf.activations.relu)
    data = mf.Model(mf.data.Dataset(X, y), network)
    exact = mf.Model(mf.data.IsotropicGaussians(d=D, delta=0.5), network)
    reduced = exact.reduce()
    radii = np.abs(theta[:, :1])
    calls: dict[str, Callable[[], Any]] = {}
    for words, model in ((f"Dataset of {SAMPLES}", data), ("IsotropicGaussians, exact", exact)):
        of = {"model": model}
        calls |= {
            f"mf.V · {words}": lambda m=of: mf.V(**m, theta=theta, threads=1),
            f"mf.U · {words}": lambda m=of: mf.U(**m, theta=theta, threads=1),
            f"mf.psi · {words}": lambda m=of: mf.psi(**m, theta=theta, measure=theta, threads=1),
            f"mf.grad_psi · {words}": lambda m=of: mf.grad_psi(**m, theta=theta, measure=theta, threads=1),
            f"mf.risk · {words}": lambda m=of: mf.risk(**m, measure=theta, threads=1),
        }
    sgd, flow = (
        mf.steppers.SGD(network, theta.copy(), threads=1),
        mf.steppers.Flow(data, theta.copy(), threads=1),
    )
    edges = np.linspace(0.0, 3.0, 5)
    line = mf.steppers.FiniteVolume1D(reduced, edges, np.full(4, 0.25))
    density, other = mf.Density(edges, np.full(4, 0.25)), theta[::-1].copy()
    plane = mf.Model(
        mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2), mf.Network(mf.activations.softplus)
    )
    sides = (np.linspace(0, 1, 3), np.linspace(0, 1, 3))
    square = mf.steppers.FiniteVolume2D(plane, sides, np.full((2, 2), 0.25))
    short = W = theta.copy()
    x = X[0]

    def halves() -> None:
        sgd.backward(y - sgd.forward(X), 1e-9)

    def numpy_step() -> None:
        z = W @ x
        W[...] += np.outer(1e-9 * (1.0 - np.maximum(z, 0).mean()) * (z > 0), x)

    def numpy_gradient() -> Any:
        z = X @ short.T
        error = (np.maximum(z, 0).mean(1) - y) / SAMPLES
        return (error[:, None] * (z > 0)).T @ X

    gradients = mf.grad_psi(data, theta, theta), numpy_gradient()
    sgd.step(x, 1.0, 1e-9)
    numpy_step()
    for ours, theirs in (gradients, (sgd.theta, W)):  # results agree before time is taken
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)

    return calls | {
        "mf.psi · reduced model": lambda: mf.psi(reduced, radii, radii),
        "mf.grad_psi · reduced model": lambda: mf.grad_psi(reduced, radii, radii),
        f"mf.predict · {SAMPLES} inputs": lambda: mf.predict(data, theta, X, threads=1),
        "mf.estimate · 100 samples": lambda: mf.estimate(exact, theta, samples=100, rng=0, threads=1),
        f"data.draw · {SAMPLES} samples": lambda: exact.data.draw(SAMPLES, rng=0),
        f"mf.pull · {SAMPLES} residuals": lambda: mf.pull(network, theta, X, y, threads=1),
        f"mf.theory.tangent_kernel · {SAMPLES} inputs": lambda: mf.theory.tangent_kernel(
            data, X, measure=theta, threads=1
        ),
        f"mf.free_energy · Dataset of {SAMPLES}": lambda: mf.free_energy(data, theta, threads=1),
        f"mf.dissipation · Dataset of {SAMPLES}": lambda: mf.dissipation(data, theta, threads=1),
        "mf.distance · 4 neurons each": lambda: mf.distance(theta, other),
        "mf.kl · 4 cells": lambda: mf.kl(density, density),
        "activation, 16 numbers": lambda: network.activation(y),
        "steppers.SGD.step · one sample": lambda: sgd.step(x, 1.0, 1e-9),
        f"steppers.SGD.step · batch of {SAMPLES}": lambda: sgd.step(X, y, 1e-9),
        f"steppers.SGD.run · {SAMPLES} steps": lambda: sgd.run(X, y, 1e-9),
        f"steppers.SGD.predict · {SAMPLES} inputs": lambda: sgd.predict(X),
        f"steppers.SGD.forward and backward · batch of {SAMPLES}": halves,
        "steppers.Flow.velocity": lambda: flow.velocity(),
        "steppers.Flow.step": lambda: flow.step(1e-9),
        "steppers.Flow.integrate": lambda: flow.integrate(1e-9),
        "steppers.FiniteVolume1D.step · 4 cells": lambda: line.step(1e-9),
        "steppers.FiniteVolume2D.step · 2×2 cells": lambda: square.step(1e-9),
        "NumPy: a step of SGD · one sample": numpy_step,
        f"NumPy: the gradient · Dataset of {SAMPLES}": numpy_gradient,
    }


def _cost(call: Callable[[], Any], least: float, rounds: int) -> float:
    start, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < least:
        call()
        count += 1
    count = max(1, int(count * least / elapsed))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def main(quick: bool) -> list[Cost]:
    """Measure and print all of them, as a table in Markdown."""
    print(f"| call, N = {N}, d = {D}, one thread | µs |\n|---|---|", flush=True)
    rows = []
    for name, call in _calls().items():
        cost = Cost(name, _cost(call, 1e-3 if quick else 0.02, 1 if quick else 7), BARS.get(name))
        bar = (
            ""
            if cost.bar is None
            else f" (at most {1e6 * cost.bar:g}{'' if quick or cost.ok else ': NOT HELD'})"
        )
        print(f"| {name} | {1e6 * cost.seconds:.1f}{bar} |", flush=True)
        rows.append(cost)
    return rows
