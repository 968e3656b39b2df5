"""Arrows go one way: a file may use only what comes before it in these tables."""

import ast
import re
from fnmatch import fnmatch

# C++ headers and sources, without suffix. Files of one row may use each other.
CPP = [
    "views errors aligned",
    "base/simd*",
    "run",
    "base/*",
    "activation base/activations random* products jacobi quadrature panel chi_panels normal_panels sphere",
    "compress factor peak panel_basis",
    "grid_potential grid_lines",
    "network smoothing separable two_radii",
    "data sampling links finite gaussian* reduction",
    "base/neurons moments features estimate",
    "dynamics/*",
]

# Python modules; a package and all in it by its name. Modules of one row may not use each other. Imports
# inside functions and under TYPE_CHECKING may point anywhere: `model.reduce()` reaches what needs models so.
PYTHON = [
    "_cpu",
    "_loader",
    "_core",
    "_memory",
    "_bar _check _build _limits _turn",
    "_files",
    "_registry _rng activations conventions _fibres _archive",
    "_described",
    "_scalar network",
    "_parts _evaluator _tables _node_rules _tucker _blocks _grid_factors measure",
    "init",
    "data _reduced_init _separable",
    "_panels",
    "_atom_starts",
    "model reduce _exact _nodes _project",
    "expectation _reductions _grid _cells",
    "_place",
    "functions",
    "_observe estimate",
    "energy distance _minimise",
    "gibbs optimum",
    "certificate",
    "trajectory",
    "_checkpoint",
    "_rungs",
    "methods atoms density jko _run _grid_steppers",
    "nonlinear",
    "solve steppers",
    "theory config sweep",
    "plots",
    "experiments",
    "__init__",
    "cli",
    "__main__",
]


def place(name, table):
    """Number of the row of `table` that has `name`, by itself or else as a pattern."""
    for same in (str.__eq__, fnmatch):
        for row, patterns in enumerate(table):
            if any(same(name, pattern) for pattern in patterns.split()):
                return row
    raise AssertionError(f"{name} is in no row of the table in {__file__}")


def includes(file):
    """Names in angle brackets and in quotes that a C++ file includes."""
    text = file.read_text()
    return re.findall(r"#\s*include\s*<(.+?)>", text), re.findall(r'#\s*include\s*"(.+?)"', text)


def test_cpp_files_include_only_what_comes_before_them(source):
    for folder in (source / "cpp" / "include" / "mfcore", source / "cpp" / "src"):
        for file in folder.rglob("*.?pp"):
            name = file.relative_to(folder).with_suffix("").as_posix()
            for included in includes(file)[1]:
                used = included.removeprefix("mfcore/").removesuffix(".hpp")
                assert place(used, CPP) <= place(name, CPP), f"{name} includes {used}"


def test_the_core_knows_no_python_and_its_headers_no_eigen_or_openmp(source):
    for file in (source / "cpp").rglob("*.?pp"):
        inside = file.relative_to(source / "cpp").parts[0]
        for included in includes(file)[0]:
            root = included.split("/")[0].split(".")[0].lower()
            assert root not in {"pybind11", "python", "numpy"} or inside == "bindings", file
            assert root not in {"eigen", "unsupported", "omp"} or inside == "src", file


def test_openmp_pragmas_are_in_one_file(source):
    having = {file.name for file in (source / "cpp").rglob("*.?pp") if "#pragma omp" in file.read_text()}
    assert having == {"parallel.hpp"}


def imported_at_the_top(tree, depth):
    """Names of the modules of mfcore that a module, `depth` folders deep, imports when it is loaded."""
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Try | ast.With | ast.ClassDef):
            pending += node.body
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            pending += node.body + node.orelse
        elif isinstance(node, ast.ImportFrom) and node.level == depth + 1:
            yield from [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom | ast.Import) and not getattr(node, "level", 0):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            parts = [[*name.split("."), "__init__"] for name in names]
            yield from (part[1] for part in parts if part[0] == "mfcore")


def test_python_modules_import_only_what_comes_before_them(source):
    folder = source / "python" / "mfcore"
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        for used in imported_at_the_top(ast.parse(file.read_text("utf-8")), len(parts) - 1):
            assert place(used, PYTHON) < place(parts[0], PYTHON), f"{file.name} imports {used}"
