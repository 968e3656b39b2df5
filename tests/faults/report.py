"""Findings of attacks, and the table of them that is printed at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """Counts of one attack.

    Args:
        name: Of the attack.
        calls: Calls made, or runs started.
        kills: Processes killed, signals sent, files damaged: faults injected.
        lost: Work that is gone though it should not be: more than the interval of checkpoints, a wrong bit
            after resuming, a crash, a hang.
        silent: Numbers that are wrong or not finite without a word, and arguments that were written.
        unclear: Exceptions of another kind than promised, or whose message names no argument.
        outcomes: How often what happened.
    """

    name: str
    calls: int = 0
    kills: int = 0
    lost: int = 0
    silent: int = 0
    unclear: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def finding(self, kind: str, what: str) -> None:
        """Count one thing that should not be, of kind lost, silent or unclear, and say it at once."""
        setattr(self, kind, getattr(self, kind) + 1)
        line = f"  {kind.upper()} in {self.name}: {what}"
        if line not in self.found:
            self.found.append(line)
            print(line, flush=True)

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.lost or self.silent or self.unclear)


def table(reports: list[Report]) -> str:
    """One row per attack, and their sum."""
    columns = ("calls", "kills", "lost", "silent", "unclear")
    rows = [(r.name, *(getattr(r, c) for c in columns)) for r in reports]
    rows.append(("all", *(sum(getattr(r, c) for r in reports) for c in columns)))
    lines = ["".join(f"{c:>10}" for c in ("attack", *columns))]
    return "\n".join(lines + ["".join(f"{cell:>10}" for cell in row) for row in rows])
