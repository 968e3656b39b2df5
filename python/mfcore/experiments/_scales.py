"""A network of some scale beside its linearisation: what the experiments on the lazy regime share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .. import activations, data, init
from .._base.check import FloatArray
from ..lazy._kernel import tangent_kernel
from ..lazy._laziness import laziness
from ..lazy._linearized import Linearized
from ..measures._functions import predict
from ..model import Model
from ..network import Network
from ..neurons._methods import Particles
from ._row import Row, sample
from ._source import Because, exact
from ._work import Work

# Ours: y = tanh(2x₁), x ~ N(0, I_d), learned by tanh neurons, a and w trained.
D, SAMPLES, TEST = 16, 100, 500
LAW = data.MultiIndex(D, lambda z: np.tanh(2 * z[:, 0]), directions=1)
TARGET = "y = tanh(2x₁)"
START = init.Product(a=init.Constant(1.0), w=init.Radial(1.0))
CLOCK = 30.0  # α²t at the end of all runs


@dataclass(frozen=True)
class Beside:
    """The results of the two runs from one start.

    Attributes:
        displacement: ‖θ − θ₀‖ of the nonlinear run.
        kernel: ‖K − K₀‖/‖K₀‖ on the data.
        gap: ‖f − f_lin‖ on the test inputs.
        train: Risk on the data.
        test: Risk on the test inputs.
        linear: Risk of the linearised network on the test inputs.
        kappa: The bound of the relative scale κ at the start that `laziness` gives.
    """

    displacement: float
    kernel: float
    gap: float
    train: float
    test: float
    linear: float
    kappa: float


NAMES = tuple(field.name for field in fields(Beside))


def dataset(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Inputs and labels to learn from, and others to test on."""
    X, y = LAW.draw(SAMPLES + TEST, rng=seed)
    return X[:SAMPLES], y[:SAMPLES], X[SAMPLES:], y[SAMPLES:]


def problem(
    seed: int, scale: float, neurons: int, draw: int, paired: bool
) -> tuple[Model, tuple[FloatArray, FloatArray]]:
    """A model and its test set; the residuals at the start are those of f = 0 at every scale.

    Neurons in pairs have f = 0 there; of others f is added to the labels.
    """
    X, y, inputs, labels = dataset(seed)
    network = Network(activations.tanh, output="trained", scale=scale)
    law = init.Paired(START) if paired else START
    if not paired:
        theta = law.sample(network, D, neurons, rng=draw)
        plain = Model(data.Dataset(X, y), network)
        y, labels = y + predict(plain, theta, X), labels + predict(plain, theta, inputs)
    return Model(data.Dataset(X, y), network, law), (inputs, labels)


def beside(
    work: Work, scale: float, neurons: int, draw: int, paired: bool = True, rtol: float = 1e-8
) -> Beside:
    """Run the flow, to this tolerance, and the linearised flow to t = CLOCK/α² from the same neurons."""
    model, test = problem(work.seed, scale, neurons, draw, paired)
    name = f"α = {scale:g}, N = {neurons}"
    times: dict[str, Any] = {
        "horizon": CLOCK / scale**2,
        "save_at": 2,
        "keep": "all",
        "rng": draw,
        "test": test,
    }
    full = work.quietly(name, model, Particles(neurons, rtol=rtol, atol=rtol / 100), **times)
    lazy = work.quietly(name, model, Linearized(neurons), **times)
    f, g = (predict(model, run.final, test[0]) for run in (full, lazy))
    start, end = np.asarray(full.kept[0.0]), np.asarray(full.final)
    assert isinstance(model.data, data.Dataset)
    first, last = (tangent_kernel(model, model.data.X, measure=theta) for theta in (start, end))
    return Beside(
        displacement=float(np.sqrt(np.sum((end - start) ** 2) / neurons)),
        kernel=float(np.linalg.norm(last - first) / np.linalg.norm(first)),
        gap=float(np.sqrt(np.mean((f - g) ** 2))),
        train=_last(full.risk),
        test=_last(full.observed["test_risk"]),
        linear=_last(lazy.observed["test_risk"]),
        kappa=laziness(model, start).kappa,
    )


def _last(series: FloatArray | None) -> float:
    assert series is not None
    return float(series[-1])


def table(found: list[list[Beside]]) -> dict[str, FloatArray]:
    """By name, arrays with a row for each setting and a column for each draw."""
    return {name: np.array([[getattr(one, name) for one in row] for row in found]) for name in NAMES}


def slopes(x: FloatArray, values: FloatArray) -> FloatArray:
    """The slope of log values in log x, for each draw."""
    return np.asarray(np.polyfit(np.log(x), np.log(values), 1)[0])


def slope_rows(
    x: FloatArray,
    found: dict[str, FloatArray],
    expected: dict[str, tuple[str, float]],
    where: str,
    variable: str = "α",
    order: int = 1,
) -> Iterator[Row]:
    """A row for each slope that theory knows as x → ∞, over all x and over the upper half of them.

    Terms of the next order leave less of a difference in the upper half: each row predicts the other.
    They fall at most like x to the power −`order`.
    κ ∝ 1/α at every α, to the tolerance of Lanczos' method; not so in other variables.
    """
    half = len(x) // 2
    for name, (spoken, slope) in expected.items():
        always = name == "kappa" and variable == "α"
        source = exact("κ ∝ 1/α" if always else f"as {variable} → ∞")
        what, whole = f"slope of {spoken}, {where}", slopes(x, found[name])
        if len(x) - half < 2 or always:
            yield sample(what, whole, slope, 1e-9 if always else 0.0, source)
            continue
        late = slopes(x[half:], found[name][half:])
        off, rest = float(whole.mean()) - slope, float(late.mean()) - slope
        chance = sample("", late, slope, 0.0, source).interval
        ends = sorted((0.8 * rest, 1.2 * float(x[half] / x[0]) ** order * rest))
        why = Because(
            f"terms of the next order fall at most like {variable}^−{order}: over {variable} ≥ "
            f"{x[half]:.4g} the slope "
            "is off by "
            f"{rest:+.2g}",
            ends[0] - chance,
            ends[1] + chance,
        )
        yield sample(what, whole, slope, 0.0, source, why)
        ends = sorted((0.0, 0.9 * off))
        why = Because(f"over all {variable} it is off by {off:+.2g}, and terms of the next order fall", *ends)
        yield sample(f"slope of {spoken}, {where}, {variable} ≥ {x[half]:.4g}", late, slope, 0.0, source, why)
