"""The command line, ``mfcore`` or ``python -m mfcore``: `main` is all of it.

Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted. Errors take one line; ``--debug`` shows tracebacks.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any, NoReturn

import mfcore

from . import _core, activations, conventions, data, init, steppers
from ._registry import public_names

_EXAMPLES = """examples:
  mfcore info                          what is installed and what this machine can run
  mfcore list                          what models are made of
  mfcore bench --quick                 speed against other implementations, small sizes
  mfcore bench --case sgd --json out.json
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
    try:
        code = arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
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
    plain = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="mfcore",
        description="The mean-field limit of two-layer networks, computable.",
        epilog=_EXAMPLES,
        formatter_class=plain,
    )
    parser.add_argument("--version", action="version", version=f"mfcore {_core.build_info()['version']}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    # Also after the command; absent there, it must not undo what was said before it.
    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    info = commands.add_parser(
        "info", parents=[common], help="what is installed and what this machine can run"
    )
    info.set_defaults(command=_info)

    names = commands.add_parser("list", parents=[common], help="what models are made of, one line each")
    names.set_defaults(command=_list)

    bench = commands.add_parser(
        "bench",
        parents=[common],
        help="speed against other implementations, after checking that they agree",
        epilog="examples:\n  mfcore bench --quick\n  mfcore bench --case sgd --case gradient --json out.json",
        formatter_class=plain,
    )
    bench.add_argument("--quick", action="store_true", help="small sizes only")
    bench.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    bench.add_argument("--case", metavar="NAME", action="append", help="only this case; may be repeated")
    bench.set_defaults(command=_bench)
    return parser


def _info(_: argparse.Namespace) -> None:
    from ._build import build_info

    built = build_info()
    usable = ", ".join(built["usable"])
    rows = [
        ("mfcore", built["version"]),
        (
            "core",
            f"{built['isa']}, {built['vector_bits']}-bit vectors (usable here: {usable}; MFCORE_ISA chooses)",
        ),
        ("compiler", built["compiler"]),
        ("Eigen", built["eigen"]),
        ("OpenMP", built["openmp"]),
        ("threads", f"{built['threads']} (OMP_NUM_THREADS, or else the processors)"),
        ("Python", f"{platform.python_version()} on {platform.platform()}"),
        *((package, _version(package)) for package in ("numpy", "scipy", "tomli-w", "matplotlib")),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


def _list(_: argparse.Namespace) -> None:
    sigmas = [name for name in public_names(activations) if name[0].islower() and name != "get"]
    laws = [name for name in public_names(data) if name != "DataLaw"]
    starts = [name for name in public_names(init) if not inspect.isabstract(getattr(init, name))]
    rules = [name for name in public_names(conventions) if name != "Canonical"]
    # Offered by the package itself, not by a module of their own.
    expectations = [name for name in ("Exact", "MonteCarlo") if hasattr(mfcore, name)]
    _section("Activations, mf.activations", activations, sigmas)
    _section("Data laws, mf.data", data, laws)
    _section("Initial laws, mf.init", init, starts)
    _section("Published conventions, mf.conventions", conventions, rules)
    _section("Expectations, mf", mfcore, expectations)
    _section("Methods, mf", mfcore, ["SGD", "GD", "Particles"])
    _section("Steppers for loops of your own, mf.steppers", steppers, public_names(steppers))


def _bench(arguments: argparse.Namespace) -> Any:
    try:
        bench = importlib.import_module("mfcore.bench")
    except ModuleNotFoundError as error:
        if error.name != "mfcore.bench":
            raise
        raise RuntimeError(
            "the benchmarks are not part of this installation; they come with the wheel"
        ) from None
    return bench.main(quick=arguments.quick, json=arguments.json, cases=arguments.case)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _section(title: str, module: Any, names: Iterable[str]) -> None:
    entries = [(name + _arguments(getattr(module, name)), _summary(getattr(module, name))) for name in names]
    width = max((len(call) for call, _ in entries), default=0)
    print(title)
    for call, summary in entries:
        print(f"  {call:<{width}}  {summary}".rstrip())
    print()


def _arguments(thing: Any) -> str:
    """The arguments it must have, and dots for others; nothing for an object that is ready to use."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return ""
    parameters = inspect.signature(thing).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    return f"({', '.join(needed + ['…'] * (len(needed) < len(parameters)))})"


def _summary(thing: Any) -> str:
    """The first line of its documentation, if it has one of its own."""
    own = inspect.isclass(thing) or inspect.isfunction(thing)
    return (inspect.getdoc(thing) or "").partition("\n")[0] if own else ""
