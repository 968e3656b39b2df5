"""Answer what this installation contains: C++ headers, libraries, instruction-set levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import _core
from .._core import _cpu, _loader
from . import check


def get_include() -> str:
    """Folder of the C++ headers, for ``-I``.

    Examples:
        >>> import mfcore, os
        >>> os.listdir(mfcore.get_include())
        ['mfcore']
    """
    return _installed("include")


def get_cmake_dir() -> str:
    """Folder of the CMake package, for ``-Dmfcore_DIR=…``; the target is ``mfcore::mfcore``.

    Examples:
        >>> import mfcore, os
        >>> sorted(os.listdir(mfcore.get_cmake_dir()))
        ['mfcoreConfig.cmake', 'mfcoreConfigVersion.cmake']
    """
    return _installed("cmake")


def get_library() -> str:
    """Path of the shared library, for programs that call ``mfcore.h``: ctypes, numba, Julia's ``dlopen``.

    Examples:
        >>> import ctypes, mfcore
        >>> library = ctypes.CDLL(mfcore.get_library())
        >>> library.mfcore_version.restype = ctypes.c_char_p
        >>> library.mfcore_version().decode() == mfcore.__version__
        True
    """
    (library,) = Path(_installed("lib")).glob("libmfcore.*0*")  # .so.0, or .0.dylib
    return str(library)


def build_info() -> dict[str, Any]:
    """How the compiled core was built and what it uses here.

    ``isa`` is the level in use, ``installed`` lists those that were built and ``usable`` those of them that
    this machine could use, lowest first; ``threads`` is the number of threads a call takes unless told
    otherwise.

    Examples:
        >>> import mfcore
        >>> info = mfcore.build_info()
        >>> info["isa"] in info["usable"]
        True
    """
    return {
        **_core.build_info(),
        "installed": _loader.installed_levels(),
        "usable": _loader.usable_levels(),
        "threads": _core.resolve_threads(check.threads(None)),
    }


def _installed(folder: str) -> str:
    # Beside the compiled modules: in an editable install the Python files are elsewhere, in the source tree.
    path = Path(_cpu.__file__).resolve().parents[1] / folder
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path} does not exist: only an installed mfcore has it, see CONTRIBUTING.md"
        )
    return str(path)
