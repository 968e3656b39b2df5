"""Run the contenders of a case in turns, check that they agree, print ratios and fractions of peak."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from json import dumps
from typing import Any

import numpy as np
from mfcore import _core
from mfcore._base import check, files

MODULES = ("cases_core", "cases_expectation", "cases_sgd", "cases_flow", "cases_density", "cases_lazy")
PAUSE = 0.05  # seconds in which the idle threads of the contender before stop spinning
AGREEMENT = 1e-10  # what a case that measures agreement itself must reach


@dataclass
class Case:
    """One computation done by several contenders.

    `contenders` maps a name to a function of no arguments that returns the result; "mfcore" is among them. A
    tolerance of None means that results are random; then `agreement` maps names to differences the case has
    measured itself. `units` are the steps a contender does per call, where they differ; times are per step.
    `bars` maps a contender to the least ratio (its time over ours) that we hold ourselves to.
    """

    name: str
    contenders: dict[str, Callable[[], Any]]
    threads: int = 2
    flops: float | None = None
    single_precision: bool = False
    tolerance: float | None = 1e-10
    agreement: dict[str, float] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)
    bars: dict[str, float] = field(default_factory=dict)
    peak_bar: float | None = None


@dataclass
class Row:
    """What was measured of one contender."""

    case: str
    contender: str
    threads: int
    seconds: float
    ratio: float
    bar: float | None
    agreement: float | None
    peak_fraction: float | None
    ok: bool


def installed(*names: str) -> list[str]:
    """Those of the optional contenders that this environment has."""
    return [name for name in names if importlib.util.find_spec(name) is not None]


def measure(case: Case, repeats: int) -> list[Row]:
    """Agreement first; then runs in turns, so that a busy moment hurts everybody; the shortest counts."""
    results = {name: run() for name, run in case.contenders.items()}  # also warms up compilers and pools
    ours = results["mfcore"]
    agreement = case.agreement or {name: _difference(ours, r, case.tolerance) for name, r in results.items()}
    best = dict.fromkeys(case.contenders, float("inf"))
    for _ in range(repeats):
        for name, run in case.contenders.items():
            time.sleep(PAUSE)
            for _ in range(3):
                start = time.perf_counter()
                run()
                elapsed = time.perf_counter() - start
                best[name] = min(best[name], elapsed / case.units.get(name, 1))
    rows = []
    for name, seconds in best.items():
        ratio, bar = seconds / best["mfcore"], case.bars.get(name)
        fraction = None
        if case.flops and name == "mfcore":
            peak = _core.fma_peak(case.threads, case.single_precision)
            fraction = case.flops / seconds * 1e-9 / peak
            bar = case.peak_bar
        agrees = (agreement.get(name) or 0.0) <= (case.tolerance or AGREEMENT)
        held = bar is None or (fraction if name == "mfcore" else ratio) >= bar
        agreed = agreement.get(name)
        row = (case.name, name, case.threads, seconds, ratio, bar, agreed, fraction, agrees and held)
        rows.append(Row(*row))
    return rows


def _difference(ours: Any, theirs: Any, tolerance: float | None) -> float | None:
    """Largest difference, relative to the largest entry, over the arrays of two results."""
    if tolerance is None:
        return None
    pairs = zip(_arrays(ours), _arrays(theirs), strict=True)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def _arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple | list) else (result,)
    return [np.asarray(p, dtype=np.float64) for p in parts]


def table(rows: Iterable[Row]) -> str:
    """The rows as text; a failed line ends with the bar it missed."""
    lines = [f"{'case':44} {'contender':10} {'thr':>3} {'time':>12} {'ratio':>7} {'peak':>6} {'agree':>8}"]
    for r in rows:
        peak = "" if r.peak_fraction is None else f"{100 * r.peak_fraction:.0f} %"
        agree = "" if r.agreement is None else f"{r.agreement:.0e}"
        reached = r.peak_fraction if r.contender == "mfcore" else r.ratio
        below = r.bar is not None and reached is not None and reached < r.bar
        note = "" if r.bar is None else f"  {'BELOW' if below else 'ok'} (bar {r.bar:g})"
        if not r.ok and not below:
            note += "  DISAGREES"
        lines.append(
            f"{r.case:44} {r.contender:10} {r.threads:3d} {_time(r.seconds):>12} {r.ratio:7.2f} {peak:>6} "
            f"{agree:>8}{note}"
        )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def main(*, quick: bool = False, json: str | None = None, cases: list[str] | None = None) -> int:
    """Run all groups of cases (or those named); 0 if every result agrees and holds its bar.

    `quick` runs small sizes and few repeats: a check that everything runs and agrees, bars not applied.
    """
    modules = [importlib.import_module(f"{__package__}.{name}") for name in MODULES]
    known = [build.__name__ for module in modules for build in module.CASES]
    for name in cases or ():
        check.choice(name, "case", known)
    rows: list[Row] = []
    print(table([]), flush=True)
    for module in modules:
        for build in module.CASES:
            if cases and build.__name__ not in cases:
                continue
            for case in build(quick):
                if quick:
                    case.bars, case.peak_bar = {}, None
                measured = measure(case, repeats=1 if quick else 7)
                print(table(measured).partition("\n")[2], flush=True)
                rows += measured
    if json:
        report = {"build": _core.build_info(), "quick": quick, "rows": [asdict(r) for r in rows]}
        files.replace(json, lambda file: file.write((dumps(report, indent=1) + "\n").encode()), "json")
    return 0 if all(r.ok for r in rows) else 1
