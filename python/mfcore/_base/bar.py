"""The progress bars (by tqdm) of `mf.solve`, over the clock t, and of searches, over their rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import check
from .limits import Limit


class Bar:
    """Progress bar over 0 ≤ t ≤ horizon, shown only if the caller asked for it."""

    def __init__(self, wanted: bool, horizon: float) -> None:
        self.seconds = math.inf
        self._bar: Any = None
        if wanted:
            self._bar, self.seconds = _tqdm()(total=horizon, unit="t", unit_scale=True), 0.2

    def prepare(self, what: str) -> None:
        """Show which preparation the run waits for."""
        if self._bar is not None:
            self._bar.set_description(f"preparing {what}")

    @contextmanager
    def until_the_run(self) -> Iterator[None]:
        """Close the bar if what runs within this context fails, because then no run will close it."""
        try:
            yield
        except BaseException:
            self.__exit__()
            raise
        if self._bar is not None:
            self._bar.set_description(None)

    def show(self, t: float) -> None:
        if self._bar is not None:
            self._bar.update(t - self._bar.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install 'mfcore[progress]'") from None
    return tqdm


@contextmanager
def searching(what: str, max_seconds: float | None, progress: bool) -> Iterator[None]:
    """A context for the search `what`, with the options `max_seconds` and `progress` of its caller."""
    limit = Limit(math.inf if max_seconds is None else check.number(max_seconds, "max_seconds", at_least=0))
    bar = _tqdm()(desc=what, unit="round") if check.boolean(progress, "progress") else None

    def show(doing: str) -> None:
        if bar is not None:
            bar.set_description(f"{what}: {doing}")
            bar.update()

    try:
        with limit.for_search(what, show):
            yield
    finally:
        if bar is not None:
            bar.close()
