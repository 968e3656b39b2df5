"""Writers that fail or die at any call to the system: the old file or the new one is there, and whole."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import types
import warnings

import numpy as np
import pytest
from mfcore._base import files
from mfcore._base.archive import read_archive, write_archive

CALLS = ("open", "fdopen", "fstat", "fsync", "replace", "link", "unlink", "scandir", "close")


def write(path, number, size=1000, mine=None):
    write_archive(path, {"t": np.full(size, float(number))}, {"status": "x", "number": number}, mine=mine)


def number_in(path):
    """Which write is there; whole, or else this raises."""
    arrays, info = read_archive(path, "status")
    assert (arrays["t"] == info["number"]).all()
    return info["number"]


def counted(monkeypatch, act):
    """Let `act(name, k)` happen before the k-th call to the system of the writer; a list of calls."""
    calls = []

    def watched(name, function):
        def call(*arguments, **options):
            calls.append(name)
            act(name, len(calls))
            return function(*arguments, **options)

        return call

    own = {name: watched(name, getattr(os, name)) for name in CALLS}
    own |= {"flock": watched("flock", fcntl.flock)}
    shim = types.SimpleNamespace(**{**vars(os), **{name: own[name] for name in CALLS}})
    lock = types.SimpleNamespace(**{**vars(fcntl), "flock": own["flock"]})
    monkeypatch.setattr(files, "os", shim)
    monkeypatch.setattr(files, "fcntl", lock)
    return calls


def calls_of_a_write(monkeypatch, path, mine):
    with monkeypatch.context() as context:
        calls = counted(context, lambda *_: None)
        write(path, 0, mine=mine)
    return calls


PLACES = {"a new file": None, "an old file": 1}
ALLOWED = {"whatever is there": None, "only its own": lambda file: True}


@pytest.mark.parametrize("before", PLACES)
@pytest.mark.parametrize("mine", ALLOWED)
@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_a_call_that_fails_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, before, mine, error):
    calls = calls_of_a_write(monkeypatch, tmp_path / "trial", ALLOWED[mine])
    assert {"open", "fdopen", "fsync", "flock"} <= set(calls)
    for k in range(1, len(calls) + 2):
        folder = tmp_path / str(k)
        folder.mkdir()
        if PLACES[before]:
            write(folder / "file", 1)
        failed = []

        def fail(name, count, k=k, failed=failed):
            if count == k:
                failed.append(name)
                raise error

        with monkeypatch.context() as context:
            counted(context, fail)
            try:
                write(folder / "file", 2, mine=ALLOWED[mine])
                done = True
            except (OSError, KeyboardInterrupt):
                done = False
        if done:
            assert number_in(folder / "file") == 2
        elif (folder / "file").exists():  # the new one if only its folder could not be synchronised
            assert number_in(folder / "file") in ((1, 2) if PLACES[before] else (2,))
        else:
            assert not PLACES[before]
        write(folder / "file", 3, mine=ALLOWED[mine])
        assert number_in(folder / "file") == 3
        assert [file.name for file in folder.iterdir()] == ["file"], failed


@pytest.mark.parametrize("before", PLACES)
@pytest.mark.parametrize("mine", ALLOWED)
def test_a_writer_that_dies_at_any_call_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, before, mine):
    calls = calls_of_a_write(monkeypatch, tmp_path / "trial", ALLOWED[mine])
    for k in range(1, len(calls) + 1):
        folder = tmp_path / str(k)
        folder.mkdir()
        if PLACES[before]:
            write(folder / "file", 1)

        def die(_, count, k=k):
            if count == k:
                os.kill(os.getpid(), signal.SIGKILL)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forks beside threads, by Python and by JAX if it is there
            child = os.fork()
        if child == 0:  # it touches files only
            counted(monkeypatch, die)
            write(folder / "file", 2, mine=ALLOWED[mine])
            os._exit(0)
        os.waitpid(child, 0)
        if PLACES[before] or (folder / "file").exists():
            assert number_in(folder / "file") in ((1, 2) if PLACES[before] else (2,))
        write(folder / "file", 3, mine=ALLOWED[mine])
        assert [file.name for file in folder.iterdir()] == ["file"]  # what the dead one left is swept
        assert number_in(folder / "file") == 3


def test_a_disk_that_is_full_at_any_byte_leaves_the_old_file(tmp_path):
    write(tmp_path / "file", 1)
    size = (tmp_path / "file").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    failed = 0
    for limit in [*range(0, size, size // 40), size - 1]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # Python ignores the signal
        try:
            write(tmp_path / "file", 2)
        except OSError:
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert number_in(tmp_path / "file") == 1
        assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert failed >= 40


def test_writers_in_one_process_do_not_tear_each_others_files(tmp_path):
    failures = []

    def work(number):
        try:
            for _ in range(20):
                write(tmp_path / "file", number, size=20_000)
                assert number_in(tmp_path / "file") >= 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_partial_files_have_names_that_nobody_can_plant(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("precious")
    planted = iter(["0" * 16, "1" * 16])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(planted))
    (tmp_path / f".mfcore-{'0' * 16}.partial").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):  # even one that is guessed is not followed
        write(tmp_path / "file", 1)
    assert (tmp_path / "victim").read_text() == "precious"
    write(tmp_path / "file", 1)
    assert number_in(tmp_path / "file") == 1


WRITER = """
import sys, time
from mfcore._base import files
def slow(stream):
    stream.write(b"half of it")
    stream.flush()
    print("writing", flush=True)
    time.sleep(100)
files.replace(sys.argv[1], slow)
"""


def test_the_file_of_a_writer_that_lives_is_left_and_that_of_a_dead_one_removed(tmp_path):
    (tmp_path / ".mfcore-notes").write_text("not of this kind")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "other"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        write(tmp_path / "file", 1)
        assert len(list(tmp_path.glob(".mfcore-*.partial"))) == 1
        writer.kill()
        writer.wait()
    assert len(list(tmp_path.glob(".mfcore-*.partial"))) == 1
    write(tmp_path / "file", 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".mfcore-notes", "file"]


def test_files_have_the_permissions_that_the_user_gives_to_new_ones(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "file", 1)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("refused", ["link", "flock"])
def test_file_systems_without_links_or_locks_will_do(tmp_path, monkeypatch, refused):
    def refuse(name, _):
        if name == refused:
            raise OSError(errno.ENOTSUP, "Operation not supported")

    calls = counted(monkeypatch, refuse)
    write(tmp_path / "file", 1, mine=lambda file: False)
    assert number_in(tmp_path / "file") == 1
    assert refused in calls
    with pytest.raises(FileExistsError, match="another file has taken its place"):
        write(tmp_path / "file", 2, mine=lambda file: False)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
