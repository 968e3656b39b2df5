"""Run all rungs of a ladder from one draw of neurons and measure risks and distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _core
from .._base.check import FloatArray
from .._base.rng import Seed, derive
from ..density._pde import PDE
from ..expectations._rules import Expectation
from ..measures._measure import Density
from ..model import Model
from ..neurons._independent import Nonlinear
from ..neurons._methods import GD, SGD, Particles
from ..neurons._nonlinear import NonlinearRung
from ..reductions._model import ReducedModel
from ..runs._observe import RiskMeter
from ..runs._rung import Method, limit_of
from ..runs._solve import solve
from ..runs._trajectory import Measure, Trajectory
from ._budget import GAPS, RUNGS

LIMIT = 2**63 + 1  # number of the seed of the limit; those of widths are smaller
SAME = 1e-9  # relative difference below which two times are the same
_PARTS = 4  # points that stand for one cell of a density

ROWS = {"risk": len(RUNGS), "error": len(RUNGS), "norm": len(RUNGS), "distance": 3, "w1": len(GAPS)}


class Runs:
    """The runs of one model with common save points."""

    def __init__(
        self,
        model: Model,
        limit: Method,
        times: FloatArray,
        expectation: Expectation | None,
        meter: RiskMeter,
        threads: int | None,
    ) -> None:
        self.meter = meter
        self._model, self._limit, self._times = model, limit, times
        self._expectation, self._threads = expectation, threads
        self._noisy = model.temperature > 0
        self._w = model.network.blocks(int(model.d))["w"] if model.row is not None else slice(0)
        driver = limit
        if isinstance(limit, PDE):  # that of the risk is estimated once, by more runs
            driver = replace(limit, error=False)
        self._driver: Method = driver
        self._law: Trajectory
        self._long: FloatArray | None = None  # GD with the step `longest`, of the present draw

    def run_limit(self, seed: Seed) -> None:
        """Run the limit ρ_t."""
        self._law = self._solve(self._limit, seed, risk=True)
        if isinstance(self._law.final, np.ndarray):
            raise TypeError(f"limit must be a method of the limit, such as mf.PDE(), got {self._limit!r}")
        if len(self._law.t) < len(self._times) and self._law.status != "stationary":
            raise RuntimeError(f"the limit, {self._limit!r}, ended early: {self._law.message}")

    def replica(
        self, n: int, steps: Sequence[float], most: int, seed: Seed, tick: Callable[[], None]
    ) -> Iterator[dict[str, FloatArray]]:
        """Measure all rungs from one draw of n neurons, for each step."""
        nd: FloatArray | None = None
        self._long = None
        longer = longest(self._times, max(steps), most)
        for h in steps:
            if nd is None or self._noisy:
                nd, pd = self._flows(n, h, seed, tick)
            gd = self._gd(n, h, seed, pd, longer)
            tick()
            sgd = self._paths(SGD(n, h, coupled=True), seed)
            tick()
            yield self._compared([nd, pd, gd, sgd])

    def _flows(self, n: int, h: float, seed: Seed, tick: Callable[[], None]) -> tuple[FloatArray, FloatArray]:
        """Run ND and PD; with noise by Heun's scheme of step h with the increments that all rungs share."""
        nd = self._paths(_Driven(n, self._driver, h) if self._noisy else Nonlinear(n, self._driver), seed)
        tick()
        scheme: dict[str, Any] = {"method": "heun", "step": h} if self._noisy else {}
        pd = self._paths(Particles(n, expectation=self._expectation, **scheme), seed)
        tick()
        return nd, pd

    def _gd(self, n: int, h: float, seed: Seed, pd: FloatArray, longer: float) -> FloatArray:
        """GD with step h, or its interpolation from a longer step (eq. (10.6))."""
        if self._noisy or h >= longer * (1 - SAME):
            return self._paths(GD(n, h, expectation=self._expectation), seed)
        if self._long is None:
            self._long = self._paths(GD(n, longer, expectation=self._expectation), seed)
        return pd + h / longer * (self._long - pd)

    def _paths(self, method: Method, seed: Seed) -> FloatArray:
        """Neurons at all times, (T, N, D): NaN after they diverged."""
        run = self._solve(method, seed, risk=False)
        kept = [np.asarray(measure) for measure in run.kept.values()]
        last = kept[-1] if run.status == "stationary" else np.full_like(run.final, np.nan)
        return np.stack([*kept, *[last] * (len(self._times) - len(kept))])

    def _solve(self, method: Method, seed: Seed, risk: bool) -> Trajectory:
        run = solve(
            self._model,
            method,
            horizon=float(self._times[-1]),
            save_at=self._times,
            keep="all",
            risk=risk,
            rng=seed,
            threads=self._threads,
        )
        if run.status == "interrupted":
            raise KeyboardInterrupt
        return run

    def _compared(self, paths: list[FloatArray]) -> dict[str, FloatArray]:
        law, times = self._law, self._times
        assert law.risk is not None
        assert law.error is not None
        measured = [[self._risk(theta) for theta in path] for path in paths]
        norms = [np.sort(np.linalg.norm(path[..., self._w], axis=-1)) for path in paths]
        apart = [np.abs(above - below).mean(axis=-1) for above, below in pairwise(norms)]
        first = [self._w1(law.kept[t], radii) for t, radii in zip(law.t.tolist(), norms[0], strict=False)]
        return {
            "risk": np.stack([_held(law.risk, times), *[[r for r, _ in row] for row in measured]]),
            "error": np.stack([_held(law.error, times), *[[e for _, e in row] for row in measured]]),
            "norm": np.stack([_held(law.observed["norm_mean"], times), *[r.mean(axis=-1) for r in norms]]),
            "distance": np.stack([np.linalg.norm(a - b, axis=-1).max(axis=-1) for a, b in pairwise(paths)]),
            "w1": np.stack([_held(np.array(first), times), *apart]),
        }

    def _w1(self, measure: Measure, radii: FloatArray) -> float:
        """W₁ between the laws of |w| of a density and of neurons; NaN for atoms, which are no sample of
        their law.
        """
        if not isinstance(measure, Density) or not np.isfinite(radii).all():
            return math.nan
        if len(measure.edges) == 1:  # mass is spread over a cell
            edges, parts = measure.edges[0], _PARTS * (len(measure.edges[0]) - 1) + 1
            finer = np.interp(np.linspace(0, len(edges) - 1, parts), np.arange(len(edges)), edges)
            measure = Density(finer, np.repeat(measure.mass / _PARTS, _PARTS))
        cloud = measure.as_cloud()
        norms = np.linalg.norm(cloud.points[:, self._w.start :], axis=1)
        return _w1(norms, cloud.weights, radii)

    def _risk(self, theta: FloatArray) -> tuple[float, float]:
        return self.meter(theta) if np.isfinite(theta).all() else (math.nan, math.nan)


@dataclass(frozen=True)
class _Driven:
    """`mf.Nonlinear` by Heun's scheme (weak order 2 with noise), in the field of the ladder's limit."""

    neurons: int
    driver: Method
    step: float

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> NonlinearRung:
        """A run of this method at t = 0."""
        assert isinstance(model, Model)
        law = limit_of(self.driver.begin(model, derive(seed, LIMIT), threads))
        assert law is not None  # it ran before

        def integrator(system: _core.System, start: FloatArray) -> _core.Flow:
            return _core.Flow.fixed(
                system,
                start,
                "heun",
                self.step,
                temperature=model.temperature,
                seed=seed,
                threads=threads,
            )

        return NonlinearRung(model, self.neurons, law, seed, threads, integrator, self.step)


def longest(times: FloatArray, coarse: float, most: int) -> float:
    """The longest step that reaches all times, in about `most` steps."""
    unit = coarse * int(np.gcd.reduce(np.round(times / coarse).astype(np.int64)))
    return float(unit / max(1, math.floor(most * unit / times[-1])))


def _held(values: FloatArray, times: FloatArray) -> FloatArray:
    """Extend a series of a limit that came to rest by its last value."""
    return values[np.minimum(np.arange(len(times)), len(values) - 1)]


def _w1(points: FloatArray, masses: FloatArray, sample: FloatArray) -> float:
    """∫|F − G| between the distribution functions of weighted points and of a sorted sample."""
    order = np.argsort(points)
    levels = np.concatenate([[0.0], np.cumsum(masses[order])])
    marks = np.sort(np.concatenate([points, sample]))
    below = levels[np.searchsorted(points[order], marks[:-1], side="right")]
    there = np.searchsorted(sample, marks[:-1], side="right") / len(sample)
    return float(np.abs(below - there) @ np.diff(marks))
