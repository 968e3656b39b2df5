"""Sphinx configuration: `sphinx-build -W -n docs build/docs`, with mfcore and its extra `docs` installed."""

import doctest
import json
import os
import re
import runpy
import types

import mfcore
from sphinx.util import inspect, logging

logger = logging.getLogger(__name__)

project = "mfcore"
author = "The mfcore developers"
copyright = "The mfcore developers"
version = release = mfcore.__version__

extensions = [
    "myst_nb",  # pages that are notebooks are run, and show their pictures
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_fence_as_directive = ["math"]  # as code hosts have it
myst_heading_anchors = 3
source_suffix = {".md": "myst-nb"}
exclude_patterns = ["figures/*.md"]  # reports of experiments, beside their pictures
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_merge_streams = True  # what one cell prints is one text
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # of the notebooks
default_role = "code"
html_theme = "furo"
html_title = "mfcore"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]

# --- the reference, from docstrings -------------------------------------------------------------------------

autodoc_default_options = {"members": True, "member-order": "bysource", "exclude-members": "start"}
autodoc_type_aliases = {
    name: name for name in ("AnyModel", "FloatArray", "MeasureLike", "Measure", "RNG", "Runs", "Schedule")
} | {"npt.ArrayLike": "ArrayLike", "ArrayLike": "ArrayLike"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
inspect.TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # as it is written, also inside of unions

MODULES = {name: value for name, value in vars(mfcore).items() if isinstance(value, types.ModuleType)}
MODULES = {name: MODULES[name] for name in sorted(MODULES) if name in mfcore.__all__}
# Where a class can be found, by its name alone: annotations name the module it was written in.
PUBLIC = {name: f"mfcore.{name}" for name in mfcore.__all__ if name not in MODULES}
for module, content in MODULES.items():
    # Objects such as `relu` are described with their module.
    kinds = (type, types.FunctionType)
    written = [name for name in getattr(content, "__all__", ()) if isinstance(getattr(content, name), kinds)]
    PUBLIC = {name: f"mfcore.{module}.{name}" for name in written} | PUBLIC

# What the reference does not list: types that only annotations name, and several names of one entry.
nitpick_ignore_regex = [
    ("py:.*", r"(np|npt|numpy|xarray|_core|collections)\..*|.*\._.*"),
    (
        "py:.*",
        r"(.*\.)?(Any|ArrayLike|Axes|Callable|Figure|Force|InitVar|M|Mapping|NDArray|Path|PathLike|R|RNG|Schedule|Sequence)",
    ),
    (
        "py:.*",
        r"(.*\.)?(AnyModel|ArrayFunction|Evaluator|Expectation|FloatArray|FuncAnimation|Inputs|LinearMeasure)",
    ),
    ("py:.*", r"(.*\.)?(MeasureLike|Measure|Method|Pairs|PlotAxes|Runs)"),
    ("py:.*", r"\w+_error"),
]


def linked(app, what, name, obj, options, lines):
    """In docstrings, `mf.SGD` and `SGD` in single backticks become links if there is such a public name."""

    def link(found):
        path = found[1].removeprefix("mf.").removeprefix("mfcore.")
        head, _, tail = path.partition(".")
        target = PUBLIC.get(path)
        if head in mfcore.__all__ and callable(getattr(getattr(mfcore, head), tail, None)):
            target = f"mfcore.{path}"
        return f":py:obj:`{found[1]} <{target}>`" if target else f"``{found[1]}``"

    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment: at the start "this: that" is read as a type and a text
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"(?<![`:\w>])`([^`<>]+)`(?![`\w])", link, line)
            # "N." at the start of a description is no list, and the bars of |w| are no markup.
            line = re.sub(r"(: )(\w\.)$", r"\1\\\2", line)
            lines[at] = re.sub(r"``.*?``|\|", lambda found: found[0] if len(found[0]) > 1 else r"\|", line)


def resolved(app, env, node, content):
    """References to where a public class was written lead to where it is documented."""
    target = PUBLIC.get(node.get("reftarget", "").rpartition(".")[2])
    if node.get("refdomain") != "py" or not target:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


def filled(app, name, source):
    """Put in targets for anchors."""
    # Anchors of equations and sections: HTML serves code hosts, MyST's own targets serve links of the site.
    source[0] = re.sub(r'^<a id="((?:eq|section)-[\d-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)


def headers(app, name, source):
    """Put in the declarations of the headers in C++ and C."""
    folder, _, room = name.rpartition("/")
    if folder == "cpp":
        make = runpy.run_path(os.path.join(app.srcdir, "headers.py"))
        if room in make["ROOMS"]:
            source[0] = re.sub(
                r"^<!-- docs/headers.py .*-->$", lambda _: make["room"](room), source[0], flags=re.MULTILINE
            )


# --- sessions that end in a picture -------------------------------------------------------------------------

NOTEBOOK = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
INLINE = "```{code-cell} ipython3\n:tags: [remove-cell]\n%matplotlib inline\n```\n\n"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^((?:>>> )?axes\.figure)  # (.+)$", re.MULTILINE)  # and its caption


def cells(block):
    """The cells of a notebook for one block of a document: a new one after each output, which it replaces."""
    code, made = "", []
    for example in doctest.DocTestParser().get_examples(block[1]):
        code += example.source
        if example.want:
            made, code = [*made, code], ""
    made = [*made, code] if made or code else [block[1]]
    return "\n".join(f"```{{code-cell}} ipython3\n{cell}```\n" for cell in made if cell)


def captioned(cell):
    """A cell whose picture has the comment behind ``axes.figure`` as its caption and alternative text."""
    found = PICTURE.search(cell[1])
    if not found:
        return cell[0]
    text = json.dumps(found[2], ensure_ascii=False)
    options = f"---\nmystnb:\n  image:\n    alt: {text}\n  figure:\n    caption: {text}\n---\n"
    return "```{code-cell} ipython3\n" + options + PICTURE.sub(r"\1", cell[1]) + "```"


def shown(app, name, source):
    """Pages with ``>>> axes.figure`` become notebooks: they run, and the site has their pictures."""
    if re.search(r"^>>> axes\.figure\b", source[0], re.MULTILINE):
        text = re.sub(r"^```python\n(.*?)^```\n", cells, source[0], flags=re.MULTILINE | re.DOTALL)
        source[0] = NOTEBOOK + text.replace("\n\n", f"\n\n{INLINE}", 1)  # after the title
    source[0] = CELL.sub(captioned, source[0])


def complete(app, env):
    """Every public name has its place in the reference."""
    for target in sorted(set(PUBLIC.values()) - set(env.get_domain("py").objects)):
        logger.warning("%s is public, and on no page under docs/api", target)


def setup(app):
    """Tell Sphinx of the functions above."""
    app.connect("autodoc-process-docstring", linked, priority=100)
    app.connect("missing-reference", resolved)
    app.connect("source-read", headers)
    app.connect("source-read", filled)
    app.connect("source-read", shown)
    app.connect("env-check-consistency", complete)
