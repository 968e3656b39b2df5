"""The installed package serves programs that are not Python."""

import re

from mfcore import _build, _core


def test_a_program_built_against_the_installed_package_agrees_with_python(level, source, run, tmp_path):
    configured = run(
        "cmake", "-S", source / "tests" / "embed", "-B", tmp_path, "-G", "Ninja",
        f"-Dmfcore_DIR={_build.get_cmake_dir()}", f"-DMFCORE_ISA={level}",
    )  # fmt: skip
    assert configured.returncode == 0, configured.stdout + configured.stderr
    built = run("cmake", "--build", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    ran = run(tmp_path / "consumer")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = dict(line.split() for line in ran.stdout.splitlines())
    assert printed["isa"] == level
    assert int(printed["threads"]) == _core.resolve_threads(3)


def test_asking_cmake_for_a_level_that_is_not_there_names_those_that_are(source, run, tmp_path):
    configured = run(
        "cmake", "-S", source / "tests" / "embed", "-B", tmp_path, "-G", "Ninja",
        f"-Dmfcore_DIR={_build.get_cmake_dir()}", "-DMFCORE_ISA=v1",
    )  # fmt: skip
    assert configured.returncode != 0
    assert re.search(r"MFCORE_ISA must be one of [a-z0-9;\s]+, got\s+'v1'", configured.stderr)


def test_the_installed_headers_need_neither_eigen_nor_python_nor_openmp(package):
    headers = list((package / "include").rglob("*.hpp"))
    assert headers
    for header in headers:
        for included in re.findall(r'#\s*include\s*[<"](.+?)[>"]', header.read_text()):
            assert not re.match("(?i)eigen|unsupported/eigen|pybind11|python|numpy|omp", included), header


def test_every_installed_header_compiles_alone(package, run, tmp_path):
    source = tmp_path / "alone.cpp"
    for header in (package / "include").rglob("*.hpp"):
        source.write_text(f"#include <{header.relative_to(package / 'include')}>\n")
        done = run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                   _build.get_include(), source)  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_build_scripts_can_ask_on_the_command_line(run, package):
    assert run("python", "-m", "mfcore", "--cmakedir").stdout.strip() == str(package / "cmake")
    assert run("python", "-m", "mfcore", "--includes").stdout.strip() == f"-I{package / 'include'}"
