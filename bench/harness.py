"""Run the contenders of a case in turns, each in a process of its own; print ratios and fractions of peak.

A process starts with the first call, which is shown as *cold*: what a user's first minute looks like. Then
the results are compared, before they are timed again and again (*warm*).
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mfcore import _core

from .process import Process

PAUSE = 0.15  # seconds in which idle threads of the contender before stop spinning: OpenBLAS's take 0.1
AGREEMENT = 1e-10  # what results that are compared apart from the timing must reach
CALLS = 3  # in a row, of which the shortest counts


@dataclass
class Prepared:
    """A contender that has something to prepare, such as an import, which is no part of its times."""

    make: Callable[[], Callable[[], Any]]

    def __call__(self) -> Any:
        return self.make()()


@dataclass
class Case:
    """One computation done by several contenders.

    `contenders` maps a name to a function of no arguments that returns the result; "mfcore" is among them. A
    tolerance of None means that the results are random; then `checks` maps names to functions whose results
    are compared instead, if any are. With `distance` each result is judged by itself, as by its distance from
    an exact solution. `units` are the steps a contender does per call, where they differ; times are per step.
    `flops` and `bytes` are those of a step. `bars` maps a contender to the least ratio (its time over ours)
    that we hold ourselves to, `peak_bar` is the least fraction of the peak.
    """

    name: str
    contenders: dict[str, Callable[[], Any]]
    threads: int = 2
    flops: float | None = None
    bytes: float | None = None
    single_precision: bool = False
    tolerance: float | None = 1e-10
    checks: dict[str, Callable[[], Any]] = field(default_factory=dict)
    distance: Callable[[Any], float] | None = None
    units: dict[str, int] = field(default_factory=dict)
    bars: dict[str, float] = field(default_factory=dict)
    peak_bar: float | None = None
    long: bool = False  # a call takes seconds: it is made once a round, in two rounds


@dataclass
class Row:
    """What was measured of one contender: seconds a step, warm and of the first call, page faults a step."""

    case: str
    contender: str
    threads: int
    seconds: float
    cold: float
    faults: float
    ratio: float
    bar: float | None
    agreement: float | None
    peak_fraction: float | None
    bound: str
    ok: bool


def installed(*names: str) -> list[str]:
    """Those of the optional contenders that this environment has."""
    return [name for name in names if importlib.util.find_spec(name) is not None]


def measure(case: Case, where: tuple[str, str, int, bool], repeats: int) -> list[Row]:
    """Cold calls and agreement first; then runs in turns, so that a busy moment hurts everybody.

    `where` is the address (module, group, number, quick) at which each process finds the case again.
    """
    with tempfile.TemporaryDirectory() as folder:
        processes = {name: Process(where, name, folder) for name in case.contenders}
        try:
            for process in processes.values():
                process.wait()
            cold = {}
            for name, process in processes.items():
                time.sleep(PAUSE)
                cold[name] = process.ask("first")["seconds"]
            agreement = {name: process.ask("result")["distance"] for name, process in processes.items()}
            if case.distance is None:
                agreement = _agreement(case, folder)
            best, faults, limit = dict.fromkeys(processes, float("inf")), {}, 0.0
            for _ in range(min(repeats, 2) if case.long else repeats):
                time.sleep(PAUSE)
                limit = max(limit, _limit(case))
                for name, process in processes.items():
                    time.sleep(PAUSE)
                    answer = process.ask(f"again {1 if case.long else CALLS}")
                    best[name] = min(best[name], answer["seconds"])
                    faults[name] = answer["faults"]  # of the last round: the steady state
        finally:
            for process in processes.values():
                process.close()
    unit = {name: case.units.get(name, 1) for name in processes}
    ours = best["mfcore"] / unit["mfcore"]
    rows = []
    for name in processes:
        seconds, bar = best[name] / unit[name], case.bars.get(name)
        ratio, fraction, bound = seconds / ours, None, ""
        if name == "mfcore":
            if limit:
                fraction, bound = (case.flops or case.bytes or 0.0) / seconds / limit, _bound(case)
            bar = case.peak_bar
        agreed = agreement.get(name)
        agrees = (agreed or 0.0) <= (AGREEMENT if case.tolerance is None else case.tolerance)
        reached = fraction if name == "mfcore" else ratio
        held = bar is None or reached is None or reached >= bar
        rows.append(
            Row(
                case=case.name,
                contender=name,
                threads=case.threads,
                seconds=seconds,
                cold=cold[name] / unit[name],
                faults=faults.get(name, 0.0) / unit[name],
                ratio=ratio,
                bar=bar,
                agreement=agreed,
                peak_fraction=fraction,
                bound=bound,
                ok=agrees and held,
            )
        )
    return rows


def _limit(case: Case) -> float:
    """Most operations, or bytes, a second that the machine does now: that changes from minute to minute."""
    if case.flops:
        return 1e9 * _core.fma_peak(case.threads, case.single_precision)
    return 1e9 * _core.memory_bandwidth(case.threads) if case.bytes else 0.0


def _bound(case: Case) -> str:
    return "FMA" if case.flops else "memory"


def _agreement(case: Case, folder: str) -> dict[str, float | None]:
    """Largest difference from our result, relative to its largest entry, over the arrays of two results."""
    if case.tolerance is None and not case.checks:
        return {}
    results = {name: Process.result(folder, name) for name in case.checks or case.contenders}
    ours = results["mfcore"]
    return {
        name: max(
            float(np.abs(a - b).max() / (np.abs(a).max() or 1.0)) for a, b in zip(ours, theirs, strict=True)
        )
        for name, theirs in results.items()
    }


def table(rows: Iterable[Row]) -> str:
    """The rows as text; a failed line ends with the bar it missed."""
    lines = [
        f"{'case':44} {'contender':10} {'thr':>3} {'warm':>8} {'cold':>8} {'faults':>7} {'ratio':>7} "
        f"{'peak':>12} {'agree':>6}"
    ]
    for r in rows:
        peak = "" if r.peak_fraction is None else f"{100 * r.peak_fraction:.0f} % {r.bound}"
        agree = "" if r.agreement is None else f"{r.agreement:.0e}"
        reached = r.peak_fraction if r.contender == "mfcore" else r.ratio
        below = r.bar is not None and reached is not None and reached < r.bar
        note = "" if r.bar is None else f"  {'BELOW' if below else 'ok'} (bar {r.bar:g})"
        if not r.ok and not below:
            note += "  DISAGREES"
        lines.append(
            f"{r.case:44} {r.contender:10} {r.threads:3d} {shown(r.seconds):>8} {shown(r.cold):>8} "
            f"{r.faults:7.2g} {r.ratio:7.2f} {peak:>12} {agree:>6}{note}"
        )
    return "\n".join(lines)


def shown(seconds: float) -> str:
    """A time in words, three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
