"""`mf.theory.ladder`: run all rungs from the same neurons and with the same noise, for every width and
step (eq. (10.3)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.build import build_info
from .._base.check import FloatArray
from .._base.rng import RNG, Seed, derive, number_of, seed_of
from ..atoms._atoms import Atoms
from ..density._pde import PDE
from ..expectations._rules import Exact, Expectation, MonteCarlo
from ..model import Model
from ..runs._observe import RiskMeter
from ..runs._rung import Method
from ._budget import Ladder
from ._runs import LIMIT, ROWS, SAME, Runs, longest

_Number = TypeVar("_Number", int, float)

_HELD_OUT = 10_000  # samples, where the risk has no exact form


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
    """Split the gap between the risks of SGD and of its limit into four, by runs from the same neurons.

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
        risk: `mf.Exact()` or `mf.MonteCarlo(…)`: how the risk of networks is measured. None: as above.
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
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(1.0),
        ... )
        >>> theory.ladder(model, [20, 40], [0.02, 0.01], horizon=0.4, replicas=2, rng=0)
        Ladder(neurons=(20, 40), step=(0.02, 0.01), replicas=2, t=[0, 0.4], limit=PDE())
    """
    check.instance(model, "model", Model, "an mf.Model")
    widths = _several(neurons, "neurons", check.count)
    steps = _several(step, "step", partial(check.number, above=0))
    end = check.number(horizon, "horizon", above=0)
    times = _times(save_at, end, steps)
    count = check.count(replicas, "replicas")
    most = check.count(gd_steps, "gd_steps")
    if limit is not None and (isinstance(limit, type) or not hasattr(limit, "begin")):
        raise TypeError(f"limit must be a method of the limit, such as mf.PDE(), got {check.shown(limit)}")
    method = limit if limit is not None else _default_limit(model, max(steps))
    number = number_of(rng)
    seed = seed_of(number)
    if risk is not None:
        check.instance(risk, "risk", (Exact, MonteCarlo), "mf.Exact(), mf.MonteCarlo(samples) or None")
    rule = risk if risk is not None else _rule(model)
    each = 8.0 * len(widths) * len(steps) * sum(ROWS.values()) * len(times)
    check.memory(each * count, "replicas", replicas)
    runs = Runs(model, method, times, expectation, RiskMeter(model, rule, check.threads(threads)), threads)
    begun = time.monotonic()
    runs.run_limit(Seed(derive(seed, LIMIT)))
    shape = (len(widths), len(steps), count)
    found = {name: np.full((*shape, rows, len(times)), np.nan) for name, rows in ROWS.items()}
    done, status = 0, "completed"
    with _bar(check.boolean(progress, "progress"), count * len(widths) * (2 + 2 * len(steps))) as tick:
        try:
            for replica in range(count):
                for i, n in enumerate(widths):
                    start = Seed(derive(derive(seed, n), replica))
                    for j, cell in enumerate(runs.replica(n, steps, most, start, tick)):
                        for name, array in cell.items():
                            found[name][i, j, replica] = array
                done = replica + 1
        except KeyboardInterrupt:
            if not done:
                raise
            status = "interrupted"
    return Ladder(
        t=times,
        neurons=widths,
        step=steps,
        **{name: array[:, :, :done] for name, array in found.items()},
        meta={
            "model": model,
            "limit": method,
            "status": status,
            "seed": number,
            "version": build_info()["version"],
            "isa": build_info()["isa"],
            "seconds": time.monotonic() - begun,
            "risk": runs.meter.description,
            "gd_step": 0.0 if model.temperature > 0 else longest(times, max(steps), most),
        },
    )


def _default_limit(model: Model, step: float) -> Method:
    """The method of the limit: a density where that is cheap (it also gives distances of laws), else
    atoms.
    """
    reduced = model.reduce()
    if reduced.initial is None:
        raise ValueError(f"init must be an initial law with a reduction, got {model.init!r}")
    support = reduced.initial.support()
    moving = [low < high for (low, high), rate in zip(support, reduced.rates, strict=True) if rate > 0]
    if model.temperature > 0:
        return PDE() if len(moving) <= 2 else Atoms(method="heun", step=step)
    return PDE() if moving == [True] else Atoms()


def _rule(model: Model) -> Expectation:
    """The expectation by which the risks of all networks are measured."""
    try:
        Exact().evaluator(model)
    except ValueError:
        return MonteCarlo(_HELD_OUT, seed=derive(0, _HELD_OUT))
    return Exact()


def _times(save_at: int | npt.ArrayLike, horizon: float, steps: Sequence[float]) -> FloatArray:
    """Save points that every step reaches exactly."""
    coarse = max(steps)
    for h in steps:
        ratio = coarse / h
        if abs(ratio - round(ratio)) > SAME * ratio:
            near = [coarse / k for k in (math.ceil(ratio), math.floor(ratio))]
            raise ValueError(
                f"step must divide the largest, {coarse:g}, so that all are at save points together, "
                f"got {h:g}; {near[0]:.6g} and {near[1]:.6g} do"
            )
    if coarse > horizon:
        raise ValueError(f"step must be <= horizon = {horizon:g}, got {coarse:g}")
    if isinstance(save_at, int | np.integer) and not isinstance(save_at, bool):
        count = check.integer(save_at, "save_at", at_least=2)
        check.memory(64.0 * min(count, horizon / coarse), "save_at", save_at)
        stride = max(1, round(horizon / coarse / (count - 1)))
        marks = stride * np.arange(max(1, round(horizon / coarse / stride)) + 1)
    else:
        wanted = check.times(save_at, "save_at", horizon, increasing=False)
        marks = np.unique(np.round(wanted / coarse))
        if marks[-1] == 0:
            raise ValueError(f"save_at must have a time of at least the largest step, {coarse:g}")
    return np.asarray(marks * coarse, dtype=np.float64)


def _several(value: Any, name: str, check: Callable[[Any, str], _Number]) -> tuple[_Number, ...]:
    """One number or several different ones."""
    found = tuple(check(entry, name) for entry in np.atleast_1d(np.asarray(value, dtype=object)))
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{name} must be a number or several different ones, got {list(found)}")
    return found


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
