"""`mf.sweep`: a function called with many cases, and its results in one table."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import check
from .._base.build import build_info
from .._base.rng import RNG, number_of
from .._base.warn import warn
from ._cases import Case, Plan, key_of
from ._identity import Identity, identity, module_of
from ._store import Store
from ._table import Columns, columns_of, dataset, shown_case
from ._work import ByClient, ByProcesses, Failed, InTurn, arguments_of


def sweep(
    run: Callable[..., Any],
    cases: Any,
    *,
    workers: int | None = None,
    client: Any = None,
    threads: int = 1,
    folder: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    rng: RNG = 0,
    progress: bool = False,
) -> Any:
    """Call a function with many cases, in several processes, and label its results.

    A case that fails is reported and the others go on. The numbers do not depend on who computes them: each
    case has a seed of its own, made of `rng` and of what the case says. In a script, call it below
    ``if __name__ == "__main__":``, because processes are started afresh.

    Args:
        run: Called as ``run(**case)``, with ``rng=seed`` and ``threads=threads`` if it has such arguments. It
            returns a number, an array, a dict of them by name, or a `Trajectory`.
        cases: A dict of lists, whose combinations are the cases (a grid); a list of dicts; or a
            `mf.Bisection`.
        workers: Processes: None for the cores of this machine divided by `threads`, 1 for this process.
        client: Who computes instead: a Dask client, or any object with ``submit(function, *arguments)``.
        threads: Threads of each run.
        folder: Keep each result in a file of this folder as it comes, and take those that are there already
            from it: a sweep that was stopped goes on, and `mf.load` reads the folder. The folder keeps what
            its results rest on: the code of the function and of the functions of yours that it calls, the
            values that they read, the seed and the version of mfcore. After a change, other than of comments
            and layout, a second sweep into the folder raises with what has changed. It does not see files
            that a function reads.
        fresh: Start again in a folder that has results: they are set aside, in a folder ``before-1`` in it.
        rng: The seed that all seeds are made of.
        progress: Show a bar (needs tqdm).

    Returns:
        An `xarray.Dataset` over the axes of the grid, or over ``case``, with a variable ``failed``. What
        failed is NaN, and ``attrs["failures"]`` says why, in a line for each case; after Ctrl-C also what was
        not done. Of a trajectory, ``t`` are the times of its save points: one series if those of all cases
        agree, else over the axes on which they depend. A bisection adds ``bracket_low``, ``bracket_high``,
        ``bracket_message`` and the other arguments of each bracket.

    Raises:
        ValueError: The folder has results of another function, or of this one before it was changed.

    Examples:
        >>> import mfcore as mf
        >>> def final_risk(neurons: int, delta: float, rng: int, threads: int) -> float:
        ...     model = mf.Model(
        ...         data=mf.data.IsotropicGaussians(d=10, delta=delta),
        ...         network=mf.Network(mf.activations.relu),
        ...         init=mf.init.Radial(1.0),
        ...     )
        ...     method = mf.SGD(neurons, step=1e-2)
        ...     run = mf.solve(model, method, horizon=1.0, rng=rng, threads=threads)
        ...     return float(run.risk[-1])
        >>> grid = {"neurons": [10, 20], "delta": [0.2, 0.4, 0.6]}
        >>> result = mf.sweep(final_risk, grid, workers=1)
        >>> dict(result["value"].sizes), bool(result["failed"].any())
        ({'neurons': 2, 'delta': 3}, False)
    """
    if not callable(run):
        raise TypeError(f"run must be a function, got {check.shown(run)}")
    try:
        import xarray  # noqa: F401
    except ImportError:
        raise ImportError("sweep needs xarray: pip install 'mfcore[xarray]'") from None
    plan, seed = Plan(cases), number_of(rng)
    threads = check.integer(threads, "threads", at_least=1)
    fresh = check.boolean(fresh, "fresh")
    store = None if folder is None else Store(folder, _describing(run, seed), plan, fresh)
    engine = _engine(run, workers, client, threads)
    done: dict[str, tuple[Case, Columns | Failed]] = {}
    rounds, bar = plan.rounds(), _bar(progress)
    at_once = True
    try:
        batch = next(rounds)
        while True:
            _do(
                batch,
                engine,
                store,
                lambda case: arguments_of(run, case, _seed(seed, case), threads),
                done,
                bar,
            )
            batch = rounds.send([_result(done[key_of(case)][1]) for case in batch])
    except StopIteration:
        at_once = False
    except KeyboardInterrupt:
        for case in batch:
            done.setdefault(key_of(case), (case, Failed("not done: interrupted")))
    finally:
        engine.close(at_once)
        if bar is not None:
            bar.close()
    found = list(done.values())
    if store is not None:
        store.end(plan.brackets)
    _warn(found)
    if plan.shape is not None:  # in the order of the grid, whatever came first
        found = [done[key_of(case)] for case in next(plan.rounds())]
    outcomes = [outcome for _, outcome in found]
    return dataset(plan.shape, [case for case, _ in found], outcomes, plan.brackets)


def _do(
    batch: list[Case],
    engine: Any,
    store: Store | None,
    arguments: Callable[[Case], Case],
    done: dict[str, tuple[Case, Columns | Failed]],
    bar: Any,
) -> None:
    """Do the cases of one round that were not done before."""
    left = []
    for case in batch:
        there = store.read(case) if store else None
        if there is not None:
            done[key_of(case)] = case, there
        elif key_of(case) not in done:
            left.append(case)
    if bar is not None:
        bar.total = len(done) + len(left)
        bar.update(len(done) - bar.n)
    for k, result in engine.results([arguments(case) for case in left]):
        outcome: Columns | Failed
        try:
            outcome = result if isinstance(result, Failed) else columns_of(result)
        except TypeError as error:
            outcome = Failed(str(error))
        if store and isinstance(outcome, Failed):
            store.fail(left[k], outcome)
        elif store and not isinstance(outcome, Failed):
            store.write(left[k], outcome)
        done[key_of(left[k])] = left[k], outcome
        if bar is not None:
            bar.update()


def _engine(run: Callable[..., Any], workers: int | None, client: Any, threads: int) -> Any:
    if client is not None:
        if workers is not None:
            raise ValueError(f"workers must be left out when there is a client, got {check.shown(workers)}")
        if not callable(getattr(client, "submit", None)):
            raise TypeError(
                f"client must have a method submit(function, *arguments), got {check.shown(client)}"
            )
        return ByClient(run, client)
    if workers is None:
        workers = max(1, len(os.sched_getaffinity(0)) // threads)
    workers = check.integer(workers, "workers", at_least=1, at_most=1024)
    return InTurn(run) if workers == 1 else ByProcesses(run, workers, threads)


def _seed(root: int, case: Case) -> int:
    words = np.random.SeedSequence([root, int(key_of(case), 16)])
    return int(words.generate_state(1, np.uint64)[0]) >> 1


def _describing(run: Callable[..., Any], seed: int) -> Callable[[], Identity]:
    """A function that describes what results rest on at the time it is called."""
    known: dict[int, Any] = {}
    named = getattr(run, "func", run)  # of functools.partial
    name = f"{module_of(run)}.{getattr(named, '__qualname__', type(named).__name__)}"
    facts = {"run": name, "rng": seed, "mfcore": build_info()["version"]}
    own = {key: {key: value} for key, value in facts.items()}

    def describe() -> Identity:
        found = identity(run, known)
        if found.code:
            for key in found.values.keys() & own.keys():
                entries = found.values.pop(key)
                found.values[f"global {key}"] = {f"global {entry}": x for entry, x in entries.items()}
            found.values |= own
        else:  # the entries of a file, in which an rng is that of all runs
            found.values = own | found.values
        return found

    return describe


def _result(outcome: Columns | Failed) -> Any:
    """Return the result that a bisection judges: the number or array itself, or the columns by name."""
    if isinstance(outcome, Failed):
        return None
    values = {name: column[1][()] for name, column in outcome.items()}
    return values["value"] if list(values) == ["value"] else values


def _warn(found: list[tuple[Case, Columns | Failed]]) -> None:
    failed = [(case, outcome) for case, outcome in found if isinstance(outcome, Failed)]
    if failed:
        case, outcome = failed[0]
        warn(
            f"{len(failed)} of {len(found)} cases failed; the first, {shown_case(case)}: {outcome.message}"
            + (f"\n{outcome.details}" if "\n" in outcome.details else ""),
        )


def _bar(wanted: bool) -> Any:
    if not check.boolean(wanted, "progress"):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install 'mfcore[progress]'") from None
    return tqdm(unit="case")
