"""A lock for objects that update the caller's arrays in place: one thread at a time."""

from __future__ import annotations

import threading


class Turn:
    """A lock around the steps of one object, so that no step of two threads is lost.

    A step inside a step, such as from a signal handler, is refused: it would write into what the outer one
    is working on. Copies have a lock of their own.
    """

    def __init__(self) -> None:
        self._lock, self._owner = threading.Lock(), 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise RuntimeError("a stepper must not be used inside its own step, as by a signal handler")
        self._lock.acquire()
        self._owner = me

    def __exit__(self, *_: object) -> None:
        self._owner = 0
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()
