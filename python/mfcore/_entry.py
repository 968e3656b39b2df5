"""Ctrl-C while the command line is still importing what it needs: as quiet as it is later."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quiet() -> Iterator[None]:
    """End the process with code 130 after Ctrl-C, if it is ``mfcore`` or ``python -m …``; else let it pass.

    The package is imported before any function of it can be called, so the imports themselves must do this.
    """
    try:
        yield
    except KeyboardInterrupt:
        program = Path("".join(sys.argv[:1]))  # "-m" while a package is imported, then its __main__
        if program.name in ("-m", "mfcore") or program.parts[-2:] == ("mfcore", "__main__.py"):
            raise SystemExit(130) from None
        raise
