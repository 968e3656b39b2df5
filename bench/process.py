"""A process of its own for one contender of a case, and what is asked of it."""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

Address = tuple[str, str, int, bool]  # module of cases, group in it, number of the case in the group, quick


_START = "import importlib, sys; importlib.import_module(sys.argv[1]).main(*sys.argv[2:])"


class Process:
    """One contender, prepared and waiting; it ends when this object is closed or its maker is gone."""

    def __init__(self, where: Address, contender: str, folder: str) -> None:
        self._name = f"{contender} of {where[1]}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, __name__, json.dumps(where), contender, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, question: str) -> dict[str, Any]:
        """Ask for "first", "result" or "again N"; see `main`."""
        assert self._process.stdin is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self.wait()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    @staticmethod
    def result(folder: str, contender: str) -> list[np.ndarray]:
        """The arrays that a contender has saved for "result"."""
        with np.load(_file(folder, contender)) as arrays:
            return [arrays[name] for name in sorted(arrays.files)]


def faults() -> int:
    """Pages that this process has been given so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _file(folder: str, contender: str) -> Path:
    return Path(folder) / f"{contender.replace(' ', '_')}.npz"


def _arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple | list) else (result,)
    return [np.asarray(p, dtype=np.float64) for p in parts]


def _timed(run: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def main(where: str, contender: str, folder: str) -> None:
    """Answer questions from stdin: the first call, its result for comparison, the best of several calls."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a contender prints is no answer
    module, group, number, quick = json.loads(where)
    build = getattr(importlib.import_module(f"{__package__}.{module}"), group)
    case = next(islice(build(quick), number, None))
    run = case.contenders[contender]
    run = run.make() if hasattr(run, "make") else run
    result: Any = None

    def answer(**values: Any) -> None:
        print(json.dumps(values), file=answers, flush=True)

    answer(ready=True)
    for question in sys.stdin:
        word, *count = question.split()
        before, times = faults(), []
        for _ in range(int(count[0]) if count else word == "first"):
            seconds, result = _timed(run)
            times.append(seconds)
        if word == "result":
            if contender in case.checks:
                result = case.checks[contender]()
            if case.distance is None and (case.tolerance is not None or case.checks):
                parts = {f"{i:03d}": part for i, part in enumerate(_arrays(result))}
                np.savez(_file(folder, contender), **parts)  # type: ignore[arg-type]
            distance = None if case.distance is None else case.distance(result)
            answer(distance=distance)
            continue
        calls = max(len(times), 1)
        answer(seconds=min(times), each=times, faults=(faults() - before) / calls)
