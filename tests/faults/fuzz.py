"""Attack: call the whole public surface with generated arguments, in child processes that may crash or hang.

    python -m tests.faults.fuzz SEED CASE

repeats one call here, and shows it.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import math
import os
import select
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from .children import Effort
from .report import Report

LIMIT = 300.0  # seconds of the processor for one call, or of doing nothing
AT_ONCE = 2000  # calls of one child


def attack(seconds: float, seed: int, folder: Path, calls: int | None = None, jobs: int = 1) -> Report:
    """Call until the time is over, or cases 0 … calls − 1; `jobs` children share the cases."""
    report, deadline = Report("fuzz"), time.monotonic() + (math.inf if calls else seconds)
    last, lock = calls or sys.maxsize, threading.Lock()
    starts = iter(range(0, last, AT_ONCE))

    def work(k: int) -> None:
        while time.monotonic() < deadline:
            with lock:
                first = next(starts, last)
            end = min(first + AT_ONCE, last)
            while first < end and time.monotonic() < deadline:
                first = _children_calls(report, lock, seed, (first, end), deadline, folder / f"fuzz{k}.log")
            if end == last:
                break
            print(f"  {report.calls} calls", flush=True)

    with ThreadPoolExecutor(jobs) as team:
        list(team.map(work, range(jobs)))
    return report


def _children_calls(
    report: Report, lock: threading.Lock, seed: int, cases: tuple[int, int], deadline: float, errors: Path
) -> int:
    """The calls of one child, from a case up to another. Returns the number to go on with."""
    first, end = cases
    case, name = first, "?"
    command = [sys.executable, "-m", "tests.faults.fuzz", str(seed), str(first), str(end)]
    with (
        errors.open("wb") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, cwd=errors.parent, env=child_environment()
        ) as child,
    ):
        assert child.stdout is not None
        buffer, since = b"", Effort(child.pid)
        while True:
            ready, _, _ = select.select([child.stdout], [], [], 1.0)
            chunk = os.read(child.stdout.fileno(), 1 << 16) if ready else None
            if chunk == b"":
                break
            if chunk is not None:
                buffer, since = buffer + chunk, Effort(child.pid)
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                told = json.loads(line)
                with lock:
                    if "outcome" in told:
                        case, name = 1 + _count(report, told, seed), "?"
                    else:
                        name = told["name"]
            late = since.seconds() > LIMIT
            # The first call is waited for: on a busy machine imports alone may take the time that is given.
            if late or (time.monotonic() > deadline and report.calls):
                child.kill()
                child.wait()
                if late:
                    with lock:
                        report.finding("lost", f"hang of {name} in case {case} of seed {seed}")
                return case + 1
        code = child.wait()
    if code:
        said = errors.read_text(errors="replace").strip().splitlines()[-6:]
        with lock:
            report.finding(
                "lost", f"crash ({code}) of {name} in case {case} of seed {seed}: {' | '.join(said)}"
            )
        return case + 1
    return case


def _count(report: Report, told: dict[str, Any], seed: int) -> int:
    report.calls += 1
    report.outcomes[told["outcome"]] += 1
    if told["kind"]:
        report.finding(told["kind"], f"{told['what']}  [case {told['case']} of seed {seed}]")
    return int(told["case"])


def child_environment() -> dict[str, str]:
    """That of a child, which finds these modules and the library."""
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *(str(Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "2"}


def chosen(seed: int, case: int) -> tuple[str, Any]:
    """A function and its name, that of lowest hash: a case stays what it is when functions are added."""
    from . import surface

    def mark(entry: tuple[str, Any]) -> bytes:
        return hashlib.blake2b(f"{seed}/{case}/{entry[0]}".encode(), digest_size=8).digest()

    r, ranked = Random(f"{seed}/{case}/slow"), sorted(surface.functions(), key=mark)
    return next(entry for entry in ranked if not surface.is_slow(entry[0]) or r.random() < 0.03)


def one_call(seed: int, case: int, tell: Any) -> dict[str, Any]:
    """Call number `case`: its outcome, and what is wrong with it."""
    from . import judge, surface

    r = Random(f"{seed}/{case}")
    name, function = chosen(seed, case)
    given = surface.arguments(r, function, name)
    tell({"name": name})
    before = judge.snapshot(given)
    told = {"case": case, "kind": None, "what": "", "outcome": "result"}
    result: Any = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            positional = [
                given.pop(p.name) for p in surface.parameters(function) if p.kind is p.POSITIONAL_ONLY
            ]
            result = function(*positional, **given)
            if name.startswith("mfcore.steppers"):
                _few_steps(r, result)
    except Exception as error:
        told["outcome"] = type(error).__name__
        wrong = judge.unclear(error, surface.names())
        told |= {"kind": "unclear", "what": f"{name}: {wrong[:300]}"} if wrong else {}
    else:
        where = judge.not_finite(name, result)
        told |= {"kind": "silent", "what": f"{name}: {where} is not finite"} if where else {}
    if before != judge.snapshot({n: given[n] for n in before if n in given}):
        told |= {"kind": "silent", "what": f"{name} wrote to an argument"}
    return told


def _few_steps(r: Random, stepper: Any) -> None:
    """Use a stepper; its array must be finite whatever comes."""
    import numpy as np

    array = stepper.theta if hasattr(stepper, "theta") else stepper.mass
    try:
        for _ in range(2):
            h = r.choice([0.0, 0.01, 1.0, 1e100, 1e200])
            if hasattr(stepper, "predict"):
                d = array.shape[1] - stepper.network.row(0)
                X = np.full((2, d), r.choice([0.5, 1e3, 1e200]))
                r.choice([stepper.step, stepper.run])(X, [1.0, r.choice([-1.0, 1e200])], h)
                stepper.predict(X)
            else:
                stepper.step(min(h, getattr(stepper, "bound", h)))
    finally:
        if not np.isfinite(array).all():
            raise ArithmeticError("the stepper left numbers that are not finite in the caller's array")


def _main() -> None:
    seed, first, last = int(sys.argv[1]), int(sys.argv[2]), int((sys.argv[3:] or [-1])[0])
    faulthandler.enable()
    faulthandler.dump_traceback_later(1e6)
    if last < 0:
        from . import surface

        r = Random(f"{seed}/{first}")
        name, function = chosen(seed, first)
        print(name, surface.arguments(r, function, name), flush=True)
        print(one_call(seed, first, print))
        return
    out = os.dup(1)
    os.dup2(2, 1)  # what calls print is not ours

    def tell(what: dict[str, Any]) -> None:
        os.write(out, json.dumps(what).encode() + b"\n")

    for case in range(first, last):
        tell(one_call(seed, case, tell))


if __name__ == "__main__":
    _main()
