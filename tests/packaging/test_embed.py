"""The installed package serves programs that are not Python.

Programs are compiled by CC and CXX, or else cc and c++: `.ci/run` does it with GCC and with clang.
"""

import json
import math
import os
import re
import shutil

import mfcore as mf
import numpy as np
import pytest
from mfcore._base import build
from mfcore._core import _loader


def grad_psi(samples):
    """What tests/embed/main.cpp computes."""
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        network=mf.Network(mf.activations.tanh),
        init=mf.init.Gaussian(std=1.0),
    )
    neurons = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]])
    return mf.grad_psi(model, neurons, neurons, expectation=samples)


@pytest.fixture(scope="module")
def built(source, tmp_path_factory):
    """Build the programs of tests/embed against the installed package; gives their folder, by level."""
    folders = {}

    def at(level, run):
        if level not in folders:
            folder = tmp_path_factory.mktemp(level)
            configured = run(
                "cmake", "-S", source / "tests" / "embed", "-B", folder, "-G", "Ninja",
                f"-Dmfcore_DIR={build.get_cmake_dir()}", f"-DMFCORE_ISA={level}",
            )  # fmt: skip
            assert configured.returncode == 0, configured.stdout + configured.stderr
            made = run("cmake", "--build", folder)
            assert made.returncode == 0, made.stdout + made.stderr
            folders[level] = folder
        return folders[level]

    return at


def lines(ran):
    """What a program has printed, line by line."""
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def test_a_program_built_against_the_installed_package_agrees_with_python(level, built, run):
    samples = mf.MonteCarlo(1000, rng=0)
    printed = {
        name: values
        for name, *values in map(str.split, lines(run(built(level, run) / "consumer", samples.seed)))
    }
    assert printed["isa"] == [level]
    assert printed["version"] == [mf.__version__, "1"]
    # Means of 1000 numbers of size 1; levels round differently.
    np.testing.assert_allclose(
        np.array(printed["gradient"], dtype=float), grad_psi(samples).ravel(), atol=1e-13, rtol=0
    )


def test_what_is_wrong_is_answered_with_argument_rule_and_value_and_nothing_is_done(level, built, run):
    h, rest = "h must be finite and >= 0, got", "must be >= 0, got"
    assert lines(run(built(level, run) / "misuse")) == [
        "relu in Smoother: left_slope of relu must be 0, got 1",
        "relu in ReducedFeatures: left_slope of relu must be 0, got 1",
        "polynomial in predict: coefficients must not be empty, got []",
        "polynomial in sgd_step: coefficients must not be empty, got []",
        "name: kind must name an activation, got rellu",
        "no knots: knots must not be empty, got []",
        "coefficient: coefficients must be finite, got nan",
        *(f"h of a {what}: {h} {value}" for value in ("nan", "inf", "-1") for what in ("step", "run")),
        f"ridge: ridge {rest} -1",
        f"temperature: temperature {rest} nan",
        f"rates: rates {rest} -1",
        "columns: theta must have 2 columns for this network and law, got 4",
        "total: total must count these neurons and those before them, got 1",
        "first_neuron: first_neuron must be >= 0, got -1",
        "backward: backward must come after forward, and once, got no forward",
        f"h of backward: {h} nan",
        "no samples: x must have at least one row, got 0",
        "fewer samples: x must have at least one row, got -2",
        "fewer steps: x must have >= 0 rows, got -2",
        "no neurons: theta must have at least one row, got 0",
        "fewer neurons: theta must have >= 0 rows, got -2",
        "null samples: x must not be null, got null",
        "null neurons: theta must not be null, got null",
        "null labels: y must not be null, got null",
        "null labels of a run: y must not be null, got null",
        "null steps of a run: h must not be null, got null",
        "null samples of halves: x must not be null, got null",
        "overlapping rows: measure must have a row stride of its columns at least, got 1",
        "null start: start must not be null, got null",
        "null sampler: sampler must not be null, got null",
        "null sampler of layers: sampler must not be null, got null",
        "null inputs: x must not be null, got null",
        "null theta of pairs: theta must not be null, got null",
        "product: out must have 2 rows, got 1",
        "theta: 1 0 0 1",
        "linear: w must not be null, got null",
        "multi_index: link must have a function, got none",
        "finite_law: x, y must not be null, got null",
        "passes: nodes must not be null, got null",
        "predict: f must not be null, got null",
        "interaction: out must have a column for each row of other, got 3",
        "tangent_kernel: K must have a row for each of x, got 3",
        "pair_matrix: U must have a row for each of theta, a column for each of other, got 3",
        "node_gradient: sampler must not be null, got null",
        "masses: masses must be one for each neuron, got 1",
        "neuron_system: gradient must be a function, got none",
        "fixed_steps: size must be > 0, got 0",
        "dopri5: start must not be null, got null",
        "atom_gradient: features must have a function, got none",
        "GridPotential: first, shift must not be null, got null",
        "cells: axes must have the cells of the potential, got 1",
        "watched: watched must be numbers of cells, got 2",
        "start: start must not be null, got null",
        *(
            f"threads{what}: threads {rest} -1"
            for what in (
                " of a step",
                " of predict",
                " of node_gradient",
                " of neuron_system",
                " of fixed_steps",
                "",
            )
        ),
        f"permutation: n {rest} -1",
        *(f"{what}: count {rest} -1" for what in ("normals", "signs", "chi_squares")),
        "fill_rows: out must have rows and columns >= 0, got -1",
        f"first of fill_rows: first {rest} -1",
        f"column_span: tolerance {rest} -0.001",
        *(
            f"{what} of nothing: measure must not be empty, got 0"
            for what in ("predict", "tangent_kernel", "potential")
        ),
        f"masses of tangent_kernel: weights {rest} -0.5",
        *(f"masses of {what}: masses {rest} -0.5" for what in ("node_gradient", "atoms")),
        f"masses of cells: start {rest} -0.5",
        "error of one sample: inf",
        "theta: 1 0 0 1",
        "equal masses: 1",
        "equal masses: 1",
    ]


def test_asking_cmake_for_a_level_that_is_not_there_names_those_that_are(source, run, tmp_path):
    configured = run(
        "cmake", "-S", source / "tests" / "embed", "-B", tmp_path, "-G", "Ninja",
        f"-Dmfcore_DIR={build.get_cmake_dir()}", "-DMFCORE_ISA=v1",
    )  # fmt: skip
    assert configured.returncode != 0
    assert re.search(r"MFCORE_ISA must be one of [a-z0-9;\s]+, got\s+'v1'", configured.stderr)


def test_the_installed_headers_need_neither_eigen_nor_python_nor_openmp(package):
    headers = list((package / "include").rglob("*.h*"))
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
    assert run("python", "-m", "mfcore", "--library").stdout.strip() == build.get_library()


@pytest.mark.parametrize("program", ["loop-c", "loop-shared"])
def test_a_program_in_c_learns_and_is_told_what_is_wrong(program, level, built, run):
    first, second = lines(run(built(level, run) / program, MFCORE_ISA=level))
    version, risk = re.fullmatch(r"mfcore (\S+): risk (\S+) after 2000 steps", first).groups()
    assert version == mf.__version__
    assert float(risk) < 0.01  # E y² is 0.2; the numbers are those of the C library, not of a fixed seed
    assert second == "h must be finite and >= 0, got -1"


def numbers(line):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", line)]


def test_example_a_loop_of_ones_own_learns(level, built, run):
    risks = [numbers(line)[1] for line in lines(run(built(level, run) / "loop"))]
    assert len(risks) == 4
    assert risks[-1] < 0.01  # E (|x| - E|x|)² is 0.36


def test_example_potentials_of_a_sampler_of_ones_own(level, built, run):
    risk, *neurons, differences = lines(run(built(level, run) / "sampler"))
    assert 0 < numbers(risk)[0] < 1
    _, _, _, along, _ = numbers(neurons[0])
    assert numbers(differences)[0] == pytest.approx(along, abs=1e-4)  # as printed


def test_example_a_density_follows_the_model_of_python(level, built, run):
    rows = [numbers(line) for line in lines(run(built(level, run) / "density"))]
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        network=mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])),
        init=mf.init.Gaussian(std=0.4 / math.sqrt(10)),
        temperature=1e-3,
    )
    python = mf.solve(model, mf.PDE(cells=200), horizon=10.0, save_at=[0.0, 0.1, 1.0, 10.0])
    # Python's grid states its error, that of the program is no coarser; and risks are printed to 1e-4.
    differences = np.abs(np.array([row[1] for row in rows]) - python.risk)
    assert np.all(differences <= 2 * python.error + 1e-4), differences
    energies = [row[2] for row in rows]
    assert energies == sorted(energies, reverse=True)


def test_example_a_split_network_is_the_whole_one_to_rounding(level, built, run):
    (line,) = lines(run(built(level, run) / "split"))
    assert numbers(line)[1] < 1e-12  # 200 steps of numbers of size 1


def test_one_program_holds_all_levels_and_they_agree_to_rounding(built, run):
    usable = _loader.usable_levels()
    program = built(usable[0], run) / "levels"
    worked = {name: [float(x) for x in rest] for name, *rest in map(str.split, lines(run(program, *usable)))}
    assert list(worked) == usable
    for values in worked.values():
        # 200 steps and 500 samples, on numbers of size 1.
        np.testing.assert_allclose(values, worked[usable[0]], atol=1e-12, rtol=0)
    best = lines(run(program))  # of the environment, or of this machine
    assert best[0].split()[0] == (os.environ.get("MFCORE_ISA") or usable[-1])
    assert lines(run(program, MFCORE_ISA=usable[0]))[0].split()[0] == usable[0]


def test_an_archive_gives_other_levels_and_programs_no_code_but_that_under_its_own_name(package, run):
    # Templates of the standard library that were compiled for AVX-512 would be as good as any to the linker.
    for level in _loader.installed_levels():
        archive = package / "lib" / f"libmfcore_{level}.a"
        defined = run("nm", "-g", "--defined-only", "-f", "posix", archive).stdout
        names = [line.split()[0] for line in defined.splitlines()[1:]]
        version = "v" + mf.__version__.replace(".", "_")
        own = rf"_(ZNK?|ZT[VIS]N|ZZNK?|ZGVZNK?)6mfcore{len(version)}{version}{len(level)}{level}"
        assert len(names) > 100
        assert [name for name in names if not re.match(own, name)] == []


def test_a_file_compiled_with_headers_of_another_version_is_not_linked(package, run, tmp_path, source, level):
    other = tmp_path / "include"
    shutil.copytree(package / "include", other)
    named = other / "mfcore" / "base" / "versioned.hpp"
    named.write_text(re.sub(r"v\d+_\d+_\d+", "v99_0_0", named.read_text()))
    main, libraries = source / "tests" / "embed" / "main.cpp", package / "lib"
    made = run("c++", "-std=c++20", f"-DMFCORE_ISA={level}", "-I", other, main, "-o", tmp_path / "program",
               f"-L{libraries}", f"-lmfcore_{level}", "-lmfcore_c")  # fmt: skip
    assert made.returncode != 0
    assert f"undefined reference to `mfcore::v99_0_0::{level}::" in made.stderr


def test_mfcore_inside_of_another_project_leaves_it_its_names_settings_and_flags(source, run, tmp_path):
    # Only the file of the consumer is compiled here: the core would take minutes.
    configured = run(
        "cmake", "-S", source / "tests" / "embed" / "inside", "-B", tmp_path, "-G", "Ninja",
        f"-DMFCORE_EIGEN_INCLUDE_DIR={tmp_path}",
    )  # fmt: skip
    assert configured.returncode == 0, configured.stdout + configured.stderr
    made = run("cmake", "--build", tmp_path, "--target", "inside")
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    words = next(c["command"].split() for c in commands if c["file"].endswith("embed/main.cpp"))
    # C++20 is what the headers need; -Wall is the other project's.
    assert {word for word in words if re.match("-[fmWsO]", word)} <= {"-std=gnu++20", "-Wall"}
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_tells_how_to_compile_and_link(package, run, tmp_path, source, level):
    told = run(
        "pkg-config", f"--define-variable=isa={level}", "--cflags", "--libs", "mfcore",
        PKG_CONFIG_PATH=str(package / "lib" / "pkgconfig"),
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    flags = told.stdout.split()
    assert not any(flag.startswith(("-f", "-m", "-std")) for flag in flags)
    main, program = source / "tests" / "embed" / "main.cpp", tmp_path / "program"
    made = run("c++", "-std=c++20", main, "-o", program, *flags)
    assert made.returncode == 0, made.stderr
    assert lines(run(program))[0] == f"isa {level}"


def test_the_umbrella_header_includes_every_header(package):
    folder = package / "include"
    named = set(re.findall("#include <(.+)>", (folder / "mfcore" / "mfcore.hpp").read_text()))
    headers = {header.relative_to(folder).as_posix() for header in folder.rglob("*.hpp")}
    assert named == headers - {"mfcore/mfcore.hpp"}
