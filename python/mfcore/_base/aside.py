"""Answer Ctrl-C while another library computes, which does not ask for it itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_PATIENCE = 0.05  # seconds between looks for Ctrl-C


def aside(function: Callable[[], T]) -> T:
    """Call `function` in a thread of its own, and leave it behind on Ctrl-C.

    Ctrl-C comes to the main thread alone, so that other threads make the call themselves. What is left
    behind computes on until it is done, and a process waits for that before it ends (the thread is no daemon:
    ended inside of C++ it would abort the process). Only for libraries that let the GIL go, and for functions
    that change nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()  # Ctrl-C in join() makes CPython 3.11 forget a thread that runs

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=False)
    thread.start()
    while not done.wait(_PATIENCE):
        pass
    if errors:
        raise errors[0]
    return results[0]
