"""``mfcore bench``: speed against other implementations."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from ._show import unused


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    bench = commands.add_parser(
        "bench",
        parents=[common],
        help="speed against other implementations, after checking that they agree",
        epilog="examples:\n  mfcore bench --quick\n  mfcore bench --case sgd --case gradient --json out.json"
        "\n  mfcore bench --load 20\n  mfcore bench --calls\n  mfcore bench --scaling --picture scaling.png",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_argument("--quick", action="store_true", help="small sizes only")
    bench.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    bench.add_argument("--force", action="store_true", help="overwrite a FILE that exists")
    bench.add_argument("--case", metavar="NAME", action="append", help="only this case; may be repeated")
    what = bench.add_mutually_exclusive_group()
    busy = "two threads against one, beside K busy processes that end by themselves"
    what.add_argument("--load", metavar="K", type=int, help=busy)
    what.add_argument("--calls", action="store_true", help="what a call costs at N=4, d=2")
    what.add_argument("--scaling", action="store_true", help="growth of time and memory, with fitted powers")
    what.add_argument("--split", action="store_true", help="a network on two processes of MPI against one")
    bench.add_argument("--picture", metavar="FILE", help="of --scaling: draw it, too")
    bench.set_defaults(command=_bench)


def _bench(arguments: argparse.Namespace) -> Any:
    if arguments.json:
        unused(Path(arguments.json), "--json", arguments.force)
    if arguments.picture:
        if not arguments.scaling:
            raise ValueError(f"picture must be left out without --scaling, got {arguments.picture!r}")
        unused(Path(arguments.picture), "--picture", arguments.force)
    try:
        bench = importlib.import_module("mfcore.bench")
    except ModuleNotFoundError as error:
        if error.name != "mfcore.bench":
            raise
        raise RuntimeError(
            "the benchmarks are not part of this installation; they come with the wheel"
        ) from None
    return bench.main(
        quick=arguments.quick,
        json=arguments.json,
        cases=arguments.case,
        load=arguments.load,
        calls=arguments.calls,
        scaling=arguments.scaling,
        split=arguments.split,
        picture=arguments.picture,
    )
