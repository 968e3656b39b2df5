"""Doing the cases: one of them, and many in this process, in a pool of processes or by a client."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._base import check
from ._cases import Case

Run = Callable[..., Any]


@dataclass(frozen=True)
class Failed:
    """Why a case has no result."""

    message: str
    details: str = ""


def arguments_of(run: Run, case: Case, seed: int, threads: int) -> Case:
    """The case, and `rng` and `threads` if the function takes them and the case does not say them."""
    try:
        parameters = inspect.signature(run).parameters.values()
    except (TypeError, ValueError):  # compiled functions may not tell
        return case
    offered = {"rng": seed, "threads": threads}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    taken = {p.name for p in parameters if p.kind in named}
    return {**{name: value for name, value in offered.items() if name in taken}, **case}


def work(run: Run | bytes, arguments: Case) -> Any:
    """Call the function; an exception becomes a `Failed`."""
    try:
        return (pickle.loads(run) if isinstance(run, bytes) else run)(**arguments)
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())


_DIED = Failed(
    'the process of a worker died; in a script, sweep must be called below if __name__ == "__main__":', "died"
)


class InTurn:
    """One case after the other, in this process."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def results(self, cases: Sequence[Case]) -> Iterator[tuple[int, Any]]:
        """Yield positions and results as they come."""
        for k, arguments in enumerate(cases):
            with _noticing() as interrupted:
                result = work(self._run, arguments)
            # A run that was interrupted returns what it has: that is not the result of the case.
            if interrupted():
                raise KeyboardInterrupt
            yield k, result

    def close(self, at_once: bool) -> None:
        """Nothing is open."""


class ByClient:
    """Cases given to an object with `submit`: a Dask client, or an executor of the standard library."""

    def __init__(self, run: Run, client: Any) -> None:
        self._run, self._client = run, client
        self._futures: list[Any] = []

    def results(self, cases: Sequence[Case]) -> Iterator[tuple[int, Any]]:
        """Yield positions and results as they come."""
        yield from _as_they_come(self._client.submit, self._run, list(enumerate(cases)), self._futures)

    def close(self, at_once: bool) -> None:
        """Cancel what was not done; the client stays the caller's."""
        for future in self._futures:
            if at_once:
                future.cancel()


class ByProcesses:
    """A pool of fresh processes; where one of them dies, its cases are given to another pool, once."""

    def __init__(self, run: Run, workers: int, threads: int) -> None:
        self._run, self._workers, self._threads = portable(run), workers, threads
        self._pool: ProcessPoolExecutor | None = None
        self._others = {child.pid for child in multiprocessing.active_children()}

    def results(self, cases: Sequence[Case]) -> Iterator[tuple[int, Any]]:
        """Yield positions and results as they come."""
        left = list(enumerate(cases))
        for attempt in range(2):
            lost = []
            with _environment("OMP_NUM_THREADS", str(self._threads)):
                for k, result in _as_they_come(self._submit, self._run, left, []):
                    if isinstance(result, Failed) and result.details == "died" and attempt == 0:
                        lost.append((k, cases[k]))
                    else:
                        yield k, result
            if not lost:
                return
            self.close(at_once=True)
            left = lost

    def close(self, at_once: bool) -> None:
        """End the processes, at once or when they have nothing to do."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=not at_once, cancel_futures=True)
        if at_once:
            for child in multiprocessing.active_children():
                if child.pid not in self._others:
                    child.terminate()
        self._pool = None

    def _submit(self, *call: Any) -> Any:
        if self._pool is None:
            # Not a fork: the threads of this process would not be there.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, _ignore_interrupts)
        return self._pool.submit(*call)


def portable(run: Run) -> bytes:
    """The function as another process reads it, where a failure to do so is one of the case: by its name, or
    whole, by cloudpickle.
    """
    main = sys.modules["__main__"]
    by_name = getattr(run, "__module__", None) != "__main__" or hasattr(main, "__file__")
    try:
        if by_name:
            return pickle.dumps(run)
    except Exception:  # pickle raises what it likes
        pass
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise TypeError(
            "run must be a function of a module, as other processes read it there, unless cloudpickle is "
            f"installed or workers=1; got {check.shown(run)}"
        ) from None
    return bytes(cloudpickle.dumps(run))


def _as_they_come(
    submit: Callable[..., Any], run: Run | bytes, cases: Sequence[tuple[int, Case]], futures: list[Any]
) -> Iterator[tuple[int, Any]]:
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def give(k: int, arguments: Case) -> None:
        try:
            future = submit(work, run, arguments)
        except BrokenProcessPool:
            done.put((k, None))
            return
        futures.append(future)
        future.add_done_callback(lambda finished: done.put((k, finished)))

    for k, arguments in cases:
        give(k, arguments)
    for _ in cases:
        k, finished = done.get()
        try:
            result = _DIED if finished is None else finished.result()
        except BrokenProcessPool:
            result = _DIED
        except Exception as error:  # what cannot travel between processes
            result = Failed(f"{type(error).__name__}: {error}")
        yield k, result


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for the processes that are started within; one that is set already stays."""
    before = os.environ.get(name)
    os.environ.setdefault(name, value)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)


@contextmanager
def _noticing() -> Iterator[Callable[[], bool]]:
    """Notice Ctrl-C within, beside whoever handles it."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield lambda: False
        return

    def handle(number: int, frame: Any) -> Any:
        seen.append(number)
        return before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)
