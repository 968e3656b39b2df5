"""The first page of a room names every module in it, and no text names a file that is gone.

A first page is the docstring of a package in Python and `README.md` in `cpp/src`.
"""

import ast
import fnmatch
import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(ROOT.glob("python/mfcore/*/__init__.py"))
ROOMS = sorted(ROOT.glob("cpp/src/*/README.md"))

FILE = re.compile(r"(?<![\w./{*<-])([\w./*{},-]*[\w*}]\.(?:pyi?|cpp|hpp|f90|cmake))\b(?![\w({])")
MADE = {"version.hpp", "versioned.hpp", "mfcoreConfig.cmake", "mfcoreConfigVersion.cmake"}  # by CMake
THEIRS = {"wide.py"}  # programs of the reader's


def named(page):
    """What a page has between single backticks, in parts."""
    text = re.sub(r"```.*?```|``.*?``", "", page, flags=re.DOTALL)
    return {word for quoted in re.findall(r"`([^`]+)`", text) for word in re.split(r"[\s,]+", quoted)}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda file: file.parent.name)
def test_the_docstring_of_a_package_names_its_modules(package):
    words = named(ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "")
    modules = {file.stem for file in package.parent.glob("*.py")} - {"__init__"}
    assert modules - words == set()


@pytest.mark.parametrize("page", ROOMS, ids=lambda file: file.parent.name)
def test_the_first_page_of_a_room_in_cpp_names_its_files(page):
    # A header and a source of one name are one module.
    words = [word.rpartition(".")[0] for word in named(page.read_text("utf-8"))]
    files = [file for file in page.parent.rglob("*") if file.suffix in {".cpp", ".hpp"}]
    assert [f.name for f in files if not any(fnmatch.fnmatch(f.stem, word) for word in words)] == []


def tracked():
    """Paths of the repository's files."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        return [path for path in listed.stdout.decode().splitlines() if (ROOT / path).is_file()]
    return [file.relative_to(ROOT).as_posix() for file in ROOT.rglob("*") if file.is_file()]


def prose(file):
    """The text of a page, or the comments and docstrings of a program."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        read = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = [token.string for token in read if token.type == tokenize.COMMENT]
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        parts = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
        return "\n".join([*comments, *(ast.get_docstring(part) or "" for part in parts)])
    if file.suffix in {".cpp", ".hpp"}:
        return "\n".join(re.findall(r"//.*", text))
    return text


def asked(text):
    """Paths that a text names, where `a{1,2}.py` names two and `*` stands for anything."""
    for path in FILE.findall(text):
        before, opened, rest = path.partition("{")
        inside, _, after = rest.partition("}")
        if opened and "," not in inside:
            continue  # `{name}.py` stands for many
        for part in inside.split(","):
            yield re.sub(r"^(\.{1,2}/)+", "", f"{before}{part}{after}")


def test_every_file_that_a_text_names_is_in_the_repository():
    files, gone, count = tracked(), [], 0
    known = {f"/{path}" for path in files}
    for path in files:
        page = path.endswith(".md") and path != "CHANGELOG.md"  # which tells of what was
        if not page and not re.match(r"(python|cpp|bench)/.*\.(py|cpp|hpp)$", path):
            continue
        for name in set(asked(prose(ROOT / path))):
            count += 1
            if Path(name).name not in MADE | THEIRS and not fnmatch.filter(known, f"*/{name}"):
                gone.append(f"{path}: {name}")
    assert gone == []
    assert count > 200  # the expression above still finds them


def test_paths_are_found_in_prose():
    text = "`a/b.cpp`, (c_{d,e}.py), f*.hpp; x.h, {name}.py, value.python, ../g.cmake"
    assert list(asked(text)) == ["a/b.cpp", "c_d.py", "c_e.py", "f*.hpp", "g.cmake"]
