"""``python -m mfcore``: the command line, and two answers for build scripts.

``--cmakedir`` and ``--includes`` print what CMake and compilers need.
"""

from __future__ import annotations

import sys

from ._base import build


def main(arguments: list[str]) -> int:
    """Run the command line; ``--includes`` and ``--cmakedir`` instead print a folder for build scripts."""
    if arguments == ["--cmakedir"]:
        print(build.get_cmake_dir())
        return 0
    if arguments == ["--includes"]:
        print(f"-I{build.get_include()}")
        return 0
    from .cli import main as run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
