"""How time and memory grow: over decades of one size at a time, with fitted powers beside the stated.

Each sweep has a process of its own, which gives its memory back before the next size.
"""

from __future__ import annotations

import ctypes
import gc
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import Any

import numpy as np
from mfcore._base import check
from scipy.special import stdtrit

from .harness import shown
from .sweeps import SWEEPS, Sweep, Work

LEAST = 0.02  # seconds that calls are repeated for
ABOVE = 4.0  # the fit takes sizes at which a run costs so many times as much as at the smallest
_START = "import importlib, sys; importlib.import_module(sys.argv[1]).sweep(*sys.argv[2:])"


@dataclass
class Growth:
    """One sweep: seconds and bytes at each size, and the fitted powers ± half of their 95 % intervals."""

    name: str
    variable: str
    stated: str
    sizes: list[int]
    seconds: list[float]
    bytes: list[float]
    power: float
    power_error: float
    memory_power: float
    memory_error: float
    memory_stated: str


def main(quick: bool, names: list[str] | None, picture: str | None) -> list[Growth]:
    """Measure, print the table in Markdown and draw the picture."""
    for name in names or ():
        check.choice(name, "case", SWEEPS)
    print("| what | against | time: stated | fitted | from | to | memory: stated | fitted | most |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    rows = []
    for key, sweep in SWEEPS.items():
        if names and key not in names:
            continue
        growth = _measured(key, sweep, quick)
        rows.append(growth)
        print(_line(growth), flush=True)
    if picture:
        from .scaling_picture import draw

        draw(rows, Path(picture))
    return rows


def _measured(key: str, sweep: Sweep, quick: bool) -> Growth:
    sizes = sweep.sizes[:3] if quick else sweep.sizes
    arguments = [sys.executable, "-c", _START, __name__, key, dumps([sizes, quick])]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{sweep.name} failed: {done.stderr[-500:]}")
    seconds, used = loads(done.stdout)
    power, error = fitted(sizes, seconds)
    # Memory that does not grow is kept from the smallest size on: nothing that could be fitted is left.
    memory_power, memory_error = fitted(sizes, used) if sweep.memory != "0" else (math.nan, math.inf)
    return Growth(
        sweep.name,
        sweep.variable,
        sweep.stated,
        list(sizes),
        seconds,
        used,
        power,
        error,
        memory_power,
        memory_error,
        sweep.memory,
    )


def fitted(sizes: Any, values: Any) -> tuple[float, float]:
    """The slope of log(values) against log(sizes) by least squares, and half its 95 % interval.

    Sizes at which a fixed cost rules are left out, as long as three are left.
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.maximum(np.asarray(values, float), 1e-300))
    above = y >= y[0] + math.log(ABOVE)
    if above.sum() >= 3:
        x, y = x[above], y[above]
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    if len(x) < 3:
        return slope, math.inf
    left = y - y.mean() - slope * centred
    deviation = math.sqrt(float(left @ left) / (len(x) - 2) / float(centred @ centred))
    return slope, float(stdtrit(len(x) - 2, 0.975)) * deviation


def in_words(power: float, error: float) -> str:
    """A fitted power with half of its 95 % interval, where it has one; nothing where there is no power."""
    if math.isnan(power):
        return ""
    return (f"{power:.2f} ± {error:.2f}" if math.isfinite(error) else f"{power:.2f}").replace("-", "−")


def _line(g: Growth) -> str:
    memory = in_words(g.memory_power, g.memory_error) if g.memory_stated else ""
    most = f"{max(g.bytes) / 1e6:.1f} MB"
    return (
        f"| {g.name} | {g.variable} = {g.sizes[0]:,} to {g.sizes[-1]:,} | {g.stated} | "
        f"{in_words(g.power, g.power_error)} | {shown(g.seconds[0])} | {shown(g.seconds[-1])} | "
        f"{g.memory_stated} | {memory} | {most} |"
    )


def sweep(key: str, what: str) -> None:
    """Run all sizes in this process: prints the seconds of a unit of work, and the bytes that runs needed."""
    sizes, quick = loads(what)
    _point(SWEEPS[key].make, sizes[0], True)  # modules are loaded, teams started
    points = [_point(SWEEPS[key].make, size, quick) for size in sizes]
    print(dumps(list(zip(*points, strict=True))))


def _point(make: Callable[[int], Work], size: int, quick: bool) -> tuple[float, int]:
    _give_back()
    before = _resident(reset=True)
    run, units = make(size)
    run()
    used = max(_resident(most=True) - before, 4096)
    best, start = math.inf, time.perf_counter()
    while True:
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
        if quick or time.perf_counter() - start > LEAST:
            return best / units, used


def _give_back() -> None:
    """Hand freed memory to the system, where the C library can be told to."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _resident(*, most: bool = False, reset: bool = False) -> int:
    """Bytes of memory that this process has, or has had at most since the last reset."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # not Linux
        return 0
    name = "VmHWM:" if most else "VmRSS:"
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))
