"""The progress bar of `mf.solve` (by tqdm) over the clock t."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """Progress bar over 0 ≤ t ≤ horizon, shown only if the caller asked for it."""

    def __init__(self, wanted: bool, horizon: float) -> None:
        self.seconds = math.inf
        self._bar: Any = None
        if wanted:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                raise ImportError("progress=True needs tqdm: pip install 'mfcore[progress]'") from None
            self._bar, self.seconds = tqdm(total=horizon, unit="t", unit_scale=True), 0.2

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
