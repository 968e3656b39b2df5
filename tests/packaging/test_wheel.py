"""The wheel holds what it should, and nothing else."""

import tomllib
from importlib.metadata import distribution
from pathlib import PurePosixPath

import pytest
from mfcore._core import _loader


@pytest.fixture(scope="module")
def files():
    """Every file of the installed distribution, as the installer recorded it."""
    recorded = {PurePosixPath(str(file)) for file in distribution("mfcore").files or []}
    return {file for file in recorded if "__pycache__" not in file.parts}


def beneath(folder, pattern):
    """Files below `folder` of the source tree that match, relative to it."""
    found = (p for p in folder.rglob(pattern) if p.is_file() and "__pycache__" not in p.parts)
    return {PurePosixPath(p.relative_to(folder).as_posix()) for p in found if p.suffix != ".so"}


def test_every_python_file_stub_and_benchmark_is_in_the_wheel(files, source):
    assert {"mfcore" / file for file in beneath(source / "python" / "mfcore", "*")} <= files
    assert {"mfcore/bench" / file for file in beneath(source / "bench", "*.py")} <= files
    assert PurePosixPath("mfcore/py.typed") in files


def test_headers_archives_and_the_cmake_package_are_in_the_wheel(files, source):
    assert {"mfcore/include" / file for file in beneath(source / "cpp" / "include", "*")} <= files
    for level in _loader.usable_levels():
        assert PurePosixPath(f"mfcore/lib/libmfcore_{level}.a") in files
    assert PurePosixPath("mfcore/lib/libmfcore_c.a") in files
    # One file: what would be symbolic links elsewhere are copies in a wheel.
    assert len([f for f in files if f.name.startswith("libmfcore.")]) == 1
    assert PurePosixPath("mfcore/cmake/mfcoreConfig.cmake") in files
    assert PurePosixPath("mfcore/cmake/mfcoreConfigVersion.cmake") in files


def test_each_archive_has_its_module_and_each_module_its_archive(files):
    modules = {f.name.split(".")[0].removeprefix("_core_") for f in files if f.name.startswith("_core_v")}
    archives = {f.stem.removeprefix("libmfcore_") for f in files if f.name.startswith("libmfcore_v")}
    assert modules == archives


def test_the_wheel_carries_no_tests_sources_or_foreign_code(files):
    for file in files:
        assert not {"tests", "cpp", "src", "docs", ".ci", "Eigen", "pybind11"} & set(file.parts), file
        assert file.suffix not in {".cpp", ".o", ".in"}, file
        assert file.name != "CMakeLists.txt"
        top = file.parts[0]
        assert (
            top in {"mfcore", "mfcore.libs"}
            or top.startswith("mfcore-")
            or file.parts[-2:] == ("bin", "mfcore")
        ), file


@pytest.fixture(scope="module")
def licences():
    """Texts below `licenses` in the dist-info of the installed distribution, by name."""
    files = (f for f in distribution("mfcore").files or [] if ".dist-info/licenses/" in str(f))
    return {str(f).partition(".dist-info/licenses/")[2]: f.read_text() for f in files}


def test_licences_of_all_that_is_compiled_in_travel_with_the_wheel(licences):
    metadata = distribution("mfcore").metadata
    assert metadata["License-Expression"] == "BSD-3-Clause AND MPL-2.0"
    assert sorted(metadata.get_all("License-File")) == ["LICENSE", "NOTICE", "licenses/MPL-2.0.txt"]
    assert set(licences) == {"LICENSE", "NOTICE", "licenses/MPL-2.0.txt", "licenses/pybind11.txt"}
    assert licences["LICENSE"].startswith("BSD 3-Clause License")
    assert licences["licenses/MPL-2.0.txt"].startswith("Mozilla Public License Version 2.0")
    pybind11 = licences["licenses/pybind11.txt"]
    assert pybind11.startswith("Copyright (c) 2016 Wenzel Jakob")
    assert "Redistributions in binary form must reproduce" in pybind11


def test_the_notice_names_the_versions_that_are_compiled_in_and_every_library_beside(licences, files, source):
    built_with = tomllib.loads((source / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement, name in {"cmeel-eigen": "Eigen", "pybind11": "pybind11"}.items():
        version = next(r.partition("==")[2] for r in built_with if r.startswith(requirement))
        assert f"{name} {version}" in licences["NOTICE"]
    for file in files:  # what the repair of a wheel has put there, such as libgomp-1234abcd.so.1
        if file.parts[0] == "mfcore.libs":
            assert f"{file.name.partition('-')[0]} of" in licences["NOTICE"], file
