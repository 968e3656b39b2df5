"""The processes that share a split network: sums over them, and decisions that all of them take alike.

Every exchange begins with a short head: whether a rank has failed, what ranks wish, and how long the numbers
are that follow. So a rank that fails outside of an exchange joins the next one of the others with a head that
says so, and they raise `RankFailed` instead of waiting for it. MPI requires that all ranks receive identical
sums, so that what is decided by them is decided alike.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from .._base.check import FloatArray, shown
from .._base.described import Described, differences

_USED = ("Get_rank", "Get_size", "Allreduce", "allgather", "gather")  # of a communicator
_FLAGS = 3  # wishes that fit in a head
_TOLD = "The other ranks were told, and stop too."


class RankFailed(RuntimeError):
    """Another process of a split network has failed."""


class Ranks:
    """The ranks of a communicator of mpi4py, or of an object with the same few methods."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self.interrupted = False  # Ctrl-C was pressed on this rank, while `listening`

    def sum(self, values: FloatArray) -> FloatArray:
        """The sums over all ranks of numbers that each of them brings."""
        mine = np.ascontiguousarray(values, dtype=np.float64)
        self._head((), mine.size)
        return self._reduced(mine)

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """For each flag whether some rank brings it. Without flags: wait until all ranks are here."""
        return self._head(flags, 0)

    def all(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in the order of the ranks."""
        self._head((), 0)
        return cast("list[Any]", self._comm.allgather(value))

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks, at their next exchange, that this one has failed; once for each error."""
        if isinstance(error, RankFailed) or _TOLD in getattr(error, "__notes__", ()):
            return
        error.add_note(_TOLD)
        head = np.zeros(3 + _FLAGS)
        head[0] = 1
        self._reduced(head)
        self._comm.allgather(f"{type(error).__name__}: {error}")

    @contextmanager
    def together(self) -> Iterator[None]:
        """A context that all ranks leave alike: by an exception if one of them fails in it."""
        try:
            yield
            self.any()
        except BaseException as error:
            self.fail(error)
            raise

    @contextmanager
    def listening(self) -> Iterator[None]:
        """A context in which Ctrl-C is a wish, `interrupted`, that ranks tell each other between steps."""
        self.interrupted = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(*_: object) -> None:
            self.interrupted = True

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _head(self, flags: tuple[bool, ...], length: int) -> tuple[bool, ...]:
        head = np.zeros(3 + _FLAGS)
        head[1], head[2] = length, float(length) ** 2
        head[3 : 3 + len(flags)] = flags
        total = self._reduced(head)
        if total[0] > 0:
            texts = self._comm.allgather("")
            rank = next(k for k, text in enumerate(texts) if text)
            raise RankFailed(f"rank {rank} of {self.size} has failed, and so this one stops: {texts[rank]}")
        if total[2] * self.size != total[1] ** 2:  # by Cauchy and Schwarz equal if all lengths are
            raise RankFailed(
                f"the ranks are at different places of their runs: rank {self.rank} of {self.size} brings "
                f"{length} numbers, where the mean is {total[1] / self.size:g}"
            )
        return tuple(bool(flag > 0) for flag in total[3 : 3 + len(flags)])

    def _reduced(self, mine: FloatArray) -> FloatArray:
        total = np.empty_like(mine)
        self._comm.Allreduce(mine, total)
        return total


def agreed(ranks: Ranks, number: int, description: Described) -> int:
    """The number that stands for `rng`, that of rank 0; a ValueError if ranks do other runs than rank 0."""
    first, number = ranks.all((description, number))[0]
    found = differences(first, description)
    if found:
        raise ValueError(f"all ranks must do the same run, got on rank {ranks.rank} other arguments; {found}")
    return int(number)


def check_comm(comm: Any) -> None:
    """Refuse what is no communicator; None stands for a network that is not split."""
    if comm is not None and not all(callable(getattr(comm, name, None)) for name in _USED):
        raise TypeError(
            f"comm must be a communicator of mpi4py, such as MPI.COMM_WORLD, or an object with its methods "
            f"{', '.join(_USED)}, got {shown(comm)}"
        )


def ranks_of(method: Any) -> Ranks | None:
    """The ranks that a method splits its network over, if it does."""
    comm = getattr(method, "comm", None)
    return None if comm is None else Ranks(comm)
