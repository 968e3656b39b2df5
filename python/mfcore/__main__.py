"""``python -m mfcore``: the command line, and three answers for build scripts.

``--cmakedir``, ``--includes`` and ``--library`` print what CMake, compilers and languages that call C need.
"""

from __future__ import annotations

import sys

from ._base import build

_ANSWERS = {
    "--cmakedir": build.get_cmake_dir,
    "--includes": lambda: f"-I{build.get_include()}",
    "--library": build.get_library,
}


def main(arguments: list[str]) -> int:
    """Run the command line; one of the answers for build scripts is printed instead."""
    if len(arguments) == 1 and arguments[0] in _ANSWERS:
        print(_ANSWERS[arguments[0]]())
        return 0
    from .cli import main as run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
