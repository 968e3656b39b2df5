"""Choose the compiled core: the highest instruction-set level this processor and system support.

``MFCORE_ISA`` (v2, v3, v4, generic, native) overrides the choice and fails loudly when the level is not
in this installation or cannot run here. One process loads one level. Wheels of a release carry all levels
of their platform, a build from source that of the machine that built it.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

from . import _cpu

LEVELS = ("v2", "v3", "v4", "generic", "native")
BUILD_ALL = "pip install --force-reinstall --no-deps . -Ccmake.define.MFCORE_ISA=all"


def installed_levels() -> list[str]:
    """Levels whose compiled core is in this installation."""
    return [level for level in LEVELS if _installed(level)]


def usable_levels() -> list[str]:
    """Levels that are installed and run on this machine, lowest first."""
    supported = supported_levels()
    return [level for level in installed_levels() if level in supported]


def supported_levels() -> list[str]:
    """Levels that run on this machine once they are installed, lowest first."""
    return [*_cpu.levels(), "generic", "native"]


def load() -> ModuleType:
    """Import the core module that `MFCORE_ISA` names, or else the best usable one."""
    usable = usable_levels()
    wanted = os.environ.get("MFCORE_ISA", "")
    if wanted:
        if wanted not in LEVELS:
            raise ImportError(f"MFCORE_ISA must be one of {', '.join(LEVELS)}, got {wanted!r}")
        if wanted not in usable:
            here = f"usable here: {', '.join(usable) or 'none'}"
            if _installed(wanted):
                raise ImportError(f"MFCORE_ISA={wanted} is not supported by this machine; {here}")
            raise ImportError(
                f"MFCORE_ISA={wanted} is not installed; {here}. A build from source has the level of the "
                f"machine that built it; from a checkout: {BUILD_ALL}"
            )
    elif not usable:
        raise ImportError(
            f"this mfcore was built for {', '.join(installed_levels()) or 'no level'}, and this machine "
            f"supports {', '.join(_cpu.levels()) or 'none of them'}: build it here, or once for all machines "
            f"with: {BUILD_ALL}"
        )
    return importlib.import_module(f"mfcore._core._core_{wanted or usable[-1]}")


def _installed(level: str) -> bool:
    return find_spec(f"mfcore._core._core_{level}") is not None
