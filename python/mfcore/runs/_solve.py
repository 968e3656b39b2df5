"""`mf.solve`: run a method on a model and record it; `mf.resume`: go on after an interruption."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.bar import Bar
from .._base.check import FloatArray
from .._base.limits import Limit
from .._base.rng import RNG, number_of, seed_of
from ..expectations._rules import Expectation
from ..measures._measure import Cloud, Density
from ..model import Model
from ..reductions._model import ReducedModel
from ._checkpoint import Checkpoint, Found, Plan, vacant
from ._observe import standard_observables
from ._run import Observers, Run
from ._rung import Method
from ._trajectory import Measure, Trajectory

_LONGEST_NAME = 1000
_RECORD_BYTES = 1000  # of a save point, with the standard observables


def solve(
    model: Model | ReducedModel,
    method: Method,
    *,
    horizon: float,
    save_at: int | npt.ArrayLike | None = None,
    risk: bool | Expectation = True,
    observe: Observers | None = None,
    keep: str | npt.ArrayLike | None = None,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
) -> Trajectory:
    """Run one rung of the ladder from ρ₀ to the horizon on the clock t.

    Args:
        model: What is learned; for the rungs of the limit also an `mf.ReducedModel`.
        method: What moves: `mf.SGD`, …
        horizon: T > 0.
        save_at: Times to record, increasing, or how many (evenly spaced, 0 and T included; default 51); see
            `log_times`. May be empty.
        risk: Record R(ρ_t): exactly where that is quick, else on a fixed held-out sample that all rungs
            share. An `Exact()` or `MonteCarlo(…)` chooses; False skips it. The rungs of the limit sum over
            their own nodes.
        observe: Name to function of the measure (an (N, D) array for networks; a `Cloud` or `Density` for the
            rungs of the limit; a `Tangent` or `TangentLimit` for `mf.Linearized`), recorded at save points
            beside the standard ones: mean and standard deviation of |w|, a, b and of the coordinates of the
            law's symmetry (r1, r2; s1, …, r), such as ``"norm_mean"``.
        keep: Which measures to keep: ``"final"`` (default), ``"all"``, or some of the save points, by which
            they are found in `Trajectory.kept`.
        rng: None, int, SeedSequence or Generator. The same one starts every method with the same neurons.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.
        progress: Show a bar (needs tqdm).
        checkpoint: File to keep the state of the run in, for `resume`: a new one, as one that is there may
            be another run's. Written every 10 s (less often where that would take more than 5 % of the
            time), and when the run is stopped; removed when it ends by itself. If it cannot be written at
            the start, that is an error; later, only a warning.
        max_seconds: Stop after this much wall-clock time, what comes before the first step included. A step
            that is under way gets half a second more; then the run ends with the state before it.

    Returns:
        The trajectory. Divergence, Ctrl-C and the time limit end it early, with a status and a message;
        Ctrl-C again, while the checkpoint is written, is a KeyboardInterrupt. An error in a function of yours
        is raised, after the state before it is in the checkpoint.

    Raises:
        TimeoutError: `max_seconds` passed before there was a state at t = 0, such as while features were
            tabulated. (Ctrl-C in that phase is a KeyboardInterrupt.)

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=50, step=1e-3), horizon=1.0, save_at=[0.0, 1.0], rng=0)
        >>> bool(run.risk[1] < run.risk[0])
        True
    """
    check.instance(model, "model", (Model, ReducedModel), "an mf.Model or mf.ReducedModel")
    if isinstance(method, type) or not hasattr(method, "begin"):
        raise TypeError(f"method must be a method such as mf.SGD(…), got {check.shown(method)}")
    plan = plan_of(horizon, save_at, risk, keep)
    _check_step(method, plan.horizon)
    observers, count, number = _observers(observe, model), check.threads(threads), number_of(rng)
    limit, bar = _limit(max_seconds), Bar(check.boolean(progress, "progress"), plan.horizon)
    kept = None  # the checkpoint
    if checkpoint is not None:
        given_up = vacant(checkpoint)
        kept = Checkpoint(checkpoint, model, method, plan, number, observers, given_up)
    with bar.until_the_run(), limit.for_preparation(bar.prepare):
        rung = method.begin(model, seed_of(number), count)
        if plan.kept:
            asked = "all" if keep is not None and isinstance(keep, str) else len(plan.kept)
            check.memory(float(_bytes_of(rung.measure())) * len(plan.kept), "keep", asked)
        run = Run(model, method, plan, observers, number, rung, count)
    return run.go(kept, limit, bar)


def resume(
    checkpoint: str | os.PathLike[str],
    *,
    model: Model | ReducedModel | None = None,
    method: Method | None = None,
    observe: Observers | None = None,
    horizon: float | None = None,
    save_at: int | npt.ArrayLike | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_seconds: float | None = None,
    allow_other_build: bool = False,
) -> Trajectory:
    """Continue a run from its checkpoint, to the same bits as if it had never been interrupted.

    Args:
        checkpoint: The file that `solve` was given.
        model, method: Those of the run. They come from the checkpoint, unless they contain Python functions,
            which it cannot hold: then pass them again. What can be compared must agree.
        observe: The functions of the run, again.
        horizon: A later end than the run was begun with: it goes on as one to this horizon would have.
        save_at: With `horizon`, what to record after the old one: times, or how many as in `solve`.
        threads, progress, max_seconds: As in `solve`.
        allow_other_build: Go on with a checkpoint of another version of mfcore, another compiler or
            instruction-set level. The result then has bits that neither build gives by itself; its
            ``meta["builds"]`` names them.

    Raises:
        ValueError: The file is no checkpoint, damaged, or of another build; or arguments are not those of
            the run, with the differences.

    Examples:
        >>> import mfcore as mf, tempfile
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = f"{folder}/run.npz"
        ...     method = mf.SGD(neurons=50, step=1e-5)
        ...     part = mf.solve(model, method, horizon=1.0, rng=0, checkpoint=file, max_seconds=0)
        ...     run = mf.resume(file)
        >>> part.status, run.status
        ('out of time', 'completed')
    """
    check.boolean(progress, "progress")
    found = Found(checkpoint, check.boolean(allow_other_build, "allow_other_build"))
    model = found.value("model", model, (Model, ReducedModel), "an mf.Model or mf.ReducedModel")
    method = found.value("method", method, object, "a method")
    observers = _observers(observe, model)
    if set(observers) != set(found.observers):
        missing = sorted(set(found.observers) - set(observers))
        what = f"none for {', '.join(missing)}" if missing else f"{', '.join(observers)} for a run without"
        raise ValueError(f"observe must have the functions of the run, got {what}")
    plan = _longer(found.plan, horizon, save_at)
    _check_step(method, plan.horizon)
    count, number = check.threads(threads), found.seed
    kept = Checkpoint(checkpoint, model, method, plan, number, observers, found.id)
    limit, bar = _limit(max_seconds), Bar(check.boolean(progress, "progress"), plan.horizon)
    with bar.until_the_run(), limit.for_preparation(bar.prepare):
        rung = method.begin(model, seed_of(number), count)
        rung.restore(found.state)
        run = Run(model, method, plan, observers, number, rung, count)
    run.restore(found.run)
    return run.go(kept, limit, bar)


def log_times(first: float, last: float, count: int) -> FloatArray:
    """`count` times from `first` to `last`, evenly spaced in log t.

    Examples:
        >>> import mfcore as mf
        >>> mf.log_times(0.01, 100.0, 5).tolist()
        [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    start = check.number(first, "first", above=0)
    stop = check.number(last, "last", above=start)
    n = check.integer(count, "count", at_least=2)
    check.memory(16.0 * n, "count", n)
    times = np.geomspace(start, stop, n)
    times[0], times[-1] = start, stop
    return times


def _limit(max_seconds: float | None) -> Limit:
    return Limit(math.inf if max_seconds is None else check.number(max_seconds, "max_seconds", at_least=0))


def plan_of(horizon: Any, save_at: Any = None, risk: Any = True, keep: Any = None) -> Plan:
    """The plan that these arguments of `solve` mean."""
    end = check.number(horizon, "horizon", above=0)
    if save_at is None:
        save_at = 51
    if isinstance(save_at, int | np.integer) and not isinstance(save_at, bool):
        count = check.integer(save_at, "save_at", at_least=0)
        check.memory(float(_RECORD_BYTES) * count, "save_at", count)
        times = np.linspace(0.0, end, count) if count != 1 else np.array([end])
    else:
        times = check.times(save_at, "save_at", end, empty=True)
    if not isinstance(risk, bool | Expectation):
        raise TypeError(f"risk must be True, False, mf.Exact() or mf.MonteCarlo(…), got {check.shown(risk)}")
    if keep is None or (isinstance(keep, str) and keep == "final"):
        kept: frozenset[float] = frozenset()
    elif isinstance(keep, str):
        check.choice(keep, "keep", ("final", "all"))
        kept = frozenset(times.tolist())
    else:
        wanted = check.array(keep, "keep", shape=(None,), empty=True)
        times = times.copy()
        for t in wanted:
            near = np.abs(times - t) <= 1e-9 * end  # 0.3 is 3 * 0.1
            if not near.any():
                nearest = f"; the nearest is {times[np.abs(times - t).argmin()]:g}" if len(times) else ""
                raise ValueError(f"keep must name save points, got {t:g}{nearest}")
            times[near] = t
        kept = frozenset(wanted.tolist())
    return Plan(end, times, kept, risk)


def _longer(plan: Plan, horizon: Any, save_at: Any) -> Plan:
    """The plan of a run that goes on to a later horizon, if one is asked for."""
    if horizon is None:
        if save_at is not None:
            raise ValueError("save_at must come with a later horizon: the run has its save points")
        return plan
    end = check.number(horizon, "horizon", above=plan.horizon)
    if save_at is None or isinstance(save_at, int | np.integer):
        later = plan.horizon + plan_of(end - plan.horizon, save_at).times[1:]
        later[-1:] = end
    else:
        later = plan_of(end, save_at).times
        if len(later) and later[0] <= plan.horizon:
            raise ValueError(f"save_at must be > {plan.horizon:g}, the horizon so far, got {later[0]:g}")
    every = len(plan.times) > 0 and plan.kept.issuperset(plan.times.tolist())  # keep="all"
    kept = plan.kept.union(later.tolist()) if every else plan.kept
    return Plan(end, np.concatenate([plan.times, later]), kept, plan.risk)


def _bytes_of(measure: Measure) -> int:
    """What a measure that is kept takes."""
    if isinstance(measure, Cloud):
        return measure.points.nbytes + measure.weights.nbytes
    return measure.mass.nbytes if isinstance(measure, Density) else int(measure.nbytes)


def _observers(observe: Any, model: Model | ReducedModel) -> dict[str, Callable[[Any], Any]]:
    if observe is None:
        return {}
    check.instance(observe, "observe", Mapping, 'a mapping such as {"name": function}')
    for name, function in observe.items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"observe must map names to functions, got {name!r}: {check.shown(function)}")
        if not name.isprintable() or len(name) > _LONGEST_NAME:  # they name members of archives
            raise ValueError(
                f"observe must have printable names of at most {_LONGEST_NAME} characters, got {name[:80]!r}"
            )
        if name in ("t", "risk", "error", *standard_observables(model)):
            raise ValueError(f"observe must not use names that mfcore records itself, got {name!r}")
    return dict(observe)


def _check_step(method: Method, horizon: float) -> None:
    """Refuse fixed steps that the clock cannot count."""
    for stepping in (method, getattr(method, "driver", None)):
        for name in ("step", "tau"):
            step = getattr(stepping, name, None)
            if step is not None and step > horizon:
                raise ValueError(f"{name} must be <= horizon = {horizon:g}, got {step:g}")
            if step is not None and horizon / step > 2**53:
                raise ValueError(
                    f"{name} must be at least horizon / 2^53 = {horizon / 2**53:g}, got {step:g}"
                )
