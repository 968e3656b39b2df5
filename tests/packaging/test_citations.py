"""What is cited is there: numbered formulas and sections of the mathematics, and pages of this repository."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "docs/mathematics.md", *ROOT.glob("docs/mathematics/*.md")])
FOLDERS = ("cpp", "python", "tests", "docs", "bench")
KINDS = {".py", ".pyi", ".cpp", ".hpp", ".in", ".cmake", ".txt", ".md", ".toml"}

ANCHOR = re.compile(r'^<a id="(eq|section)-([\d-]+)"></a>$', re.MULTILINE)
EQUATION = re.compile(r'^<a id="eq-(\d+)-(\d+)"></a>\n\n```math\n(.*?)\n```$', re.MULTILINE | re.DOTALL)
SECTION = re.compile(r'^<a id="section-(\d+)"></a>\n\n## (\d+)\. ', re.MULTILINE)

NUMBER = r"\((\d+\.\d+)\)"
CITED = re.compile(rf"\b[Ee]qs?\.\s*{NUMBER}(?:(?:,| and| to|,? or|–)\s*{NUMBER})*")
PLACE = re.compile(r"mathematics\.md, section (\d+)")
LINK = re.compile(r"\]\(([\w./-]*)#((?:eq|section)-[\d-]+)\)")
PAGE = re.compile(r"(?<![\w./{*-])([\w./-]*[\w-]\.md)\b")
MADE_BY_TESTS = {"isotropic-gaussians.md", "NAME.md"}  # `mfcore reproduce` writes them

# A citation may be broken by the ends of lines of a comment.
BREAK = re.compile(r"\s*\n\s*(?:///?<?|#|\*)?\s*")


def sources():
    """Files with citations, and their text."""
    listed = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*")]
    listed += ROOT.glob("*.md")
    for file in sorted(listed):
        if file.suffix in KINDS and file.is_file() and file != Path(__file__):
            yield file, file.read_text("utf-8")


def equations(text):
    """Numbers (section, place) in the order of the text, and the formulas."""
    return [(int(a), int(b), formula) for a, b, formula in EQUATION.findall(text)]


def targets(page):
    """Names of the anchors of a page, such as eq-4-7 and section-4."""
    return {f"{kind}-{number}" for kind, number in ANCHOR.findall(page.read_text("utf-8"))}


def cited(text):
    """Names of the anchors that a text asks for."""
    flat = BREAK.sub(" ", text)
    found = {
        "eq-" + number.replace(".", "-")
        for mention in CITED.finditer(flat)
        for number in re.findall(NUMBER, mention[0])
    }
    return found | {f"section-{number}" for number in PLACE.findall(flat)}


def page_exists(name, file):
    """Whether a page is in the repository, seen from its root, the docs, or the file that names it."""
    return any((folder / name).is_file() for folder in (ROOT, ROOT / "docs", file.parent))


def test_formulas_and_sections_are_numbered_without_gaps_or_repetitions():
    sections, places = [], {}
    for page in PAGES:
        text = page.read_text("utf-8")
        sections += [(int(anchor), int(heading)) for anchor, heading in SECTION.findall(text)]
        for section, place, _ in equations(text):
            places.setdefault(section, []).append(place)
    assert all(anchor == heading for anchor, heading in sections)
    assert sorted(anchor for anchor, _ in sections) == list(range(1, len(sections) + 1))
    assert sorted(places) == list(range(1, len(sections) + 1))
    for section, found in places.items():
        assert found == list(range(1, len(found) + 1)), f"section {section}"


def test_every_formula_has_an_anchor_and_shows_its_number():
    for page in PAGES:
        text = page.read_text("utf-8")
        assert text.count("```math\n") == len(equations(text)), f"{page.name}: a formula without an anchor"
        anchors = sum(kind == "eq" for kind, _ in ANCHOR.findall(text))
        assert anchors == len(equations(text)), f"{page.name}: an anchor without a formula"
        for section, place, formula in equations(text):
            assert formula.endswith(rf"\tag{{{section}.{place}}}"), f"{page.name}: ({section}.{place})"


def test_every_formula_stands_in_its_section():
    for page in PAGES:
        section = 0
        for kind, number in ANCHOR.findall(page.read_text("utf-8")):
            if kind == "section":
                section = int(number)
            assert int(number.split("-")[0]) == section, f"{page.name}: {number}"


def test_every_citation_has_a_target():
    known, missing, count = set().union(*map(targets, PAGES)), [], 0
    for file, text in sources():
        names = cited(text)
        count += len(names)
        missing += [f"{file.relative_to(ROOT)}: {name}" for name in sorted(names - known)]
    assert not missing
    assert count > 100  # the expressions above still find them


def test_every_citation_in_an_installed_header_has_a_target_installed_beside_it(package):
    folder = package / "include" / "mfcore"
    known = set().union(*map(targets, (folder / "mathematics").glob("*.md")))
    headers = [file for file in folder.rglob("*") if file.suffix in {".h", ".hpp", ".f90"}]
    asked = {name for file in headers for name in cited(file.read_text("utf-8"))}
    assert len(asked) > 30  # 37 when this was written
    assert asked <= known
    assert (folder / "mathematics.md").is_file()


def test_every_link_to_a_formula_leads_to_the_page_it_is_on():
    where = {name: page for page in PAGES for name in targets(page)}
    for page in sorted(ROOT.glob("docs/**/*.md")):
        for path, name in LINK.findall(page.read_text("utf-8")):
            target = (page.parent / path).resolve() if path else page
            assert where.get(name) == target, f"{page.relative_to(ROOT)}: {path}#{name}"


def test_every_page_that_is_named_is_in_the_repository():
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file, text in sources()
        for name in PAGE.findall(text)
        if name not in MADE_BY_TESTS and not page_exists(name, file)
    ]
    assert not missing


def test_every_test_that_a_promise_names_exists():
    tests = [file for file in (ROOT / "tests").rglob("*.*p*") if file.suffix in {".py", ".cpp"}]
    paths = {file.relative_to(ROOT / "tests").as_posix() for file in tests}
    defined = {name for file in tests for name in re.findall(r"def (test_\w+)\(", file.read_text("utf-8"))}
    named = re.findall(
        r"`([\w/]+\.(?:py|cpp)|test_\w+…?)`", (ROOT / "docs" / "reproducibility.md").read_text("utf-8")
    )
    assert len(named) > 30
    for name in named:
        if name.endswith((".py", ".cpp")):
            assert any(f"/{path}".endswith(f"/{name}") for path in paths), name
        else:
            assert any(
                test.startswith(name[:-1]) if name.endswith("…") else test == name for test in defined
            ), name


def test_citations_are_found_across_the_lines_of_a_comment():
    assert cited("// as eq.\n// (4.7) says") == {"eq-4-7"}
    assert cited("Eqs. (4.8), (4.9) and\n    (5.1)") == {"eq-4-8", "eq-4-9", "eq-5-1"}
    assert cited("see docs/mathematics.md, section\n# 5") == {"section-5"}
    assert cited("f(4.7) and (1.2)") == set()
    assert PAGE.findall("notes.md, a.b.md; {name}.md *.md docs/x/y.md") == [
        "notes.md",
        "a.b.md",
        "docs/x/y.md",
    ]
