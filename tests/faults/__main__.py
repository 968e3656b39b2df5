"""Run all attacks, or some, for a given time: `python -m tests.faults --minutes 60 [--seed 1] [--only
fuzz,kills]`.

Ends with a table. The exit code is 1 if anything was lost, silent or unclear, or if an attack made no call.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from .report import Report, table

# With their shares of the time.
ATTACKS = {
    "requests": 2,
    "archives": 6,
    "disks": 4,
    "memory": 4,
    "signals": 10,
    "threads": 8,
    "runtimes": 4,
    "state": 8,
    "kills": 34,
    "fuzz": 20,
}


def main(arguments: list[str]) -> int:
    """Run, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of wall-clock time, for all together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, help="generated calls, however long they take")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share generated calls")
    parser.add_argument("--only", default=",".join(ATTACKS), help="names of attacks")
    given = parser.parse_args(arguments)
    chosen = given.only.split(",")
    if unknown := set(chosen) - set(ATTACKS):
        parser.error(f"--only must name attacks ({', '.join(ATTACKS)}), got {', '.join(unknown)}")
    # Started in the background by a shell, this process and all it starts would ignore the SIGINT it sends.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    total, reports = sum(ATTACKS[name] for name in chosen), []
    for name in chosen:
        seconds, began = 60 * given.minutes * ATTACKS[name] / total, time.monotonic()
        print(f"{name}: {seconds:.0f} s, seed {given.seed}", flush=True)
        folder = Path(tempfile.mkdtemp(prefix="mfcore-faults-"))
        options = {"calls": given.calls, "jobs": given.jobs} if name == "fuzz" else {}
        attack = importlib.import_module(f".{name}", __package__).attack
        report: Report = attack(seconds, given.seed, folder, **options)
        shutil.rmtree(folder, ignore_errors=True)
        reports.append(report)
        print(f"  {dict(report.outcomes)}, {time.monotonic() - began:.0f} s", flush=True)
    print(table(reports))
    if idle := [report.name for report in reports if not report.calls]:
        print(f"no call was made, so nothing is shown, by {', '.join(idle)}: give more --minutes or --calls")
    return 0 if not idle and all(report.clean for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
