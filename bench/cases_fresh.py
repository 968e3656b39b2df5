"""What a fresh process meets: first calls, wide networks, short runs, steps on a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any
from unittest import mock

import mfcore as mf
import numpy as np
from mfcore.neurons._sgd import SgdRung

from .harness import Case, Prepared

RELU = mf.Network(mf.activations.relu)


def dataset(quick: bool) -> Iterator[Case]:
    """Gradient descent and the gradient of Ψ on 1000 samples, ReLU with bias, one thread."""
    n, samples, d, steps = (30, 100, 5, 2) if quick else (300, 1000, 20, 50)
    X, y = mf.data.IsotropicGaussians(d=d, delta=0.5).draw(samples, rng=0)
    network = mf.Network(mf.activations.relu, bias="trained")
    model = mf.Model(mf.data.Dataset(X, y), network, mf.init.Gaussian(std=1 / np.sqrt(d)))
    h, theta = 1e-3, model.init.sample(network, d, n, rng=1)  # type: ignore[union-attr]

    def gradient(theta: np.ndarray) -> np.ndarray:
        z = X @ theta[:, 1:].T + theta[:, 0]
        on = (z > 0) * ((np.maximum(z, 0).mean(axis=1) - y) / samples)[:, None]
        return np.column_stack([on.sum(axis=0), on.T @ X])

    def descent(threads: int) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            flow = mf.steppers.Flow(model, theta.copy(), threads=threads)
            for _ in range(steps):
                flow.step(h)
            return flow.theta

        return run

    def numpy() -> np.ndarray:
        state = theta.copy()
        for _ in range(steps):
            state -= h * gradient(state)
        return state

    units = dict.fromkeys(("mfcore", "numpy", "2 threads"), steps)
    yield Case(
        f"Flow.step on a Dataset, {samples}×{d}, N={n}",
        {"mfcore": descent(1), "numpy": numpy, "2 threads": descent(2)},
        threads=1,
        flops=4.0 * samples * n * d,
        units=units,
        bars={"numpy": 3.0},
    )
    yield Case(
        f"grad psi on it, N={n}",
        {
            "mfcore": lambda: mf.grad_psi(model, theta, theta, threads=1),
            "numpy": lambda: gradient(theta),
        },
        threads=1,
        flops=4.0 * samples * n * d,
        bars={"numpy": 3.0},
    )

    def solve() -> Any:
        run = mf.solve(model, mf.GD(n, step=h), horizon=h * steps, save_at=[], risk=False, rng=0, threads=1)
        return run.final

    yield Case(
        f"solve with GD on it, {steps} steps",
        {"mfcore": solve, "numpy": numpy},
        threads=1,
        flops=4.0 * samples * n * d,
        tolerance=None,  # they start from other neurons
        units=units,
    )


def wide(quick: bool) -> Iterator[Case]:
    """Steps on the caller's neurons, batch 256, and short runs: θ goes through memory."""
    d, batch = (5, 16) if quick else (20, 256)
    rng = np.random.default_rng(0)
    X, y, h = rng.normal(size=(batch, d)), rng.normal(size=batch), 1e-3
    for n in (60,) if quick else (10_000, 100_000, 1_000_000):

        def start(n: int = n) -> np.ndarray:
            return np.random.default_rng(1).normal(size=(n, d))

        def ours(start: Callable[[], np.ndarray] = start) -> Callable[[], np.ndarray]:
            sgd = mf.steppers.SGD(RELU, start())

            def run() -> np.ndarray:
                sgd.step(X, y, h)
                return sgd.theta

            return run

        def numpy(start: Callable[[], np.ndarray] = start) -> Callable[[], np.ndarray]:
            w = start()

            def run() -> np.ndarray:
                z = X @ w.T
                error = (y - np.maximum(z, 0).mean(axis=1)) * (h / batch)
                w[...] += ((z > 0) * error[:, None]).T @ X
                return w

            return run

        flops = 4.0 * batch * n * d
        contenders: dict[str, Callable[[], Any]] = {
            "mfcore": Prepared(ours),
            "80 GFlops": partial(sleep, flops / 80e9),
        }
        if n <= 10_000:
            contenders["numpy"] = Prepared(numpy)
        yield Case(
            f"SGD.step, N={n:,}, d={d}, batch {batch}",
            contenders,
            flops=flops,
            checks={name: call for name, call in contenders.items() if name != "80 GFlops"},
            bars={} if quick else {"80 GFlops": 1.0},
        )
    n, d, steps = (60, 10, 8) if quick else (20_000, 1000, 80)
    X, y = rng.normal(size=(steps, d)), rng.normal(size=steps)

    def short() -> Callable[[], np.ndarray]:
        sgd = mf.steppers.SGD(RELU, np.random.default_rng(1).normal(size=(n, d)))

        def run() -> np.ndarray:
            sgd.run(X, y, h)
            return sgd.theta[:100]

        return run

    def loop() -> Callable[[], np.ndarray]:
        w = np.random.default_rng(1).normal(size=(n, d))

        def run() -> np.ndarray:
            for x, target in zip(X, y, strict=True):
                z = w @ x
                w[...] += np.outer(h * (target - np.maximum(z, 0).mean()) * (z > 0), x)
            return w[:100]

        return run

    yield Case(
        f"SGD.run on {steps} samples, N={n:,}, d={d}",
        {"mfcore": Prepared(short), "numpy": Prepared(loop)},
        flops=4.0 * n * d,
        units={"mfcore": steps, "numpy": steps},
        long=True,
    )


def short_runs(quick: bool) -> Iterator[Case]:
    """What `SGD.run` costs beside its steps: runs of 8 samples, the first one too, and three copies of θ."""
    rng = np.random.default_rng(0)
    sizes = ((100_000, 100), (10_000, 1000), (1_000_000, 100), (100_000, 1000))
    for n, d in ((300, 10),) if quick else sizes:
        X, y = rng.normal(size=(8, d)), rng.normal(size=8)

        def start(n: int = n, d: int = d) -> np.ndarray:
            theta = np.empty((n, d))
            theta[...] = np.random.default_rng(1).normal(size=d) / np.sqrt(d)
            return theta

        def ours(
            start: Callable[[], np.ndarray] = start, X: np.ndarray = X, y: np.ndarray = y
        ) -> Callable[[], np.ndarray]:
            sgd = mf.steppers.SGD(RELU, start())

            def run() -> np.ndarray:
                sgd.run(X, y, 1e-3)
                return sgd.theta[:100]

            return run

        def steps(
            start: Callable[[], np.ndarray] = start, X: np.ndarray = X, y: np.ndarray = y
        ) -> Callable[[], np.ndarray]:
            sgd = mf.steppers.SGD(RELU, start())

            def run() -> np.ndarray:
                for x, label in zip(X, y, strict=True):
                    sgd.step(x, label, 1e-3)
                return sgd.theta[:100]

            return run

        def copies(start: Callable[[], np.ndarray] = start) -> Callable[[], None]:
            theta = start()
            to = theta.copy()

            def run() -> None:
                for _ in range(3):
                    np.copyto(to, theta)

            return run

        yield Case(
            f"SGD.run on 8 samples, θ of {n * d * 8 // 10**6} MB, d={d}",
            {"mfcore": Prepared(ours), "steps": Prepared(steps), "3 copies": Prepared(copies)},
            flops=8 * 4.0 * n * d,
            checks={"mfcore": Prepared(ours), "steps": Prepared(steps)},
            bars={}
            if quick
            else {"3 copies": 0.75},  # the copies' time over ours, which has eight steps in it
            long=True,
        )


def first_step(quick: bool) -> Iterator[Case]:
    """A run of one step: its neurons are drawn, stored, moved once and given back."""
    n, d = (1000, 10) if quick else (1_000_000, 100)
    model = mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), RELU, mf.init.Gaussian(std=1 / np.sqrt(d)))

    def ours() -> Any:
        run = mf.solve(model, mf.SGD(n, step=1e-3), horizon=1e-3, save_at=[], risk=False, rng=0)
        return len(run.final)

    def numpy() -> Any:
        w = np.random.default_rng(0).standard_normal((n, d)) / np.sqrt(d)
        x, y = model.data.draw(1, rng=0)
        z = w @ x[0]
        w += np.outer(1e-3 * (y[0] - np.maximum(z, 0).mean()) * (z > 0), x[0])
        return len(w)

    yield Case(
        f"mf.solve of one step, SGD({n:,}), d={d}",
        {"mfcore": ours, "numpy": numpy},
        tolerance=None,
        long=True,
    )


class _FirstStepError(Exception):
    """Raised where a run is about to do its first step."""


def before_first_step(quick: bool) -> Iterator[Case]:
    """What comes before the first step of a wide network: its neurons are drawn, stored, and predict."""
    n, d = (1000, 10) if quick else (1_000_000, 100)
    model = mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), RELU, mf.init.Gaussian(std=1 / np.sqrt(d)))

    def stop(*_: Any) -> None:
        raise _FirstStepError

    def ours() -> None:
        with mock.patch.object(SgdRung, "advance", stop), suppress(_FirstStepError):
            mf.solve(model, mf.SGD(n, step=1e-3), horizon=1.0, save_at=[], risk=False, rng=0)

    def filled() -> None:
        np.ones((n, d))

    yield Case(
        f"mf.solve before its first step, SGD({n:,}), d={d}",
        {"mfcore": ours, "numpy ones": filled, "0.8 s": lambda: sleep(0.8)},
        tolerance=None,
        bars={} if quick else {"0.8 s": 1.0},
        long=True,
    )


CASES = (dataset, wide, short_runs, first_step, before_first_step)
