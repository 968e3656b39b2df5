"""How long a run may take, from its preparation on, and what is being prepared."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from .. import _core

# What the core computes in one go, and all that comes before the first step, may take this much longer than a
# time limit says: a step that is done soon need not be thrown away.
_GRACE = 0.5

_thread = threading.local()


class Limit:
    """Seconds from now on; as a context, within which what the core computes ends a little after them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._deadline = _core.Deadline(seconds + _GRACE)

    @property
    def left(self) -> float:
        """Seconds, of which there may be less than none."""
        return self._end - time.monotonic()

    @property
    def expired(self) -> bool:
        """Whether it has ended a call of the core."""
        return self._deadline.expired

    def __enter__(self) -> Limit:
        self._deadline.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadline.close()

    @contextmanager
    def for_preparation(self, show: Callable[[str], None]) -> Iterator[None]:
        """Within it `show` is told what is being prepared, and too late is a TimeoutError."""
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
    """Say what takes long, for a progress bar and for the message if there is no time for it."""
    show = getattr(_thread, "show", None)
    if show is not None:
        show(what)
    try:
        yield
    except _core.OutOfTime as late:
        if not late.args:
            late.args = (what,)
        raise


@contextmanager
def unlimited() -> Iterator[None]:
    """For what has to be put in order although the time is over."""
    deadline = _core.Deadline(math.inf)
    deadline.open()
    try:
        yield
    finally:
        deadline.close()
