"""The public names of mfcore are all that a user needs, and none that nobody has tried."""

import ast
import builtins
import inspect
import re
import types

import mfcore as mf
from mfcore._base.registry import public_names

MODULES = [mf, *(value for value in map(mf.__dict__.get, mf.__all__) if isinstance(value, types.ModuleType))]
PUBLIC = {name: getattr(module, name) for module in MODULES for name in public_names(module)}
FOREIGN = {"Axes", "Figure", "FuncAnimation", "PlotAxes", "np", "npt", "os", "xarray"}
# Variables of types, and what mfcore alone makes.
OURS = {"M", "R", "Inputs", "Pairs", "Rung", "Table", "AtomRung", "DensityRung", "FlowRung"}
OURS |= {"LayerWiseRung", "SgdRung", "SplitRung"}


def annotations(value):
    """The annotations of a function, or of a class: its fields, properties and public methods."""
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if name == "__init__" or not name.startswith("_"):
                yield from annotations(member.fget if isinstance(member, property) else member)
        yield from (text for name, text in inspect.get_annotations(value).items() if not name.startswith("_"))
    elif inspect.isfunction(value):
        signature = inspect.signature(value)
        yield from (parameter.annotation for parameter in signature.parameters.values())
        yield signature.return_annotation


def test_every_type_that_a_public_signature_names_is_public():
    known = {*PUBLIC, *FOREIGN, *OURS, *dir(builtins)}
    known |= {"Any", "Callable", "ClassVar", "InitVar", "KW_ONLY", "Literal", "Path"}
    known |= {"Iterable", "Iterator", "Mapping", "Sequence"}
    missing = {}
    for owner, value in PUBLIC.items():
        for text in annotations(value):
            if isinstance(text, str):
                names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
                missing.setdefault(owner, set()).update(names - known)
    assert len(missing) > 100
    assert not {owner: names for owner, names in missing.items() if names}


def test_every_public_name_occurs_in_a_test(source):
    text = "\n".join(file.read_text("utf-8") for file in (source / "tests").rglob("*.py"))
    tried = PUBLIC.keys() - {"Method", *mf.typing.__all__}  # the gate of types tries those
    unknown = [name for name in tried if not re.search(rf"\b{name}\b", text)]
    assert not unknown


def test_every_public_method_and_field_occurs_in_a_test(source):
    text = "\n".join(file.read_text("utf-8") for file in (source / "tests").rglob("*.py"))
    unknown = []
    for module in MODULES:
        if module not in (mf.experiments, mf.typing):  # whose classes are parts of a command; others' classes
            for owner in filter(inspect.isclass, map(module.__dict__.get, public_names(module))):
                members = {**vars(owner), **inspect.get_annotations(owner)}
                names = [name for name in members if not name.startswith("_")]
                unknown += [
                    f"{owner.__name__}.{name}" for name in names if not re.search(rf"\b{name}\b", text)
                ]
    assert not unknown


def test_the_page_of_features_names_the_functions_that_take_out(source):
    takes = {
        name
        for name, value in PUBLIC.items()
        if inspect.isfunction(value) and "out" in inspect.signature(value).parameters
    }
    text = " ".join((source / "docs" / "features.md").read_text("utf-8").split())
    said = re.search(r"((?:`\w+`,? (?:and )?)+)write into `out=`", text)[1]
    assert set(re.findall(r"`(\w+)`", said)) == takes
