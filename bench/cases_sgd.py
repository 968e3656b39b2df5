"""Finite networks: one-pass SGD with fresh samples drawn inside the timing, on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import _core

from .harness import Case, Prepared, installed
from .sgd_contenders import Run, batch_contenders, contenders, tanh_spans

H, DELTA = 1e-5, 0.5
NETWORK = mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5]))


def _start(network: mf.Network, n: int, d: int) -> np.ndarray:
    return mf.init.Gaussian(0.4 / np.sqrt(d)).sample(network, d, n, rng=0)


def _ours(network: mf.Network, n: int, d: int, steps: int, threads: int, **options: Any) -> Callable[[], Any]:
    """A run that goes on from call to call: each call is `steps` more steps."""

    def make() -> Callable[[], Any]:
        sampler = mf.data.IsotropicGaussians(d, DELTA)._sampler
        start = _start(network, n, d)
        run = _core.Sgd(network._core, [start], [sampler], [0], H, threads=threads, **options)
        return lambda: run.advance(run.steps[0] + steps)

    return Prepared(make)


def _theirs(make: Callable[[], Run], n: int, d: int, steps: int) -> Callable[[], Any]:
    def prepared() -> Callable[[], Any]:
        generator, start, run = np.random.default_rng(0), _start(NETWORK, n, d), make()

        def call() -> Any:
            y = generator.choice([-1.0, 1.0], size=steps)
            X = generator.standard_normal((steps, d)) * (1 + DELTA * y)[:, None]
            return run(start, X, y, H)

        return call

    return Prepared(prepared)


def _checks(runs: dict[str, Callable[[], Run]], n: int, d: int, threads: int) -> dict[str, Callable[[], Any]]:
    """The neurons of each after 100 steps on the same samples."""
    law = mf.data.IsotropicGaussians(d, DELTA)

    def ours() -> np.ndarray:
        start = _start(NETWORK, n, d)
        run = _core.Sgd(NETWORK._core, [start], [law._sampler], [0], H, threads=threads)
        run.advance(100)
        return run.theta()[0]

    def theirs(make: Callable[[], Run]) -> np.ndarray:
        return np.asarray(make()(_start(NETWORK, n, d), *law._sampler.draw(0, 0, 100), H))

    return {"mfcore": ours, **{name: lambda make=make: theirs(make) for name, make in runs.items()}}


def _case(n: int, d: int, threads: int, quick: bool, **options: Any) -> Case:
    steps = 200 if quick else max(2000, 20_000_000 // (n * d))
    slow = 20 if quick else max(100, 2_000_000 // (n * d))
    runs = contenders(threads)
    units = {name: slow if name in ("numpy", "torch") else steps for name in runs}
    case = Case(
        f"SGD N={n}, d={d}, float64",
        {
            "mfcore": _ours(NETWORK, n, d, steps, threads),
            **{name: _theirs(make, n, d, units[name]) for name, make in runs.items()},
        },
        threads=threads,
        flops=4.0 * n * d,
        tolerance=None,
        checks=_checks(runs, n, d, threads),
        units={"mfcore": steps, **units},
    )
    for name, value in options.items():
        setattr(case, name, value)
    return case


def sgd(quick: bool) -> Iterator[Case]:
    """The published sizes, on two threads and on one."""
    n, d = (60, 20) if quick else (800, 320)
    bars = {"numpy": 25.0, "jax": 8.0, "numba": 3.0, "torch": 12.0}
    yield _case(n, d, 2, quick, bars=bars, peak_bar=0.60)
    yield _case(n, d, 1, quick, bars={"numpy": 17.0}, peak_bar=0.75)
    # 10⁷ steps of N = 800, d = 40, the published run, in 20 s: the bar is 2 µs a step against 2 µs.
    steps = 200 if quick else 50_000
    yield Case(
        "SGD N=800, d=40, a step against 2 µs",
        {"mfcore": _ours(NETWORK, 800, 40, steps, 2), "2 µs": _wait(2e-6 * steps)},
        flops=4.0 * 800 * 40,
        tolerance=None,
        units={"mfcore": steps, "2 µs": steps},
        bars={"2 µs": 1.0},
    )


def small_sgd(quick: bool) -> Iterator[Case]:
    """Small networks: never slower than numba on one thread, nor with two threads than with one."""
    for n, d in ((10, 2), (30, 5), (100, 20)):
        yield _case(n, d, 1, quick, bars={"numba": 1.0} | ({"jax": 2.5} if n == 10 else {}))
        steps = 200 if quick else 100_000
        yield Case(
            f"SGD N={n}, d={d}, two threads against one",
            {"mfcore": _ours(NETWORK, n, d, steps, 2), "1 thread": _ours(NETWORK, n, d, steps, 1)},
            tolerance=None,
            bars={"1 thread": 0.95},
        )


def one_neuron(quick: bool) -> Iterator[Case]:
    """One neuron in many dimensions: drawing takes most of a step; of stored samples, memory does."""
    d, steps = (100, 200) if quick else (1000, 20_000)
    yield _case(1, d, 1, quick, flops=None, bars={"numpy": 12.0, "numba": 6.0})

    def stored() -> Callable[[], Any]:
        X, y = mf.data.IsotropicGaussians(d, DELTA)._sampler.draw(0, 0, 1000)
        sampler = mf.data.Dataset(X, y)._run_sampler()
        run = _core.Sgd(NETWORK._core, [_start(NETWORK, 1, d)], [sampler], [0], H, threads=1)
        return lambda: run.advance(run.steps[0] + steps)

    yield Case(
        f"SGD N=1, d={d}, stored samples",
        {"mfcore": Prepared(stored)},
        threads=1,
        bytes=24.0 * d,  # w in and out, x in
        tolerance=None,
        units={"mfcore": steps},
        peak_bar=0.5,
    )


def mini_batches(quick: bool) -> Iterator[Case]:
    """Steps of a batch of samples, two matrix products each."""
    n, d, batch = (20, 10, 15) if quick else (100, 100, 150)
    steps = 10 if quick else 200
    law = mf.data.IsotropicGaussians(d, DELTA)
    runs = batch_contenders()

    def given(make: Callable[[], Run]) -> Any:
        X, y = law._sampler.draw(0, 0, 20 * batch)
        return np.asarray(make()(_start(NETWORK, n, d), X.reshape(20, batch, d), y.reshape(20, batch), H))

    def ours() -> np.ndarray:
        run = _core.Sgd(
            NETWORK._core, [_start(NETWORK, n, d)], [law._sampler], [0], H, batch=batch, threads=2
        )
        run.advance(20)
        return np.asarray(run.theta()[0])

    def theirs(make: Callable[[], Run]) -> Callable[[], Any]:
        run, generator = make(), np.random.default_rng(0)

        def call() -> Any:
            y = generator.choice([-1.0, 1.0], size=(steps, batch))
            X = generator.standard_normal((steps, batch, d)) * (1 + DELTA * y)[:, :, None]
            return run(_start(NETWORK, n, d), X, y, H)

        return call

    yield Case(
        f"SGD N={n}, d={d}, batches of {batch}",
        {
            "mfcore": _ours(NETWORK, n, d, steps, 2, batch=batch),
            "35 µs": _wait(35e-6 * steps),
            **{name: Prepared(partial(theirs, make)) for name, make in runs.items()},
        },
        flops=4.0 * n * d * batch,
        tolerance=None,
        checks={"mfcore": ours, **{name: partial(given, make) for name, make in runs.items()}},
        units=dict.fromkeys(("mfcore", "35 µs", *runs), steps),
        bars={} if quick else {"35 µs": 1.0},
    )


def sgd_options(quick: bool) -> Iterator[Case]:
    """Single precision, trained a and b, Langevin noise and replicas, against the plain run."""
    n, d = (60, 20) if quick else (800, 320)
    steps = 200 if quick else 2000
    plain = _ours(NETWORK, n, d, steps, 2)
    yield Case(
        f"SGD N={n}, d={d}, float32 against float64",
        {"mfcore": _ours(NETWORK, n, d, steps, 2, single_precision=True), "float64": plain},
        flops=4.0 * n * d,
        single_precision=True,
        tolerance=None,
        units={"mfcore": steps, "float64": steps},
        bars={"float64": 1.85},
    )
    full = mf.Network(mf.activations.relu, output="trained", bias="trained")
    fixed = mf.Network(mf.activations.relu, output="fixed")
    yield Case(
        f"SGD N={n}, d={d}, ReLU with a, b, w trained against fixed a",
        {"mfcore": _ours(full, n, d, steps, 2), "fixed a": _ours(fixed, n, d, steps, 2)},
        tolerance=None,
        units={"mfcore": steps, "fixed a": steps},
        bars={"fixed a": 0.6},
    )
    slow = 5 if quick else 20
    yield Case(
        f"noisy SGD N={n}, d={d}, ridge and temperature",
        {
            "mfcore": _ours(NETWORK, n, d, steps, 2, ridge=0.1, temperature=1e-3),
            "numpy": _theirs(lambda: _noisy_numpy, n, d, slow),
        },
        tolerance=None,
        units={"mfcore": steps, "numpy": slow},
        bars={"numpy": 60.0},
    )
    n, d, steps = (20, 10, 200) if quick else (200, 100, 4000)

    def replicas(threads: int) -> Callable[[], Any]:
        sampler, start = mf.data.IsotropicGaussians(d, DELTA)._sampler, _start(NETWORK, n, d)
        runs = _core.Sgd(NETWORK._core, [start] * 16, [sampler] * 16, list(range(16)), H, threads=threads)
        return lambda: runs.advance(runs.steps[0] + steps)

    yield Case(
        f"16 replicas of N={n}, d={d}: two threads against one",
        {"mfcore": Prepared(lambda: replicas(2)), "1 thread": Prepared(lambda: replicas(1))},
        tolerance=None,
        bars={"1 thread": 1.8},
    )


def own_activation(quick: bool) -> Iterator[Case]:
    """tanh as a function of spans that numba has compiled, against ours: a call a span, not a number."""
    if not installed("numba"):
        return
    custom, built_in = mf.Network(tanh_spans()), mf.Network(mf.activations.tanh)
    for d, most in ((320, 1.25), (40, 2.5)):
        n, steps = 60 if quick else 800, 200 if quick else 800_000 // d

        def moved(network: mf.Network, n: int = n, d: int = d) -> np.ndarray:
            sampler = mf.data.IsotropicGaussians(d, DELTA)._sampler
            run = _core.Sgd(network._core, [_start(network, n, d)], [sampler], [0], H, threads=1)
            run.advance(100)
            return np.asarray(run.theta()[0])

        yield Case(
            f"SGD N={n}, d={d}, tanh of the user's against ours",
            {"mfcore": _ours(custom, n, d, steps, 1), "built in": _ours(built_in, n, d, steps, 1)},
            threads=1,
            flops=4.0 * n * d,
            tolerance=None,
            checks={"mfcore": partial(moved, custom), "built in": partial(moved, built_in)},
            units={"mfcore": steps, "built in": steps},
            bars={"built in": 1 / most},
        )


def _noisy_numpy(W: np.ndarray, X: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    generator, W = np.random.default_rng(1), W.copy()
    amplitude = np.sqrt(2 * h * 1e-3)
    for x, target in zip(X, y, strict=True):
        z = W @ x
        error = target - np.mean(np.clip(10 * (z - 0.5), 0, 10) - 2.5)
        W *= 1 - h * 0.1
        W += np.outer(h * error * 10.0 * ((z > 0.5) & (z <= 1.5)), x)
        W += amplitude * generator.standard_normal(W.shape)
    return W


def _wait(seconds: float) -> Callable[[], None]:
    from time import sleep

    return lambda: sleep(seconds)


CASES = (sgd, small_sgd, one_neuron, mini_batches, sgd_options, own_activation)
