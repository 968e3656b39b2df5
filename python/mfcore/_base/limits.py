"""Time limits of runs and searches, preparation included, and the name of what is being done."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from .. import _core

# Seconds by which a call of the core may exceed the limit, so that a first step that is nearly done is not
# thrown away.
_GRACE = 0.5

_thread = threading.local()


class Limit:
    """A deadline so many seconds from now; as a context it also ends calls of the core soon after it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._deadline = _core.Deadline(seconds + _GRACE)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self._end - time.monotonic()

    @property
    def expired(self) -> bool:
        """Tell whether this deadline has ended a call of the core."""
        return self._deadline.expired

    def __enter__(self) -> Limit:
        self._deadline.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadline.close()

    @contextmanager
    def for_search(self, what: str, show: Callable[[str], None]) -> Iterator[None]:
        """A context for a search: `show` is told each round, and passing the deadline is a TimeoutError."""
        before = vars(_thread).copy()
        _thread.show, _thread.limit = show, self
        try:
            with self:
                yield
        except _core.OutOfTime as late:
            doing = f" while it searched {late.args[0]}" if late.args else ""
            raise TimeoutError(
                f"max_seconds = {self.seconds:g} passed{doing}, before {what} had a result. Allow more "
                "seconds, or ask for less: fewer nodes by model.reduce(nodes=…), whose node_error tells what "
                "they lose, a smaller extent or a larger tolerance"
            ) from None
        finally:
            vars(_thread).clear()
            vars(_thread).update(before)

    @contextmanager
    def for_preparation(self, show: Callable[[str], None]) -> Iterator[None]:
        """A context for preparations: `show` is told what is prepared, and passing the deadline is a
        TimeoutError.
        """
        _thread.show = show
        try:
            with self, preparing("the start of the run"):
                yield
        except _core.OutOfTime as late:
            raise TimeoutError(
                f"max_seconds = {self.seconds:g} passed while mfcore prepared {late.args[0]}, before the run "
                "could begin. Allow more seconds, or ask for less: fewer cells, atoms or neurons"
            ) from None
        finally:
            del _thread.show


@contextmanager
def preparing(what: str) -> Iterator[None]:
    """Name a long preparation, for the progress bar and for the message if its time runs out."""
    show = getattr(_thread, "show", None)
    if show is not None:
        show(what)
    try:
        yield
    except _core.OutOfTime as late:
        if not late.args:
            late.args = (what,)
        raise


def next_round(what: str) -> None:
    """Show what a search does next, and end it if its time is up; without a limit nothing happens."""
    limit = getattr(_thread, "limit", None)
    if limit is None:
        return
    _thread.show(what)
    if limit.left < 0:
        raise _core.OutOfTime(what)


@contextmanager
def unlimited() -> Iterator[None]:
    """A context in which calls of the core ignore the deadline, for cleaning up after it has passed."""
    deadline = _core.Deadline(math.inf)
    deadline.open()
    try:
        yield
    finally:
        deadline.close()
