"""Write files that appear whole or not at all, and never replace a device, a pipe or a link.

A file is written under a name of its own beside its place, reaches the disk, and then takes the place in one
step. Whoever writes holds a lock on that partial file. The lock ends with the process, so that the next write
in the same folder can tell what a killed one has left, and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from . import check

_PREFIX, _SUFFIX = ".mfcore-", ".partial"


def check_name(path: Any, name: str) -> None:
    """Raise unless `path` can be the name of a file; `name` is the argument that messages mention."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a file name, got {check.shown(path)}")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} must be a file name without null characters, got {os.fspath(path)!r}")


def target(path: Any, name: str = "path") -> Path:
    """Follow links from `path` to the file that a write would make or replace; `name`: the name of the
    argument.
    """
    check_name(path, name)
    try:
        file = Path(os.path.realpath(path))
        if file.exists() and not file.is_file():
            what = "a folder" if file.is_dir() else "not a regular file"
            raise ValueError(f"{name} must be a new or a regular file, got {str(path)!r}: {what}")
    except OSError as error:  # such as a name too long
        raise OSError(error.errno or errno.EIO, f"{name}: {_reason(error)}", str(path)) from error
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{name} must be in a folder that exists, got {str(path)!r}")
    return file


def writable(path: Any, name: str) -> Path:
    """Return `target(path)` after trying to make a file beside it, so that failures come before the work."""
    file = target(path, name)
    try:
        with tempfile.TemporaryFile(dir=file.parent):
            return file
    except OSError as error:
        rule = f"{name} must be in a folder that can be written to"
        raise type(error)(f"{rule}, got {str(path)!r}: {_reason(error)}") from None


def replace(
    path: Any,
    write: Callable[[BinaryIO], object],
    name: str = "path",
    mine: Callable[[Path], bool] | None = None,
) -> None:
    """Let `write` fill a file that then takes the place of `path`.

    With `mine`, a file that is there already gives way only if `mine(file)` says so, and one that comes in
    between never does.
    """
    file = target(path, name)
    with named(path), _partial(file.parent) as (partial, stream):
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
        if mine is not None and not os.path.lexists(file):
            _into_vacancy(partial, file)
        elif mine is None or mine(file):
            os.replace(partial, file)
        else:
            raise FileExistsError(errno.EEXIST, "another file has taken its place", str(file))
        _sync(file.parent)


@contextmanager
def named(path: Any) -> Iterator[None]:
    """Re-raise failures to write with `path` in their message (those of full disks name no file)."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, _reason(error), str(path)) from error


def rescue(write: Callable[[Path], object], path: Path) -> tuple[Path | None, str]:
    """Let `write` make `path`; if that fails, a new file of the same name in the system's temporary folder.

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


@contextmanager
def _partial(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A context with a new locked file in `folder`, removed at the end unless it was moved away."""
    _sweep(folder)
    path, descriptor = _claimed(folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield path, stream
    finally:
        with suppress(OSError):
            os.unlink(path)


def _claimed(folder: Path) -> tuple[Path, int]:
    """Create a new file and lock it, so that `_sweep` of another process does not remove it."""
    while True:
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        ours = False
        try:  # before it was locked somebody else may have swept it away, or be about to
            ours = _lock(descriptor) is not False and os.fstat(descriptor).st_nlink > 0
        finally:
            if not ours:
                os.close(descriptor)
        if ours:
            return path, descriptor


def _sweep(folder: Path) -> None:
    """Remove partial files whose writers have died, which are those that can be locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
        for path in (folder / name for name in names if name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(descriptor):
                        os.unlink(path)
                finally:
                    os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock a file until it is closed: True if locked, False if somebody else holds it, None where locks are
    unknown.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _into_vacancy(partial: Path, file: Path) -> None:
    """Move a file to a path where no file is; fail if one has appeared there meanwhile."""
    try:
        os.link(partial, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(file):
            raise
        os.replace(partial, file)


def _sync(folder: Path) -> None:
    """Write the entries of `folder` to disk, on systems where a folder can be synchronised."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
