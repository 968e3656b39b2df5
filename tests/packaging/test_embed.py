"""The installed package serves programs that are not Python."""

import re

import mfcore as mf
import numpy as np
from mfcore._base import build


def grad_psi(samples):
    """What tests/embed/main.cpp computes."""
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        network=mf.Network(mf.activations.tanh),
        init=mf.init.Gaussian(std=1.0),
    )
    neurons = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]])
    return mf.grad_psi(model, neurons, neurons, expectation=samples)


def test_a_program_built_against_the_installed_package_agrees_with_python(level, source, run, tmp_path):
    configured = run(
        "cmake", "-S", source / "tests" / "embed", "-B", tmp_path, "-G", "Ninja",
        f"-Dmfcore_DIR={build.get_cmake_dir()}", f"-DMFCORE_ISA={level}",
    )  # fmt: skip
    assert configured.returncode == 0, configured.stdout + configured.stderr
    built = run("cmake", "--build", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    samples = mf.MonteCarlo(1000, rng=0)
    ran = run(tmp_path / "consumer", samples.seed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = {name: values for name, *values in map(str.split, ran.stdout.splitlines())}
    assert printed["isa"] == [level]
    # Means of 1000 numbers of size 1; levels round differently.
    np.testing.assert_allclose(
        np.array(printed["gradient"], dtype=float), grad_psi(samples).ravel(), atol=1e-13, rtol=0
    )


def test_asking_cmake_for_a_level_that_is_not_there_names_those_that_are(source, run, tmp_path):
    configured = run(
        "cmake", "-S", source / "tests" / "embed", "-B", tmp_path, "-G", "Ninja",
        f"-Dmfcore_DIR={build.get_cmake_dir()}", "-DMFCORE_ISA=v1",
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
                   build.get_include(), source)  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_build_scripts_can_ask_on_the_command_line(run, package):
    assert run("python", "-m", "mfcore", "--cmakedir").stdout.strip() == str(package / "cmake")
    assert run("python", "-m", "mfcore", "--includes").stdout.strip() == f"-I{package / 'include'}"
