"""Run the runs of an experiment: announce each with its estimated time, and keep the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._base.check import FloatArray
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._solve import solve
from ..runs._trajectory import Trajectory

_PROBE = 1.0  # seconds for which SGD is timed before its run


def _silent(_: str) -> None:
    return None


@dataclass
class Work:
    """The runs of one experiment, and how they are announced.

    Args:
        seed: Of all runs: networks and their limit start alike.
        tell: What to do with announcements, such as `print`.
        progress: Show a bar for each run (needs tqdm).
        threads: As in `mf.solve`.
        runs: What was run until now, by name.
        arrays: Further numbers that an interruption must not lose.
        begun: When the work began, on the monotonic clock.
        used: Processor time of the process when the work began.

    Examples:
        >>> import mfcore as mf
        >>> mf.experiments.Work(seed=3).runs
        {}
    """

    seed: int = 0
    tell: Callable[[str], None] = _silent
    progress: bool = False
    threads: int | None = None
    runs: dict[str, Trajectory] = field(default_factory=dict)
    arrays: dict[str, FloatArray] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.process_time)

    def solve(
        self,
        name: str,
        model: Model | ReducedModel,
        method: Any,
        *,
        steps: int | None = None,
        **options: Any,
    ) -> Trajectory:
        """Call `mf.solve` with the experiment's seed; the result, also of an interrupted run, is kept under
        `name`.

        Args:
            name: What it is called.
            model: As in `mf.solve`.
            method: As in `mf.solve`.
            steps: How many it will take, for an estimate of the time.
            **options: As in `mf.solve`.

        Raises:
            KeyboardInterrupt: The run was interrupted.
            RuntimeError: The run diverged.
        """
        options = {"rng": self.seed, "threads": self.threads, **options}
        self._announce(name, model, method, steps, options)
        run = solve(model, method, progress=self.progress, **options)
        self.runs[name] = run
        return _finished(name, run)

    def quietly(self, name: str, model: Model, method: Any, **options: Any) -> Trajectory:
        """Call `mf.solve` for one of many short runs, which is neither announced nor kept.

        Args:
            name: What it is called if it fails.
            model: As in `mf.solve`.
            method: As in `mf.solve`.
            **options: As in `mf.solve`.

        Raises:
            KeyboardInterrupt: The run was interrupted.
            RuntimeError: The run diverged.
        """
        return _finished(name, solve(model, method, **{"threads": self.threads, **options}))

    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.begun

    def processor_seconds(self) -> float:
        """Seconds of all cores together, which other work beside this one does not add to."""
        return time.process_time() - self.used

    def _announce(
        self, name: str, model: Model | ReducedModel, method: Any, steps: int | None, options: dict[str, Any]
    ) -> None:
        """Say what comes next and, for SGD, after timing its first steps, how long it will take."""
        if self.tell is _silent:
            return
        if steps is None:
            self.tell(f"{name} …")
            return
        options = {**options, "save_at": [], "keep": None, "risk": False, "max_seconds": _PROBE}
        try:
            probe = solve(model, method, **options)
        except TimeoutError:  # a busy machine, which has not even begun within that time
            self.tell(f"{name}: {steps:,} steps …")
            return
        if probe.status == "interrupted":
            raise KeyboardInterrupt
        whole = probe.meta["seconds"] * steps / max(probe.meta["steps"], 1)
        count = getattr(method, "replicas", 1)
        several = f" of {count} networks" if count > 1 else ""
        self.tell(f"{name}: {steps:,} steps{several}, about {spoken(whole)} …")


def _finished(name: str, run: Trajectory) -> Trajectory:
    """The run, unless it was interrupted or diverged."""
    if run.status == "interrupted":
        raise KeyboardInterrupt
    if run.status == "diverged":
        raise RuntimeError(f"{name}: {run.message}")
    return run


def spoken(seconds: float) -> str:
    """A duration in words, as rough as an estimate."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
