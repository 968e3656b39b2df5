"""List all mutants: those of the core and those of the Python layer."""

from __future__ import annotations

from .core import CORE
from .layer import LAYER

MUTANTS = (*CORE, *LAYER)
