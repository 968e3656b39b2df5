"""The shared library and its header serve C, and languages that call C."""

import json
import re
import shutil

import mfcore as mf
import numpy as np
import pytest
from mfcore._base import build


def test_the_c_header_is_c(package, run, tmp_path):
    file = tmp_path / "alone.c"
    file.write_text("#include <mfcore/mfcore.h>\n")
    done = run("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               "-I", build.get_include(), file)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_shared_library_has_the_functions_of_the_header_and_no_other(package, run):
    declared = set(re.findall(r"\b(mfcore_\w+)\(", (package / "include/mfcore/mfcore.h").read_text()))
    exported = run("nm", "-D", "--defined-only", build.get_library()).stdout
    assert {line.split()[-1] for line in exported.splitlines()} == declared
    assert "[libmfcore.so.0]" in run("readelf", "-d", build.get_library()).stdout


CALLS = """
import ctypes, json, sys
import numpy as np
library = ctypes.CDLL(sys.argv[1])
library.mfcore_level.restype = library.mfcore_message.restype = ctypes.c_char_p
theta = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]])
x, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1.0, -1.0])
gradient = np.empty_like(theta)
def at(array): return ctypes.c_void_p(array.ctypes.data)
whole, network = ctypes.c_int64, ctypes.c_void_p()
code = library.mfcore_create(b"tanh", 0, 0, whole(3), whole(2), at(theta), ctypes.byref(network))
codes = [
    code,
    library.mfcore_step(network, whole(2), at(x), at(y), ctypes.c_double(0.5), 1),
    library.mfcore_step(network, whole(2), at(x), at(y), ctypes.c_double(-1.0), 1),
] if not code else [code]
message = library.mfcore_message().decode()
if not code:
    library.mfcore_theta(network, at(theta))
    library.mfcore_potentials(network, whole(3), at(theta), whole(2), at(x), at(y), None, at(gradient), 1)
    library.mfcore_free(network)
print(json.dumps([library.mfcore_level().decode(), codes, message, theta.tolist(), gradient.tolist()]))
"""


def test_the_shared_library_serves_ctypes_at_the_level_that_is_asked_for(run, level):
    done = run("python", "-c", CALLS, build.get_library(), MFCORE_ISA=level)
    assert done.returncode == 0, done.stderr
    name, codes, message, theta, gradient = json.loads(done.stdout)
    assert (name, codes) == (level, [0, 0, 1])
    assert message == "h must be finite and >= 0, got -1"
    x, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1.0, -1.0])
    model = mf.Model(
        data=mf.data.Dataset(x, y), network=mf.Network(mf.activations.tanh), init=mf.init.Gaussian(std=1.0)
    )
    start = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]])
    # Sums of two numbers of size 1.
    np.testing.assert_allclose(theta, start - 0.5 * mf.grad_psi(model, start, start), atol=1e-14, rtol=0)
    after = np.array(theta)
    np.testing.assert_allclose(gradient, mf.grad_psi(model, after, after), atol=1e-14, rtol=0)


NUMBA = """
import ctypes, sys
import numba, numpy as np
library = ctypes.CDLL(sys.argv[1])
whole, pointer, real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double
step, theta_of = library.mfcore_step, library.mfcore_theta
step.argtypes = [pointer, whole, pointer, pointer, real, ctypes.c_int]
theta_of.argtypes = [pointer, pointer]
theta, network = np.array([1.0, 0.0]), pointer()
x, y, out = np.array([[1.0, 2.0]]), np.array([0.5]), np.empty(2)
library.mfcore_create(
    b"linear", 0, 0, whole(1), whole(2), pointer(theta.ctypes.data), ctypes.byref(network)
)

@numba.njit
def loop(network, x, y, out):
    for _ in range(3):
        step(network, 1, x.ctypes, y.ctypes, 0.1, 1)
    return theta_of(network, out.ctypes)

print(loop(network.value, x, y, out), *out)
"""


def test_the_shared_library_serves_loops_of_numba(run):
    done = run("python", "-c", NUMBA, build.get_library())
    assert done.returncode == 0, done.stderr
    code, *theta = done.stdout.split()
    expected = np.array([1.0, 0.0])
    for _ in range(3):
        expected += 0.1 * (0.5 - expected @ [1.0, 2.0]) * np.array([1.0, 2.0])
    assert code == "0"
    np.testing.assert_allclose(np.array(theta, dtype=float), expected, atol=1e-15, rtol=0)


def test_example_a_loop_in_numba_learns_and_is_told_what_is_wrong(run, source):
    done = run("python", source / "examples" / "loop_numba.py")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    risk = re.fullmatch(r"risk (\S+) after 2000 steps, code 0", first)[1]
    assert float(risk) < 0.01  # E y² is 0.2
    assert second == "code 1: h must be finite and >= 0, got -1"


def test_the_module_of_fortran_has_the_functions_and_codes_of_the_header(package):
    folder = package / "include" / "mfcore"
    header, module = (folder / "mfcore.h").read_text(), (folder / "mfcore.f90").read_text()
    bound = re.findall(r"(?:function|subroutine) (mfcore_\w+)\([^()]*\) bind\(c\)$", module, re.M)
    named = re.findall(r'name="(mfcore_\w+)"', module)
    assert {*bound, *named} == set(re.findall(r"\b(mfcore_\w+)\(", header))
    for enum in re.findall(r"enum \w+ \{(.*?)\}", header, re.S):
        codes = re.findall(r"MFCORE_(\w+)", re.sub(r"/\*.*?\*/", "", enum, flags=re.S))
        assert f"ENUMERATOR :: {', '.join(codes)}" in re.sub("mfcore_| = 0", "", module).upper()


def test_the_shared_library_says_so_where_it_has_no_level_to_use(run):
    name, codes, message, *_ = json.loads(
        run("python", "-c", CALLS, build.get_library(), MFCORE_ISA="v9").stdout
    )
    assert (name, codes) == ("", [4])
    assert "MFCORE_ISA" in message


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_tells_how_to_link_the_shared_library(package, run, tmp_path, source):
    told = run("pkg-config", "--cflags", "--libs", "mfcore-c", PKG_CONFIG_PATH=str(package / "lib/pkgconfig"))
    assert told.returncode == 0, told.stderr
    program = tmp_path / "program"
    made = run("cc", source / "examples" / "loop.c", "-o", program, *told.stdout.split(), "-lm")
    assert made.returncode == 0, made.stderr
    assert run(program).stdout.startswith(f"mfcore {mf.__version__}: risk 0.00")


@pytest.mark.skipif(not shutil.which("gfortran"), reason="gfortran is not installed")
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
@pytest.mark.parametrize("library", ["mfcore-c", "mfcore"])
def test_example_a_loop_in_fortran_learns_and_is_told_what_is_wrong(library, package, run, tmp_path, source):
    told = run("pkg-config", "--static", "--cflags", "--libs", library,
               PKG_CONFIG_PATH=str(package / "lib/pkgconfig"))  # fmt: skip
    program = tmp_path / "program"
    made = run("gfortran", "-std=f2018", "-pedantic", "-Wall", "-Wextra", "-Werror", "-J", tmp_path,
               source / "examples" / "loop.f90", "-o", program, *told.stdout.split())  # fmt: skip
    assert made.returncode == 0, made.stderr
    first, second, third = run(program).stdout.splitlines()
    version, risk = re.fullmatch(r"mfcore (\S+): risk +(\S+) after 2000 steps", first).groups()
    assert version == mf.__version__
    assert float(risk) < 0.01  # E y² is 0.2; the numbers are Fortran's, not of a fixed seed
    assert 0 < float(second.split()[-1]) < 1  # of the neuron's own gradient, where the residuals are small
    assert third == "h must be finite and >= 0, got -1"
