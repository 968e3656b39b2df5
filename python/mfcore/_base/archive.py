"""Write and read .npz archives (arrays and one JSON description) without pickles, sizes checked first.

Members are stored as they are, never compressed, so that what an archive claims to hold can be compared
with the size of the file. The description is JSON. Its header says that mfcore wrote the file, in which
format, and which arrays belong to it; checksums of the members are those of the zip format.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from . import files
from .build import build_info

FORMAT = 1  # raised whenever older versions could misread what this one writes

# The entry of its description by which a file is known: what it is, what writes it and what reads it.
_KINDS = {
    "status": ("trajectory", "Trajectory.save", "mf.load"),
    "plan": ("checkpoint", "solve(checkpoint=…)", "mf.resume"),
    "piece": ("piece of a checkpoint", "solve(checkpoint=…) of a split network", "mf.resume"),
    "ladder": ("ladder", "Ladder.save", "Ladder.load"),
    "case": ("result of a sweep", "mf.sweep(folder=…)", "mf.load of its folder"),
    "runs": ("record of an experiment", "mfcore reproduce", "numpy.load"),
}  # Entry of the description by which a file is recognised: what the file is, what writes it, what reads it.


def write_archive(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    info: Mapping[str, Any],
    name: str = "path",
    mine: Callable[[Path], bool] | None = None,
) -> None:
    """Write arrays and a JSON description to one .npz file that appears whole or not at all.

    `mine`: see `files.replace`.
    """
    header = {"magic": "mfcore", "format": FORMAT, "version": build_info()["version"], "arrays": [*arrays]}
    content: dict[str, Any] = {"info": np.array(json.dumps({"header": header, **info})), **arrays}
    files.replace(path, lambda file: np.savez(file, **content), name, mine)


def read_archive(
    path: str | os.PathLike[str], kind: str, name: str = "path"
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read an archive that `write_archive` wrote; refuse one whose description lacks the entry `kind`."""
    with _opened(path, name) as stream:
        with reading(path, name):
            archive, members = _members(stream)
            info = _info(archive, members)
        _check_kind(path, kind, name, info)
        with reading(path, name):
            listed = info.pop("header")["arrays"]
            if sorted(listed) != sorted(members):
                missing = sorted(set(listed) - set(members)) or "none"
                raise ValueError(f"its arrays are not those it was written with, missing: {missing}")
            return {key: _array(archive.read(member), key) for key, member in members.items()}, info


def read_info(path: str | os.PathLike[str], kind: str, name: str = "path") -> dict[str, Any]:
    """Read the JSON description of an archive and none of its arrays."""
    with _opened(path, name) as stream:
        with reading(path, name):
            info = _info(*_members(stream))
        _check_kind(path, kind, name, info)
        return info


def kind_of(path: str | os.PathLike[str], name: str = "path") -> str:
    """Return the entry by which an archive is known, such as ``"status"``; empty if it has none."""
    with _opened(path, name) as stream, reading(path, name):
        info = _info(*_members(stream))
    return next((kind for kind in _KINDS if kind in info), "")


@contextmanager
def reading(path: str | os.PathLike[str], name: str) -> Iterator[None]:
    """Turn any failure to read a file into a `ValueError` that names the file and what is wrong with it."""
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # which a damaged directory is, that points before the beginning
            raise
        reason = str(error)
    except KeyError as error:
        reason = f"the entry {error} is missing"
    except RecursionError:
        reason = "its description is nested too deeply"
    except Exception as error:  # of zipfile, json and numpy, which do not say what damaged files may raise
        reason = str(error) or type(error).__name__
    else:
        return
    raise ValueError(f"{name} must be a file written by mfcore, got {os.fspath(path)!r}: {reason}")


@contextmanager
def _opened(path: Any, name: str) -> Iterator[BinaryIO]:
    files.check_name(path, name)
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe would wait for a writer
        raise ValueError(f"{name} must be a file written by mfcore, got {str(path)!r}: not a regular file")
    with Path(path).open("rb") as stream:
        yield stream


def _members(stream: BinaryIO) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    """The arrays of an open archive by name; refuse a member larger than the size of the file allows."""
    size = os.fstat(stream.fileno()).st_size
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError(f"its member {entry.filename!r} is compressed, which mfcore never does")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > size:
        raise ValueError(f"its members claim {claimed} bytes, more than the {size} of the file")
    members = {entry.filename.removesuffix(".npy"): entry for entry in entries}
    if len(members) < len(entries):
        raise ValueError("two of its members have the same name")
    return archive, members


def _info(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    """Decode the JSON description from its member of the archive, after a check of that member's header."""
    info = json.loads(str(_array(archive.read(members.pop("info")), "info")))
    header = info["header"] if isinstance(info, dict) and "header" in info else {}
    if not isinstance(header, dict) or header.get("magic") != "mfcore":
        raise ValueError("it has no header of mfcore")
    if header["format"] != FORMAT:
        by = f"mfcore {header['version']} wrote it in format {header['format']}"
        raise ValueError(f"{by}, this version reads format {FORMAT}")
    return dict(info)


def _check_kind(path: Any, kind: str, name: str, info: Mapping[str, Any]) -> None:
    if kind not in info:
        hints = [f", a {what}: {reader} reads it" for key, (what, _, reader) in _KINDS.items() if key in info]
        raise ValueError(
            f"{name} must be a file written by {_KINDS[kind][1]}, got {str(path)!r}{''.join(hints)}"
        )


def _array(data: bytes, name: str) -> np.ndarray:
    """Decode the bytes of an .npy file into an array of numbers or of text."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"the array {name!r} is in another format than mfcore writes")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"the array {name!r} must hold numbers or text, got the type {dtype}")
    start = stream.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"the array {name!r} of shape {shape} has {len(data) - start} bytes")
    order: Any = "F" if fortran else "C"
    return np.ndarray(shape, dtype, data, start, order=order).copy(order="K")
