"""The code of one function as lines of text, and the differences of two such codes in words.

Two codes are the same if their instructions are, or if their sources are but for comments, docstrings and
layout: instructions alone would differ between versions of Python.
"""

from __future__ import annotations
import __future__

import ast
import bisect
import difflib
import dis
import functools
import inspect
import linecache
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

_SHOWN = 4  # a message lists at most so many lines of a function
_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class Code(TypedDict):
    """A function: its source as far as there is one, and its instructions."""

    source: list[str]
    instructions: list[str]


def code_of(code: types.CodeType, names: Mapping[str, Any]) -> Code:
    """The code of a function whose globals are `names`."""
    return {"source": _source(code, names), "instructions": _instructions(code)}


def names_of(code: types.CodeType) -> list[tuple[str, ...]]:
    """The global names that the code reads, each with the attributes that it reads of it."""
    found: dict[tuple[str, ...], None] = {}
    for one in _nested(code):
        path: list[str] = []
        for step in [*dis.get_instructions(one), None]:
            if step and path and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                path.append(step.argval)
                continue
            if path:
                found[tuple(path)] = None
            path = [step.argval] if step and step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else []
    return list(found)


def imports_of(code: types.CodeType) -> list[str]:
    """The modules that the code imports while it runs, with the dots of relative imports."""
    found: dict[str, None] = {}
    for one in _nested(code):
        constants: list[Any] = []
        for step in dis.get_instructions(one):
            if step.opname == "IMPORT_NAME":
                dots, *_ = [x for x in constants[-2:] if isinstance(x, int)] or [0]
                found["." * dots + step.argval] = None
            constants.append(step.argval)
    return list(found)


def changes(name: str, old: Code, new: Code) -> list[str]:
    """What of a function has changed, a sentence for each line; nothing if the two do the same."""
    if old["instructions"] == new["instructions"]:
        return []
    before, after = _lines(old["source"]), _lines(new["source"])
    if before and after and [text for _, text in before] == [text for _, text in after]:
        return []
    unit = "line"
    if not before or not after:
        unit = "instruction"
        before, after = (list(enumerate(code["instructions"], 1)) for code in (old, new))
    found = list(_differences(f"{unit} {{}} of {name}", before, after))
    more = [f"and {len(found) - _SHOWN} more of {name}"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


def _differences(
    where: str, before: Sequence[tuple[int, str]], after: Sequence[tuple[int, str]]
) -> Iterator[str]:
    a, b = [text for _, text in before], [text for _, text in after]
    for kind, i, i_end, j, j_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "replace" and i_end - i == j_end - j:
            for old, (number, new) in zip(a[i:i_end], after[j:j_end], strict=True):
                yield f"{where.format(number)}: {old!r} is now {new!r}"
        elif kind != "equal":
            for number, old in before[i:i_end]:
                yield f"{where.format(number)} before: {old!r} is gone"
            for number, new in after[j:j_end]:
                yield f"{where.format(number)}: {new!r} is new"


def _lines(source: list[str]) -> list[tuple[int, str]]:
    """Lines with their numbers, without comments, docstrings and layout."""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(source)))
    except SyntaxError:  # part of a statement, such as the lines of a lambda
        return [(k, line.strip()) for k, line in enumerate(source, 1) if line.strip()]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass(lineno=node.body[0].lineno, col_offset=0)]
    text = ast.unparse(tree)
    numbers: dict[int, int] = {}
    for there, here in zip(ast.walk(tree), ast.walk(ast.parse(text)), strict=False):
        if hasattr(there, "lineno") and hasattr(here, "lineno"):
            numbers.setdefault(here.lineno, there.lineno)
    lines = []
    number = 1
    for k, line in enumerate(text.splitlines(), 1):
        number = numbers.get(k, number)  # of `else:` that of the line before it
        if line.strip():
            lines.append((number, line.strip()))
    return lines


@functools.lru_cache(maxsize=1024)
def _listed(code: types.CodeType) -> tuple[str, ...]:
    lines: list[str] = []
    for one in _nested(code):
        steps = [step for step in dis.get_instructions(one) if step.opname != "NOP"]
        offsets = [step.offset for step in steps]
        for step in steps:
            value = step.argval
            if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                value = bisect.bisect_left(offsets, value)
            lines.append(f"{step.opname} {_shown(value)}" if step.arg is not None else step.opname)
    return tuple(lines)


def _instructions(code: types.CodeType) -> list[str]:
    return list(_listed(code))


def _shown(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return value.co_name
    if isinstance(value, frozenset):  # whose order differs between processes
        return f"frozenset({sorted(map(_shown, value))})"
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else repr(value)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _source(code: types.CodeType, names: Mapping[str, Any]) -> list[str]:
    """The lines of a function, if those in its file are still the ones that were compiled."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, dict(names))
    for one in _nested_of("".join(lines), code.co_filename, code.co_flags & _FUTURE):
        if one.co_qualname == code.co_qualname and _listed(one) == _listed(code):
            return [line.rstrip() for line in inspect.getblock(lines[max(one.co_firstlineno - 1, 0) :])]
    return []


@functools.lru_cache(maxsize=16)
def _nested_of(text: str, file: str, flags: int) -> tuple[types.CodeType, ...]:
    try:
        return tuple(_nested(compile(text, file, "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError):  # such as a cell of a notebook with commands that are not Python
        return ()
