"""`mf.solve`: run a method on a model and record it; `mf.resume`: go on after an interruption."""

from __future__ import annotations

import math
import os
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.bar import Bar
from .._base.check import FloatArray
from .._base.limits import Limit
from .._base.rng import RNG, number_of, seed_of
from ..data import Dataset
from ..expectations._rules import Expectation
from ..model import Model
from ..reductions._model import ReducedModel
from ._advice import advise_parity
from ._arguments import bytes_of, check_method, check_step, checked_observers, checked_stop
from ._changing import begin
from ._checkpoint import Checkpoint, Found, Plan, run_described, vacant
from ._length import horizon_of
from ._pieces import SplitCheckpoint, assembled, pieces_of
from ._plan import longer, plan_of
from ._ranks import Ranks, agreed, ranks_of
from ._run import Observers, Run
from ._rung import Method, Rung, clock_of
from ._split import SplitRun, SplitRung
from ._stopping import Stopper
from ._trajectory import M, Trajectory


def solve(
    model: Model | ReducedModel,
    method: Method[M],
    *,
    horizon: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    save_at: int | npt.ArrayLike | None = None,
    risk: bool | Expectation = True,
    observe: Observers | None = None,
    stop: Stopper | None = None,
    keep: str | npt.ArrayLike | None = None,
    test: tuple[npt.ArrayLike, npt.ArrayLike] | Dataset | None = None,
    rng: RNG = None,
    threads: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
) -> Trajectory[M]:
    """Run one rung of the ladder from ρ₀ to the horizon on the clock t.

    Args:
        model: What is learned; for the rungs of the limit also an `mf.ReducedModel`. Its temperature and
            ridge may be functions of t, see `Model.at`.
        method: What moves: `mf.SGD`, …
        horizon: T > 0. Of methods with fixed steps the last one is shortened where T is no multiple of them.
        steps: In place of `horizon`, the number of steps, of a method that has fixed ones: T = steps·h, or
            the sum of their sizes by a schedule.
        epochs: In place of `horizon`, the number of passes of `mf.SGD` through the n samples of an
            `mf.data.Dataset`, n/batch steps each. May be a fraction; the steps are rounded up.
        save_at: Times t to record, increasing, or how many (evenly spaced, 0 and T included; default 51),
            such as ``save_at=epochs + 1`` for each epoch; see `log_times`. May be empty. Methods with fixed
            steps record the step nearest to each, and each step once: `Trajectory.t` has their times, and the
            message tells how far they are from those asked for.
        risk: Record R(ρ_t): exactly where that is quick, else on a fixed held-out sample that all rungs
            share. An `Exact()` or `MonteCarlo(…)` chooses; False skips it. The rungs of the limit sum over
            their own nodes.
        observe: Name to function of the measure (an (N, D) array for networks, of replicas one after the
            other, unless `all_replicas` marks the function; a `Cloud` or `Density` for the rungs of the
            limit; a `Tangent` or `TangentLimit` for `mf.Linearized`), recorded at save points beside the
            standard ones: mean and standard deviation of |w|, a, b and of the coordinates of the law's
            symmetry (r1, r2; s1, …, r), such as ``"norm_mean"``.
        stop: A function of the run so far, such as ``lambda run: run.risk[-1] < 1e-3``, which ends the run
            with status ``"stopped"`` where it returns True. At each save point it is given the `Trajectory`
            that would be returned there: `risk`, `observed` and `t` end with this save point, and `final` is
            the present measure. With several replicas one answer ends all; of a network that is split over
            processes, the answer of one rank. `resume` goes on, with another `stop` or none.
        keep: Which measures to keep: ``"final"`` (default), ``"all"``, or some of the save points, by which
            they are found in `Trajectory.kept`.
        test: A held-out set (X, y): its mean of (y − f(x))² is recorded as ``observed["test_risk"]``, for
            the rungs of the limit by `predict` in their coordinates. Where all labels are ±1, the share of
            wrong signs is ``observed["test_error"]``, see `classification_error`. `resume` knows the set.
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
        The trajectory. It has diverged when a number is no longer finite, and when the risk is more than 10⁶
        times the larger of R(0) and E y² (with noise more, by (1 + 2·rate·t·D/β)²): at a save point, at the
        end or, with fixed steps, at one of fifty even times; what leaves and comes back between these goes
        unnoticed. Divergence, Ctrl-C and the time limit end it early, with a status and a message;
        Ctrl-C again, while the checkpoint is written, is a KeyboardInterrupt. An error in a function of yours
        is raised, after the state before it is in the checkpoint. A completed run of fixed steps, without
        noise and ridge, whose risk has more than doubled is a warning: its step is too large.

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
    check_method(method)
    ranks = ranks_of(method)
    with nullcontext() if ranks is None else ranks.together():
        plan = plan_of(horizon_of(model, method, horizon, steps, epochs), save_at, risk, keep, test)
        check_step(method, plan.horizon)
        stopper = checked_stop(stop, plan)
        observers, count, number = checked_observers(observe, model), check.threads(threads), number_of(rng)
        limit, bar = _limit(max_seconds), _bar(progress, plan, ranks)
        advise_parity(model)
        given_up = None if checkpoint is None else vacant(checkpoint)
        if ranks is not None:
            number = agreed(ranks, number, run_described(model, method, plan))
        kept = None
        if checkpoint is not None:
            kept = _checkpoint(ranks, [], checkpoint, model, method, plan, number, observers, given_up)
        with bar.until_the_run(), limit.for_preparation(bar.prepare):
            rung = begun(method, model, number, count, plan)
            if plan.kept:
                asked = "all" if keep is not None and isinstance(keep, str) else len(plan.kept)
                check.memory(float(bytes_of(rung.measure())) * len(plan.kept), "keep", asked)
            run = _run(ranks)(model, method, plan, observers, number, rung, count, stopper)
        return run.go(kept, limit, bar)


def resume(
    checkpoint: str | os.PathLike[str],
    *,
    model: Model | ReducedModel | None = None,
    method: Method[M] | None = None,
    observe: Observers | None = None,
    stop: Stopper | None = None,
    horizon: float | None = None,
    save_at: int | npt.ArrayLike | None = None,
    threads: int | None = None,
    progress: bool = False,
    max_seconds: float | None = None,
    allow_other_build: bool = False,
) -> Trajectory[M]:
    """Continue a run from its checkpoint, to the same bits as if it had never been interrupted.

    Args:
        checkpoint: The file that `solve` was given.
        model, method: Those of the run. They come from the checkpoint, unless they contain Python functions,
            which it cannot hold: then pass them again. What can be compared must agree.
        observe: The functions of the run, again.
        stop: As in `solve`: the same function, another, or none.
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
    if method is not None:
        check_method(method)
    ranks = ranks_of(method)
    with nullcontext() if ranks is None else ranks.together():
        found = Found(checkpoint, check.boolean(allow_other_build, "allow_other_build"))
        model = found.value("model", model, (Model, ReducedModel), "an mf.Model or mf.ReducedModel")
        method = found.value("method", method, object, "a method")
        observers = checked_observers(observe, model)
        if set(observers) != set(found.observers):
            missing, more = sorted(set(found.observers) - set(observers)), ", ".join(observers)
            what = f"none for {', '.join(missing)}" if missing else f"{more} for a run without"
            raise ValueError(f"observe must have the functions of the run, got {what}")
        pieces = pieces_of(found)
        if (ranks is None) != (not pieces):
            is_, given = ("split", "without") if pieces else ("not split", "with")
            raise ValueError(f"method must be {is_}, as the network of the checkpoint, got one {given} comm=")
        plan = longer(found.plan, horizon, save_at)
        stopper = checked_stop(stop, plan)
        check_step(method, plan.horizon)
        count, number = check.threads(threads), found.seed
        if ranks is not None:
            number = agreed(ranks, number, run_described(model, method, plan))
        kept = _checkpoint(ranks, pieces, checkpoint, model, method, plan, number, observers, found.id)
        limit, bar = _limit(max_seconds), _bar(progress, plan, ranks)
        with bar.until_the_run(), limit.for_preparation(bar.prepare):
            rung = begun(method, model, number, count, plan)
            state, recorded = found.state, found.run
            if ranks is not None:
                state, recorded = assembled(found, checkpoint, cast(SplitRung, rung))
            rung.restore(state)
            run = _run(ranks)(model, method, plan, observers, number, rung, count, stopper)
        run.restore(recorded)
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


def _run(ranks: Ranks | None) -> type[Run]:
    return Run if ranks is None else SplitRun


def _checkpoint(ranks: Ranks | None, pieces: list[str], *arguments: Any) -> Checkpoint:
    return Checkpoint(*arguments) if ranks is None else SplitCheckpoint(ranks, pieces, *arguments)


def _bar(progress: bool, plan: Plan, ranks: Ranks | None) -> Bar:
    wanted = check.boolean(progress, "progress")
    return Bar(wanted and (ranks is None or ranks.rank == 0), plan.horizon)


def _limit(max_seconds: float | None) -> Limit:
    return Limit(math.inf if max_seconds is None else check.number(max_seconds, "max_seconds", at_least=0))


def begun(method: Method, model: Model | ReducedModel, number: int, threads: int, plan: Plan) -> Rung:
    """A run at t = 0, whose clock knows the horizon."""
    rung = begin(method, model, seed_of(number), threads)
    clock = clock_of(rung)
    if clock is not None:
        clock.end = plan.horizon
    return rung
