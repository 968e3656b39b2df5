"""Run functions in forked children, and collect what they return and how they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Stopwatch:
    """Seconds in which this process could run, looked at again and again.

    Where it was stopped between two looks, with all its children or the whole machine, that does not count.
    """

    _LONGEST = 2.0  # seconds between looks of a process that runs

    def __init__(self) -> None:
        self._last, self._seconds = time.monotonic(), 0.0

    def seconds(self) -> float:
        """Since the start."""
        now = time.monotonic()
        self._seconds += min(now - self._last, self._LONGEST)
        self._last = now
        return self._seconds


class Effort:
    """Whether a child does nothing, or works too long on one thing, whatever else the machine does."""

    _TICK = os.sysconf("SC_CLK_TCK")

    def __init__(self, pid: int) -> None:
        self._pid, self._watch = pid, Stopwatch()
        self._began = self._last = self._used()

    def _used(self) -> float:
        """Processor seconds of the child, of all its threads."""
        try:
            told = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(told[11]) + int(told[12])) / self._TICK

    def seconds(self) -> float:
        """Processor seconds since the start; all the time of a child that used none of them since it did."""
        used = self._used()
        if used > self._last + 0.1:
            self._last, self._watch = used, Stopwatch()
        return max(used - self._began, self._watch.seconds())


def start(function: Callable[[], Any]) -> tuple[int, int]:
    """A child that calls the function and writes its result, or its exception, as text: pid and pipe."""
    here, there = os.pipe()
    pid = os.fork()
    if pid:
        os.close(there)
        return pid, here
    os.close(here)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        said = str(function())
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(there, said.encode(errors="replace")[:4000])
    os._exit(0)


def end(pid: int, pipe: int, seconds: float) -> str:
    """What the child said, or ``"hang"``, ``"ended with -11"``."""
    watch = Stopwatch()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if watch.seconds() > seconds:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pipe)
            return "hang"
        time.sleep(0.005)
    with os.fdopen(pipe, "rb") as answer:
        said = answer.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    return said if code == 0 else f"ended with {code}"
