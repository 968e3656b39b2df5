"""Every kernel that runs in a team, in sizes of some milliseconds: two threads against one, the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mfcore as mf
import numpy as np

from .harness import Case, Prepared

TANH = mf.Network(mf.activations.tanh, output="trained")
KNOTS = mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5]))
RELU = mf.Network(mf.activations.relu)


def _model(network: mf.Network, d: int, **options: Any) -> mf.Model:
    law = mf.data.IsotropicGaussians(d=d, delta=0.5)
    start = mf.init.Radial(0.4)
    if network.has_a:
        start = mf.init.Product(a=mf.init.Uniform(-1, 1), w=start)
    return mf.Model(law, network, start, **options)


def _dataset(n: int, d: int) -> mf.Model:
    X, y = mf.data.IsotropicGaussians(d=d, delta=0.5).draw(n, rng=0)
    network = mf.Network(mf.activations.relu, bias="trained")
    return mf.Model(mf.data.Dataset(X, y), network, mf.init.Gaussian(std=1 / np.sqrt(d)))


def _final(model: mf.Model, method: Any, horizon: float, threads: int) -> np.ndarray:
    run = mf.solve(model, method, horizon=horizon, save_at=[], risk=False, rng=0, threads=threads)
    final: Any = run.final
    return np.asarray(getattr(final, "mass", getattr(final, "points", final)))


def _case(name: str, make: Callable[[int], Callable[[], Any]]) -> Case:
    teams = {"mfcore": Prepared(lambda: make(2)), "1 thread": Prepared(lambda: make(1))}
    return Case(name, teams, tolerance=0.0)  # type: ignore[arg-type]


def expectations(quick: bool) -> Iterator[Case]:
    """Averages over samples, nodes and in closed form."""
    n, samples = (20, 200) if quick else (300, 2000)
    tanh, relu, knots = _model(TANH, 50), _model(RELU, 20), _model(KNOTS, 40)
    theta, w, v = (m.init.sample(m.network, int(m.d), n, rng=1) for m in (tanh, relu, knots))  # type: ignore[union-attr]
    rule = mf.MonteCarlo(samples, rng=0)
    X = np.random.default_rng(0).normal(size=(10 * samples, 50))

    def estimate(threads: int) -> tuple[np.ndarray, ...]:
        e = mf.estimate(tanh, theta, samples=samples, rng=0, threads=threads)
        return e.V, e.U  # type: ignore[return-value]

    calls: dict[str, Callable[[int], Any]] = {
        "estimate of V and U": estimate,
        "V over samples": lambda k: mf.V(tanh, theta, expectation=rule, threads=k),
        "U over samples": lambda k: mf.U(tanh, theta, expectation=rule, threads=k),
        "gradient over samples": lambda k: mf.grad_psi(tanh, theta, theta, expectation=rule, threads=k),
        "predictions": lambda k: mf.predict(tanh, theta, X, threads=k),
        "ReLU pairs, gradient": lambda k: mf.grad_psi(relu, w, w, threads=k),
        "ReLU pairs, matrix U": lambda k: mf.U(relu, w, threads=k),
        "pairs with knots, gradient": lambda k: mf.grad_psi(knots, v, v, threads=k),
    }
    for name, call in calls.items():
        yield _case(name, lambda k, call=call: lambda: call(k))


def networks(quick: bool) -> Iterator[Case]:
    """Networks in motion: SGD in blocks, with noise, in batches, by hand; gradient descent; flows."""
    n, steps = (20, 20) if quick else (400, 1000)
    model, noisy, data = _model(KNOTS, 100), _model(KNOTS, 100, temperature=1e-3), _dataset(1000, 20)
    rng = np.random.default_rng(0)
    start, wide = rng.normal(size=(n, 21)), rng.normal(size=(50 * n, 20))
    X, y = rng.normal(size=(256, 20)), rng.normal(size=256)

    def solved(problem: Any, method: Any, count: int) -> Callable[[int], Callable[[], Any]]:
        def make(threads: int) -> Callable[[], Any]:
            span = method.step * count
            return lambda: _final(problem, method, span, threads)

        return make

    def stepper(threads: int, act: Callable[[mf.steppers.SGD], None]) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            sgd = mf.steppers.SGD(RELU, wide.copy(), threads=threads)
            act(sgd)
            return sgd.theta

        return run

    yield _case("SGD in blocks", solved(model, mf.SGD(n, step=1e-5), steps))
    yield _case("SGD in batches of 20", solved(model, mf.SGD(n, step=1e-5, batch=20), steps // 10))
    yield _case("SGD with noise", solved(noisy, mf.SGD(n, step=1e-5), steps // 10))
    yield _case("SGD.step, batch 256", lambda k: stepper(k, lambda s: s.step(X, y, 1e-5)))
    yield _case("SGD.run, 80 samples", lambda k: stepper(k, lambda s: s.run(X[:80], y[:80], 1e-5)))
    yield _case("GD on a dataset", solved(data, mf.GD(n, step=1e-3), 1 if quick else 20))

    def flow(threads: int) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            follow = mf.steppers.Flow(data, start.copy(), threads=threads)
            follow.integrate(1e-3)
            return follow.theta

        return run

    yield _case("adaptive flow of particles", flow)


def limits(quick: bool) -> Iterator[Case]:
    """The limit in motion: densities, with noise too, and atoms; samples of a law."""
    cells, plane, horizon = (40, 60, 1e-4) if quick else (400, 80, 2e-2)
    line, noisy = _model(KNOTS, 320), _model(KNOTS, 40, temperature=1e-2)
    aniso = mf.Model(mf.data.AnisotropicGaussians(d=320, delta=0.5, s0=60), KNOTS, mf.init.Radial(0.4))

    def final(problem: mf.Model, method: Any, t: float) -> Callable[[int], Callable[[], Any]]:
        def make(threads: int) -> Callable[[], Any]:
            return lambda: _final(problem, method, t, threads)

        return make

    yield _case("PDE in one coordinate", final(line, mf.PDE(cells=cells), horizon))
    yield _case("PDE in two coordinates", final(aniso, mf.PDE(cells=plane), horizon / 20))
    yield _case("PDE with noise", final(noisy, mf.PDE(cells=cells), horizon))
    yield _case("atoms", final(aniso, mf.Atoms(), horizon))


CASES = (expectations, networks, limits)
