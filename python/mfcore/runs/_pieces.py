"""Checkpoints of a split network: the neurons of each rank in a file of its own, and one manifest.

The manifest is the checkpoint that the caller named. It holds what all ranks know, and the names of the
pieces beside it; it is replaced once all pieces of a state are on disk, and the pieces before them are
removed after that. So there is always a whole state to go on from, and any number of ranks can.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._base.archive import read_archive, write_archive
from ._checkpoint import Checkpoint, Found, Plan
from ._ranks import Ranks
from ._split import SplitRung
from ._trajectory import Trajectory


class SplitCheckpoint(Checkpoint):
    """The files of one run of a split network; every method is called by all ranks alike.

    Args:
        ranks: Those that share the network.
        pieces: Names of the pieces of the manifest that is there and gives way.
        path, model, method, plan, seed, observers, replaces: As of every `Checkpoint`.
    """

    def __init__(
        self,
        ranks: Ranks,
        pieces: list[str],
        path: str | os.PathLike[str],
        model: Any,
        method: Any,
        plan: Plan,
        seed: int,
        observers: Iterable[str],
        replaces: str | None = None,
    ) -> None:
        super().__init__(path, model, method, plan, seed, observers, replaces)
        self._ranks, self._pieces, self._written = ranks, pieces, 0

    def write(self, content: Callable[[], tuple[Trajectory, Mapping[str, np.ndarray]]]) -> None:
        """Write the pieces, each rank its own, then the manifest."""
        begun = time.monotonic()
        run, state = content()
        label = self._ranks.all(f"{self._id[:12]}-{self._written}")[0]
        names = [f"{self._file.name}.{label}.{rank}" for rank in range(self._ranks.size)]
        theta = state["theta"]
        kept = {f"kept/{k}": np.asarray(rows) for k, rows in enumerate(run.kept.values())}
        arrays = {"theta": theta, **kept}
        mine = self._file.with_name(names[self._ranks.rank])
        self._together(lambda: write_archive(mine, arrays, {"piece": label}, "checkpoint"))
        lengths = self._ranks.all(len(theta))
        nobody = theta[:0]  # neurons are in the pieces
        alike = replace(run, final=nobody, kept=dict.fromkeys(run.kept, nobody))
        known = {name: values for name, values in state.items() if name != "theta"}
        known |= {"pieces": np.array(names), "lengths": np.array(lengths)}

        def manifest() -> None:
            if self._ranks.rank == 0:
                super(SplitCheckpoint, self).write(lambda: (alike, known))

        self._together(manifest)
        if self._ranks.rank == 0:
            self._remove(self._pieces)
        self._pieces, self._written = names, self._written + 1
        self._set_due(begun)

    def remove(self) -> None:
        """Remove manifest and pieces."""
        if self._ranks.rank == 0:
            super().remove()
            self._remove(self._pieces)

    def _together(self, write: Callable[[], None]) -> None:
        """Write on all ranks; an OSError on all of them if one cannot."""
        failure = ""
        try:
            write()
        except (OSError, ValueError) as error:
            failure = str(error)
        for rank, text in enumerate(self._ranks.all(failure)):
            if text:
                raise OSError(f"rank {rank} of {self._ranks.size}: {text}")

    def _remove(self, names: list[str]) -> None:
        for name in names:
            with suppress(OSError):
                self._file.with_name(name).unlink()


def pieces_of(found: Found) -> list[str]:
    """Names of the pieces that a manifest lists; none in other checkpoints."""
    return [str(name) for name in found.state.get("pieces", [])]


def assembled(
    found: Found, path: str | os.PathLike[str], rung: SplitRung
) -> tuple[dict[str, np.ndarray], Trajectory]:
    """State and records for the neurons of this rung, from the pieces that they are in."""
    first, count = rung.first, rung.count
    folder, begin = Path(os.path.realpath(path)).parent, 0
    rows: dict[str, list[np.ndarray]] = {}
    for name, length in zip(pieces_of(found), found.state["lengths"].tolist(), strict=True):
        low, high = max(first - begin, 0), min(first + count - begin, length)
        begin += length
        if low >= high:
            continue
        try:
            arrays, _ = read_archive(folder / name, "piece", "checkpoint")
        except FileNotFoundError:
            raise ValueError(
                f"checkpoint must have its pieces beside it, got {os.fspath(path)!r} without {name!r}"
            ) from None
        for key, values in arrays.items():
            rows.setdefault(key, []).append(values[low:high])
    whole = {key: np.concatenate(parts) for key, parts in rows.items()}
    state = {name: values for name, values in found.state.items() if name not in ("pieces", "lengths")}
    kept = {t: whole[f"kept/{k}"] for k, t in enumerate(found.run.kept)}
    return {**state, "theta": whole["theta"]}, replace(found.run, kept=kept)
