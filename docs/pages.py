"""Write the pages that follow from the code: `python docs/pages.py`. A test fails if they are out of date.

They are committed, so that they can be read where no site is built.
"""

from __future__ import annotations

import re
import types
from pathlib import Path

import mfcore

DOCS = Path(__file__).resolve().parent
# How long the full size takes on two idle cores, estimated: steps times the cost of one, and the limits
# beside it. Times that were measured are in the reports, `docs/figures/*.md`.
TAKES = {
    "isotropic-gaussians": "2 minutes (3·10⁷ steps of 800 neurons, d = 40)",
    "predictable-failure": "15 minutes (4·10⁷ steps of 800 neurons, d = 320)",
    "anisotropic-gaussians": "a minute (6·10⁵ steps of 800 neurons, d = 320, and six limits to 10⁷ steps)",
    "phase-transition": "a minute (10⁷ steps of 800 neurons, d = 40)",
    "noisy": "half a minute (1.2·10⁶ noisy steps of 800 neurons, d = 40)",
    "ladder": "a minute (12 replicas at four widths and three steps)",
    "three-atoms": "half a minute (most of it for the animation)",
    "lazy-transition": "3 minutes (5,000 steps at ten sizes τ, and four decades of scales)",
    "three-regimes": "a minute (widths to 1,024)",
    "kernel-staircase": "2 minutes (regression on up to d^2.5 samples)",
    "merged-staircase": "3 minutes (3 of processor time; ten networks on three targets, and limits)",
    "time-scales": "2 minutes (six decades of time, and networks of finite d)",
    "filtered-pca": "2 minutes (3 of processor time; dimensions to 400, 24 draws of up to 51,200 samples)",
    "sample-size": "2 minutes (5 dimensions to 640, five widths, 16 networks of each)",
    "leap": "3 minutes (2½ of processor time; 16 neurons, d to 2,048 for s ≤ 2; 3·10⁷ samples of online SGD)",
    "quartic-sphere": "a minute (1½ of processor time; 200 neurons on up to 19,000 samples, six draws)",
    "approximation": "a minute",
    "fluctuations": "2 minutes (1,200 networks)",
    "geometry": "half a minute",
    "global-convergence": "3 minutes",
    "noisy-convergence": "seconds",
}


def gallery() -> str:
    """A section for each experiment: its command, picture, caption, table and inferred settings."""
    parts = [
        "# Gallery",
        "Published figures, each by one command that writes a PNG, an SVG, the numbers as `.npz` and a page "
        "in Markdown with a table of ours beside published, exact and recomputed numbers. `--quick` runs a "
        "smaller size than the full one. Times are estimates for two idle cores (steps times the cost of "
        "one); the last line of an entry says which size made its picture and, where it was measured, how "
        "long that took. `mfcore reproduce all` makes them all.",
    ]
    for name in mfcore.experiments.NAMES:
        parts += [f"## {name}", mfcore.experiments.summary(name), f"```bash\nmfcore reproduce {name}\n```"]
        if name in TAKES:
            quick = "Estimated running time on two idle cores: with `--quick` less than a minute, else"
            parts.append(f"{quick} {TAKES[name]}.")
        parts.append(f"![{mfcore.experiments.summary(name)}](figures/{name}.png)")
        page = DOCS / "figures" / f"{name}.md"
        if page.exists():  # without its title and picture
            parts.append(page.read_text("utf-8").split("\n\n", 2)[2].strip())
        elif settings := mfcore.experiments.inferred(name):
            lines = "\n".join(f"- {line}" for line in settings)
            parts.append(f"Settings that are inferred, as no publication states them:\n\n{lines}")
    parts += [
        "## potential",
        "An example without an experiment: the force on a neuron, from the limit, from 800 neurons and by "
        "Monte Carlo; the risk of a single radius.",
        "```bash\npython examples/potential.py\n```",
        "![The force on a neuron: limit, 800 neurons and Monte Carlo; the risk of a single radius]"
        "(figures/potential.png)",
    ]
    return "\n\n".join(parts) + "\n"


def modules() -> str:
    """A section for each public module with its first sentence and, on the site, its reference."""
    parts = [
        "# Submodules",
        "Modules of `mfcore` and what they are for; the site lists their functions below.",
    ]
    for name in sorted(mfcore.__all__):
        module = getattr(mfcore, name)
        if isinstance(module, types.ModuleType):
            first = re.split(r"(?<=[.:])\s+(?=[A-Z])", str(module.__doc__).strip(), maxsplit=1)[0].rstrip(
                ":."
            )
            parts += [f"## mfcore.{name}", f"{first}."]
            parts.append(f"```{{eval-rst}}\n.. automodule:: mfcore.{name}\n```")
    return "\n\n".join(parts) + "\n"


PAGES = {DOCS / "gallery.md": gallery, (DOCS / "api/modules").with_suffix(".md"): modules}

if __name__ == "__main__":
    for file, make in PAGES.items():
        file.write_text(make(), "utf-8")
        print(file)
