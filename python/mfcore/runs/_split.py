"""A run of a network that is split over processes, and `gather`: its neurons on one of them.

Every rank does the run and records the same risk and observables of the whole network; `final` and `kept` are
the neurons of the rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, cast, overload

import numpy as np

from .. import _core
from .._base import check
from .._base.bar import Bar
from .._base.check import FloatArray
from .._base.limits import Limit
from ..expectations._rules import Exact, Expectation, MonteCarlo
from ..model import Model
from ..reductions._model import ReducedModel
from ._checkpoint import Checkpoint, Plan
from ._ends import End, Ended
from ._meters import HeldOut
from ._observe import Column, RiskMeter, columns_of
from ._ranks import Ranks, check_comm
from ._reduced import model_of
from ._run import Observers, Run
from ._rung import Method, Rung
from ._stopping import Stopper
from ._trajectory import M, Trajectory

_MOST_NUMBERS = 1 << 20  # of nodes that are drawn together


class SplitRung(Rung, Protocol):
    """A rung whose measure is the slice of the neurons of this rank."""

    ranks: Ranks
    first: int  # number of the first neuron
    count: int  # of neurons of this rank
    total: int  # of all


class SplitRun(Run):
    """A `Run` that all ranks do alike: they decide together what depends on time, Ctrl-C or neurons."""

    def __init__(
        self,
        model: Model | ReducedModel,
        method: Method,
        plan: Plan,
        observers: Observers,
        seed: int,
        rung: Rung,
        threads: int,
        stop: Stopper | None = None,
    ) -> None:
        super().__init__(model, method, plan, observers, seed, rung, threads, stop)
        split = cast(SplitRung, rung)
        self._ranks = split.ranks
        self._whole = Whole(model_of(model), plan.risk, threads, split.ranks, split.total)
        self._meter = self._whole
        standard: dict[str, Callable[[Any], Any]] = {}
        for name, column in columns_of(model).items():
            standard[f"{name}_mean"] = partial(self._whole.mean, column)
            standard[f"{name}_std"] = partial(self._whole.deviation, column)
        if plan.test is not None:
            X = plan.test.X
            standard |= HeldOut(plan.test, lambda measure: self._whole.f(measure)(X)).observables()
        self._observers = {**standard, **observers}

    def go(self, checkpoint: Checkpoint | None, limit: Limit, bar: Bar) -> Trajectory:
        """Advance from save point to save point to the horizon."""
        with self._ranks.listening():
            self._ranks.any()  # nobody begins before all are here
            return super().go(checkpoint, limit, bar)

    def _go(self, checkpoint: Checkpoint | None, limit: Limit, bar: Bar) -> str:
        self._time = limit  # no rank ends calls of the core by itself: the others would wait for it
        try:
            status = super()._go(checkpoint, Limit(math.inf), bar)
            self._ranks.any()  # nobody goes on before all have come through
        except Exception as error:
            self._ranks.fail(error)
            super()._save(checkpoint, "failed")
            raise
        return status

    def _save(self, checkpoint: Checkpoint | None, status: str) -> None:
        if status != "failed":  # then `_go` does it, on all ranks
            super()._save(checkpoint, status)

    def _reach(self, target: float, limit: Limit, checkpoint: Checkpoint | None, bar: Bar) -> Ended:
        while True:
            wait = math.inf if checkpoint is None else checkpoint.wait()
            due, late, stop = self._ranks.any(wait <= 0, self._time.left <= 0, self._ranks.interrupted)
            if due:
                self._save(checkpoint, "running")
                wait = math.inf if checkpoint is None else checkpoint.wait()
            if late or stop:
                return Ended(End.interrupted if stop else End.out_of_time)
            ended = self._rung.advance(target, min(self._time.left, wait, bar.seconds))
            if ended.end is not End.out_of_time:
                return ended
            bar.show(self._rung.t)

    def _is_met(self, limit: Limit) -> bool:
        mine = super()._is_met(limit)
        (some,) = self._ranks.any(mine)
        self._answered = not some
        return some

    def _risk_now(self) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._guard.of(self._whole.f(self._rung.measure())(self._guard.inputs))

    def _training_risk(self, rule: MonteCarlo, measure: Any) -> float:
        model = model_of(self._model)
        return float(Whole(model, rule, self._threads, self._ranks, self._whole.total)(measure)[0])


class Whole(RiskMeter):
    """The risk, as of a `RiskMeter`, and moments of the whole network, for the neurons of one rank."""

    def __init__(
        self, model: Model, rule: bool | Expectation, threads: int, ranks: Ranks, total: int
    ) -> None:
        super().__init__(model, rule, threads)
        self._ranks, self.total = ranks, total

    def __call__(self, measure: Any) -> tuple[Any, Any]:
        """The risk of the whole network and its standard error, on every rank."""
        if self._rule is True:
            self._rule = self._choose(self.total)
        if not isinstance(self._rule, Exact):
            return super().__call__(measure)
        if self._model.data._nodes:
            self.description = "exact"
            return self._over_nodes(measure), 0.0
        check.memory(8.0 * self.total * measure.shape[1], "risk", self._rule)  # pairs of all neurons
        return super().__call__(np.concatenate(self._ranks.all(measure)))

    def f(self, measure: Any) -> Callable[[FloatArray], FloatArray]:
        """f of the whole network, at rows of inputs."""
        network, share = self._model.network, len(measure) / self.total

        def value(X: FloatArray) -> FloatArray:
            mine = _core.predict(network._core, measure, None, X, self._threads)
            return self._ranks.sum(network.scale * share * mine)

        return value

    def _function(self, measure: Any) -> Callable[[FloatArray], FloatArray]:
        return self.f(measure)

    def _over_nodes(self, measure: FloatArray) -> float:
        """R as the sum over the nodes of a finite law."""
        law, function, total = self._model.data, self.f(measure), 0.0
        sampler = law._node_sampler
        assert sampler is not None
        rows = max(1, _MOST_NUMBERS // (sampler.dimension + 1))
        for first in range(0, sampler.size, rows):
            X, y = sampler.draw(0, first, min(rows, sampler.size - first))
            total += float(np.square(y - function(X)).sum())
        return total / sampler.size + law.noise_power()

    def mean(self, column: Column, measure: FloatArray) -> float:
        """The mean of a function of the rows over all neurons."""
        return self._mean(column(measure))

    def deviation(self, column: Column, measure: FloatArray) -> float:
        """The standard deviation of a function of the rows over all neurons."""
        values = column(measure)
        return math.sqrt(self._mean(np.square(values - self._mean(values))))

    def _mean(self, values: FloatArray) -> float:
        return float(self._ranks.sum(values.sum(keepdims=True))[0]) / self.total


@overload
def gather(run: Trajectory[M], comm: None) -> Trajectory[M]: ...


@overload
def gather(run: Trajectory[M], comm: Any) -> Trajectory[M] | None: ...


def gather(run: Trajectory[Any], comm: Any) -> Trajectory[Any] | None:
    """Collect all neurons of a split network on rank 0; the other ranks get None, and must call too.

    `mf.solve` with ``comm=`` splits the network: rank r of k holds neurons ⌊rN/k⌋ … ⌊(r+1)N/k⌋ − 1, and
    ``run.final`` and ``run.kept`` on each rank are these. The risk and the standard observables on every rank
    are those of the whole network; functions in ``observe`` are given the neurons of their rank.

    Args:
        run: What `mf.solve` or `mf.resume` has returned on this rank.
        comm: The communicator of the run. Rank 0 needs the memory for all neurons. None: the run was not
            split, and is returned.

    Examples:
        >>> import mfcore as mf
        >>> comm = None  # under mpiexec MPI.COMM_WORLD, after: from mpi4py import MPI
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> method = mf.SGD(neurons=50, step=1e-2, batch=16, comm=comm)
        >>> run = mf.gather(mf.solve(model, method, horizon=1.0, rng=0), comm)
        >>> run.final.shape  # on rank 0
        (50, 10)
    """
    check.instance(run, "run", Trajectory, "the result of mf.solve or mf.resume")
    check_comm(comm)
    if comm is None:
        return run
    if "rank" not in run.meta:
        raise ValueError(f"run must be of a network that was split by comm=, got {run!r}")
    pieces = comm.gather([run.final, *run.kept.values()])
    if pieces is None:
        return None
    final, *kept = (np.concatenate(rows) for rows in zip(*pieces, strict=True))
    meta = {name: value for name, value in run.meta.items() if name not in ("rank", "first_neuron")}
    return replace(run, final=final, kept=dict(zip(run.kept, kept, strict=True)), meta=meta)
