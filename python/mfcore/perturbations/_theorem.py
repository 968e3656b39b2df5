"""A theorem for a model at hand, as `bounds` lists it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_ROUNDING = 1e-10  # of a comparison, relative to 1 + the right side


@dataclass(frozen=True)
class Theorem:
    """A theorem for a model and a measure, as `bounds` lists it: left ≤ right, both as numbers.

    Attributes:
        name: What it is called.
        statement: left ≤ right in symbols.
        hypotheses: What it asks for, and what is known of that here.
        left: The left side, measured; nan where that takes runs.
        right: The right side; nan where a constant of the theorem is not explicit.
        error: Of left − right: standard errors, searches, grids.
        holds: Whether left ≤ right, up to `error`; None where a side is not known.
    """

    name: str
    statement: str
    hypotheses: Mapping[str, str]
    left: float
    right: float
    error: float = 0.0

    @property
    def holds(self) -> bool | None:
        """Tell whether left ≤ right up to `error` and rounding."""
        if math.isnan(self.left) or math.isnan(self.right):
            return None
        return self.left <= self.right + self.error + _ROUNDING * (1 + abs(self.right))

    def __str__(self) -> str:
        said = {True: "holds", False: "FAILS", None: "not compared"}[self.holds]
        lines = [f"{self.name}: {self.statement}", f"  {self.left:.6g} ≤ {self.right:.6g}: {said}"]
        return "\n".join(lines + [f"  {what}: {known}" for what, known in self.hypotheses.items()])
