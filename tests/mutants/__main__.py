"""Apply one-line mistakes to a copy of the sources and see whether the tests notice each of them.

Each mutant is killed by a failing test, survives, or is broken (it does not compile, or its tests cannot
run). The exit code is 1 unless all are killed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .mutant import SOURCE, Mutant
from .table import MUTANTS

_SECONDS = 600  # for the tests of one mutant: one that never ends counts as killed


class Copy:
    """A copy of the checkout with a build of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "-C", str(SOURCE), "ls-files", "-z", "-co", "--exclude-standard"],
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (SOURCE / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(SOURCE / name, folder / name)
        self._current = False  # whether what is compiled is that of the sources as they are
        configure = ["-G", "Ninja", "-DMFCORE_ISA=native", f"-DPython_EXECUTABLE={sys.executable}"]
        self._call(["cmake", "-S", ".", "-B", "build", *configure])

    def build(self) -> bool:
        """Compile what has changed; false if that fails."""
        self._current = self._call(["cmake", "--build", "build"]) == 0
        return self._current

    def test(self, tests: str, seconds: float | None = None) -> str:
        """Run tests until one fails; "passed", "failed" (too long, too), or why they could not run."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
        try:
            code = self._call(command, seconds)
        except subprocess.TimeoutExpired:
            return "failed"
        return {0: "passed", 1: "failed"}.get(code, f"pytest ended with {code}")

    def outcome(self, mutant: Mutant) -> str:
        """Apply a mutant, build and test; the sources are as before afterwards."""
        file = self.folder / mutant.file
        text = file.read_text("utf-8")
        file.write_text(mutant.applied(text), "utf-8")
        try:
            if (mutant.compiled or not self._current) and not self.build():
                return "broken: does not compile"
            told = self.test(mutant.tests, _SECONDS)
        finally:
            file.write_text(text, "utf-8")
            if mutant.compiled:  # a mutant of the layer must not run on the core of another
                self._current = False
        return {"failed": "killed", "passed": "SURVIVED"}.get(told, f"broken: {told}")

    def _call(self, command: list[str], seconds: float | None = None) -> int:
        environment = {**os.environ, "PYTHONPATH": "python", "PYTHONDONTWRITEBYTECODE": "1"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.run(command, cwd=self.folder, env=environment, timeout=seconds, **quiet).returncode


def chosen(words: list[str]) -> list[Mutant]:
    """Return the mutants whose name or file contains one of these words, all without words."""
    return [m for m in MUTANTS if not words or any(word in f"{m.name} {m.file}" for word in words)]


def main(arguments: list[str]) -> int:
    """Run the mutants that are asked for, a line each, and print how many were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names or files; all mutants without")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    parser.add_argument(
        "--green", action="store_true", help="the tests are known to pass: run them on mutants only"
    )
    given = parser.parse_args(arguments)
    mutants = chosen(given.words)
    if not mutants:
        parser.error(f"no mutant has {' or '.join(given.words)} in its name or file")
    if given.list:
        print(*(f"{m.file}: {m.name}: {m.old!r} -> {m.new!r}" for m in mutants), sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="mfcore-mutants-") as folder:
        copy = Copy(Path(folder))
        if not copy.build():
            parser.error("the unchanged sources do not build")
        if (
            not given.green
            and (told := copy.test(" ".join(dict.fromkeys(m.tests for m in mutants)))) != "passed"
        ):
            parser.error(f"the tests must pass on the unchanged sources: {told}")
        outcomes: Counter[str] = Counter()
        for mutant in mutants:
            began = time.monotonic()
            outcome = copy.outcome(mutant)
            outcomes[outcome.split(":")[0]] += 1
            seconds = time.monotonic() - began
            print(f"{outcome:<9} {mutant.file}: {mutant.name} ({seconds:.0f} s)", flush=True)
    print(f"{outcomes['killed']} of {len(mutants)} mutants were killed")
    return 0 if outcomes["killed"] == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
