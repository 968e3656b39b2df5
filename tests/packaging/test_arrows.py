"""Arrows go one way: a room may use only what comes before it in these tables."""

import ast
import functools
import itertools
import re

# Rooms: folders of cpp/src and cpp/include/mfcore. Rooms of one row do not know each other.
CPP = [
    "base",
    "network",
    "data",
    "features gaussian",
    "reduction",
    "grid",
    "flow",
    "sgd density",
    "foreign",
]

# Rooms: folders and single files of python/mfcore. Imports inside functions and under TYPE_CHECKING may point
# anywhere: `model.reduce()` reaches what needs models so.
PYTHON = [
    "_core",
    "_base",
    "activations conventions",
    "network",
    "data",
    "init",
    "model",
    "expectations",
    "reductions",
    "grids",
    "measures",
    "runs",
    "atoms",
    "neurons density movements",
    "lazy stationary",
    "perturbations",
    "theory",
    "plots",
    "experiments",
    "config steppers sweeps typing",
    "__init__",
    "cli",
    "__main__",
]


def place(room, table):
    """Number of the row of `table` that has this room."""
    for row, rooms in enumerate(table):
        if room in rooms.split():
            return row
    raise AssertionError(f"{room} is in no row of the table in {__file__}")


def includes(file):
    """Names in angle brackets and in quotes that a C++ file includes."""
    text = file.read_text()
    return re.findall(r"#\s*include\s*<(.+?)>", text), re.findall(r'#\s*include\s*"(.+?)"', text)


def test_cpp_rooms_include_only_what_comes_before_them(source):
    for folder in (source / "cpp" / "include" / "mfcore", source / "cpp" / "src"):
        for file in folder.rglob("*.?pp"):
            room = file.relative_to(folder).parts[0]
            for included in includes(file)[1]:
                used = included.removeprefix("mfcore/").split("/")[0]
                assert used == room or place(used, CPP) < place(room, CPP), f"{file} includes {included}"


def test_the_first_page_of_a_cpp_room_names_the_rooms_it_uses(source):
    for page in (source / "cpp" / "src").glob("*/README.md"):
        room = page.parent.name
        named = re.search(r"^May use: ([^.]+)\.", page.read_text("utf-8"), re.MULTILINE)[1]
        allowed = {name for rooms in CPP for name in rooms.split() if re.search(rf"\b{name}\b", named)}
        assert all(place(name, CPP) < place(room, CPP) for name in allowed), page
        for file in [*(page.parents[2] / "include" / "mfcore" / room).glob("*"), *page.parent.rglob("*.?pp")]:
            used = {name.removeprefix("mfcore/").split("/")[0] for name in includes(file)[1]}
            assert used - {room} <= allowed, f"{file} includes a room that {page} does not name"


def test_the_core_knows_no_python_and_its_headers_no_eigen_or_openmp(source):
    for file in (source / "cpp").rglob("*.?pp"):
        inside = file.relative_to(source / "cpp").parts[0]
        for included in includes(file)[0]:
            root = included.split("/")[0].split(".")[0].lower()
            assert root not in {"pybind11", "python", "numpy"} or inside == "bindings", file
            assert root not in {"eigen", "unsupported", "omp"} or inside == "src", file


def test_names_of_the_core_are_in_the_namespace_of_their_level(source):
    # Others would be the same names at every level, and archives of two levels could not be linked together.
    for folder in ("cpp/include", "cpp/src"):
        for file in (source / folder).rglob("*.?pp"):
            for room in re.findall(r"^namespace mfcore::inline (.+?) \{", file.read_text(), re.MULTILINE):
                assert room.startswith("MFCORE_LEVEL::inline "), file


def test_every_file_in_that_namespace_reads_what_it_is(source):
    # MFCORE_LEVEL would be a name like any other before mfcore/base/level.hpp is read.
    folders = [source / "cpp" / "include", source / "cpp" / "src"]

    @functools.cache
    def read(file):
        there = (folder / name for name in itertools.chain(*includes(file)) for folder in folders)
        return frozenset({file}).union(*(read(found) for found in there if found.is_file()))

    for file in (file for folder in folders for file in folder.rglob("*.?pp")):
        if "MFCORE_LEVEL::" in file.read_text():
            assert folders[0] / "mfcore" / "base" / "level.hpp" in read(file), file


def test_openmp_pragmas_are_in_one_file(source):
    having = {file.name for file in (source / "cpp").rglob("*.?pp") if "#pragma omp" in file.read_text()}
    assert having == {"parallel.hpp"}


def imported_at_the_top(tree, depth):
    """Names of the rooms that a module, `depth` folders deep, imports when it is loaded."""
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


def test_python_rooms_import_only_what_comes_before_them(source):
    folder = source / "python" / "mfcore"
    for file in folder.rglob("*.py"):
        parts = file.relative_to(folder).with_suffix("").parts
        for used in imported_at_the_top(ast.parse(file.read_text("utf-8")), len(parts) - 1):
            assert place(used, PYTHON) < place(parts[0], PYTHON), f"{file} imports {used}"


def test_architecture_lists_the_rooms_in_the_order_of_these_tables(source):
    rows = re.findall(
        r"^\|(.+)\|(.+)\|(.+)\|$", (source / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE
    )[2:]
    for column, table in ((1, PYTHON), (2, CPP)):
        names = re.findall(r"`(\w+)[\w/]*`", "".join(row[column] for row in rows))
        rooms = list(dict.fromkeys(names))  # where each is named first
        places = [place(room, table) for room in rooms]
        assert places == sorted(places), rooms
        known = {room for row in table for room in row.split()}
        assert set(rooms) == known - {"__init__", "__main__"}
        folder = source / ("python/mfcore", "cpp/src")[column - 1]
        assert all((folder / room).is_dir() or (folder / f"{room}.py").is_file() for room in known)
