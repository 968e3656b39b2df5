"""Record at save points: the risk, and means and standard deviations of the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.lengths import norms
from .._base.rng import derive
from ..expectations._rules import Exact, Expectation, MonteCarlo
from ..measures._measure import Cloud, Density, as_measure
from ..measures._tangent import LinearMeasure, Tangent, linear_risk
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._project import projections

_HELD_OUT = 10_000  # samples on which a risk is measured that has no quick exact form
_HELD_NUMBERS = 1 << 24  # these samples are kept up to so many numbers: 128 MB
_QUICK = 5e7  # an exact risk may take so many nanoseconds


class RiskMeter:
    """Measure R of measures and its standard error, all by one rule chosen at the first."""

    def __init__(self, model: Model, rule: bool | Expectation, threads: int = 0) -> None:
        self.active = rule is not False
        self._model, self._rule, self._threads = model, rule, threads
        self._held: list[tuple[FloatArray, FloatArray]] = []
        self.description = "not recorded" if not self.active else ""

    def __call__(self, measure: Any) -> tuple[Any, Any]:
        """The risk and its standard error; arrays over replicas for stacked networks."""
        if not self.active:
            return None, None
        if isinstance(measure, np.ndarray) and measure.ndim == 3:
            pairs = [self(rows) for rows in measure]
            return np.array([r for r, _ in pairs]), np.array([e for _, e in pairs])
        rule = self._rule
        if rule is True:
            linear = isinstance(measure, LinearMeasure)
            rule = self._rule = self._choose_nodes() if linear else self._choose(len(measure))
        if isinstance(rule, MonteCarlo):
            return self._held_out(measure, rule)
        if isinstance(measure, LinearMeasure):
            self.description = "exact"
            return linear_risk(self._model, measure, None, self._threads)
        self.description = "exact"
        # Not by `mf.risk`, which refuses what is not finite: a run that is about to diverge may be there.
        points, weights = as_measure(measure, "measure", self._model.row or 0)
        return float(Exact().evaluator(self._model, self._threads).risk(points, weights)), 0.0

    def _choose(self, neurons: int) -> Expectation:
        """Choose `Exact` if the law has an exact form that is quick for so many neurons, else fresh
        samples.
        """
        model = self._model
        if model.data._nodes or _core.pair_nanoseconds(model.network._core) * neurons**2 <= _QUICK:
            try:
                Exact().evaluator(model)
            except ValueError:
                pass
            else:
                return Exact()
        # The same sample for every rung and every run, so that differences are those of the measures.
        return MonteCarlo(_HELD_OUT, seed=derive(0, _HELD_OUT))

    def _choose_nodes(self) -> Expectation:
        """Choose sums over nodes where there are nodes: only these are exact for linearised networks."""
        return Exact() if self._model.data._nodes else MonteCarlo(_HELD_OUT, seed=derive(0, _HELD_OUT))

    def _held_out(self, measure: Any, rule: MonteCarlo) -> tuple[float, float]:
        self.description = f"{rule.samples} held-out samples"
        if isinstance(measure, LinearMeasure):
            return linear_risk(self._model, measure, rule, self._threads)
        function = self._function(measure)
        count, mean, spread = 0, 0.0, 0.0
        for X, y in self._batches(rule):
            squares = (y - function(X)) ** 2
            # Means and squared deviations of two sets of samples make those of their union.
            share, gap = len(y) / (count + len(y)), float(squares.mean()) - mean
            spread += float(squares.var()) * len(y) + gap * gap * count * share
            mean += gap * share
            count += len(y)
        return mean, math.sqrt(spread / (count - 1) / count) if count > 1 else math.inf

    def _function(self, measure: Any) -> Callable[[FloatArray], FloatArray]:
        """f of a measure, at rows of inputs."""
        points, weights = as_measure(measure, "measure", self._model.row or 0)
        network, threads = self._model.network, self._threads
        return lambda X: network.scale * _core.predict(network._core, points, weights, X, threads)

    def _batches(self, rule: MonteCarlo) -> Iterator[tuple[FloatArray, FloatArray]]:
        """The samples on which risks are measured: kept if they are few, else drawn again each time."""
        if self._held:
            yield from self._held
            return
        law, seed = self._model.data, int(rule.seed or 0)
        rows = max(1, _HELD_NUMBERS // (int(law.d) + 1))
        if rule.samples <= rows:
            self._held = [law._iid_sampler.draw(seed, 0, rule.samples)]
            yield from self._held
            return
        for first in range(0, rule.samples, rows):
            yield law._iid_sampler.draw(seed, first, min(rows, rule.samples - first))


class all_replicas:  # used as a decorator
    """Let an observer have all replicas at once, an array (replicas, N, D), instead of one after the other.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(
        ...     model, mf.SGD(20, 1e-3, replicas=3), horizon=0.1, save_at=[0.1], rng=0,
        ...     observe={"largest": lambda theta: np.abs(theta).max(), "count": mf.all_replicas(len)},
        ... )
        >>> run.observed["largest"].shape, run.observed["count"].tolist()
        ((1, 3), [3.0])
    """

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        if not callable(function):
            raise TypeError(f"function must be an observer, got {check.shown(function)}")
        self.function = function

    def __call__(self, measure: Any) -> Any:
        stacked = isinstance(measure, np.ndarray) and measure.ndim == 2
        return self.function(measure[np.newaxis] if stacked else measure)


def each_replica(observer: Callable[[Any], Any], measure: Any) -> Any:
    """Return the result of an observer, for one network or stacked over replicas."""
    if isinstance(observer, all_replicas) or not isinstance(measure, np.ndarray) or measure.ndim == 2:
        return observer(measure)
    results = [np.asarray(observer(rows)) for rows in measure]
    if len({result.shape for result in results}) > 1:
        shapes = " and ".join(str(result.shape) for result in results)
        raise ValueError(f"observe must return arrays of one shape for all replicas, got {shapes}")
    return np.stack(results)


def observation(
    observer: Callable[[Any], Any], name: str, measure: Any, before: FloatArray | None, t: float
) -> FloatArray:
    """What the user's function `observe[name]` returns at time t, of the same shape as before."""
    try:
        result = each_replica(observer, measure)
    except Exception as error:
        error.add_note(f"This was observe[{name!r}] at t = {t:g}.")
        raise
    raw = np.asarray(result)
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"observe[{name!r}] must return numbers, got {check.shown(result)}")
    if before is not None and raw.shape != before.shape:
        raise ValueError(
            f"observe[{name!r}] must return arrays of one shape, got {raw.shape} at t = {t:g} after "
            f"{before.shape}"
        )
    return raw.astype(np.float64)


Column = Callable[[FloatArray], FloatArray]


def standard_observables(model: Model | ReducedModel) -> dict[str, Callable[[Any], Any]]:
    """Functions for mean and standard deviation over the neurons of |w|, a, b and reduced coordinates."""
    return _moments(columns_of(model))


def columns_of(model: Model | ReducedModel) -> dict[str, Column]:
    """Functions of rows of neurons: |w|, a, b and reduced coordinates."""
    if isinstance(model, ReducedModel) or model.row is None:
        return {}
    blocks = model.network.blocks(int(model.d))
    columns: dict[str, Column] = {
        "norm": lambda rows: norms(rows[..., blocks["w"]]),
        "a": lambda rows: rows[..., blocks["a"]][..., 0],
        "b": lambda rows: rows[..., blocks["b"]][..., 0],
    }
    columns = {name: column for name, column in columns.items() if name == "norm" or name in blocks}
    for name, coordinate in projections(model.data).items():
        columns[name] = lambda rows, of=coordinate: of(rows[..., blocks["w"]])  # type: ignore[misc]
    return columns


def reduced_observables(
    model: Model | ReducedModel, reduced: ReducedModel
) -> dict[str, Callable[[Any], Any]]:
    """The same functions under the same names, for measures in reduced coordinates."""
    names = reduced.coordinates
    columns: dict[str, Column] = {}
    if isinstance(model, Model):
        w = [c for c, name in enumerate(names) if name not in ("a", "b")]
        if model.network.sphere:
            columns["norm"] = lambda rows: np.ones(rows.shape[:-1])
        else:
            columns["norm"] = lambda rows: norms(rows[..., w])
        names = tuple(name for name in names if name in ("a", "b", *projections(model.data)))
    for c, name in enumerate(reduced.coordinates):
        if name in names:
            columns[name] = lambda rows, c=c: rows[..., c]  # type: ignore[misc]
    return _moments(columns)


def _moments(columns: dict[str, Column]) -> dict[str, Callable[[Any], Any]]:
    observables: dict[str, Callable[[Any], Any]] = {}
    for name, column in columns.items():
        observables[f"{name}_mean"] = partial(_moment, column=column, which=0)
        observables[f"{name}_std"] = partial(_moment, column=column, which=1)
    return observables


def _moment(measure: Any, column: Column, which: int) -> Any:
    """Mean (order 0) or standard deviation (order 1) of a function of the rows, per replica."""
    if isinstance(measure, Density):
        measure = measure.as_cloud()
    if isinstance(measure, Cloud):
        values = column(measure.points)
        mean = measure.weights @ values
        return mean if which == 0 else np.sqrt(measure.weights @ (values - mean) ** 2)
    values = column(measure.theta if isinstance(measure, Tangent) else measure)
    return values.mean(axis=-1) if which == 0 else values.std(axis=-1)
