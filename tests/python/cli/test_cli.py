"""The command line: what it prints, and its exit codes."""

import importlib
import re
import subprocess
import sys
from types import ModuleType

import mfcore
import pytest
from mfcore import _core, activations, cli, conventions, data, init
from mfcore._core import _loader
from mfcore._core._loader import installed_levels
from mfcore.cli import _info

VERSION = _core.build_info()["version"]


def run(capsys, *arguments):
    code = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def bench(monkeypatch):
    """A stand-in for the benchmarks that records how it was called and does what a test tells it to."""
    module = ModuleType("mfcore.bench")
    module.calls, module.result, module.failure = [], None, None

    def main(**options):
        module.calls.append(options)
        if module.failure is not None:
            raise module.failure
        return module.result

    module.main = main
    monkeypatch.setitem(sys.modules, "mfcore.bench", module)
    return module


def test_info_shows_build_threads_levels_and_dependencies(capsys):
    code, out, err = run(capsys, "info")
    assert (code, err) == (0, "")
    rows = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())
    assert rows["mfcore"] == VERSION
    assert rows["core"].startswith(_core.build_info()["isa"])
    assert rows["levels"].startswith(f"{', '.join(installed_levels())} installed")
    assert int(rows["threads"].split()[0]) >= 1
    for package in ("numpy", "scipy", "tomli-w"):
        assert re.match(r"\d+\.\d+", rows[package])
    assert "matplotlib" in rows


@pytest.mark.parametrize(
    ("machine", "installed", "said"),
    [
        (["v2", "v3"], ["v3"], f"v3 installed; from a checkout, all: {_loader.BUILD_ALL}"),
        (["v2", "v3"], ["v2"], "v2 installed; this machine supports v3: a build from source here has it"),
        (["v2", "v3"], ["v2", "v3", "v4"], "v2, v3, v4 installed, v2, v3 usable here; MFCORE_ISA chooses"),
    ],
)
def test_info_says_which_levels_there_are_and_how_to_get_others(machine, installed, said, monkeypatch):
    monkeypatch.setattr(_loader._cpu, "levels", lambda: machine)
    usable = [level for level in installed if level in machine]
    assert _info._levels({"isa": usable[-1], "installed": installed, "usable": usable}) == said


def test_a_missing_package_is_shown_as_not_installed():
    assert _info._version("no-such-package-as-this") == "not installed"


def test_list_names_everything_a_model_is_made_of(capsys, monkeypatch):
    class MonteCarlo:
        """Averages over fresh samples."""

    monkeypatch.setattr(mfcore, "MonteCarlo", MonteCarlo, raising=False)
    code, out, err = run(capsys, "list")
    assert (code, err) == (0, "")
    named = {re.match(r"[\w]+", line.strip())[0] for line in out.splitlines() if line.startswith("  ")}
    assert {"relu", "tanh", "piecewise_linear", "IsotropicGaussians", "Dataset", "mmn18", "jko"} <= named
    assert {"Gaussian", "Product", "Points", "Radial", "Sphere", "Normal", "MonteCarlo"} <= named
    out, _, figures = out.partition("Experiments")
    assert set(re.findall(r"^  ([a-z-]+) ", figures, re.M)) == set(mfcore.experiments.NAMES)
    named = {re.match(r"[\w]+", line.strip())[0] for line in out.splitlines() if line.startswith("  ")}
    assert not named & {"from_config", "InitialLaw", "ScalarLaw", "Canonical", "DataLaw", "Activation"}
    assert {"SGD", "GD", "Particles", "Flow"} <= named
    for name in named - {"Exact", "MonteCarlo"}:
        assert any(
            hasattr(place, name) for place in (activations, data, init, conventions, mfcore, mfcore.steppers)
        ), name


def test_version_and_help_are_answered_on_standard_output(capsys):
    assert run(capsys, "--version") == (0, f"mfcore {VERSION}\n", "")
    code, out, err = run(capsys, "--help")
    assert (code, err) == (0, "")
    assert "examples:" in out
    for command in ("run", "show", "info", "list", "bench"):
        assert f"mfcore {command}" in out
    assert "examples:" in run(capsys, "bench", "--help")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND; see mfcore --help"),
        (["inof"], "invalid choice: 'inof'"),
        (["info", "--quick"], "unrecognized arguments: --quick"),
        (["bench", "--json"], "argument --json: expected one argument; see mfcore bench --help"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"mfcore: error: [^\n]*\n", err)
    assert message in err


def test_bench_overwrites_its_file_by_force_only(capsys, bench, tmp_path):
    kept = tmp_path / "out.json"
    kept.write_text("precious")
    code, _, err = run(capsys, "bench", "--json", str(kept))
    assert (code, bench.calls) == (2, [])
    assert "it exists; --force overwrites it" in err
    assert run(capsys, "bench", "--json", str(kept), "--force")[0] == 0


def test_bench_hands_over_its_options_and_returns_the_code(capsys, bench):
    assert run(capsys, "bench")[0] == 0
    bench.result = 1
    assert run(capsys, "bench", "--quick", "--json", "out.json", "--case", "sgd", "--case", "psi")[0] == 1
    assert run(capsys, "bench", "--load", "20")[0] == 1
    others = {"load": None, "calls": False, "scaling": False, "split": False, "picture": None}
    assert bench.calls == [
        {"quick": False, "json": None, "cases": None} | others,
        {"quick": True, "json": "out.json", "cases": ["sgd", "psi"]} | others,
        {"quick": False, "json": None, "cases": None} | others | {"load": 20},
    ]


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (ValueError("case must be one of 'sgd',\n  got 'sdg'"), 2, "case must be one of 'sgd', got 'sdg'"),
        (OSError("disk full"), 1, "disk full"),
        (RuntimeError(), 1, "RuntimeError"),
    ],
)
def test_an_error_is_one_line_without_traceback_unless_asked_for(capsys, bench, failure, code, text):
    bench.failure = failure
    assert run(capsys, "bench") == (code, "", f"mfcore: error: {text}\n")
    for arguments in (["--debug", "bench"], ["bench", "--debug"]):
        got, _, err = run(capsys, *arguments)
        assert got == code
        assert err.startswith("Traceback")
        assert type(failure).__name__ in err


def test_an_interruption_is_quiet_and_has_its_own_code(capsys, bench):
    bench.failure = KeyboardInterrupt()
    assert run(capsys, "bench") == (130, "", "")


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("mfcore.bench", "the benchmarks are not part of this installation; they come with the wheel"),
        ("numba", "No module named 'numba'"),  # what the benchmarks themselves want is named, not hidden
    ],
)
def test_an_installation_without_benchmarks_says_so(capsys, monkeypatch, missing, message):
    found = importlib.import_module

    def absent(name, *package):
        if "bench" not in name:
            return found(name, *package)
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(importlib, "import_module", absent)
    assert run(capsys, "bench") == (1, "", f"mfcore: error: {message}\n")


IN_A_PROCESS = "import sys; from mfcore.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_closed_pipe_ends_the_output_without_complaint():
    command = [sys.executable, "-c", IN_A_PROCESS, "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        writer.stdout.close()  # long before the interpreter is up
        assert writer.stderr.read() == b""
    assert writer.returncode == 0


def test_a_terminal_without_greek_gets_question_marks(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS, "list"], capture_output=True, check=True)
    assert done.stderr == b""
    assert b"?" in done.stdout


def test_a_closed_output_is_no_failure():
    command = ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", IN_A_PROCESS, "list"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
