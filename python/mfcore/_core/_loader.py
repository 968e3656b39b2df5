"""Choose the compiled core: the highest instruction-set level this processor and system support.

``MFCORE_ISA`` (v2, v3, v4, generic, native) overrides the choice and fails loudly when the level is not
in this installation or cannot run here. One process loads one level.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

from . import _cpu

LEVELS = ("v2", "v3", "v4", "generic", "native")


def usable_levels() -> list[str]:
    """Levels that are installed and run on this machine, lowest first."""
    supported = [*_cpu.levels(), "generic", "native"]
    return [level for level in LEVELS if level in supported and _installed(level)]


def load() -> ModuleType:
    """Import the core module that `MFCORE_ISA` names, or else the best usable one."""
    usable = usable_levels()
    wanted = os.environ.get("MFCORE_ISA", "")
    if wanted:
        if wanted not in LEVELS:
            raise ImportError(f"MFCORE_ISA must be one of {', '.join(LEVELS)}, got {wanted!r}")
        if wanted not in usable:
            reason = "not supported by this machine" if _installed(wanted) else "not installed"
            raise ImportError(f"MFCORE_ISA={wanted} is {reason}; usable here: {', '.join(usable)}")
    elif not usable:
        raise ImportError(_none_usable())
    return importlib.import_module(f"mfcore._core._core_{wanted or usable[-1]}")


def _none_usable() -> str:
    """The message where no installed level runs here: what there is, what could run, and what to do."""
    installed = ", ".join(level for level in LEVELS if _installed(level)) or "none"
    return (
        f"no compiled core of mfcore runs on this machine: it is built for {installed}, this machine runs "
        f"{', '.join([*_cpu.levels(), 'native'])}. Build it here: pip install ., or, in a checkout, "
        "cmake -S . -B build/dev -DMFCORE_ISA=native && cmake --build build/dev"
    )


def _installed(level: str) -> bool:
    return find_spec(f"mfcore._core._core_{level}") is not None
