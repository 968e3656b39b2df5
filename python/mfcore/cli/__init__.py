"""The command line, ``mfcore`` or ``python -m mfcore``: `main` is all of it.

Exit codes: 0 done, 1 failed, 2 misused, 124 out of time, 130 interrupted, 143 terminated.
Errors take one line; ``--debug`` shows tracebacks.

- `_run`, `_show`, `_sweep`, `_reproduce`, `_bench`, `_info`: the commands; `_info` has ``list``, too
- `_folder`: what `_show` says of the folder of a sweep
- `_termination`: the signal by which batch systems end what they run
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from .. import _core
from . import _bench, _info, _reproduce, _run, _show, _sweep
from ._termination import Termination

_COMMANDS = (_run, _sweep, _show, _reproduce, _info, _bench)  # each adds its own to the parser

_EXAMPLES = """examples:
  mfcore reproduce isotropic-gaussians --quick
                                       a network follows its limit: a published figure in seconds
  mfcore run examples/run.toml         run a model that a file describes
  mfcore run examples/run.toml --set method.neurons=800 --out wide.npz
  mfcore sweep grid.toml --out grid    all combinations of some of its entries
  mfcore show wide.npz --plot risk.png what a run gave
  mfcore show grid                     how far a sweep is, and what failed
  mfcore info                          what is installed and what this machine can run
  mfcore list                          what models are made of
  mfcore bench --quick                 speed against other implementations, small sizes

exit codes: 0 done, 1 failed, 2 misused, 124 out of time (max_seconds),
130 interrupted (Ctrl-C), 143 terminated (SIGTERM, likewise)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: The arguments after the program's name; None takes those of this process.

    Examples:
        >>> from mfcore.cli import main
        >>> main(["info"])  # doctest: +ELLIPSIS
        mfcore ...
        0
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # --help and --version are done, misuse has been explained
        return int(stop.code or 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # formulas on a terminal that has no σ
    arguments.termination = Termination()
    try:
        with arguments.termination:
            code = arguments.command(arguments)
            if sys.stdout is not None:  # it is, where the caller has closed it
                sys.stdout.flush()
    except KeyboardInterrupt:
        return int(arguments.termination.code)
    except BrokenPipeError:  # the reader, such as head, has seen enough; nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the one place where any failure becomes a line and a code
        if arguments.debug:
            traceback.print_exc()
        else:
            text = " ".join(str(error).split()) or type(error).__name__
            print(f"mfcore: error: {text}", file=sys.stderr)
        return 2 if isinstance(error, TypeError | ValueError) else 1
    return int(code or 0)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"mfcore: error: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mfcore",
        description="The mean-field limit of two-layer networks, computable.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mfcore {_core.build_info()['version']}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    # Also after the command; absent there, it must not undo what was said before it.
    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add = partial(commands.add_parser, parents=[common], formatter_class=argparse.RawDescriptionHelpFormatter)
    for module in _COMMANDS:
        module.add_to(add)
    return parser
