"""``mfcore info`` (what is installed) and ``mfcore list`` (what models can be made of)."""

from __future__ import annotations

import argparse
import inspect
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any

import mfcore

from .. import activations, conventions, data, experiments, init, steppers
from .._base.registry import public_names
from .._core import _cpu, _loader


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the two commands to the parser."""
    info = add("info", help="what is installed and what this machine can run")
    info.set_defaults(command=_info)
    names = add("list", help="what models are made of, and experiments, one line each")
    names.set_defaults(command=_list)


def _info(_: argparse.Namespace) -> None:
    from .._base.build import build_info

    built = build_info()
    rows = [
        ("mfcore", built["version"]),
        ("core", f"{built['isa']}, {built['vector_bits']}-bit vectors"),
        ("levels", _levels(built)),
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


def _levels(built: dict[str, Any]) -> str:
    """Which levels are installed, and how to get more."""
    said = f"{', '.join(built['installed'])} installed"
    if built["usable"] != built["installed"]:
        said += f", {', '.join(built['usable'])} usable here"
    if len(built["usable"]) > 1:
        said += "; MFCORE_ISA chooses"
    best = _cpu.levels()[-1:]
    if best and best[0] not in built["installed"] and built["isa"] != "native":
        return f"{said}; this machine supports {best[0]}: a build from source here has it"
    return said if len(built["installed"]) > 1 else f"{said}; from a checkout, all: {_loader.BUILD_ALL}"


def _list(_: argparse.Namespace) -> None:
    sigmas = [name for name in public_names(activations) if name[0].islower() and name != "get"]
    laws = [name for name in public_names(data) if name != "DataLaw"]
    starts = [name for name in public_names(init) if not inspect.isabstract(getattr(init, name))]
    rules = [name for name in public_names(conventions) if name != "Canonical"]
    # Offered by the package itself, not by a module of their own.
    expectations = [name for name in ("Exact", "MonteCarlo") if hasattr(mfcore, name)]
    methods = [name for name in mfcore.__all__ if _is_method(getattr(mfcore, name))]
    _section("Activations, mf.activations", activations, sigmas)
    _section("Data laws, mf.data", data, laws)
    _section("Initial laws, mf.init", init, starts)
    _section("Published conventions, mf.conventions", conventions, rules)
    _section("Expectations, mf", mfcore, expectations)
    _section("Methods, mf", mfcore, methods)
    _section("Steppers for loops of your own, mf.steppers", steppers, public_names(steppers))
    _print("Experiments, mfcore reproduce", [(name, experiments.summary(name)) for name in experiments.NAMES])


def _is_method(thing: Any) -> bool:
    """Tell whether `mf.solve` takes instances of it."""
    return inspect.isclass(thing) and hasattr(thing, "begin")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _section(title: str, module: Any, names: Iterable[str]) -> None:
    things = {name: getattr(module, name) for name in names}
    _print(title, [(name + _arguments(thing), _summary(thing)) for name, thing in things.items()])


def _print(title: str, entries: Sequence[tuple[str, str]]) -> None:
    width = max((len(call) for call, _ in entries), default=0)
    print(title)
    for call, summary in entries:
        print(f"  {call:<{width}}  {summary}".rstrip())
    print()


def _arguments(thing: Any) -> str:
    """Required arguments of a class, and dots if there are others; nothing for an object that is ready
    to use.
    """
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return ""
    parameters = inspect.signature(thing).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    return f"({', '.join(needed + ['…'] * (len(needed) < len(parameters)))})"


def _summary(thing: Any) -> str:
    """The first line of an object's own documentation."""
    own = inspect.isclass(thing) or inspect.isfunction(thing)
    return (inspect.getdoc(thing) or "").partition("\n")[0] if own else ""
