"""Check the types of the code that users read: pages, examples, docstrings; with mypy --strict and pyright.

A page becomes a file that has its blocks on the same lines, a docstring one that has its examples on the
lines they have in the module, so that complaints name lines of the source. `python .ci/typed.py PART` checks
the sources with such a part in their path.
"""

import ast
import doctest
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = str(ROOT / "python")
BLOCK = re.compile(r"^```(?:python|\{code-cell\} ipython3)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMPLAINT = re.compile(r"^(\S+\.py):(\d+): (error: .*)", re.MULTILINE)  # of mypy
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef


def sources(part: str) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield the path of each source and its lines of code by number; of a module once for each docstring."""
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.py", "python/mfcore/**/*.py"):
        for file in sorted(ROOT.glob(pattern)):
            path, text = file.relative_to(ROOT).as_posix(), file.read_text("utf-8")
            if part not in path:
                continue
            if file.suffix == ".md":
                lines: dict[int, str] = {}
                for block in BLOCK.finditer(text):
                    lines |= of_block(block[1], 1 + text.count("\n", 0, block.start(1)))
                yield path, lines
            elif path.startswith("examples/"):
                yield path, dict(enumerate(text.splitlines(), 1))
            else:
                for node in ast.walk(ast.parse(text)):
                    if isinstance(node, DOCUMENTED) and (said := ast.get_docstring(node, clean=False)):
                        yield path, of_prompts(said, node.body[0].lineno)


def of_block(block: str, first: int) -> dict[int, str]:
    """Number the lines of a page's block, which begins in line `first` of the page."""
    if ">>>" in block:
        return of_prompts(block, first)
    return dict(enumerate(re.sub("^%", "# %", block, flags=re.MULTILINE).splitlines(), first))


def of_prompts(text: str, first: int) -> dict[int, str]:
    """Number the lines that follow prompts."""
    examples = doctest.DocTestParser().get_examples(text)
    return {first + e.lineno + k: line for e in examples for k, line in enumerate(e.source.splitlines())}


def mypy(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and message of what mypy has to say of the files in a folder."""
    call = [sys.executable, "-m", "mypy", "--strict", f"--config-file={ROOT}/pyproject.toml"]
    call += ["--allow-untyped-decorators", "."]  # as those of numba are
    there = os.environ | {"MYPYPATH": LIBRARY}
    said = subprocess.run(call, cwd=folder, env=there, capture_output=True, text=True)
    if said.returncode > 1:
        sys.exit(said.stdout + said.stderr)
    for file, line, text in COMPLAINT.findall(said.stdout):
        yield file, int(line), text


def pyright(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the same of pyright."""
    settings = {
        "extraPaths": [LIBRARY],
        "reportUnusedExpression": "none",  # whose value a prompt shows
        "reportPrivateImportUsage": "none",  # numba exports its names without saying so
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    call = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    if said.returncode > 1:
        sys.exit(said.stdout + said.stderr)
    for entry in json.loads(said.stdout)["generalDiagnostics"]:
        line = 1 + entry["range"]["start"]["line"]
        yield Path(entry["file"]).name, line, f"{entry['severity']}: {entry['message']}"


def main(part: str = "") -> int:
    """Print what both complain of, by source and line, and return whether there is anything."""
    with tempfile.TemporaryDirectory() as name:
        folder, paths = Path(name), {}
        for path, lines in sources(part):
            if lines:
                file = f"source{len(paths)}.py"
                paths[file] = path
                text = "\n".join(lines.get(n, "") for n in range(1, max(lines) + 1))
                (folder / file).write_text(text + "\n", "utf-8")
        complaints = sorted(
            (paths.get(file, file), line, f"{checker.__name__}: {text}")
            for checker in (mypy, pyright)
            for file, line, text in checker(folder)
        )
    for path, line, text in complaints:
        print(f"{path}:{line}: {text}")
    print(f"{len(paths)} pieces of code, {len(complaints)} complaints")
    return min(len(complaints), 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
