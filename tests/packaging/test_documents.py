"""The code in the documents runs: what a reader copies works."""

import ast
import doctest
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = r"^```(?:python|\{code-cell\} ipython3)\n(.*?)^```"
KNOWN = ("published ± reading error", "exact", "computed again ± error")  # columns of the tables of figures
VERDICT = re.compile(
    r"agrees|fitted|not resolved|differs, unexplained|differs, because .*\(predicted: (\S+) to (\S+)\)"
)
WIDEST = 88  # letters that fit without scrolling
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("document", PAGES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_python_block_of_a_document_runs(document, monkeypatch, tmp_path):
    """Blocks of one document share their names, like cells of a notebook."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    text = document.read_text("utf-8")
    names = {"__name__": "__main__"}
    for block in re.finditer(CODE, text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            example = doctest.DocTestParser().get_doctest(block[1], names, document.name, str(document), line)
            example.globs = names  # no copy: functions of earlier blocks see later names
            doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(example, clear_globs=False)
        else:
            code = re.sub(r"^%", "# %", block[1], flags=re.MULTILINE)  # a notebook's command
            exec(compile("\n" * line + code, document, "exec"), names)


def test_the_gate_of_types_reads_the_code_of_a_page_in_its_own_lines():
    sources = runpy.run_path(str(ROOT / ".ci" / "typed.py"))["sources"]
    for part in (
        "docs/tutorials/near.md",
        "docs/guides/figure.md",
        "examples/potential.py",
        "runs/_solve.py",
    ):
        text, found = (ROOT / next(sources(part))[0]).read_text("utf-8").splitlines(), {}
        for path, lines in sources(part):
            assert part in path
            found |= lines
        assert len(found) > 10
        shown = {n: text[n - 1].strip().removeprefix("%").strip() for n in found}
        assert all(line.removeprefix("# %").strip() in shown[n] for n, line in found.items())


def test_the_loop_in_pytorch_that_a_page_shows_takes_the_steps_of_ours():
    torch = pytest.importorskip("torch", reason="of the extra bench; the page runs the same in NumPy")
    text = (ROOT / "docs/guides/own-loop.md").read_text("utf-8")
    names = {}
    exec(re.search(CODE, text, re.MULTILINE | re.DOTALL)[1], names)
    ours, inputs, labels = names["ours"], torch.tensor(names["X"]), names["y"]
    names |= {"torch": torch, "samples": zip(inputs, labels, strict=True), "N": len(ours)}
    exec(re.search(r"^```text\n(theta = .*?)^```", text, re.MULTILINE | re.DOTALL)[1], names)
    assert abs(names["theta"].detach().numpy() - ours).max() < 1e-13  # 500 steps of rounding


def test_code_of_pages_is_no_wider_than_the_site_shows():
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        text = page.read_text("utf-8")
        blocks = re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        code = [line for language, block in blocks if language != "math" for line in block.splitlines()]
        wide = [line for line in code if len(line) > WIDEST]
        assert not wide, page


def test_pages_that_follow_from_the_code_are_up_to_date():
    names = runpy.run_path(str(ROOT / "docs" / "pages.py"))
    for file, make in names["PAGES"].items():
        assert file.read_text("utf-8") == make(), f"{file.name}: run `python docs/pages.py`"


def test_the_reference_of_the_headers_has_every_header_class_and_function():
    make = runpy.run_path(str(ROOT / "docs" / "headers.py"))
    include = ROOT / "cpp" / "include" / "mfcore"
    missing = []
    for room in make["ROOMS"]:
        text = make["room"](room)
        page = (ROOT / "docs" / "cpp" / f"{room}.md").read_text("utf-8")
        assert page.count("docs/headers.py") == 1, "the site puts the declarations there"
        code = [
            line
            for block in re.findall(r"^```\w+\n(.*?)^```", text, re.M | re.S)
            for line in block.splitlines()
        ]
        assert not [line for line in code if len(line) > WIDEST]
        for header in [include / "mfcore.h"] if room == "c" else (include / room).glob("*.hpp"):
            assert f"## {header.relative_to(include).as_posix()}" in text
            source = header.read_text("utf-8")
            names = re.findall(
                r"^(?:class|struct|enum class|enum|typedef struct) (\w+)[^;\n]*(?:\{|;$)", source, re.M
            )
            if room != "c":  # without forward declarations
                names = re.findall(r"^(?:class|struct|enum class) (\w+)[^;\n]*\{", source, re.M)
            names += re.findall(r"^typedef [^;{]*\(\*(\w+)\)\(", source, re.M)
            names += re.findall(r"^(?!extern template)[a-zA-Z][^=\n{/]*?\b(\w+)\(", source, re.M)
            missing += [f"{header.name}: {name}" for name in names if f"### {name}\n" not in text]
    assert missing == []


def test_every_file_of_code_begins_by_saying_what_it_is_about(source):
    silent = [
        file
        for folder in ("cpp", "tests/cpp")
        for file in (source / folder).rglob("*.?pp")
        if not file.read_text("utf-8").removeprefix("#pragma once\n").startswith("// ")
    ]
    for folder in ("python", "tests", "bench"):
        for file in (source / folder).rglob("*.py"):
            if not ast.get_docstring(ast.parse(file.read_text("utf-8"))):
                silent.append(file)
    assert not silent


def test_figures_are_made_at_full_size_and_differ_as_their_reasons_predict():
    pages = sorted((ROOT / "docs" / "figures").glob("*.md"))
    assert len(pages) == 21
    for page in pages:
        text = page.read_text("utf-8")
        assert "--quick" not in text, page.name
        head, _, *rows = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in text.split("“±”")[0].splitlines()
            if line.startswith("| ")
        )
        for row in rows:
            cells = dict(zip(head, row, strict=True))
            found = VERDICT.fullmatch(cells["verdict"])
            assert found, f"{page.name}: {cells}"
            if found[1] is None:
                continue
            theirs = [cells[name] for name in KNOWN if cells.get(name, "–") != "–"]
            ours, there = (float(cell.split(" ± ")[0]) for cell in (cells["ours ± 95 %"], *theirs))
            low, high = float(found[1]), float(found[2])
            printed = 2e-5 * abs(ours) + 0.02 * (high - low)  # digits that are not printed
            assert low - printed <= ours - there <= high + printed, f"{page.name}: {cells}"
