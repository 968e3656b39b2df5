"""Warn about the line of the user's code that has called mfcore."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

# Frames of this package, and of the decorators of the standard library that it uses, are passed over.
_OURS = (str(Path(__file__).resolve().parents[1]) + os.sep, contextlib.__file__)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is not of this package, whatever lies between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and os.path.realpath(frame.f_code.co_filename).startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
