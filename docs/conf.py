"""Sphinx configuration: `sphinx-build -W -n docs build/docs`, with mfcore and its extra `docs` installed."""

import re
import types

import mfcore
from sphinx.util import inspect, logging

logger = logging.getLogger(__name__)

project = "mfcore"
author = "The mfcore developers"
copyright = "The mfcore developers"
version = release = mfcore.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_fence_as_directive = ["math"]  # as code hosts have it
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["figures/*.md"]  # reports of experiments, beside their pictures
default_role = "code"
html_theme = "furo"
html_title = "mfcore"
html_show_sourcelink = False

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
    callables = [name for name in getattr(content, "__all__", ()) if callable(getattr(content, name))]
    PUBLIC = {name: f"mfcore.{module}.{name}" for name in callables} | PUBLIC

# What the reference does not list: types that only annotations name, and several names of one entry.
nitpick_ignore_regex = [
    ("py:.*", r"(np|npt|numpy|xarray|_core|collections)\..*|.*\._.*"),
    (
        "py:.*",
        r"(.*\.)?(Any|ArrayLike|Axes|Callable|Figure|InitVar|Mapping|NDArray|Path|PathLike|RNG|Schedule|Sequence)",
    ),
    ("py:.*", r"(.*\.)?(AnyModel|Evaluator|Expectation|FloatArray|MeasureLike|Measure|Method|PlotAxes|Runs)"),
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
    """Put in the reference of all submodules, the gallery, and targets for anchors."""
    modules = [f"## mfcore.{m}\n\n```{{eval-rst}}\n.. automodule:: mfcore.{m}\n```\n" for m in MODULES]
    source[0] = source[0].replace("{{ modules }}", "\n".join(modules))
    source[0] = source[0].replace("{{ experiments }}", "\n".join(gallery()))
    # Anchors of equations and sections: HTML serves code hosts, MyST's own targets serve links of the site.
    source[0] = re.sub(r'^<a id="((?:eq|section)-[\d-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)


def gallery():
    """A section for each experiment: what it shows, its command, and its picture."""
    for name in mfcore.experiments.NAMES:
        yield f"## {name}\n\n{mfcore.experiments.summary(name)}\n"
        yield f"```bash\nmfcore reproduce {name}\n```\n"
        yield f"![{name}](figures/{name}.png)\n"


def complete(app, env):
    """Every public name has its place in the reference."""
    for target in sorted(set(PUBLIC.values()) - set(env.get_domain("py").objects)):
        logger.warning("%s is public, and on no page under docs/api", target)


def setup(app):
    """Tell Sphinx of the functions above."""
    app.connect("autodoc-process-docstring", linked, priority=100)
    app.connect("missing-reference", resolved)
    app.connect("source-read", filled)
    app.connect("env-check-consistency", complete)
