"""The plan of a run, from the arguments of `mf.solve`: save points, what to record and what to keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import check
from ..data import Dataset
from ..expectations._rules import Expectation
from ._checkpoint import Plan

_RECORD_BYTES = 1000  # of a save point, with the standard observables


def plan_of(horizon: Any, save_at: Any = None, risk: Any = True, keep: Any = None, test: Any = None) -> Plan:
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
        check.memory(float(_RECORD_BYTES) * len(times), "save_at", save_at)
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
    return Plan(end, times, kept, risk, _test_set(test))


def longer(plan: Plan, horizon: Any, save_at: Any) -> Plan:
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
    return Plan(end, np.concatenate([plan.times, later]), kept, plan.risk, plan.test)


def _test_set(test: Any) -> Dataset | None:
    """A held-out set, given as a `Dataset` or as a pair (X, y)."""
    if test is None or isinstance(test, Dataset):
        return test
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise TypeError(f"test must be a pair (X, y) or an mf.data.Dataset, got {check.shown(test)}")
    X = check.array(test[0], "test X", shape=(None, None))
    return Dataset(X, check.labels(test[1], "test y", len(X)))
