"""Ranks without MPI: threads of this process, which meet at a barrier."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SECONDS = 20  # after which ranks that wait for each other are an error, not a test that hangs


class Rank:
    """The few methods of a communicator of mpi4py that mfcore uses."""

    def __init__(self, rank, size, barrier, shared):
        self._rank, self._size, self._barrier, self._shared = rank, size, barrier, shared
        self.bytes, self.messages = 0, 0

    def Get_rank(self):
        return self._rank

    def Get_size(self):
        return self._size

    def Allreduce(self, mine, total):
        self.bytes, self.messages = self.bytes + mine.nbytes, self.messages + 1
        total[...] = np.sum(self.allgather(mine.copy()), axis=0)

    def allgather(self, value):
        self._shared[self._rank] = value
        self._barrier.wait(SECONDS)
        values = list(self._shared)
        self._barrier.wait(SECONDS)
        return values

    def gather(self, value, root=0):
        values = self.allgather(value)
        return values if self._rank == root else None


def on_ranks(size, function):
    """What `function(comm)` returns or raises on each of so many ranks."""
    barrier, shared = threading.Barrier(size), [None] * size

    def call(rank):
        try:
            return function(Rank(rank, size, barrier, shared))
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(call, range(size)))
