"""One name, one type: two types under one name in two C++ files are undefined behaviour once linked.

The gate `odr` asks the linker, which sees only what differs today; here the names alone decide.
"""

import re

IGNORED = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^\s*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M
)
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")
NAMESPACE = re.compile(r"\bnamespace\b\s*((?:[\w:]|inline\s)*)\s*$")
TYPE = re.compile(
    r"^\s*(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)"
)
ALIAS = re.compile(r"^\s*using\s+(\w+)\s*=")


def types(text):
    """(namespace, name, whether seen in this file alone) of types that C++ text defines in namespaces."""
    scopes, head = [], ""  # names of open namespaces, None for any other brace; text before the next brace
    for piece in re.split(r"([{};])", TEMPLATE.sub("", IGNORED.sub(" ", text))):
        outside = None not in scopes
        place = "::".join(filter(None, scopes)) if outside else ""
        found = None
        if piece == "{":
            opened = NAMESPACE.search(head)
            found = None if opened else TYPE.match(head)
            scopes.append(opened[1] if opened else None)
        elif piece == "}":
            scopes.pop()
        elif piece == ";":
            found = ALIAS.match(head)
        if outside and found:
            yield place, found[1], "" in scopes
        head = "" if piece in {"{", "}", ";"} else piece
    assert not scopes, "braces do not match"


def test_a_scan_finds_types_in_namespaces_only():
    text = """
        namespace a { namespace b::c {
        enum class Kind { one, two };
        template <class T, int N = sizeof(X<T>)> struct Box final : Base<T> { struct In { char c = '{'; }; };
        struct Declared;  // struct Comment {};
        using Number = double;
        inline int f(struct Box<int, 1>& box) { struct Local {}; using Other = int; return 0; }
        } namespace {
        class Hidden {};
        } }"""
    assert list(types(text)) == [
        ("a::b::c", "Kind", False),
        ("a::b::c", "Box", False),
        ("a::b::c", "Number", False),
        ("a", "Hidden", True),
    ]


def test_no_type_name_is_defined_in_two_files_of_the_core(source):
    """Names in anonymous namespaces may be used again by another source, but not hide one of a header."""
    defined = {}
    for file in sorted((source / "cpp").rglob("*.?pp")):
        for place, name, alone in types(file.read_text("utf-8")):
            defined.setdefault((place, name), {})[file.name] = alone
    assert len(defined) > 150  # 189 when this was written
    twice = {
        f"{place}::{name}": list(files)
        for (place, name), files in defined.items()
        if len(files) > 1 and not all(files.values())
    }
    assert not twice
