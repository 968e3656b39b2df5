"""Attack: damage archives (bits flipped, ends cut, bytes replaced, bombs); loading gives an error with a
reason, or the same numbers.
"""

from __future__ import annotations

import io
import os
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import mfcore as mf

from .report import Report
from .runs import MODEL, bits

MOST = 1 << 30  # bytes more than it has that a child may take while it reads
LIMIT = 60  # seconds of CPU time


def attack(seconds: float, seed: int, folder: Path) -> Report:
    """Damage saved runs, checkpoints and configurations until the time is over."""
    report, r, deadline = Report("archives"), Random(seed), time.monotonic() + seconds
    run = mf.solve(MODEL, mf.SGD(10, 1e-3), horizon=0.1, save_at=3, rng=0, threads=1)
    run.save(folder / "run.npz")
    mf.solve(
        MODEL, mf.SGD(10, 1e-5), horizon=1.0, rng=0, threads=1, max_seconds=0, checkpoint=folder / "c.npz"
    )
    mf.save_config({"model": MODEL, "method": mf.SGD(10, 0.1), "horizon": 1.0}, folder / "run.toml")
    finish = mf.solve(MODEL, mf.SGD(10, 1e-5), horizon=1.0, rng=0, threads=1)
    readers: dict[str, tuple[Callable[[Path], object], bytes]] = {
        "run.npz": (lambda p: bits(mf.load(p)), bits(run)),
        "c.npz": (lambda p: bits(mf.resume(p, threads=1)), bits(finish)),
        "run.toml": (mf.load_config, b""),
    }
    for bomb in _bombs(folder / "run.npz"):
        _read(report, "a bomb", bomb, folder / "bomb.npz", readers["run.npz"][0], None)
    while time.monotonic() < deadline:
        name = r.choice(list(readers))
        read, wanted = readers[name]
        _read(report, name, damaged(r, (folder / name).read_bytes()), folder / "damaged.npz", read, wanted)
    return report


def damaged(r: Random, data: bytes) -> bytes:
    """Some of its bits or bytes changed, cut, doubled or moved."""
    out, kind = bytearray(data), r.randrange(6)
    at = r.randrange(len(out))
    if kind == 0:
        out[at] ^= 1 << r.randrange(8)
    elif kind == 1:
        del out[at:]
    elif kind == 2:
        out[at : at + r.randrange(1, 64)] = r.randbytes(r.randrange(1, 64))
    elif kind == 3:
        out[at:at] = out[: r.randrange(1, 512)]
    elif kind == 4:
        del out[at : at + r.randrange(1, 512)]
    else:
        for _ in range(r.randrange(2, 40)):
            out[r.randrange(len(out))] = r.randrange(256)
    return bytes(out)


def _bombs(path: Path) -> list[bytes]:
    """Archives of a few bytes with a member that is 4 GB long, or says so."""
    bombs = []
    for honest in (True, False):
        file = io.BytesIO()
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
            for member in source.namelist():
                data = source.read(member)
                if member.startswith("t."):
                    data = _npy_header(2**29)
                    if honest:
                        with target.open(member, "w", force_zip64=True) as out:
                            out.write(data)
                            for _ in range(64):
                                out.write(bytes(1 << 26))
                        continue
                target.writestr(member, data)
        bombs.append(file.getvalue())
    return bombs


def _npy_header(n: int) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},), }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _read(
    report: Report, name: str, data: bytes, path: Path, read: Callable[[Path], object], wanted: bytes | None
) -> None:
    """Read in a child: a result must be the right one, an error a ValueError with a reason."""
    path.write_bytes(data)
    report.calls += 1
    report.kills += 1
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(here)
        with open("/proc/self/statm") as file:
            have = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (have + MOST, have + MOST))
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        try:
            result = read(path)
            same = not isinstance(result, bytes) or result == wanted
            said = "result" if same or wanted is None else "other numbers"
        except (ValueError, TypeError) as error:
            said = "refused" if str(error) else f"{type(error).__name__} without a reason"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(there, said.encode()[:300])
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as answer:
        said = answer.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if status:
        report.finding("lost", f"{name}: the reader ended with {os.waitstatus_to_exitcode(status)}")
    kind = said if said in ("result", "refused", "other numbers") else said.split(":")[0]
    report.outcomes[kind] += 1
    if kind == "other numbers":
        report.finding("silent", f"{name}: read as other numbers")
    elif kind not in ("result", "refused"):
        report.finding("unclear", f"{name}: {said}")
