"""`lazy_bounds`: the three bounds of the lazy regime beside what a run did (eq. (11.10))."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base import check, factors
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..measures._tangent import Tangent
from ..model import Model
from ..runs._trajectory import Trajectory
from ._laziness import curvature_of, smallest_of
from ._linearized import nodes_of
from ._neurons import of_neurons, speeds_of

_CHUNK = 1 << 20  # numbers of one pass over neurons and inputs


@dataclass(frozen=True)
class LazyBounds:
    """The results of `lazy_bounds`: a number for each time, in the mean-field norms of `Laziness`.

    Attributes:
        t: The times of the measures that the run kept.
        risk: ‖f − y‖² on the nodes.
        risk_bound: e^{−2νt}·risk[0], ν the smallest eigenvalue of the kernel up to t.
        displacement: ‖θ(t) − θ(0)‖.
        displacement_bound: √largest·‖f₀ − y‖·(1 − e^{−νt})/ν, largest up to t.
        gradients: ‖Df_θ(t) − Df_θ(0)‖ (Hilbert–Schmidt), 0 for linearised neurons.
        gradients_bound: Lipschitz constant of Df times the displacement.
        kernel: ‖K_t − K_0‖/‖K_0‖ on the nodes (Frobenius).
        smallest: The smallest eigenvalue of the kernel at t, over the number of nodes.
        largest: The largest one.
    """

    t: FloatArray
    risk: FloatArray
    risk_bound: FloatArray
    displacement: FloatArray
    displacement_bound: FloatArray
    gradients: FloatArray
    gradients_bound: FloatArray
    kernel: FloatArray
    smallest: FloatArray
    largest: FloatArray

    def broken(self, slack: float = 1e-6) -> int:
        """How many of the numbers are above their bound by more than this share of it (and rounding)."""
        share = check.number(slack, "slack", at_least=0)
        pairs = (
            (self.risk, self.risk_bound),
            (self.displacement, self.displacement_bound),
            (self.gradients, self.gradients_bound),
        )
        return sum(int((value > bound * (1 + share) + 1e-13).sum()) for value, bound in pairs)


def lazy_bounds(
    run: Trajectory,
    *,
    segment: int = 5,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> LazyBounds:
    """Risk, displacement and change of the gradients along a gradient flow, each beside its bound.

    If the eigenvalues of the tangent kernel stay above ν, the risk falls at least as e^{−2νt}; then neurons
    move at most as far as (√largest/ν)·‖f₀ − y‖; and the gradients change at most by the Lipschitz constant
    sup‖D²f‖ times that. Eigenvalues are those at the times kept, and the supremum is the largest of some
    points between θ(0) and θ(t): what is between them is not seen.

    Args:
        run: Of `mf.Particles`, `mf.GD` or `mf.Linearized` with ``keep="all"``, from t = 0 on.
        segment: Points between θ(0) and θ(t), both included, at which ‖D²f‖ is taken.
        expectation: For laws without nodes `mf.MonteCarlo(samples, rng)`.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit of the kernels.

    Raises:
        ValueError: The run kept no start, has ridge or noise, or neurons on the sphere, or σ has kinks.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> rng = np.random.default_rng(0)
        >>> model = mf.Model(
        ...     data=mf.data.Dataset(rng.normal(size=(5, 3)), rng.normal(size=5)),
        ...     network=mf.Network(mf.activations.tanh, output="trained", scale=30.0),
        ...     init=mf.init.Gaussian(1.0),
        ... )
        >>> run = mf.solve(model, mf.Particles(50), horizon=0.01, save_at=4, keep="all", rng=0)
        >>> found = theory.lazy_bounds(run)
        >>> bool((found.risk <= found.risk_bound).all()), found.broken()
        (True, 0)
    """
    check.instance(run, "run", Trajectory, "a Trajectory")
    model: Model = run.meta["model"]
    _refuse(model)
    points = check.integer(segment, "segment", at_least=2)
    count = check.threads(threads)
    times, measures = _kept(run)
    X, y = nodes_of(model, expectation)
    check.memory(32.0 * len(X) ** 2, "data" if expectation is None else "samples", len(X))
    start = measures[0]
    linear = isinstance(start, Tangent)
    origin = start.start if isinstance(start, Tangent) else start
    first = of_neurons(model, origin, None, X, None, count) / len(X)
    rows = []
    for measure in measures:
        theta = measure.theta if isinstance(measure, Tangent) else measure
        if isinstance(measure, Tangent):
            f, kernel = measure._predict(model, X, count), first
        else:
            f = model.network.scale * _core.predict(model.network._core, theta, None, X, count)
            kernel = of_neurons(model, theta, None, X, None, count) / len(X)
        values = factors.eigvalsh(kernel)
        bend = 0.0
        if not linear:
            between = (origin + s * (theta - origin) for s in np.linspace(0.0, 1.0, points))
            bend = max(curvature_of(model, one, X) for one in between)
        rows.append(
            (
                float(np.mean((f - y) ** 2)),
                math.sqrt(_squared_distance(model, origin, theta)),
                0.0 if linear else math.sqrt(_squared_change(model, origin, theta, X)),
                bend,
                float(np.linalg.norm(kernel - first) / np.linalg.norm(first)),
                smallest_of(model, values, len(theta)),
                float(values[-1]),
            )
        )
    risk, moved, changed, bends, drifted, smallest, largest = np.array(rows).T
    slowest, fastest = np.minimum.accumulate(smallest), np.maximum.accumulate(largest)
    with np.errstate(all="ignore"):
        passed = np.where(slowest * times > 0, -np.expm1(-slowest * times) / slowest, times)
    return LazyBounds(
        t=times,
        risk=risk,
        risk_bound=np.exp(-2 * slowest * times) * risk[0],
        displacement=moved,
        displacement_bound=np.sqrt(fastest * risk[0]) * passed,
        gradients=changed,
        gradients_bound=bends * moved,
        kernel=drifted,
        smallest=smallest,
        largest=largest,
    )


def _refuse(model: Model) -> None:
    if not isinstance(model, Model):
        raise ValueError(f"run must be of an mf.Model with neurons, got one of {check.shown(model)}")
    for name, value in (("ridge", model.ridge), ("temperature", model.temperature)):
        if value > 0:
            raise ValueError(f"run must be of a gradient flow, without {name}, got {value:g}")
    if model.network.sphere:
        raise ValueError(
            "run must be of a network with sphere=False: its second derivatives are those of R^d"
        )
    if model.network.activation.kinks:
        raise ValueError(
            f"run must be of a network with two derivatives, got {model.network.activation!r}: at kinks the "
            "gradients have no Lipschitz constant"
        )


def _kept(run: Trajectory) -> tuple[FloatArray, list[FloatArray | Tangent]]:
    """Times and measures, from t = 0 on."""
    times = np.array(sorted(run.kept))
    if len(times) == 0 or times[0] != 0:
        raise ValueError('run must keep its measures from t = 0 on, as with keep="all"')
    measures = [run.kept[t] for t in times]
    for measure in measures:
        if not (isinstance(measure, Tangent) or (isinstance(measure, np.ndarray) and measure.ndim == 2)):
            raise ValueError(f"run must keep neurons (N, D) of one network, got {check.shown(measure)}")
    return times, measures


def _squared_distance(model: Model, one: FloatArray, two: FloatArray) -> float:
    """N⁻¹Σ_i Σ_c |δθ_{i,c}|²/rate_c over trained blocks."""
    moving = model._entry_speeds > 0
    change = (two - one)[:, moving]
    return float(np.square(change).sum(axis=0) @ (1 / model._entry_speeds[moving])) / len(one)


def _squared_change(model: Model, one: FloatArray, two: FloatArray, X: FloatArray) -> float:
    """‖Df − Df'‖², summed over blocks of neurons (eq. (11.10))."""
    network, (rate_a, rate_b, rate_w) = model.network, speeds_of(model)
    of_z = rate_w * np.sum(X**2, axis=1) + rate_b
    total, step = 0.0, max(1, _CHUNK // len(X))
    for i in range(0, len(one), step):
        value, slope = _gradients(model, one[i : i + step], X)
        other_value, other_slope = _gradients(model, two[i : i + step], X)
        total += float(of_z @ np.square(slope - other_slope).sum(axis=1))
        if rate_a:
            total += rate_a * float(np.square(value - other_value).sum())
    return network.scale**2 * total / (len(one) * len(X))


def _gradients(model: Model, theta: FloatArray, X: FloatArray) -> Iterator[FloatArray]:
    """σ and aσ̇, rows for inputs."""
    network, row = model.network, model.network.row(0)
    z = X @ theta[:, row:].T
    if network.has_b:
        z += theta[:, row - 1]
    yield network.activation(z)
    yield network.activation.derivative(z) * (theta[:, 0] if network.has_a else 1.0)
