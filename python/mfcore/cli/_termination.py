"""SIGTERM, by which batch systems end what they run, as one more way to press Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Termination:
    """Within it SIGTERM is a KeyboardInterrupt, unless the caller has its own answer to it."""

    def __init__(self) -> None:
        self.came = False
        self._ours = False

    @property
    def code(self) -> int:
        """The exit code of a command that was stopped: 128 and the number of the signal."""
        return 128 + (signal.SIGTERM if self.came else signal.SIGINT)

    def told(self, message: str) -> str:
        """Return the message of a run about its end, with the name of the signal that ended it."""
        return message.replace("Ctrl-C", "SIGTERM") if self.came else message

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt

    def __enter__(self) -> Termination:
        main = threading.current_thread() is threading.main_thread()
        self._ours = main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if self._ours:
            signal.signal(signal.SIGTERM, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
