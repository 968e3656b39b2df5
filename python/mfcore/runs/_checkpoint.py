"""Checkpoints: write the state of a run to a file while it goes on, and read it to resume.

A checkpoint is an archive (`_base/archive.py`). Beside the state it holds a description of the run, field by
field (`_base/described.py`), the build of mfcore that it comes from, and a number of its own: a run replaces
and removes the file with its own number, and no other.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._base import check, files
from .._base.archive import read_archive, read_info, reading, write_archive
from .._base.build import build_info
from .._base.check import FloatArray
from .._base.described import Described, described, differences
from .._base.warn import warn
from ..data import Dataset
from ..expectations._rules import Expectation
from ._trajectory import Trajectory, from_plain, pack, plain, unpack

SECONDS = 10.0  # a crash loses at most so many seconds of work,
# or so many times the time that writing takes, if that is more: at most 5 % of the time is spent on writing
SHARE = 20.0


@dataclass(frozen=True)
class Plan:
    """The plan of a run: what it records, and at which times."""

    horizon: float
    times: FloatArray
    kept: frozenset[float]
    risk: bool | Expectation
    test: Dataset | None = None


class HeldPath(os.PathLike[str]):
    """A path whose checkpoint stays after the run, until the caller has saved the result.

    Args:
        path: The file.
        again: The run whose checkpoint is there may be given up for a new one.
    """

    def __init__(self, path: str | os.PathLike[str], again: bool = False) -> None:
        self._path, self.again = path, again
        self.checkpoint: Checkpoint | None = None  # of a run that has ended by itself

    def __fspath__(self) -> str:
        return os.fspath(self._path)

    def __str__(self) -> str:
        return str(self._path)

    def release(self) -> None:
        """Remove the checkpoint, if its run has ended by itself."""
        if self.checkpoint is not None:
            self.checkpoint.remove()


def vacant(path: str | os.PathLike[str]) -> str | None:
    """Refuse a path where a file is already, or a folder that cannot be written to.

    Returns:
        The number of the checkpoint that may be replaced, if there is one.
    """
    file = files.writable(path, "checkpoint")
    if not os.path.lexists(file):
        return None
    rule = f"checkpoint must be a new file, got {str(path)!r}"
    try:
        info = read_info(file, "plan", "checkpoint")
    except ValueError:
        raise ValueError(f"{rule}, which is there and no checkpoint of mfcore") from None
    if isinstance(path, HeldPath) and path.again:
        return str(info["id"])
    raise ValueError(
        f"{rule}, the checkpoint of a run {info['run']['message']}: mf.resume goes on with that; "
        "to give it up, remove the file"
    )


class Checkpoint:
    """The file of one run, replaced whenever a checkpoint is due.

    Args:
        path: Where it is.
        model, method, plan, seed: The run.
        observers: Names of the functions of the user's.
        replaces: The number of the checkpoint that is there and gives way; None: nothing may be there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Any,
        method: Any,
        plan: Plan,
        seed: int,
        observers: Iterable[str],
        replaces: str | None = None,
    ) -> None:
        self._path, self._file, self._plan = path, files.target(path, "checkpoint"), plan
        self._id, self._there = secrets.token_hex(16), replaces
        self._due, self._warned = -math.inf, False
        self._arrays = {"plan/times": plan.times, "plan/kept": np.array(sorted(plan.kept))}
        if plan.test is not None:
            self._arrays |= {"plan/test/X": plan.test.X, "plan/test/y": plan.test.y}
        self._info = {  # data may be large, and do not change: this is made once
            "plan": {"horizon": plan.horizon, "risk": plain(plan.risk, self._arrays, "plan/risk")},
            "observers": list(observers),
            "seed": seed,
            "model": plain(model, self._arrays, "model"),
            "method": plain(method, self._arrays, "method"),
            "described": run_described(model=model, method=method, plan=plan, seed=seed),
            "build": build(),
            "id": self._id,
        }

    def wait(self) -> float:
        """Seconds until the next checkpoint is due."""
        return max(0.0, self._due - time.monotonic())

    def write(self, content: Callable[[], tuple[Trajectory, Mapping[str, np.ndarray]]]) -> None:
        """Write what `content()` returns: the run as recorded so far, and the state of its rung."""
        begun = time.monotonic()
        try:
            run, state = content()
            meta = {name: value for name, value in run.meta.items() if name not in ("model", "method")}
            recorded, info = pack(replace(run, meta=meta))
            arrays = {f"run/{name}": a for name, a in recorded.items()}
            arrays |= {f"state/{name}": a for name, a in state.items()}
            write_archive(
                self._file, arrays | self._arrays, {"run": info, **self._info}, "checkpoint", self._mine
            )
            self._there = self._id
        finally:  # also after a failure: it is tried again, but not all the time
            self._set_due(begun)

    def _set_due(self, begun: float) -> None:
        """Set when the next checkpoint is due, after one that was begun at this time."""
        now = time.monotonic()
        self._due = now + max(SECONDS, SHARE * (now - begun))

    def save(self, content: Callable[[], tuple[Trajectory, Mapping[str, np.ndarray]]]) -> None:
        """Write, but turn failures such as a full disk into one warning, so that a long run goes on."""
        try:
            self.write(content)
        except (OSError, ValueError) as error:  # such as a folder that has taken its place
            self._warn(f"the checkpoint could not be written: {error}")

    def end(self, content: Callable[[], tuple[Trajectory, Mapping[str, np.ndarray]]]) -> None:
        """Remove the file of a run that cannot go on, or leave that to its `HeldPath`."""
        if isinstance(self._path, HeldPath):
            self.save(content)
            self._path.checkpoint = self
        else:
            self.remove()

    def remove(self) -> None:
        """Remove the file, if it is still the one this run has written."""
        try:
            if os.path.lexists(self._file):
                if not self._mine(self._file):
                    raise ValueError(f"another file has taken its place: {str(self._path)!r}")
                self._file.unlink()
        except (OSError, ValueError) as error:
            self._warn(f"the checkpoint could not be removed: {error}")

    def _mine(self, file: Path) -> bool:
        """Tell whether the file at the path was written by this run, or may be replaced by it."""
        try:
            return read_info(file, "plan", "checkpoint")["id"] in (self._there, self._id)
        except ValueError:
            return False

    def _warn(self, message: str) -> None:
        if not self._warned:
            warn(f"{message}; the run is not affected", RuntimeWarning)
        self._warned = True


class Found:
    """The content of a checkpoint file."""

    def __init__(self, path: str | os.PathLike[str], allow_other_build: bool = False) -> None:
        self._path = path
        self._arrays, self._info = read_archive(path, "plan", "checkpoint")
        with reading(path, "checkpoint"):
            info, arrays = self._info, self._arrays
            self.id, self.seed, self.observers = info["id"], info["seed"], info["observers"]
            self.run = unpack({n[4:]: a for n, a in arrays.items() if n.startswith("run/")}, info["run"])
            self.state = {name[6:]: a for name, a in arrays.items() if name.startswith("state/")}
            self.plan = Plan(
                info["plan"]["horizon"],
                arrays["plan/times"],
                frozenset(arrays["plan/kept"].tolist()),
                from_plain(info["plan"]["risk"], arrays),
                Dataset(arrays["plan/test/X"], arrays["plan/test/y"]) if "plan/test/X" in arrays else None,
            )
            there, here = info["build"], build()
        if there != here and not allow_other_build:
            raise ValueError(
                f"checkpoint must come from this build of mfcore ({here}), got {os.fspath(path)!r} from "
                f"{there}: the run would end with bits that neither build gives; "
                "allow_other_build=True goes on all the same"
            )

    def value(self, name: str, given: Any, kind: type | tuple[type, ...], what: str) -> Any:
        """The model or method of the run: the one given, if it equals what ran, or else the stored one."""
        if given is not None:
            check.instance(given, name, kind, what)
            self.check(name, **{name: given})
            return given
        with reading(self._path, "checkpoint"):
            stored = from_plain(self._info[name], self._arrays)
            if not isinstance(stored, str):
                check.instance(stored, name, kind, what)
                return stored
        raise ValueError(f"{name} must be passed again: the checkpoint could not hold {stored}")

    def check(self, what: str, **given: Any) -> None:
        """Refuse arguments that differ from those of the run; `what` names them in the message."""
        now = run_described(**given)
        top = {name.partition(".")[0].partition("[")[0] for name in now}
        with reading(self._path, "checkpoint"):
            stored: Described = self._info["described"]
            then = {n: v for n, v in stored.items() if n.partition(".")[0].partition("[")[0] in top}
            found = differences(then, now)
        if found:
            raise ValueError(
                f"{what} must be what the checkpoint {str(self._path)!r} was begun with; {found}"
            )


def run_described(
    model: Any = None, method: Any = None, plan: Plan | None = None, seed: int | None = None
) -> Described:
    """The description by which two runs are compared; arguments that are not given are left out."""
    values = {"model": model, "method": method, "rng": seed}
    if plan is not None:
        values |= {"horizon": plan.horizon, "save_at": plan.times, "keep": plan.kept, "risk": plan.risk}
        values |= {"test": plan.test}
    given = {name: value for name, value in values.items() if value is not None}
    return {key: leaf for name, value in given.items() for key, leaf in described(value, name).items()}


def build() -> str:
    """Version, instruction-set level and compiler, on which the bits of a result depend."""
    info = build_info()
    return f"{info['version']}, {info['isa']} ({info['vector_bits']} bits), {info['compiler']}"
