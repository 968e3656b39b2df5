"""The reference of the C++ headers: a room's declarations and their comments, as Markdown.

`docs/conf.py` puts the text of a room where a page in `docs/cpp` asks for it.
"""

from __future__ import annotations

import functools
import itertools
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

INCLUDE = Path(__file__).resolve().parents[1] / "cpp" / "include" / "mfcore"
WIDTH = 88  # as of all code on the site


class Item(NamedTuple):
    """A declaration: its name, the comment above it, and its lines without bodies of functions."""

    name: str
    comment: list[str]
    code: list[str]


def prose(lines: list[str]) -> str:
    """Comments as paragraphs; what is indented is a formula, and stays as it is."""
    parts: list[str] = []
    formula = False
    for line in lines:
        text = re.sub(r"^\s*//[/!]?<? ?", "", line).rstrip()
        if text.startswith("  "):
            parts += [] if formula else ["", "```text"]
        elif formula:
            parts += ["```", ""]
        formula = text.startswith("  ")
        parts.append(re.sub(r",  +", ",\n", text.strip()) if formula else escaped(text))
    text = "\n".join(parts + ["```"] * formula).strip()
    return re.sub(r"\((\d+\.\d+)\)", linked, text) if "eq" in text else text


def escaped(text: str) -> str:
    """A line in which Markdown sees nothing but code between backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_\[\]<>$|#~^{}])", r"\\\1", part) for part in parts
    )


@functools.cache
def equations() -> dict[str, str]:
    """The page of each anchor of an equation."""
    pages = sorted((INCLUDE.parents[2] / "docs" / "mathematics").glob("*.md"))
    return {
        anchor: page.name
        for page in pages
        for anchor in re.findall(r'<a id="(eq-[\d-]+)"', page.read_text("utf-8"))
    }


def linked(number: re.Match[str]) -> str:
    """The number of an equation as a link to it."""
    anchor = "eq-" + number[1].replace(".", "-")
    page = equations().get(anchor)
    return f"[({number[1]})](../mathematics/{page}#{anchor})" if page else number[0]


def without_bodies(lines: list[str]) -> list[str]:
    """Declarations, one on a line, without bodies of functions, initialisers of members and private parts."""
    kept: list[str] = []
    skip = ""  # how the line that ends what is left out begins
    for line in joined([re.sub(r"  // NOLINT.*", "", line) for line in lines]):
        indent = line[: len(line) - len(line.lstrip())]
        if skip:
            skip = "" if line.startswith(skip) else skip
        elif re.match(r"\s*(private|protected):$", line):
            skip = indent + "}"  # nothing public comes after it in our headers
            while not kept[-1]:
                kept.pop()
            kept.append(indent + "};")
        elif re.match(r"\s*(class|struct|enum)\b|[^(]*$", line) or " = " in line.partition("(")[0]:
            kept.append(line)
        elif body := re.match(
            r"( const| noexcept| override| requires\(.*?\))*(?: : .*)? \{(.*\})?$", line[closing(line) :]
        ):
            kept.append(line[: closing(line)] + (body[1] or "") + ";")
            skip = "" if body[2] else indent + "}"
        else:
            kept.append(line)
    return kept


def joined(lines: list[str]) -> list[str]:
    """Lines of code, a declaration with brackets on one of them, and a comment on one."""
    whole: list[str] = []
    for line in lines:
        last = whole[-1] if whole else ""
        comments = [re.match(r" *///? (?! )", text) for text in (last, line)]
        if all(comments) and comments[0][0] == comments[1][0]:  # type: ignore[index]
            whole[-1] = f"{last} {line.strip().lstrip('/ ')}"
        elif last.strip() and not re.search("/[/*]", last + line) and goes_on(last, line.strip()):
            whole[-1] = f"{last} {line.strip()}"
        else:
            whole.append(line)
    return whole


def goes_on(last: str, line: str) -> bool:
    """Whether a line of code only continues the one before it."""
    return (
        last.count("(") > last.count(")")
        or last.endswith((",", "="))
        or line.startswith((": ", "requires("))
        or line == "{"
    )


def closing(line: str) -> int:
    """Where the list of arguments of a line ends; 0 if there is none."""
    depth = 0
    for at, letter in enumerate(line):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0 and line[at + 1 : at + 2] != "(":  # that of operator()
            return at + 1
    return 0


def fitted(line: str) -> list[str]:
    """A line of code as lines that are not too wide; a comment behind the code goes above it."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("//"):
        mark = indent + re.findall(r"//[/<]*", line)[0] + " "
        text = line.strip().lstrip("/<").strip()
        return textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=mark)
    code, mark, comment = line.partition("  //")
    above = fitted(f"{indent}//{comment.replace('/<', '/', 1)}") if mark else []
    kept = re.sub(r"(?<!,) (?! )", "\0", code.strip())  # lines end after commas
    wrapped = textwrap.wrap(
        kept,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return above + [line.replace("\0", " ") for line in wrapped]


def name_of(code: str) -> str:
    """What a declaration declares; empty for what only repeats something."""
    if re.match(r"extern template|(class|struct) \w+;|#", code):
        return ""
    code = re.sub(r"^template <.*?> ", "", code)
    for pattern in (r"^(?:class|struct|enum class|enum) (\w+)", r"^using (\w+) =", r"(\w+) = ", r"(\w+)\("):
        if found := re.search(pattern, code.partition("(")[0] + "("):
            return found[1]
    return ""


def items(text: str) -> list[Item]:
    """Declarations of a header at namespace scope, in their order."""
    found: list[Item] = []
    comment: list[str] = []
    code: list[str] = []
    for line in text.splitlines():
        if not code and (not line or line.startswith(("#", "namespace ", "}", "//"))):
            comment = [*comment, line] if line.startswith("//") else []
            continue
        code.append(line)
        # A declaration ends in the first column, where nothing is open.
        if not re.search(r"(;|\})(\s+//.*)?$", line) or sum(map(line_depth, code)) != 0:
            continue
        name = name_of(" ".join(part.strip() for part in code))
        if name and not comment and found and found[-1].name == name:  # an overload
            found[-1].code.extend(without_bodies(code))
        elif name:
            found.append(Item(name, comment, without_bodies(code)))
        comment, code = [], []
    return found


def line_depth(line: str) -> int:
    """How many brackets a line opens and does not close."""
    text = re.sub(r"//.*|\"[^\"]*\"", "", line)
    return sum(text.count(bracket) for bracket in "({") - sum(text.count(bracket) for bracket in ")}")


def functions_of_c(text: str) -> list[Item]:
    """Declarations of the header in C: what follows a comment ``/* */``, up to an empty line."""
    found = []
    for comment, code in re.findall(r"^/\*((?:(?!\*/).)*)\*/\n((?:[^\n#/]+[^\n]*\n)+)", text, re.M | re.S):
        name = re.search(r"enum (\w+) \{|struct (\w+)|\(\*(\w+)\)\(|(\w+)\(", code)
        if name:
            found.append(Item(name[name.lastindex or 0], lines_of_c(comment), joined(code.splitlines())))
    return found


def lines_of_c(comment: str) -> list[str]:
    """The lines of a comment of C as those of C++."""
    return [f"// {line.strip().removeprefix('*').strip()}" for line in comment.splitlines()]


def section(header: Path) -> str:
    """A section for a header: what it is about, then each declaration with its comment."""
    text = header.read_text("utf-8")
    if header.suffix == ".h":
        declared, language = functions_of_c(text), "c"
        head = lines_of_c(text.partition("/*")[2].partition("*/")[0])
    else:
        declared, language = items(text), "cpp"
        head = list(itertools.takewhile(lambda line: line.startswith("//"), text.splitlines()[1:]))
    parts = [f"## {header.relative_to(INCLUDE).as_posix()}", prose(head)]
    for item in declared:
        code = "\n".join(line for long in item.code for line in fitted(long))
        parts += [f"### {item.name}", f"```{language}\n{code}\n```", prose(item.comment)]
    return "\n\n".join(part for part in parts if part)


def room(name: str) -> str:
    """The sections of all headers of a room; of the room "c", those in C."""
    headers = [INCLUDE / "mfcore.h"] if name == "c" else sorted((INCLUDE / name).glob("*.hpp"))
    return "\n\n".join(section(header) for header in headers) + "\n"


ROOMS = [*sorted(folder.name for folder in INCLUDE.iterdir() if folder.is_dir()), "c"]

if __name__ == "__main__":
    for each in ROOMS:
        print(room(each))
