"""`python -m tests.calibration`: run random problems, print how often errors were stated large enough."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

from .models import FAMILIES, problem
from .points import RUNGS, Point, points_of


def _one(task: tuple[str, int, tuple[str, ...], float]) -> list[Point]:
    family, number, rungs, seconds = task
    begin = time.process_time()
    try:
        found = points_of(problem(family, number), rungs, seconds)
    except Exception as error:  # one problem that cannot be run must not lose the others
        print(f"{family} {number}: {error!r}", flush=True)
        return []
    parts = []
    for rung in rungs:
        mine = [p for p in found if p.rung == rung]
        ratios = ", ".join(f"{p.ratio:.2g}" for p in mine if p.ratio == p.ratio)
        parts.append(f"{rung} {ratios or '-'}")
    print(
        f"{family} {number} ({found[0].kind if found else ''}): {sum(not p.held for p in found)} of "
        f"{len(found)} points too small; stated/true: {'; '.join(parts)} "
        f"({time.process_time() - begin:.1f} s)",
        flush=True,
    )
    return found


def summary(points: Sequence[Point]) -> str:
    """One line per rung and family: points, share held, the least ratio, the median ratio."""
    lines = []
    for family in FAMILIES:
        for rung in RUNGS:
            mine = [p for p in points if p.rung == rung and p.family == family]
            if not mine:
                continue
            ratios = np.array([p.ratio for p in mine])
            known = ratios[np.isfinite(ratios)]
            lines.append(
                f"{family}, {rung}: {len({p.number for p in mine})} models, {len(mine)} points, "
                f"stated >= true at {100 * np.mean([p.held for p in mine]):.1f} %, "
                f"stated/true least {known.min():.2g}, "
                f"median {np.median(known):.3g}, 95 % {np.quantile(known, 0.95):.3g} "
                f"(of {len(known)} points whose true error is known)"
            )
    return "\n".join(lines)


def main() -> None:
    """Run, print, keep the points, draw."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration", description=__doc__)
    parser.add_argument("--family", choices=FAMILIES, default="held out")
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(RUNGS))
    parser.add_argument("--seconds", type=float, default=60.0, help="of a run or a reference")
    parser.add_argument("--json", type=Path, help="keep all points in this file")
    parser.add_argument("--figure", type=Path, help="draw stated against true errors into this file")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.models)
    tasks = [(options.family, k, tuple(options.rungs), options.seconds) for k in numbers]
    with ProcessPoolExecutor(options.processes) as pool:
        points = [p for found in pool.map(_one, tasks) for p in found]
    print(summary(points))
    if options.json:
        options.json.write_text(json.dumps([asdict(p) for p in points], indent=0))
    if options.figure:
        from .picture import draw

        draw(points, options.figure)


if __name__ == "__main__":
    main()
