"""Save models and methods as TOML files and load them, for the command line and for the record."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from . import measures, model  # noqa: F401  (importing them registers their classes)
from ._base import check, files
from ._base.registry import Table, configurable, from_config, to_config
from .runs._solve import log_times

__all__ = ["load_config", "save_config"]

configurable(log_times)  # save_at = { kind = "log_times", first = 0.01, last = 10.0, count = 30 }


def save_config(config: Any, path: str | os.PathLike[str]) -> None:
    """Write an object of mfcore, or a mapping of names to objects and plain values, to a TOML file.

    The fields of objects come back exactly, infinities included. In plain mappings, tuples and arrays come
    back as lists. The file appears whole or not at all.

    Args:
        config: A `Model`, a law, a network, a measure…, or a mapping such as
            ``{"model": model, "horizon": 10.0}``.
        path: The file to write; an existing one is replaced.

    Raises:
        ValueError, TypeError: A value has no form in TOML; the message gives its place.

    Examples:
        >>> import mfcore as mf, tempfile
        >>> model = mf.Model(mf.data.IsotropicGaussians(d=40, delta=0.5), mf.Network(mf.activations.relu))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mf.save_config({"model": model, "horizon": 10.0}, f"{folder}/run.toml")
        ...     mf.load_config(f"{folder}/run.toml")["model"] == model
        True
    """
    if not isinstance(path, str | os.PathLike):
        swapped = isinstance(config, str | os.PathLike)
        hint = "; the order is save_config(config, path)" if swapped else ""
        raise TypeError(f"path must be a file name, got {check.shown(path)}{hint}")
    table = to_config(config)
    if not isinstance(table, Mapping):
        what = "an object of mfcore or a mapping of names to them"
        raise TypeError(f"config must be {what}, got {check.shown(config)}")
    text = tomli_w.dumps(table).encode()
    files.replace(path, lambda file: file.write(text))


def load_config(path: str | os.PathLike[str]) -> Any:
    """Read back what `save_config` wrote, or what you wrote by hand in the same grammar.

    A table with the entry ``kind`` is an object, whose other entries are its arguments; every other table is
    a mapping.

    Raises:
        ValueError: The file is not TOML, or a kind or a field is unknown, missing or out of range; the
            message gives the file and the place.

    Examples:
        >>> import mfcore as mf, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "start.toml")
        ...     _ = file.write_text('init = { kind = "Gaussian", std = 0.1 }')
        ...     mf.load_config(file)
        {'init': Gaussian(std=0.1)}
    """
    return decode(read_table(path), path)


def read_table(path: str | os.PathLike[str]) -> Table:
    """A TOML file as it is, with tables in place of objects."""
    files.check_name(path, "path")
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: not valid TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file in UTF-8: {error}") from None
    except (RecursionError, ValueError) as error:  # such as a number of more digits than Python reads
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{path}: {reason}") from None


def decode(table: Table, path: str | os.PathLike[str]) -> Any:
    """Convert the table read from `path` to the objects it describes."""
    try:
        return from_config(table)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
