"""Describe a mutant, and read the tables of mutants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """A one-line mistake in a file, and the tests that must fail with it.

    Args:
        name: Two or three words that say what is wrong.
        file: The file to change, relative to the checkout.
        old: Text that stands exactly once in the file.
        new: The mistake that replaces it.
        tests: Arguments of pytest, separated by spaces; one of these tests must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def compiled(self) -> bool:
        """Whether the core has to be built again."""
        return self.file.startswith("cpp/")

    def applied(self, text: str) -> str:
        """Return the text of the file with the mistake."""
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.old!r} must stand once in {self.file}, got {times} times")
        return text.replace(self.old, self.new)


def mutants_of(folder: str) -> Callable[[str, str, str, str, str], Mutant]:
    """Return a function that makes mutants of sources below a folder, with tests below tests/python."""

    def mutant(name: str, file: str, old: str, new: str, tests: str) -> Mutant:
        paths = " ".join(f"tests/python/{test}" for test in tests.split())
        return Mutant(name, f"{folder}/{file}", old, new, paths)

    return mutant
