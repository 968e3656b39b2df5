"""Files that appear whole or not at all, and never in the place of a device, a pipe or a link."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from . import _check


def target(path: Any, name: str = "path") -> Path:
    """The file that writing to `path` makes or replaces, where links lead; `name` is the argument's."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a file name, got {_check.shown(path)}")
    file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "not a regular file"
        raise ValueError(f"{name} must be a new or a regular file, got {str(path)!r}: {what}")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{name} must be in a folder that exists, got {str(path)!r}")
    return file


def writable(path: Any, name: str) -> Path:
    """`target`, after a try that files can be made beside it: before the work, not after it."""
    file = target(path, name)
    try:
        with tempfile.TemporaryFile(dir=file.parent):
            return file
    except OSError as error:
        rule = f"{name} must be in a folder that can be written to"
        raise type(error)(f"{rule}, got {str(path)!r}: {_reason(error)}") from None


def replace(path: Any, write: Callable[[BinaryIO], object], name: str = "path") -> None:
    """Let `write` fill a file that then takes the place of `path`."""
    file = target(path, name)
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    with named(path):
        try:
            with partial.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def named(path: Any) -> Iterator[None]:
    """Let failures to write name `path`: those of full disks name nothing, others a partial file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, _reason(error), str(path)) from error


def rescue(write: Callable[[Path], object], path: Path) -> tuple[Path | None, str]:
    """Let `write` make `path`, or else a new file of that name in the system's folder for temporary files.

    Returns:
        The file made, or None; and a sentence on what failed, or nothing.
    """
    try:
        write(path)
        return path, ""
    except (OSError, ValueError) as error:
        failure = f"{getattr(error, 'filename', None) or path} could not be written: {_reason(error)}"
    try:
        spare = Path(tempfile.mkdtemp(prefix="mfcore-"), path.name)
        write(spare)
    except OSError as error:
        return None, f"{failure}; nor could a file in {tempfile.gettempdir()}: {_reason(error)}"
    return spare, f"{failure}; the result is now in {spare}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
