"""`ladder`: coupled runs of all rungs from the same neurons, for every width and step asked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from .. import _check, _core
from .._build import build_info
from .._check import FloatArray
from .._observe import RiskMeter
from .._rng import RNG, Seed, derive, seed_of
from .._rungs.nonlinear import NonlinearRung
from .._rungs.rung import LimitRung, Method, limit_of
from ..atoms import Atoms
from ..density import PDE
from ..expectation import Exact, Expectation, MonteCarlo
from ..measure import Density
from ..methods import GD, SGD, Particles
from ..model import Model
from ..nonlinear import Nonlinear
from ..reduce import ReducedModel
from ..solve import solve
from ..trajectory import Measure, Trajectory
from ._budget import GAPS, RUNGS, Ladder

_HELD_OUT = 10_000  # samples, where the risk has no exact form
_LIMIT = 2**63 + 1  # number of the seed of the limit, beside those of widths
_PARTS = 4  # of a cell
_SAME = 1e-9  # relative: 0.3 is 3 * 0.1


def ladder(
    model: Model,
    neurons: int | Sequence[int],
    step: float | Sequence[float],
    *,
    horizon: float,
    replicas: int = 8,
    limit: Method | None = None,
    save_at: int | npt.ArrayLike = 21,
    expectation: Expectation | None = None,
    risk: Expectation | None = None,
    gd_steps: int = 1000,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool = False,
) -> Ladder:
    """Run ND, PD, GD and SGD from the same neurons beside the limit: where do R(ρ_t) and R_N(SGD) part?

    |R(ρ_t) − R_N(SGD)| ≤ PDE-ND + ND-PD + PD-GD + GD-SGD, where the risk of a rung of N neurons is that of
    their empirical measure, N independent neurons (ND) included: E R_N(ND) = R + (∫U(θ, θ)dρ − ∫∫U)/N.

    A replica is a draw of N neurons from ρ₀ that ND, PD, GD and SGD start from, for all steps; different
    widths have draws of their own. At temperature > 0 all of them share the Brownian increments of their step
    h; ND and PD are then Heun's scheme of that step (weak order 2), so that their own error is below PD-GD.

    All networks have their risk by one rule: exactly where a form exists, else on one held-out sample. Its
    sampling error is common to all of them and cancels in every gap but PDE-ND, which states it.

    Args:
        model: With a reduction, as the limit is needed.
        neurons: Widths N.
        step: Steps h of GD and SGD. Each must divide the largest, so that all are at save points together.
        horizon: T; rounded to a multiple of the largest step.
        replicas: Independent starts. Intervals come from their spread.
        limit: The method that gives ρ_t and drives ND. Default `mf.PDE` where one coordinate moves (or two,
            with noise), else `mf.Atoms`.
        save_at: Times to compare at, rounded to multiples of the largest step, or how many.
        expectation: How PD and GD average over the data: exactly, unless there is no exact form.
        risk: How the risk of networks is measured, if not as above.
        gd_steps: Without noise, GD that would need more steps is replaced by θ_PD + (h/H)(θ_GD,H − θ_PD) with
            H = T/gd_steps about: the error of Euler's scheme is linear in h up to O(hH).
        rng: None, int, SeedSequence or Generator.
        threads: Default `OMP_NUM_THREADS`, else the cores.
        progress: Show a bar over the runs (needs tqdm).

    Returns:
        The ladder. After Ctrl-C it has the replicas that were complete; there must be one.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=8, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(1.0),
        ... )
        >>> theory.ladder(model, [20, 40], [0.02, 0.01], horizon=0.4, replicas=2, rng=0)
        Ladder(neurons=(20, 40), step=(0.02, 0.01), replicas=2, t=[0, 0.4], limit=PDE())
    """
    _check.instance(model, "model", Model, "an mf.Model")
    widths = tuple(_check.count(n, "neurons") for n in _several(neurons, "neurons"))
    steps = tuple(_check.number(h, "step", above=0) for h in _several(step, "step"))
    for name, values in (("neurons", widths), ("step", steps)):
        if len(set(values)) < len(values):
            raise ValueError(f"{name} must have different entries, got {list(values)}")
    end = _check.number(horizon, "horizon", above=0)
    times = _times(save_at, end, steps)
    count = _check.count(replicas, "replicas")
    most = _check.count(gd_steps, "gd_steps")
    method = limit if limit is not None else _default_limit(model, max(steps))
    seed = seed_of(rng)
    rule = risk if risk is not None else _rule(model)
    runs = _Runs(model, method, times, expectation, RiskMeter(model, rule, _check.threads(threads)), threads)
    begun = time.monotonic()
    runs.run_limit(Seed(derive(seed, _LIMIT)))
    shape = (len(widths), len(steps), count)
    values = {name: np.full((*shape, rows, len(times)), np.nan) for name, rows in _ROWS.items()}
    done, status = 0, "completed"
    with _bar(_check.boolean(progress, "progress"), count * len(widths) * (2 + 2 * len(steps))) as tick:
        try:
            for replica in range(count):
                for i, n in enumerate(widths):
                    start = Seed(derive(derive(seed, n), replica))
                    for j, cell in enumerate(runs.replica(n, steps, most, start, tick)):
                        for name, array in cell.items():
                            values[name][i, j, replica] = array
                done = replica + 1
        except KeyboardInterrupt:
            if not done:
                raise
            status = "interrupted"
    return Ladder(
        t=times,
        neurons=widths,
        step=steps,
        **{name: array[:, :, :done] for name, array in values.items()},
        meta={
            "model": model,
            "limit": method,
            "status": status,
            "seed": seed,
            "version": build_info()["version"],
            "isa": build_info()["isa"],
            "seconds": time.monotonic() - begun,
            "risk": runs.meter.description,
            "gd_steps": most,
        },
    )


_ROWS = {"risk": len(RUNGS), "error": len(RUNGS), "norm": len(RUNGS), "distance": 3, "w1": len(GAPS)}


class _Runs:
    """Runs of one model, looked at at the same times."""

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
        self._w = model.network.blocks(int(model.d))["w"] if model.row is not None else slice(0)
        driver = limit
        if isinstance(limit, PDE):  # that of the risk is estimated once, by more runs
            driver = PDE(**{**limit._arguments(), "error": False})
        self._driver: Method = driver
        self._law: Trajectory
        self._long: FloatArray | None = None  # GD with the step `_longest`, of the present draw

    def run_limit(self, seed: Seed) -> None:
        """ρ_t, to compare with."""
        self._law = self._solve(self._limit, seed, risk=True)
        if isinstance(self._law.final, np.ndarray):
            raise TypeError(f"limit must be a method of the limit, such as mf.PDE(), got {self._limit!r}")
        if len(self._law.t) < len(self._times) and self._law.status != "stationary":
            raise RuntimeError(f"the limit, {self._limit!r}, ended early: {self._law.message}")

    def replica(
        self, n: int, steps: Sequence[float], most: int, seed: Seed, tick: Callable[[], None]
    ) -> Iterator[dict[str, FloatArray]]:
        """What is measured on one draw of n neurons, for each step."""
        nd: FloatArray | None = None
        self._long = None
        longer = _longest(self._times, max(steps), most)
        for h in steps:
            if nd is None or self._model.temperature > 0:
                nd, pd = self._flows(n, h, seed, tick)
            gd = self._gd(n, h, seed, pd, longer)
            tick()
            sgd = self._paths(SGD(n, h), seed)
            tick()
            yield self._compared([nd, pd, gd, sgd])

    def _flows(self, n: int, h: float, seed: Seed, tick: Callable[[], None]) -> tuple[FloatArray, FloatArray]:
        """ND and PD; with noise by Heun's scheme of step h, on the increments of all."""
        noisy = self._model.temperature > 0
        nd = self._paths(_Driven(n, self._driver, h) if noisy else Nonlinear(n, self._driver), seed)
        tick()
        scheme: dict[str, Any] = {"method": "heun", "step": h} if noisy else {}
        pd = self._paths(Particles(n, expectation=self._expectation, **scheme), seed)
        tick()
        return nd, pd

    def _gd(self, n: int, h: float, seed: Seed, pd: FloatArray, longer: float) -> FloatArray:
        """GD with step h, or what a longer step says of it."""
        if self._model.temperature > 0 or h >= longer:
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
        assert law.risk is not None and law.error is not None
        measured = [[self._risk(theta) for theta in path] for path in paths]
        norms = [np.sort(np.linalg.norm(path[..., self._w], axis=-1)) for path in paths]
        apart = [np.abs(above - below).mean(axis=-1) for above, below in pairwise(norms)]
        first = [self._w1(law.kept[t], radii) for t, radii in zip(law.t.tolist(), norms[0], strict=False)]
        return {
            "risk": np.stack([_held(law.risk, times), *[[r for r, _ in row] for row in measured]]),
            "error": np.stack([_held(law.error, times), *[[e for _, e in row] for row in measured]]),
            "norm": np.stack([_held(law.observed["norm_mean"], times), *[r.mean(axis=-1) for r in norms]]),
            "distance": np.stack(
                [np.linalg.norm(a - b, axis=-1).max(axis=-1) for a, b in pairwise(paths)]
            ),
            "w1": np.stack([_held(np.array(first), times), *apart]),
        }

    def _w1(self, measure: Measure, radii: FloatArray) -> float:
        """W1 between the laws of |w| of a density and of neurons; atoms are no sample of their law: NaN."""
        if not isinstance(measure, Density) or not np.isfinite(radii).all():
            return math.nan
        if len(measure.edges) == 1:  # mass is spread over a cell
            edges, parts = measure.edges[0], _PARTS * (len(measure.edges[0]) - 1) + 1
            finer = np.interp(np.linspace(0, len(edges) - 1, parts), np.arange(len(edges)), edges)
            measure = Density(finer, np.repeat(measure.mass / _PARTS, _PARTS))
        cloud = measure.as_cloud()
        norms = np.linalg.norm(cloud.points[:, self._w.start :], axis=1)
        return float(stats.wasserstein_distance(norms, radii, cloud.weights))

    def _risk(self, theta: FloatArray) -> tuple[float, float]:
        return self.meter(theta) if np.isfinite(theta).all() else (math.nan, math.nan)


@dataclass(frozen=True)
class _Driven:
    """`mf.Nonlinear` by Heun's scheme, which is of weak order 2 with noise."""

    neurons: int
    driver: Method
    step: float

    def start(self, model: Model | ReducedModel, seed: int, threads: int) -> NonlinearRung:
        """A run of this method at t = 0."""
        assert isinstance(model, Model)
        law = limit_of(self.driver.start(model, derive(seed, _LIMIT), threads))
        assert law is not None  # it ran before

        def begin(system: _core.System, start: FloatArray) -> _core.Flow:
            return _core.Flow.fixed(
                system,
                start,
                "heun",
                self.step,
                temperature=model.temperature,
                seed=seed,
                threads=threads,
            )

        return NonlinearRung(model, self.neurons, law, seed, threads, begin, self.step)


def _default_limit(model: Model, step: float) -> Method:
    """The density where it is cheap, which knows distances of laws as well; else atoms."""
    reduced = model.reduce()
    if reduced.initial is None:
        raise ValueError(f"init must be an initial law with a reduction, got {model.init!r}")
    support = reduced.initial.support()
    moving = [low < high for (low, high), rate in zip(support, reduced.rates, strict=True) if rate > 0]
    if model.temperature > 0:
        return PDE() if len(moving) <= 2 else Atoms(method="heun", step=step)
    return PDE() if moving == [True] else Atoms()


def _rule(model: Model) -> Expectation:
    """How all networks are measured."""
    try:
        Exact().evaluator(model)
    except ValueError:
        return MonteCarlo(_HELD_OUT, seed=derive(0, _HELD_OUT))
    return Exact()


def _times(save_at: int | npt.ArrayLike, horizon: float, steps: Sequence[float]) -> FloatArray:
    """Save points that all steps reach."""
    coarse = max(steps)
    for h in steps:
        ratio = coarse / h
        if abs(ratio - round(ratio)) > _SAME * ratio:
            near = [coarse / k for k in (math.ceil(ratio), math.floor(ratio))]
            raise ValueError(
                f"step must divide the largest, {coarse:g}, so that all are at save points together, "
                f"got {h:g}; {near[0]:.6g} and {near[1]:.6g} do"
            )
    if coarse > horizon:
        raise ValueError(f"step must be <= horizon = {horizon:g}, got {coarse:g}")
    if isinstance(save_at, int | np.integer) and not isinstance(save_at, bool):
        count = _check.integer(save_at, "save_at", at_least=2)
        stride = max(1, round(horizon / coarse / (count - 1)))
        marks = stride * np.arange(max(1, round(horizon / coarse / stride)) + 1)
    else:
        wanted = _check.array(save_at, "save_at", shape=(None,))
        if wanted.min() < 0 or wanted.max() > horizon:
            raise ValueError(f"save_at must be between 0 and horizon = {horizon:g}, got {wanted}")
        marks = np.unique(np.round(wanted / coarse))
        if marks[-1] == 0:
            raise ValueError(f"save_at must have a time of at least the largest step, {coarse:g}")
    return np.asarray(marks * coarse, dtype=np.float64)


def _longest(times: FloatArray, coarse: float, most: int) -> float:
    """The step that reaches all times in about `most` steps."""
    unit = coarse * int(np.gcd.reduce(np.round(times / coarse).astype(np.int64)))
    return float(unit / max(1, math.floor(most * unit / times[-1])))


def _held(values: FloatArray, times: FloatArray) -> FloatArray:
    """A series of a limit that may have come to rest: as it is from then on."""
    return values[np.minimum(np.arange(len(times)), len(values) - 1)]


def _several(value: Any, name: str) -> list[Any]:
    return list(np.atleast_1d(np.asarray(value, dtype=object)))


@contextmanager
def _bar(wanted: bool, total: int) -> Iterator[Callable[[], None]]:
    if not wanted:
        yield lambda: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install 'mfcore[progress]'") from None
    with tqdm(total=total, unit="run") as shown:
        yield lambda: shown.update() and None
