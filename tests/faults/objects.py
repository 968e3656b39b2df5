"""Objects of the public classes, whose methods are called with generated arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import mfcore as mf
import numpy as np
from mfcore import init, steppers, theory

from .values import GOOD, NETS, all_laws, any_array, measure, models, rows, start, trajectories

# By "function.parameter", what is usually right where the name alone does not tell.
GOOD_FOR: dict[str, Callable[[Random], Any]] = {
    "along.first": measure,
    "along.second": measure,
    "along.path": lambda r: r.choice(["mixture", "geodesic"]),
    "along.points": lambda r: r.choice([3, [0.0, 0.5]]),
    "Paired.law": lambda r: start(r.choice(NETS)),
    "Symmetric.law": lambda r: init.Normal(1.0, 0.5),
    "ReducedModel.initial": lambda r: r.choice([None, models()[-3].initial]),
    "Sphere.radius": lambda r: 1.0,
    "ReducedModel.inputs": lambda r: None,
    "TangentLimit.inputs": lambda r: rows(r),
    "solve.test": lambda r: r.choice([None, ([[1.0, 0.0, 0.5]], [1.0])]),
    "custom.function": lambda r: r.choice([np.tanh, lambda z: z**2, lambda z: z / 0, np.exp, len]),
    "custom.slope": lambda r: r.choice([None, lambda z: 1 - np.tanh(z) ** 2]),
    "custom.curvature": lambda r: None,
    "custom.kinks": lambda r: r.choice([(), (0.0,)]),
    "custom.name": lambda r: "mine",
    "custom.key": lambda r: "",
    "all_replicas.function": lambda r: len,
    "pull.residual": lambda r: np.linspace(-1, 1, r.choice([1, 2, 6])),
    "gather.run": lambda r: r.choice(trajectories()),
    "gather.comm": lambda r: None,
    "lazy_bounds.run": lambda r: r.choice(trajectories()),
    "sweep.run": lambda r: r.choice([math.sqrt, lambda x: x, lambda x: 1 / 0]),
    "sweep.cases": lambda r: r.choice([{"x": [1.0, 2.0]}, [{"x": 1.0}], [], {}]),
    "sweep.folder": lambda r: None,
    "sweep.client": lambda r: None,
    "sweep.workers": lambda r: 1,
    "Bisection.low": lambda r: 0.0,
    "Bisection.crossed": lambda r: bool,
    "Bisection.name": lambda r: "x",
    "Bisection.each": lambda r: r.choice([None, {"y": [1, 2]}]),
    "Model.temperature": lambda r: r.choice([0.0, 0.1, lambda t: 0.1, lambda t: -t]),
    "Model.ridge": lambda r: r.choice([0.0, 0.1, lambda t: 0.1 * t]),
    "schedule": lambda r: r.choice([None, lambda t: 1.0, lambda t: math.nan]),
    "relaxation.density": lambda r: mf.Density(np.linspace(0.0, 2.0, 11), np.full(10, 0.1)),
    "leap.target": lambda r: r.choice([all_laws()[2], all_laws()[4], {(0, 1): 1.0}, rows(r)]),
    "isoleap.target": lambda r: r.choice([all_laws()[2], {(0, 1): 1.0}]),
    "fourier.sets": lambda r: [(), (0,), (0, 1)],
    "hermite.indices": lambda r: [(0,), (1,), (0, 2)],
    "kernel_ridge.kernel": lambda r: r.choice([lambda u: u, np.exp, models()[0]]),
    "zonal_spectrum.kernel": lambda r: r.choice([lambda s: np.exp(s), NETS[0]]),
    "zonal_spectrum.inputs": lambda r: r.choice(["sphere", "hypercube"]),
    "zonal_spectrum.degree": lambda r: r.choice([0, 3]),
    "regression_risk.spectrum": lambda r: theory.zonal_spectrum(np.exp, 5, degree=3),
    "propose_step.bias": lambda r: r.choice([0.01, 0.1]),
    "Network.output": lambda r: r.choice(["one", "fixed", "trained"]),
    "Network.bias": lambda r: r.choice(["none", "fixed", "trained"]),
    "rates": lambda r: r.choice([None, {"w": 2.0}, {"a": 0.0}]),
    "PDE.scheme": lambda r: None,
    "scheme": lambda r: r.choice(["muscl", "upwind", "implicit"]),
    "precision": lambda r: r.choice(["float32", "float64"]),
    "expression.text": lambda r: r.choice(["z**2", "tanh(z)", "1/z", "log(z)", "sqrt(", "x + y"]),
    "quantity": lambda r: r.choice(["risk", "distance"]),
    "gap.name": lambda r: r.choice(ladder().names()),
    "largest.name": lambda r: r.choice(ladder().names()),
    "mean.name": lambda r: r.choice(ladder().names()),
    "suprema.name": lambda r: r.choice(ladder().names()),
    "largest.quantity": lambda r: "risk",
    "log": lambda r: r.choice(["", "x", "xy"]),
    "quantile.u": lambda r: r.choice([0.5, [0.1, 0.9], 0.0, 1.0, any_array(r)]),
    "cdf.x": lambda r: r.choice([0.5, [0.1, 0.9], -math.inf, any_array(r)]),
    "sample.network": lambda r: r.choice(NETS),
    "sample.d": lambda r: r.choice([1, 2, 3, 10]),
    "cell_masses.edges": lambda r: [np.linspace(0.0, 1.0, 7)],
    "cell_masses.nodes": lambda r: None,
    "run.steps": lambda r: r.choice([0, 1, 3]),
    "dt": lambda r: r.choice([0.0, 1e-6, 1e-3, 1.0]),
    "backward.residual": lambda r: np.full(2, r.choice([0.5, 1e200])),
    "step.X": lambda r: np.full((2, 3), r.choice([0.5, 1e200])),
    "step.y": lambda r: [1.0, -1.0],
    "run.X": lambda r: np.full((2, 3), r.choice([0.5, 1e200])),
    "run.y": lambda r: [1.0, -1.0],
    "run.h": lambda r: r.choice([0.0, 0.01, 1e100, [0.1, 0.2]]),
    "h": lambda r: r.choice([0.0, 0.01, 1.0, 1e100]),
}


def good_for(function: str, parameter: str) -> Callable[[Random], Any] | None:
    """What is usually right for a parameter of a function; None if nothing is known."""
    found = GOOD_FOR.get(f"{function.rsplit('.', 1)[-1]}.{parameter}")
    return found or GOOD.get(parameter) or GOOD_FOR.get(parameter)


@cache
def ladder() -> Any:
    """A small one."""
    model, steps = models()[0], [0.05, 0.1]
    return theory.ladder(
        model,
        [2, 4],
        steps,
        horizon=0.2,
        replicas=2,
        save_at=3,
        gd_steps=5,
        rng=0,
        threads=1,
        limit=mf.PDE(cells=20),
    )


@cache
def _stability() -> Any:
    return theory.stability(models()[11], [[1.0, 0.0, 0.5], [-0.5, 1.0, 0.0]])


def _sgd() -> Any:
    return steppers.SGD(NETS[1], np.random.default_rng(0).normal(size=(4, 5)), total=8, threads=1)


def _halfway() -> Any:
    stepper = _sgd()
    stepper.forward(np.full((2, 3), 0.5))
    return stepper


def _flow() -> Any:
    return steppers.Flow(models()[0], np.random.default_rng(0).normal(size=(4, 3)), threads=1)


def _line() -> Any:
    return steppers.FiniteVolume1D(models()[0], np.linspace(0.0, 2.0, 11), np.full(10, 0.1), threads=1)


def _plane() -> Any:
    flat = mf.ReducedModel(coordinates=["x", "y"], weights=[0.5, 0.5], targets=[1.0, -1.0], features=np.tanh)
    edges = (np.linspace(-1.0, 1.0, 5), np.linspace(-1.0, 1.0, 5))
    return steppers.FiniteVolume2D(flat, edges, np.full((4, 4), 1 / 16), threads=1)


# Made anew for each call, since their methods change them.
CHANGED: dict[str, Callable[[], Any]] = {
    "steppers.SGD": _sgd,
    "steppers.SGD halfway": _halfway,
    "steppers.Flow": _flow,
    "steppers.FiniteVolume1D": _line,
    "steppers.FiniteVolume2D": _plane,
}


@cache
def objects() -> list[tuple[str, Any]]:
    """Objects that their methods leave as they are, by name."""
    laws, nets = all_laws(), NETS
    scalars = [init.Normal(0.0, 0.5), init.Uniform(-1.0, 1.0), init.Constant(1.0)]
    scalars.append(init.Symmetric(scalars[0]))
    found = [(f"law{k}", law) for k, law in enumerate(laws)]
    found += [(f"net{k}", net) for k, net in enumerate(nets)]
    found += [(f"scalar{k}", law) for k, law in enumerate(scalars)]
    found += [(f"model{k}", model) for k, model in enumerate(models()[:-3])]
    found += [(f"reduced{k}", reduced) for k, reduced in enumerate(models()[-3:])]
    found += [(f"reduced{k}.initial", reduced.initial) for k, reduced in enumerate(models()[-3:])]
    found += [(f"run{k}", run) for k, run in enumerate(trajectories())]
    starts = [init.Gaussian(0.5), init.Radial(0.5), init.Sphere(1.0), init.Points([[1.0, 0.0, 0.5]])]
    found += [(f"start{k}", law) for k, law in enumerate([*starts, init.Paired(start(nets[1]))])]
    found += [("start", start(nets[1])), ("chi", init.Chi(3, 0.5))]
    found += [(f"activations.of net{k}", net.activation) for k, net in enumerate(nets)]
    found += [
        ("activations.custom", mf.activations.custom(np.tanh, slope=lambda z: 1 - np.tanh(z) ** 2)),
        ("density", trajectories()[1].final),
    ]
    found += [
        ("activations.expression", mf.activations.expression("z**2")),
        ("activations.polynomial", mf.activations.polynomial([0, 1.0])),
    ]
    found += [
        ("pde", mf.PDE(cells=20)),
        ("sgd", mf.SGD(3, step=0.1)),
        ("changing", models()[0].replace(ridge=lambda t: t)),
    ]
    small = mf.Model(laws[8], nets[1], start(nets[1]))
    linear = mf.solve(small, mf.Linearized(4), horizon=0.2, save_at=3, keep="all", rng=0, threads=1)
    found += [("ladder", ladder()), ("rates", ladder().rates()), ("stability", _stability())]
    found += [("lazy", theory.laziness(small, linear.final.theta)), ("bounds", theory.lazy_bounds(linear))]
    found += [("path", theory.along(models()[0], [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.5]], points=3))]
    return found


def bound_methods() -> Iterator[tuple[str, type, str, Callable[..., Any]]]:
    """Public methods of all of them: a name, the class, the name of the method, what is called."""
    for name, value in objects():
        for method in methods_of(type(value)):
            yield f"{name}.{method}", type(value), method, getattr(value, method)
    for name, make in CHANGED.items():
        kind = type(make())
        for method in methods_of(kind):
            yield f"{name}.{method}", kind, method, _anew(make, method)


def _anew(make: Callable[[], Any], method: str) -> Callable[..., Any]:
    """The method of an object made for the call, of which the array must be finite afterwards."""

    def call(*args: Any, **keywords: Any) -> Any:
        made = make()
        array = made.theta if hasattr(made, "theta") else made.mass
        try:
            return getattr(made, method)(*args, **keywords)
        finally:
            if not np.isfinite(array).all():
                raise ArithmeticError("the stepper left numbers that are not finite in the caller's array")

    call.__signature__ = inspect.signature(getattr(make(), method))  # type: ignore[attr-defined]
    return call


def methods_of(kind: type) -> list[str]:
    """Names of the public methods of a class."""
    return [n for n in dir(kind) if not n.startswith("_") and callable(getattr(kind, n))]
