"""A build says what it lacks: a compiler, a new enough one, GNU's objcopy. Only probes are compiled."""

import os
import platform
import stat

import pytest

SEVERAL = platform.machine() in ("x86_64", "AMD64")
LEVELS = ["v2", "v3"] if SEVERAL else ["generic"]


@pytest.fixture
def configure(source, run, tmp_path):
    """Configure the core alone, with more options; gives the finished process and the commands for ninja."""

    def call(*options, **environment):
        cmake = run(
            "cmake", "-P", script(tmp_path / "where.cmake", "message(${CMAKE_COMMAND})")
        ).stderr.strip()
        done = run(
            cmake, "-S", source, "-B", tmp_path / "build", "-G", "Ninja", "-DMFCORE_PYTHON=OFF",
            f"-DMFCORE_ISA={';'.join(LEVELS)}", f"-DMFCORE_EIGEN_INCLUDE_DIR={tmp_path}",
            "-DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON", *options, **environment,
        )  # fmt: skip
        commands = tmp_path / "build" / "build.ninja"
        return done, commands.read_text() if commands.is_file() else ""

    return call


def script(file, text):
    """Write a file that can be run."""
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def in_one_line(text):
    return " ".join(text.split())


def test_a_machine_without_a_compiler_is_told_what_to_install(configure, tmp_path):
    done, _ = configure(PATH=str(tmp_path), CXX="")
    assert done.returncode != 0
    said = in_one_line(done.stderr)
    assert "there is no C++ compiler (c++, g++ or clang++) on PATH. Install GCC >= 12 or clang >= 13" in said
    assert "apt install g++" in said


def test_a_compiler_that_is_too_old_is_refused_by_its_version(configure, tmp_path):
    # As GCC 11 or clang 12 would call themselves; either ignores what is said of the other.
    older = "-U__GNUC__ -D__GNUC__=11 -U__clang_major__ -D__clang_major__=12"
    if "clang" in os.environ.get("CXX", ""):
        older = "-U__clang_major__ -D__clang_major__=12"
    compiler = script(tmp_path / "old", f'#!/bin/sh\nexec {os.environ.get("CXX") or "c++"} {older} "$@"\n')
    done, _ = configure(CXX=str(compiler))
    assert done.returncode != 0
    said = in_one_line(done.stderr)
    assert "mfcore needs the vector extensions of GCC >= 12 or clang >= 13;" in said
    assert f"{compiler} is GNU 11." in said or f"{compiler} is Clang 12." in said


def test_archives_are_sealed_by_gnu_objcopy_beside_the_binutils_of_llvm(configure, tmp_path):
    other = script(tmp_path / "llvm-objcopy", "#!/bin/sh\necho llvm-objcopy, compatible with GNU objcopy\n")
    done, commands = configure(f"-DCMAKE_OBJCOPY={other}")
    assert done.returncode == 0, done.stderr
    assert "--discard-all" in commands
    assert str(other) not in commands


def test_without_gnu_objcopy_nothing_is_sealed_and_the_build_says_what_that_costs(configure, tmp_path):
    for name in ("objcopy", "gobjcopy", f"{platform.machine()}-linux-gnu-objcopy"):
        script(tmp_path / name, "#!/bin/sh\necho llvm-objcopy, compatible with GNU objcopy\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done, commands = configure(f"-DCMAKE_OBJCOPY={tmp_path / 'objcopy'}", PATH=path)
    assert done.returncode == 0, done.stderr
    said = f"the interface in C and libmfcore hold {LEVELS[0]} alone"
    assert said in in_one_line(done.stdout)
    assert "--discard-all" not in commands
    # Of several levels in one library the linker would mix the templates.
    version = (tmp_path / "build" / "cpp" / "include" / "mfcore" / "version.hpp").read_text()
    assert f"MFCORE_EACH_LEVEL(f) f({LEVELS[0]})\n" in version
