"""The reference of a measured number, and the reason of a difference to it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """The source of the number that a row expects; `published`, `exact` and `computed` make one.

    Args:
        kind: *published* in a paper; *exact*, by a closed form or a theorem; *computed* a second time by us.
        where: The citation; the closed form or theorem; the function that computes it.
        fitted: Whether settings of ours were fitted to that very curve, so that agreement shows nothing.
    """

    kind: str
    where: str
    fitted: bool = False


def published(where: str, *, fitted: bool = False) -> Source:
    """Cite a publication: authors, year, and figure, table or equation.

    Raises:
        ValueError: There is no year in parentheses, or nothing behind it.
    """
    if not re.search(r"\(\d{4}\)\S* \S", where):
        raise ValueError(f"where must have a year in parentheses and a place behind it, got {where!r}")
    return Source("published", where, fitted)


def exact(where: str) -> Source:
    """Name a closed form, an identity or a theorem."""
    return Source("exact", where)


def computed(by: Callable[..., Any], what: str = "") -> Source:
    """Name the function, class or method of this repository that computes the number a second time.

    Args:
        by: The function itself, so that it exists.
        what: What it computes, in words.
    """
    root = sys.modules[__name__.partition(".")[0]]
    name = by.__qualname__
    module = root.__name__ if getattr(root, name, None) is by else by.__module__
    return Source("computed", f"`{module}.{name}`" + (f": {what}" if what else ""))


@dataclass(frozen=True)
class Because:
    """Why a number of ours differs, with the sign and size of the difference that this predicts.

    Args:
        reason: In words.
        low: The least difference, ours minus theirs, that the reason explains.
        high: The largest.

    Examples:
        >>> from mfcore.experiments import Because
        >>> Because("N is 10", 0.05, 0.2).explains(0.1)
        True
    """

    reason: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low must be at most high = {self.high:g}, got {self.low:g}")

    def explains(self, difference: float) -> bool:
        """Tell whether a difference has the predicted sign and size."""
        return self.low <= difference <= self.high

    def __str__(self) -> str:
        return f"{self.reason} (predicted: {self.low:+.3g} to {self.high:+.3g})"


def about(reason: str, size: float, share: float = 0.5) -> Because:
    """A reason that predicts a difference of this size, up to a share of it."""
    ends = sorted((size * (1 - share), size * (1 + share)))
    return Because(reason, *ends)
