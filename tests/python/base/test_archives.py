"""Damaged, forged and foreign files: each is a ValueError with the reason, before it can take memory."""

import io
import json
import os
import subprocess
import sys
import zipfile

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore._base.archive import read_archive, write_archive

METHOD = mf.SGD(neurons=3, step=0.1)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=2, delta=0.5),
    network=mf.Network(mf.activations.tanh),
    init=mf.init.Gaussian(std=0.5),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A trajectory and a checkpoint of a small run, and a ladder."""
    folder = tmp_path_factory.mktemp("written")
    options = {"horizon": 1.0, "save_at": 2, "rng": 0}
    mf.solve(MODEL, METHOD, **options).save(folder / "trajectory")
    mf.solve(MODEL, METHOD, **options, checkpoint=folder / "checkpoint", max_seconds=0)
    ladder = theory.ladder(
        MODEL.replace(network=mf.Network(mf.activations.relu)),
        neurons=[5],
        step=[0.1],
        horizon=0.2,
        replicas=2,
        rng=0,
        save_at=2,
    )
    ladder.save(folder / "ladder")
    return folder


READERS = {
    "trajectory": lambda path: mf.load(path),
    "checkpoint": lambda path: read_archive(path, "plan", "checkpoint"),
    "ladder": lambda path: theory.Ladder.load(path),
}


def content(path):
    """All that is in an archive, as comparable bytes."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def entries(result):
    """What a reader gives, as comparable bytes."""
    if isinstance(result, tuple):
        arrays, info = result
        return {name: (a.shape, a.tobytes()) for name, a in arrays.items()}, json.dumps(info)
    buffer = io.BytesIO()
    np.savez(buffer, **{k: v for k, v in vars(result).items() if isinstance(v, np.ndarray)})
    return buffer.getvalue(), repr(result.meta)


@pytest.mark.parametrize("kind", READERS)
def test_every_flipped_bit_is_an_error_or_changes_nothing(written, tmp_path, kind):
    data = (written / kind).read_bytes()
    expected = entries(READERS[kind](written / kind))
    rng = np.random.default_rng(0)
    # All of the directory at the end, whose bytes have no checksum; a sample of the rest.
    directory = data.index(b"PK\x01\x02")
    rest = rng.choice(directory, size=300, replace=False)
    heads = [k for m in range(directory) if data[m : m + 4] == b"PK\x03\x04" for k in range(m, m + 50)][:600]
    harmless, reasons = 0, []
    for place in [*range(directory, len(data)), *heads, *rest.tolist()]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            result = READERS[kind](tmp_path / "damaged")
        except ValueError as error:
            reasons.append(str(error))
        else:
            harmless += 1
            assert entries(result) == expected
    assert all("must be a file written by" in reason for reason in reasons)
    assert harmless > 0  # dates and the like


@pytest.mark.parametrize("kind", READERS)
def test_every_truncation_is_an_error(written, tmp_path, kind):
    data = (written / kind).read_bytes()
    for length in [*range(0, len(data), max(1, len(data) // 150)), len(data) - 1]:
        (tmp_path / "short").write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"must be a file written by mfcore, got '.*/short': "):
            READERS[kind](tmp_path / "short")


@pytest.mark.parametrize("kind", READERS)
def test_a_missing_or_an_additional_array_is_an_error(written, tmp_path, kind):
    whole = content(written / kind)
    for name in whole:
        with zipfile.ZipFile(tmp_path / "less", "w") as archive:
            for other in whole.keys() - {name}:
                archive.writestr(other, whole[other])
        with pytest.raises(ValueError, match="must be a file written by mfcore"):
            READERS[kind](tmp_path / "less")
    with zipfile.ZipFile(tmp_path / "more", "w") as archive:
        for name, data in {**whole, "more.npy": whole["info.npy"]}.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="not those it was written with, missing: none"):
        READERS[kind](tmp_path / "more")


def forged(path, name, data):
    """An archive of ours with one member of other bytes."""
    write_archive(path, {name: np.zeros(3)}, {"status": "completed"})
    whole = content(path)
    with zipfile.ZipFile(path, "w") as archive:
        for member, old in whole.items():
            archive.writestr(member, data if member == f"{name}.npy" else old)


def npy(array, shape=None, **options):
    """The bytes of an .npy file whose header may claim another shape."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    data = stream.getvalue()
    if shape is not None:
        claimed = f"({', '.join(map(str, shape))},)"
        head = data[10:128].replace(f"({array.size},), }}".encode(), f"{claimed}, }}".encode())
        data = data[:10] + head[:117].rstrip().ljust(117) + b"\n" + data[128:]
    return data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (npy(np.zeros(3), shape=(10**15,)), r"the array 't' of shape \(1000000000000000,\) has 24 bytes"),
        (npy(np.zeros(3), shape=(2**62, 2**62)), "has 24 bytes"),
        (npy(np.zeros(3), shape=(-3,)), "has 24 bytes"),
        (npy(np.array([None, {}], dtype=object), allow_pickle=True), "must hold numbers or text"),
        (npy(np.zeros(2, dtype=[("x", "f8")])), "must hold numbers or text"),
        (b"not an array", "magic string is not correct"),
        (b"", "EOF"),
    ],
)  # fmt: skip
def test_a_forged_array_is_an_error(tmp_path, data, reason):
    forged(tmp_path / "file", "t", data)
    with pytest.raises(ValueError, match=f"path must be a file written by mfcore, got .*: .*{reason}"):
        mf.load(tmp_path / "file")


SMALL = """
import resource, sys
import mfcore as mf
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sys.argv[1:]:
    try:
        mf.load(path)
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_bombs_are_refused_before_they_take_memory(tmp_path):
    compressed = zipfile.ZipFile(tmp_path / "compressed", "w", zipfile.ZIP_DEFLATED)
    with compressed, compressed.open("info.npy", "w") as stream:
        for _ in range(300):
            stream.write(bytes(10**6))
    assert (tmp_path / "compressed").stat().st_size < 1e6
    # Many names for one stretch of the file.
    member = npy(np.zeros(10**6))
    with zipfile.ZipFile(tmp_path / "overlapping", "w") as archive:
        archive.writestr("info.npy", member)
        entry = archive.infolist()[0]
        for k in range(1000):
            other = zipfile.ZipInfo(f"{k}.npy")
            other.CRC, other.compress_size, other.file_size = entry.CRC, entry.file_size, entry.file_size
            other.header_offset = entry.header_offset
            archive.filelist.append(other)
    done = subprocess.run(
        [sys.executable, "-c", SMALL, tmp_path / "compressed", tmp_path / "overlapping"],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first.endswith("its member 'info.npy' is compressed, which mfcore never does")
    assert "its members claim 8008128128 bytes, more than the 80" in second


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({}, "it has no header of mfcore"),
        ([1, 2], "it has no header of mfcore"),
        ({"header": 3}, "it has no header of mfcore"),
        ({"header": {"magic": "mfcore", "format": 2, "version": "9.0", "arrays": []}},
         "mfcore 9.0 wrote it in format 2, this version reads format 1"),
        ({"header": {"magic": "mfcore"}}, "the entry 'format' is missing"),
        ({"status": 1, "header": {"magic": "mfcore", "format": 1}}, "the entry 'arrays' is missing"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ],
)  # fmt: skip
def test_a_forged_description_is_an_error(tmp_path, info, reason):
    np.savez(tmp_path / "file.npz", info=np.array(info if isinstance(info, str) else json.dumps(info)))
    with pytest.raises(ValueError, match=f"path must be a file written by mfcore, got .*: .*{reason}"):
        mf.load(tmp_path / "file.npz")


def test_every_missing_entry_of_a_description_is_an_error(written, tmp_path):
    for kind, known in (("trajectory", "status"), ("ladder", "ladder"), ("checkpoint", "plan")):
        arrays, info = read_archive(written / kind, known)
        read = mf.resume if kind == "checkpoint" else READERS[kind]
        for name in info.keys() - {known}:
            write_archive(tmp_path / kind, arrays, {key: value for key, value in info.items() if key != name})
            if kind == "checkpoint" and name == "described":
                assert read(tmp_path / kind).status == "completed"  # nothing was given to compare with it
                continue
            with pytest.raises(ValueError, match=rf"got .*: .*the entry '{name}' is missing"):
                read(tmp_path / kind)


def test_a_pipe_is_no_archive(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"path must be a file written by mfcore, got .*: not a"):
        mf.load(tmp_path / "pipe")
    with pytest.raises(TypeError, match="path must be a file name, got 3"):
        mf.load(3)
    with pytest.raises(FileNotFoundError):
        mf.load(tmp_path / "nothing")
